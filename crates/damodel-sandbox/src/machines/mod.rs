//! The machines of instances, their simulated computers: each has an sshd on a loopback port, a home on disk, a port
//! space, and processes.
//!
//! [`Machines::follow`] is called after each update of the world and brings the machines in line with it: a Running
//! instance has one, with the port that its records show; a Stopped one keeps its home; the machine of a removed
//! instance is deleted with everything in it. Listeners and processes continue in between, as on a real computer.
//!
//! - The home is made at the first session: a machine without logins costs one socket.
//! - Commands are run by the system's shell with the home as `HOME`. They are ordinary processes of the user that runs
//!   the sandbox: this is not isolation.
//! - Processes are found by a variable in their environment (`processes`); no other process is ended.
//! - On systems other than Unix instances have no machines: their ports are invented, as are those of instances beyond
//!   the first 256.

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
    /// Where its sshd listens while it is up.
    pub ssh_port: u16,
    /// The host key as OpenSSH writes it.
    pub host_key: String,
    /// Its `HOME`; the directory is created at the first session.
    pub home: PathBuf,
    /// The ids of its processes.
    pub processes: Vec<u32>,
}

#[cfg(not(unix))]
mod absent {
    use tokio_util::task::TaskTracker;

    use super::MachineView;
    use crate::{
        options::{Error, Options},
        world::World,
    };

    /// An empty set of machines.
    #[derive(Debug)]
    pub(crate) struct Machines;

    impl Machines {
        pub(crate) fn new(_options: &Options) -> Result<Self, Error> {
            Ok(Self)
        }

        pub(crate) fn follow(&mut self, _world: &mut World, _sshd_start_ms: i64, _now_ms: i64) {}

        pub(crate) fn view(&self) -> Vec<MachineView> {
            Vec::new()
        }

        pub(crate) fn end(self) -> TaskTracker {
            let tasks = TaskTracker::new();
            tasks.close();
            tasks
        }
    }
}
