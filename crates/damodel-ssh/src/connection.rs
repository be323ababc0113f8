//! One attempt to log in: TCP or a bastion's channel, the handshake, the host key, the credentials.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use russh::{
    AlgorithmKind, ChannelOpenFailure, Preferred, cipher,
    client::{self, Config, Handle},
    kex,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    Error, HostKey, SessionLimits, Stream, Target,
    error::{of_a_bastion, said},
    handler::{Handler, PeerFacts},
    host_key::{self, algorithms, others},
    identity::{self, Identities},
    login::login,
};

/// A connection after its login.
pub(super) struct Connection {
    pub(super) handle: Handle<Handler>,
    pub(super) facts: Arc<PeerFacts>,
    pub(super) host_key: HostKey,
    /// Host and port, for errors.
    pub(super) address: String,
    /// The user, for errors.
    pub(super) user: String,
    /// The connection to the bastion that carries it.
    pub(super) bastion: Option<Arc<Self>>,
}

/// A target with its credentials, which were read, and its bastion.
pub(super) struct Hop {
    target: Target,
    identities: Identities,
    bastion: Option<Box<Self>>,
    /// The connection, if this is a bastion. It is kept while the server behind it is still starting.
    held: Mutex<Option<Arc<Connection>>>,
}

/// The stream below a connection.
trait Carrier: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Carrier for T {}

impl Hop {
    /// Reads the credentials of the target and of its bastions.
    pub(super) async fn new(target: &Target) -> Result<Self, Error> {
        let bastion = match &target.bastion {
            Some(bastion) => Some(Box::new(Box::pin(Self::new(bastion)).await.map_err(of_a_bastion)?)),
            None => None,
        };
        let identities = identity::all(&target.credentials).await?;
        Ok(Self { target: target.clone(), identities, bastion, held: Mutex::default() })
    }

    /// Connects and logs in, once.
    pub(super) async fn reach(&self, limits: &SessionLimits, deadline: Instant) -> Result<Connection, Error> {
        let bastion = match &self.bastion {
            Some(bastion) => Some(bastion.hold(limits, deadline).await?),
            None => None,
        };
        let (mut handle, facts) = self.shake_hands(bastion.as_deref(), limits).await?;
        let address = self.target.address();
        login(&mut handle, &facts, &self.target, &self.identities, patience(limits, deadline)).await?;
        let host_key = facts.host_key().cloned().ok_or_else(|| self.unreachable("the server sent no host key"))?;
        let user = self.target.user.clone();
        Ok(Connection { handle, facts, host_key, address, user, bastion })
    }

    /// The connection to a bastion: the existing one, or a new one.
    fn hold<'a>(
        &'a self,
        limits: &'a SessionLimits,
        deadline: Instant,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<Connection>, Error>> + Send + 'a>> {
        Box::pin(async move {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(connection) = held.filter(|connection| !connection.facts.is_gone()) {
                return Ok(connection);
            }
            let connection = Arc::new(self.reach(limits, deadline).await.map_err(of_a_bastion)?);
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.clone());
            Ok(connection)
        })
    }

    /// Makes the handshake, with a host key that the pin accepts.
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
                // The server has no other key.
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
            // A fingerprint does not contain the algorithm: the server's other keys are requested too.
            asked = others(&asked, shown);
            if is_alone || asked.is_empty() {
                return Err(changed);
            }
            refused = Some(changed);
        }
    }

    /// Opens the stream for the handshake.
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
                    let addresses = lookup_host((host.as_str(), *port)).await;
                    let addresses = addresses.map_err(|error| self.unreachable(&tcp(&error)))?.collect();
                    let stream = first_open(addresses, limits.connect).await;
                    let stream = stream.map_err(|error| self.unreachable(&tcp(&error)))?;
                    // Requests and answers are small, and none should wait for the next.
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
                reason: said(&format!(
                    "it offers {kind:?} {}, and this client accepts none of them",
                    theirs.join(", ")
                )),
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
    /// Opens a channel to a host and port that the server can reach.
    pub(super) async fn open(&self, host: &str, port: u16) -> Result<Stream, Error> {
        // The server only logs the originator.
        let opened = self.handle.channel_open_direct_tcpip(host, port.into(), "127.0.0.1", 0).await;
        match opened {
            Ok(channel) => Ok(Stream::new(channel.into_stream(), self.facts.clone())),
            Err(russh::Error::ChannelOpenFailure(failure)) => Err(not_opened(failure, host, port)),
            Err(_) => Err(self.lost()),
        }
    }

    /// The error of a connection that has ended.
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
            Error::Refused { host, port, reason: "no program listens on the port".to_owned() }
        }
        ChannelOpenFailure::ResourceShortage => {
            Error::Refused { host, port, reason: "the server accepts no further channel".to_owned() }
        }
        ChannelOpenFailure::Other { reason, .. } => Error::Refused { host, port, reason: said(&reason) },
    }
}

/// The time limit of a login, and of its test command: a directory service that is slow would be as slow again in the
/// next attempt. A tenth of the time is left, so that the error names the step.
pub(super) fn patience(limits: &SessionLimits, deadline: Instant) -> Duration {
    limits.connect.max(deadline.saturating_duration_since(Instant::now()).mul_f64(0.9))
}

/// Connects to the first address that accepts. Each has an equal part of the time that is left: one that drops all
/// packets, as an IPv6 address without a route, must not use up the time of the others.
async fn first_open(addresses: Vec<SocketAddr>, limit: Duration) -> io::Result<TcpStream> {
    let end = Instant::now() + limit;
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let part = (end - Instant::now()) / u32::try_from(left).unwrap_or(u32::MAX);
        match timeout_at(Instant::now() + part, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(failed)
}

fn tcp(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "it does not answer".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        _ => said(&error.to_string()),
    }
}

fn config(asked: &[russh::keys::Algorithm], limits: &SessionLimits) -> Arc<Config> {
    /// The packets that may wait in a channel whose reader is slow: half a megabyte, at 32 KiB each.
    const WAITING: usize = 16;
    /// After so many silent rounds of keepalives, the connection ends. Keepalives alone end it sooner, but not during a
    /// handshake or a blocked write.
    const ROUNDS: u32 = 10;

    /// What hardened images have instead of the library's choice, offered after it.
    const EXCHANGES: [kex::Name; 3] = [kex::ECDH_SHA2_NISTP256, kex::ECDH_SHA2_NISTP384, kex::ECDH_SHA2_NISTP521];

    let usual = Preferred::default();
    let missed = u32::try_from(limits.missed).unwrap_or(u32::MAX);
    Arc::new(Config {
        preferred: Preferred {
            kex: [&*usual.kex, EXCHANGES.as_slice()].concat().into(),
            cipher: [&*usual.cipher, &[cipher::AES_128_GCM]].concat().into(),
            key: asked.to_vec().into(),
            ..usual
        },
        keepalive_interval: Some(limits.keepalive),
        keepalive_max: limits.missed,
        inactivity_timeout: Some(limits.keepalive.saturating_mul(missed).saturating_mul(ROUNDS).max(limits.connect)),
        channel_buffer_size: WAITING,
        ..Config::default()
    })
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// A listener whose queue is full: the kernel drops what comes next, as a firewall does.
    #[tokio::test]
    async fn an_address_that_drops_packets_leaves_time_for_the_next() {
        let full = TcpSocket::new_v4().unwrap();
        full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let full = full.listen(1).unwrap();
        let silent = full.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(200), TcpStream::connect(silent)).await {
            queued.push(stream);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answers = listener.local_addr().unwrap();
        let stream = first_open(vec![silent, answers], Duration::from_secs(2)).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), answers);
        let error = first_open(vec![silent, silent], Duration::from_millis(200)).await.unwrap_err();
        assert_eq!(tcp(&error), "it does not answer");
    }
}
