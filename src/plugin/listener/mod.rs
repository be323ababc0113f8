//! Where the host connects: a unix socket in a private directory, or a local port on Windows.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};

#[cfg_attr(not(windows), allow(dead_code, reason = "the other systems listen on a unix socket"))]
mod tcp;
#[cfg(unix)]
mod unix;

use super::{Environment, Error};

/// Listens where `environment` wants it, for as long as the answer lives.
#[cfg(unix)]
pub(super) fn bind(environment: &Environment) -> Result<Bound, Error> {
    unix::bind(&environment.socket)
}

/// Listens where `environment` wants it, for as long as the answer lives.
#[cfg(windows)]
pub(super) fn bind(environment: &Environment) -> Result<Bound, Error> {
    tcp::bind(environment.ports.clone())
}

/// A socket that listens, what the host is told of it, and what is removed at the end.
#[derive(Debug)]
pub(super) struct Bound {
    /// Removes the socket with its directory when dropped.
    pub(super) directory: Option<tempfile::TempDir>,
    pub(super) endpoint: Endpoint,
    pub(super) listener: Listener,
}

/// An address in go-plugin's words.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// `unix` or `tcp`.
    pub(super) network: &'static str,
    /// A path, or `host:port`.
    pub(super) address: String,
}

/// What connections are accepted from.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
}

impl Listener {
    /// Waits for the next connection. Nothing is lost when the future is dropped.
    pub(super) async fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Messages are small and waited for.
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

/// A connection, of whatever kind.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
