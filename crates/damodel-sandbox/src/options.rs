//! The options of a sandbox, and the errors of its start. Its secrets can be written into its answers.

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::form::Form;

/// How the life clock moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeClock {
    /// Starts at the computer's time and runs with tokio's.
    Running,
    /// Stands at this many Unix seconds and moves only when it is advanced.
    Standing(i64),
}

/// The options of a sandbox. By default it listens on a free loopback port, keeps nothing on disk, and finishes each
/// change after one second.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; must be a loopback address. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// A file that gets one JSON line per request; `None`: in memory only.
    pub ledger: Option<PathBuf>,
    /// The seed of all random values (uids, passwords, tokens, shuffles, odds).
    pub seed: u64,
    /// The forms that the document leaves open.
    pub form: Form,
    /// How the life clock moves.
    pub life_clock: LifeClock,
    /// From an accepted create of an instance to Running.
    pub creation: Duration,
    /// From an accepted release of an instance or a cloud disk to Released.
    pub release: Duration,
    /// From an accepted create of a cloud disk to Available, and from an accepted resize to the new capacity.
    pub disk_change: Duration,
    /// From an accepted save of a private image to its being ready.
    pub image_push: Duration,
    /// From an instance being Running, or rebooted, to its sshd listening.
    pub sshd_start: Duration,
    /// How long after an accepted save another one of the same account is refused with 130003; zero: never.
    pub save_window: Duration,
    /// How many saves an account has on one day of UTC before 130008 (service API, Limits: "not shown").
    pub daily_saves: u32,
    /// How far X-Service-Timestamp may be from the service's clock (service API, Authentication: "not shown").
    pub timestamp_tolerance: Duration,
    /// The main account's token; `None`: derived from the seed.
    pub token: Option<SecretString>,
    /// The main account's chat key; `None`: derived from the seed.
    pub chat_key: Option<SecretString>,
    /// The host of image addresses.
    pub registry_host: String,
    /// The SSH keys that accounts have: the name that an instance is created with (`ssh_pubkey_name`), and the line as
    /// OpenSSH writes it.
    pub keys: BTreeMap<String, String>,
    /// The file of this program, which acts as the stand-ins in the instances. `None`: instances have an sshd and a
    /// home, and no inference server.
    pub executable: Option<PathBuf>,
    /// How many Running instances the main account has from the start, for load tests.
    pub generate_instances: u32,
    /// How many available cloud disks the main account has from the start, beside the seed's.
    pub generate_disks: u32,
    /// How many ready private images the main account has from the start, beside the seed's.
    pub generate_images: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            ledger: None,
            seed: 1,
            form: Form::default(),
            life_clock: LifeClock::Running,
            creation: Duration::from_secs(1),
            release: Duration::from_secs(1),
            disk_change: Duration::from_secs(1),
            image_push: Duration::from_secs(1),
            sshd_start: Duration::ZERO,
            save_window: Duration::ZERO,
            daily_saves: 100,
            timestamp_tolerance: Duration::from_secs(300),
            token: None,
            chat_key: None,
            registry_host: "registry.damodel.test".to_owned(),
            keys: BTreeMap::new(),
            executable: None,
            generate_instances: 0,
            generate_disks: 0,
            generate_images: 0,
        }
    }
}

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listen address can be reached from other computers.
    #[error("listen on {0}: the sandbox listens on loopback addresses only")]
    NotLoopback(SocketAddr),
    /// The address is in use, or does not belong to this computer.
    #[error("listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line of [`Options::keys`] is not a public key in OpenSSH's format.
    #[error("understand the SSH key {name:?}")]
    Key {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder that holds the homes of the instances cannot be made.
    #[error("make a folder for the instances")]
    Homes(#[source] std::io::Error),
    /// The ledger file cannot be opened.
    #[error("append to the ledger {}", path.display())]
    Ledger {
        /// The ledger file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// A secret of the simulated service. It serializes in clear (answers); its debug output hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SandboxSecret(String);

impl SandboxSecret {
    pub(super) fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn to_secret_string(&self) -> SecretString {
        SecretString::from(self.0.clone())
    }
}

impl fmt::Debug for SandboxSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
