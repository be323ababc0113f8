//! A connection to an sshd: the login, and what is asked for afterwards.

use std::{collections::HashMap, sync::Arc};

use russh::{
    Channel, ChannelId, ChannelOpenFailure, Error, Pty,
    server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session as Connection, VerifiedPublicKey},
};
use tokio::{io::copy_bidirectional, task::spawn_blocking};
use tokio_util::task::TaskTracker;

use super::{
    exec,
    guest::{Guest, USER},
    ports,
};

/// What a connection may do: run commands, and reach ports. There is no terminal, no file transfer and no forwarding
/// back.
#[derive(Debug)]
pub(super) struct Session {
    guest: Arc<Guest>,
    tasks: TaskTracker,
    /// Channels in which nothing was started yet.
    idle: HashMap<ChannelId, Channel<Msg>>,
}

impl Session {
    pub(super) fn new(guest: Arc<Guest>, tasks: TaskTracker) -> Self {
        Self { guest, tasks, idle: HashMap::new() }
    }

    /// Whoever is refused may try again, by any method that there is: OpenSSH goes on offering one that failed.
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
        let (guest, handle) = (self.guest.clone(), connection.handle());
        self.tasks.spawn(exec::run(guest, command.map(<[u8]>::to_vec), idle, handle));
        Ok(())
    }
}

impl Handler for Session {
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
        match made.map_err(std::io::Error::other).flatten() {
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
                Ok(port) => ports::connect(&guest, &host, port).await.ok(),
                Err(_) => None,
            };
            match stream {
                Some(mut stream) => {
                    reply.accept().await;
                    // However it ends, both sides see that it did.
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
        _term: &str,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        connection: &mut Connection,
    ) -> Result<(), Error> {
        connection.channel_failure(channel)
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
