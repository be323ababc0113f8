//! Events of a connection: the server's host key, and its end.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use russh::{
    Channel, ChannelId,
    client::{self, ChannelOpenHandle, DisconnectReason, Msg},
    keys::PublicKeyOrCertificate,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{HostKey, Pin, error::said};

/// The facts about a connection, shared with its users.
#[derive(Debug, Default)]
pub(super) struct PeerFacts {
    host_key: OnceLock<HostKey>,
    end: OnceLock<String>,
    banner: Mutex<Option<String>>,
    /// Whether the server ended it with a message.
    dismissed: OnceLock<()>,
    gone: CancellationToken,
}

impl PeerFacts {
    /// The server's host key, accepted or not.
    pub(super) fn host_key(&self) -> Option<&HostKey> {
        self.host_key.get()
    }

    /// Why the connection ended.
    pub(super) fn end(&self) -> String {
        self.end.get().cloned().unwrap_or_else(|| "it was closed".to_owned())
    }

    /// The last text that the server sent during the login, if there was one.
    pub(super) fn banner(&self) -> Option<String> {
        self.banner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the server ended the connection with a message, as after too many refused credentials.
    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed.get().is_some()
    }

    /// Whether the connection has ended. It is true before its channels report their end.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }
}

/// Refuses channels that a server opens, by dropping their handles; the library's defaults would accept them.
macro_rules! refuse {
    ($($channel:ident($($argument:ty),*);)*) => {$(
        async fn $channel(
            &mut self,
            _: Channel<Msg>,
            $(_: $argument,)*
            _: ChannelOpenHandle,
            _: &mut client::Session,
        ) -> Result<(), Self::Error> {
            Ok(())
        }
    )*};
}

/// Checks the host key, and records events.
#[derive(Debug)]
pub(super) struct Handler {
    pin: Option<Pin>,
    facts: Arc<PeerFacts>,
    /// Dropped with the connection's task, before its channels.
    _gone: DropGuard,
}

impl Handler {
    pub(super) fn new(pin: Option<Pin>, facts: Arc<PeerFacts>) -> Self {
        let gone = facts.gone.clone().drop_guard();
        Self { pin, facts, _gone: gone }
    }
}

impl client::Handler for Handler {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let shown = HostKey::new(&shown.public_key());
        // Called again at every key exchange: it must stay the same server.
        let is_the_same = *self.facts.host_key.get_or_init(|| shown.clone()) == shown;
        Ok(is_the_same && self.pin.as_ref().is_none_or(|pin| pin.matches(&shown)))
    }

    async fn auth_banner(&mut self, banner: &str, _: &mut client::Session) -> Result<(), Self::Error> {
        let banner = said(banner);
        if !banner.is_empty() {
            *self.facts.banner.lock().unwrap_or_else(PoisonError::into_inner) = Some(banner);
        }
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Self::Error>) -> Result<(), Self::Error> {
        let end = match reason {
            DisconnectReason::ReceivedDisconnect(goodbye) => {
                let _ = self.facts.dismissed.set(());
                format!("server message: {}", said(&goodbye.message))
            }
            DisconnectReason::Error(russh::Error::NoAuthMethod) => {
                let _ = self.facts.dismissed.set(());
                "the server accepts no other method".to_owned()
            }
            DisconnectReason::Error(russh::Error::KeepaliveTimeout | russh::Error::InactivityTimeout) => {
                "the server no longer answers".to_owned()
            }
            DisconnectReason::Error(russh::Error::Disconnect | russh::Error::HUP) => "it was closed".to_owned(),
            DisconnectReason::Error(error) => said(&error.to_string()),
        };
        let _ = self.facts.end.set(end);
        Ok(())
    }

    async fn should_accept_unknown_server_channel(&mut self, _: ChannelId, _: &str) -> bool {
        false
    }

    refuse! {
        server_channel_open_agent_forward();
        server_channel_open_direct_streamlocal(&str);
        server_channel_open_direct_tcpip(&str, u32, &str, u32);
        server_channel_open_forwarded_streamlocal(&str);
        server_channel_open_forwarded_tcpip(&str, u32, &str, u32);
        server_channel_open_session();
        server_channel_open_x11(&str, u32);
    }
}
