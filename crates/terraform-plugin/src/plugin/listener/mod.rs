//! The listener for the host: a unix socket in a private directory, or a local port on Windows.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};

#[cfg(unix)]
mod unix;

use super::{Error, PluginEnvironment};

/// Listens at the place that `environment` asks for, until the returned value is dropped.
#[cfg(unix)]
pub(super) fn bind(environment: &PluginEnvironment) -> Result<Bound, Error> {
    unix::bind(&environment.socket)
}

/// Listens at the place that `environment` asks for, until the returned value is dropped.
#[cfg(windows)]
pub(super) fn bind(environment: &PluginEnvironment) -> Result<Bound, Error> {
    bind_tcp(environment.ports.clone())
}

/// A listening socket, its address for the host, and its directory.
#[derive(Debug)]
pub(super) struct Bound {
    /// Removes the socket with its directory when dropped.
    pub(super) directory: Option<tempfile::TempDir>,
    pub(super) endpoint: PluginAddress,
    pub(super) listener: Listener,
}

/// An address in go-plugin's form.
#[derive(Debug)]
pub(crate) struct PluginAddress {
    /// `unix` or `tcp`.
    pub(crate) network: &'static str,
    /// A path, or `host:port`.
    pub(crate) address: String,
}

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
}

impl Listener {
    /// Waits for the next connection. No connection is lost when the future is dropped.
    pub(super) async fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Messages are small, and the peer waits for each.
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            #[cfg(unix)]
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// A connection of any kind.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Listens on the first free port of the loopback interface; 0 is any port.
#[cfg_attr(not(windows), allow(dead_code, reason = "the other systems listen on a unix socket"))]
fn bind_tcp(ports: RangeInclusive<u16>) -> Result<Bound, Error> {
    let mut refusal = io::ErrorKind::AddrNotAvailable.into();
    for port in ports.clone() {
        match bind_port(port) {
            Ok(bound) => return Ok(bound),
            Err(error) => refusal = error,
        }
    }
    Err(Error::Tcp { minimum: *ports.start(), maximum: *ports.end(), source: refusal })
}

fn bind_port(port: u16) -> io::Result<Bound> {
    let listener = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listener.set_nonblocking(true)?;
    let endpoint = PluginAddress { network: "tcp", address: listener.local_addr()?.to_string() };
    Ok(Bound { directory: None, endpoint, listener: Listener::Tcp(listener.try_into()?) })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    fn port(bound: &Bound) -> u16 {
        let address: SocketAddr = bound.endpoint.address.parse().unwrap();
        assert!(address.ip().is_loopback());
        address.port()
    }

    #[tokio::test]
    async fn a_taken_port_is_passed_over() {
        let taken = bind_tcp(0..=0).unwrap();
        let first = port(&taken);
        let last = first.saturating_add(50);
        let next = bind_tcp(first..=last).unwrap();
        assert!((first + 1..=last).contains(&port(&next)));
        assert_eq!(next.endpoint.network, "tcp");
    }

    #[tokio::test]
    async fn a_range_without_a_free_port_is_an_error() {
        let taken = bind_tcp(0..=0).unwrap();
        let only = port(&taken);
        let error = bind_tcp(only..=only).unwrap_err();
        assert!(matches!(error, Error::Tcp { minimum, .. } if minimum == only));
    }
}
