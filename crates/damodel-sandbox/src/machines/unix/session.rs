//! A connection to an sshd: the login, the environment of its session, and the requests after it.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::Path,
    sync::{Arc, Weak},
};

use russh::{
    Channel, ChannelId, ChannelOpenFailure, Error, Pty,
    server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session as Connection, VerifiedPublicKey},
};
use tokio::{io::copy_bidirectional, task::spawn_blocking};
use tokio_util::task::TaskTracker;

use super::{
    exec,
    guest::{Guest, USER},
    listener,
    terminal::Terminal,
};

/// The places of OpenSSH's server of file transfers: Debian, Fedora, Arch, macOS.
const SFTP: [&str; 4] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
];

/// A connection, which may run commands, with a terminal or without, transfer files if this computer has OpenSSH's
/// server, and connect to ports. There is no reverse forwarding.
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
        name: &str,
        connection: &mut Connection,
    ) -> Result<(), Error> {
        match SFTP.iter().find(|program| name == "sftp" && Path::new(program).is_file()) {
            Some(program) => self.start(channel, Some(program.as_bytes()), connection),
            None => connection.channel_failure(channel),
        }
    }
}
