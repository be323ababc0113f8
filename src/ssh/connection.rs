//! One attempt to get from here to a login: TCP or a bastion's channel, the handshake, the host key, the credentials.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use russh::{
    AlgorithmKind, ChannelOpenFailure, Preferred,
    client::{self, Config, Handle},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::ssh::{
    Error, HostKey, SessionLimits, Stream, Target,
    error::{of_a_bastion, said},
    handler::{Handler, PeerFacts},
    host_key::{self, algorithms, others},
    identity::{self, Identities},
    login::login,
};

/// A server that we are logged in to.
pub(super) struct Connection {
    pub(super) handle: Handle<Handler>,
    pub(super) facts: Arc<PeerFacts>,
    pub(super) host_key: HostKey,
    /// Host and port, for errors.
    pub(super) address: String,
    /// What carries it.
    pub(super) bastion: Option<Arc<Self>>,
}

/// A target whose credentials are read, with the way to it.
pub(super) struct Hop {
    target: Target,
    identities: Identities,
    bastion: Option<Box<Self>>,
    /// The connection to it, when it is a bastion: it stays while what is behind it is still coming up.
    held: Mutex<Option<Arc<Connection>>>,
}

/// What a connection is spoken over.
trait Carrier: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Carrier for T {}

impl Hop {
    /// Reads the credentials of the target and of its bastions.
    pub(super) async fn new(target: &Target) -> Result<Self, Error> {
        let bastion = match &target.bastion {
            Some(bastion) => Some(Box::new(Box::pin(Self::new(bastion)).await?)),
            None => None,
        };
        let identities = identity::all(&target.credentials).await?;
        Ok(Self { target: target.clone(), identities, bastion, held: Mutex::default() })
    }

    /// Connects and logs in, once.
    pub(super) async fn reach(&self, limits: &SessionLimits) -> Result<Connection, Error> {
        let bastion = match &self.bastion {
            Some(bastion) => Some(bastion.hold(limits).await?),
            None => None,
        };
        let (mut handle, facts) = self.shake_hands(bastion.as_deref(), limits).await?;
        let address = self.target.address();
        login(&mut handle, &facts, &self.target, &self.identities, limits).await?;
        let host_key = facts.host_key().cloned().ok_or_else(|| self.unreachable("the server sent no host key"))?;
        Ok(Connection { handle, facts, host_key, address, bastion })
    }

    /// The connection to a bastion: the one there is, else a new one.
    fn hold<'a>(
        &'a self,
        limits: &'a SessionLimits,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<Connection>, Error>> + Send + 'a>> {
        Box::pin(async move {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(connection) = held.filter(|connection| !connection.facts.is_gone()) {
                return Ok(connection);
            }
            let connection = Arc::new(self.reach(limits).await.map_err(of_a_bastion)?);
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.clone());
            Ok(connection)
        })
    }

    /// The handshake, up to a host key that the pin accepts.
    async fn shake_hands(
        &self,
        bastion: Option<&Connection>,
        limits: &SessionLimits,
    ) -> Result<(Handle<Handler>, Arc<PeerFacts>), Error> {
        let pin = self.target.pin.as_ref();
        let mut asked = algorithms(pin);
        let mut refused = None;
        loop {
            let carrier = self.carrier(bastion, limits).await?;
            let facts = Arc::new(PeerFacts::default());
            let handler = Handler::new(pin.cloned(), facts.clone());
            let shaken = client::connect_stream(config(&asked, limits), carrier, handler);
            let error = match timeout(limits.connect, shaken).await {
                Ok(Ok(handle)) => return Ok((handle, facts)),
                Ok(Err(error)) => error,
                Err(_) => return Err(self.unreachable("it does not finish the handshake")),
            };
            let (shown, is_alone) = match (&error, facts.host_key(), pin) {
                (russh::Error::UnknownKey, Some(shown), Some(pin)) => (shown, pin.knows_algorithm()),
                // It has no other key to show.
                (russh::Error::NoCommonAlgo { kind: AlgorithmKind::Key, .. }, ..) if refused.is_some() => {
                    return Err(refused.unwrap_or_else(|| self.not_shaken(&error)));
                }
                _ => return Err(self.not_shaken(&error)),
            };
            let changed = refused.unwrap_or_else(|| Error::HostKeyChanged {
                address: self.target.address(),
                expected: pin.map(host_key::Pin::fingerprint).unwrap_or_default(),
                shown: shown.fingerprint(),
                key: Box::new(shown.clone()),
                is_bastion: false,
            });
            // A fingerprint does not say which of a server's keys it is of: the others are asked for, too.
            asked = others(&asked, shown);
            if is_alone || asked.is_empty() {
                return Err(changed);
            }
            refused = Some(changed);
        }
    }

    /// What the handshake goes over.
    async fn carrier(&self, bastion: Option<&Connection>, limits: &SessionLimits) -> Result<Box<dyn Carrier>, Error> {
        let Target { host, port, .. } = &self.target;
        let opened = async {
            match bastion {
                Some(bastion) => {
                    let stream = bastion.open(host, *port).await;
                    stream.map(|stream| Box::new(stream) as Box<dyn Carrier>).map_err(|error| match error {
                        Error::Refused { reason, .. } => {
                            self.unreachable(&format!("from {}: {reason}", bastion.address))
                        }
                        other => other,
                    })
                }
                None => {
                    let stream = TcpStream::connect((host.as_str(), *port)).await;
                    let stream = stream.map_err(|error| self.unreachable(&tcp(&error)))?;
                    // Small questions and answers: none should wait for the next.
                    let _ = stream.set_nodelay(true);
                    Ok(Box::new(stream) as Box<dyn Carrier>)
                }
            }
        };
        let opened = timeout(limits.connect, opened).await;
        opened.unwrap_or_else(|_| Err(self.unreachable("it does not answer")))
    }

    fn not_shaken(&self, error: &russh::Error) -> Error {
        match error {
            russh::Error::NoCommonAlgo { kind, theirs, .. } => Error::Incompatible {
                address: self.target.address(),
                reason: said(&format!("it offers {kind:?} {}, none of which is safe", theirs.join(", "))),
            },
            russh::Error::WrongServerSig => Error::Incompatible {
                address: self.target.address(),
                reason: "it does not prove that it has its host key".to_owned(),
            },
            russh::Error::Disconnect | russh::Error::HUP => {
                self.unreachable("the connection was closed before the handshake was done")
            }
            russh::Error::IO(error) => self.unreachable(&tcp(error)),
            other => self.unreachable(&said(&other.to_string())),
        }
    }

    fn unreachable(&self, reason: &str) -> Error {
        Error::Unreachable { address: self.target.address(), reason: reason.to_owned() }
    }
}

impl Connection {
    /// A channel to a place that the server can reach.
    pub(super) async fn open(&self, host: &str, port: u16) -> Result<Stream, Error> {
        // The originator is for the server's log.
        let opened = self.handle.channel_open_direct_tcpip(host, port.into(), "127.0.0.1", 0).await;
        match opened {
            Ok(channel) => Ok(Stream::new(channel.into_stream(), self.facts.clone())),
            Err(russh::Error::ChannelOpenFailure(failure)) => Err(not_opened(failure, host, port)),
            Err(_) => Err(self.lost()),
        }
    }

    /// Why it is gone.
    pub(super) fn lost(&self) -> Error {
        Error::Lost { address: self.address.clone(), reason: self.facts.end() }
    }
}

fn not_opened(failure: ChannelOpenFailure, host: &str, port: u16) -> Error {
    let host = host.to_owned();
    match failure {
        ChannelOpenFailure::AdministrativelyProhibited | ChannelOpenFailure::UnknownChannelType => {
            Error::Forbidden { host, port }
        }
        ChannelOpenFailure::ConnectFailed => {
            Error::Refused { host, port, reason: "no program listens there".to_owned() }
        }
        ChannelOpenFailure::ResourceShortage => {
            Error::Refused { host, port, reason: "the server accepts no further channel".to_owned() }
        }
        ChannelOpenFailure::Other { reason, .. } => Error::Refused { host, port, reason: said(&reason) },
    }
}

fn tcp(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        _ => said(&error.to_string()),
    }
}

fn config(asked: &[russh::keys::Algorithm], limits: &SessionLimits) -> Arc<Config> {
    /// What may wait in a channel whose reader is slow: half a megabyte, since a packet has at most 32 KiB.
    const WAITING: usize = 16;
    /// After so many rounds of keepalive in silence, what still waits for the peer is ended. The keepalive itself
    /// ends a connection sooner; this is for what it does not see, a handshake or a write that never ends.
    const ROUNDS: u32 = 10;

    let missed = u32::try_from(limits.missed).unwrap_or(u32::MAX);
    Arc::new(Config {
        preferred: Preferred { key: asked.to_vec().into(), ..Preferred::default() },
        keepalive_interval: Some(limits.keepalive),
        keepalive_max: limits.missed,
        inactivity_timeout: Some(limits.keepalive.saturating_mul(missed).saturating_mul(ROUNDS).max(limits.connect)),
        channel_buffer_size: WAITING,
        ..Config::default()
    })
}
