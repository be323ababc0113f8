//! The machines behind the instances: an sshd on a loopback port each, a home on disk, a port space, and the processes
//! that run there.
//!
//! [`Machines::follow`] is called whenever the world was brought up to date, and makes the machines what the world
//! says: a Running instance has one, with the port that its records show; one that is Stopped keeps its home; one that
//! is gone takes everything with it. What listens and what was started runs by itself in between, as on a real machine.
//!
//! - The home is made when the first session begins: a machine that nobody logs into costs one socket.
//! - Commands are run by the system's shell with the home as `HOME`. They are ordinary processes of the user that runs
//!   the sandbox, and no wall stands between them and the rest of the machine.
//! - Processes are known by a variable in their environment (`processes`); nothing else is ever ended.
//! - Where the system is no Unix instances have no machines: their ports are invented, as are those of instances beyond
//!   the first 256.

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod unix;

use std::path::PathBuf;

use serde::Serialize;

#[cfg(not(unix))]
pub(super) use self::absent::Machines;
#[cfg(unix)]
pub(super) use self::unix::{GUARD, Machines, guard};

/// A machine as the control interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineView {
    /// The uid of its instance.
    pub uid: String,
    /// Where its sshd listens, or would.
    pub ssh_port: u16,
    /// The host key as OpenSSH writes it.
    pub host_key: String,
    /// Its `HOME`; the directory is created at the first session.
    pub home: PathBuf,
    /// The ids of the processes that run there.
    pub processes: Vec<u32>,
}
