//! What the machines of a sandbox share.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use russh::keys::PublicKey;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// The port of SSH on internal addresses.
const SSH: u16 = 22;

/// The state that all machines of a sandbox share.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) folder: PathBuf,
    pub(super) keys: BTreeMap<String, PublicKey>,
    pub(super) executable: Option<PathBuf>,
    pub(super) runtime: Handle,
    pub(super) tasks: TaskTracker,
    pub(super) neighbours: Arc<Neighbours>,
    /// Whether time stands still between requests, so that states change by requests alone.
    pub(super) is_standing: bool,
}

/// Where the sshds of a sandbox listen: internal address and port.
#[derive(Debug, Default)]
pub(super) struct Neighbours(Mutex<BTreeSet<(String, u16)>>);

impl Neighbours {
    pub(super) fn add(&self, internal_ip: &str, port: u16) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((internal_ip.to_owned(), port));
    }

    pub(super) fn remove(&self, internal_ip: &str, port: u16) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(internal_ip.to_owned(), port));
    }

    /// The port of the addressed sshd: by its internal address, or by the address in its records.
    pub(super) fn sshd(&self, host: &str, port: u16) -> Option<u16> {
        let neighbours = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        neighbours
            .iter()
            .find(|(address, own)| (address == host && port == SSH) || (is_local(host) && *own == port))
            .map(|(_, own)| *own)
    }
}

/// Whether this is the machine itself.
pub(super) fn is_local(host: &str) -> bool {
    ["0.0.0.0", "127.0.0.1", "::", "::1", "localhost"].contains(&host)
}
