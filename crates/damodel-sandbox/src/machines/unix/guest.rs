//! What the sessions of a machine share: its files, its credentials and its processes.

use std::{
    ffi::OsString,
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use russh::{MethodKind, MethodSet, keys::PublicKey};

use super::{
    exec,
    site::{Neighbours, Site},
};
use crate::{
    options::SandboxSecret,
    stand_in::{self, Machine},
    world::Instance,
};

/// The only user.
pub(super) const USER: &str = "root";

/// The system folders of PATH, after those of the instance: sshd's default.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The state that the sessions of a machine share.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) uid: String,
    /// The value of [`exec::VARIABLE`] for this machine alone.
    pub(super) marker: String,
    pub(super) neighbours: Arc<Neighbours>,
    folder: PathBuf,
    password: Option<SandboxSecret>,
    key: Option<PublicKey>,
    executable: Option<PathBuf>,
    state: Mutex<SessionState>,
}

#[derive(Debug)]
struct SessionState {
    machine: Machine,
    is_home_made: bool,
}

impl Guest {
    pub(super) fn new(site: &Site, instance: &Instance) -> Self {
        let folder = site.folder.join(&instance.uid);
        let has_key = instance.login_method == 1;
        Self {
            uid: instance.uid.clone(),
            marker: folder.display().to_string(),
            neighbours: site.neighbours.clone(),
            folder,
            password: (!has_key).then(|| instance.ssh_password.clone()),
            key: has_key.then(|| site.keys.get(&instance.ssh_pubkey_name).cloned()).flatten(),
            executable: site.executable.clone(),
            state: Mutex::new(SessionState { machine: instance.machine(), is_home_made: false }),
        }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.join(USER)
    }

    /// The folder of the port space's sockets.
    pub(super) fn ports(&self) -> PathBuf {
        self.folder.join("ports")
    }

    /// The login methods: always a key, and a password if the instance was created with one.
    pub(super) fn methods(&self) -> MethodSet {
        let mut methods = MethodSet::empty();
        methods.push(MethodKind::PublicKey);
        if self.password.is_some() {
            methods.push(MethodKind::Password);
        }
        methods
    }

    pub(super) fn is_password(&self, password: &str) -> bool {
        self.password.as_ref().is_some_and(|own| own.reveal() == password)
    }

    /// Whether the key is the instance's, or is in the home's `authorized_keys`.
    pub(super) fn is_key(&self, key: &PublicKey) -> bool {
        let is_same = |known: &PublicKey| known.key_data() == key.key_data();
        self.key.as_ref().is_some_and(is_same) || {
            let lines = fs::read_to_string(self.home().join(".ssh/authorized_keys")).unwrap_or_default();
            lines.lines().filter_map(|line| PublicKey::from_openssh(line).ok()).any(|known| is_same(&known))
        }
    }

    /// Creates the home if it is missing. It blocks.
    pub(super) fn make_home(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_home_made {
            fs::create_dir_all(self.home().join(".ssh"))?;
            fs::create_dir_all(self.ports())?;
            if let Some(key) = &self.key {
                let line = key.to_openssh().map_err(io::Error::other)?;
                fs::write(self.home().join(".ssh/authorized_keys"), line + "\n")?;
            }
            stand_in::install(&self.home(), &state.machine, self.executable.as_deref())?;
            state.is_home_made = true;
        }
        Ok(())
    }

    /// Changes the hardware, even while programs run.
    pub(super) fn equip(&self, machine: Machine) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.machine != machine {
            state.machine = machine;
            if state.is_home_made
                && let Err(error) = stand_in::equip(&self.home(), &state.machine, self.executable.as_deref())
            {
                tracing::error!(%error, uid = self.uid, "the instance was not changed");
            }
        }
    }

    /// The environment of a command.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let home = self.home();
        let mut path = stand_in::bin(&home).into_os_string();
        path.push(":");
        path.push(PATH);
        vec![
            ("HOME", home.into_os_string()),
            ("LOGNAME", USER.into()),
            ("PATH", path),
            ("SHELL", "/bin/sh".into()),
            ("USER", USER.into()),
            (stand_in::PORTS, self.ports().into_os_string()),
            (exec::VARIABLE, OsString::from(&self.marker)),
        ]
    }

    /// Ends every process.
    pub(super) fn power_off(&self) {
        // Without a home no process was started.
        if self.folder.exists() {
            exec::end(&self.marker);
        }
    }

    /// Removes everything.
    pub(super) fn remove(&self) {
        let _state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, uid = self.uid, "files of an instance were not removed");
        }
    }
}
