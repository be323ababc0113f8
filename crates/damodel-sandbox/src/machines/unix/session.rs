//! A connection to an sshd: the login, the environment of its session, and the requests after it.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use russh::{
    Channel, ChannelId, ChannelOpenFailure, Error, MethodKind, MethodSet, Pty,
    keys::PublicKey,
    server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session as Connection, VerifiedPublicKey},
};
use tokio::{io::copy_bidirectional, task::spawn_blocking};
use tokio_util::task::TaskTracker;

use super::{
    Site, exec,
    listener::{self, Neighbours},
    terminal::Terminal,
};
use crate::{
    options::SandboxSecret,
    stand_in::{self, Machine},
    world::Instance,
};

/// A connection, which may run commands, with a terminal or without, and connect to ports. There is no file transfer
/// and no reverse forwarding.
#[derive(Debug)]
pub(super) struct MachineSession {
    guest: Arc<Guest>,
    tasks: TaskTracker,
    /// Channels without a command yet.
    idle: HashMap<ChannelId, Channel<Msg>>,
    /// The terminals of those.
    terminals: HashMap<ChannelId, (Terminal, File)>,
    /// The terminals of running commands, which hang up when their channel closes.
    running: HashMap<ChannelId, Weak<Terminal>>,
}

impl MachineSession {
    pub(super) fn new(guest: Arc<Guest>, tasks: TaskTracker) -> Self {
        Self { guest, tasks, idle: HashMap::new(), terminals: HashMap::new(), running: HashMap::new() }
    }

    /// After a refusal the client may try any method again, as with OpenSSH.
    fn answer(&self, is_right: bool) -> Auth {
        match is_right {
            true => Auth::Accept,
            false => Auth::Reject { proceed_with_methods: Some(self.guest.methods()), partial_success: false },
        }
    }

    fn start(&mut self, channel: ChannelId, command: Option<&[u8]>, connection: &mut Connection) -> Result<(), Error> {
        let Some(idle) = self.idle.remove(&channel) else {
            return connection.channel_failure(channel);
        };
        connection.channel_success(channel)?;
        let (guest, handle, command) = (self.guest.clone(), connection.handle(), command.map(<[u8]>::to_vec));
        match self.terminals.remove(&channel) {
            Some((terminal, device)) => {
                let terminal = Arc::new(terminal);
                self.running.insert(channel, Arc::downgrade(&terminal));
                self.tasks.spawn(exec::run_on((terminal, device), guest, command, idle, handle));
            }
            None => {
                self.tasks.spawn(exec::run(guest, command, idle, handle));
            }
        }
        Ok(())
    }
}

impl Handler for MachineSession {
    type Error = Error;

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Error> {
        Ok(self.answer(user == USER && self.guest.is_password(password)))
    }

    async fn auth_publickey_offered(&mut self, user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Error> {
        Ok(self.answer(user == USER && self.guest.is_key(offer.public_key)))
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Error> {
        Ok(self.answer(user == USER && self.guest.is_key(key.public_key)))
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _connection: &mut Connection,
    ) -> Result<(), Error> {
        let guest = self.guest.clone();
        let made = spawn_blocking(move || guest.make_home()).await;
        match made.map_err(io::Error::other).flatten() {
            Ok(()) => {
                self.idle.insert(channel.id(), channel);
                reply.accept().await;
            }
            Err(error) => {
                tracing::error!(%error, uid = self.guest.uid, "an instance has no home");
                reply.reject(ChannelOpenFailure::ResourceShortage).await;
            }
        }
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _originator_address: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        _connection: &mut Connection,
    ) -> Result<(), Error> {
        let (guest, host) = (self.guest.clone(), host.to_owned());
        self.tasks.spawn(async move {
            let stream = match u16::try_from(port) {
                Ok(port) => listener::connect(&guest, &host, port).await.ok(),
                Err(_) => None,
            };
            match stream {
                Some(mut stream) => {
                    reply.accept().await;
                    // The result is ignored: both sides see how the connection ends.
                    let _ended = copy_bidirectional(&mut channel.into_stream(), &mut stream).await;
                }
                None => reply.reject(ChannelOpenFailure::ConnectFailed).await,
            }
        });
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        connection: &mut Connection,
    ) -> Result<(), Error> {
        self.start(channel, Some(data), connection)
    }

    async fn shell_request(&mut self, channel: ChannelId, connection: &mut Connection) -> Result<(), Error> {
        self.start(channel, None, connection)
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        term: &str,
        columns: u32,
        rows: u32,
        _width: u32,
        _height: u32,
        modes: &[(Pty, u32)],
        connection: &mut Connection,
    ) -> Result<(), Error> {
        match Terminal::open(term, columns, rows, modes) {
            Ok(terminal) => {
                self.terminals.insert(channel, terminal);
                connection.channel_success(channel)
            }
            Err(error) => {
                tracing::error!(%error, uid = self.guest.uid, "a session has no terminal");
                connection.channel_failure(channel)
            }
        }
    }

    async fn window_change_request(
        &mut self,
        channel: ChannelId,
        columns: u32,
        rows: u32,
        _width: u32,
        _height: u32,
        _connection: &mut Connection,
    ) -> Result<(), Error> {
        if let Some(terminal) = self.running.get(&channel).and_then(Weak::upgrade) {
            // The request has no answer.
            let _ = terminal.resize(columns, rows);
        }
        Ok(())
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        _name: &str,
        _value: &str,
        connection: &mut Connection,
    ) -> Result<(), Error> {
        connection.channel_failure(channel)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        _name: &str,
        connection: &mut Connection,
    ) -> Result<(), Error> {
        connection.channel_failure(channel)
    }
}

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
