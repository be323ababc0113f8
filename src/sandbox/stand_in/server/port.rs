//! The port: a unix socket in the folder of a port space, or TCP where there is none.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::net::UnixStream as Probe,
    path::{Path, PathBuf},
    process,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, UnixListener, lookup_host},
};

/// A connection, of whatever kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What is listened on. Dropping it closes the port.
#[derive(Debug)]
pub(super) enum Port {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf },
}

impl Port {
    /// Listens. `shares`: whether another one may listen on it too, as before the new generation (SO_REUSEPORT).
    pub(super) async fn listen(ports: Option<&Path>, host: &str, port: u64, shares: bool) -> io::Result<Self> {
        // As the real one: the number is cut to 16 bits.
        let port = u16::try_from(port % 65_536).unwrap_or(0);
        match ports {
            Some(folder) if is_own(host) => unix(folder, port, shares),
            Some(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
            None => tcp(host, port, shares).await,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Unix { listener, .. } => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let Self::Unix { path, .. } = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether an address is the machine's own.
fn is_own(host: &str) -> bool {
    ["0.0.0.0", "127.0.0.1", "::", "::1", "localhost"].contains(&host)
}

fn unix(folder: &Path, port: u16, shares: bool) -> io::Result<Port> {
    let path = folder.join(format!("{port}.sock"));
    match UnixListener::bind(&path) {
        Ok(listener) => return Ok(Port::Unix { listener, path }),
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
        Err(_) => {}
    }
    let path = if Probe::connect(&path).is_err() {
        // Left behind by one that was killed.
        fs::remove_file(&path)?;
        path
    } else if shares {
        folder.join(format!("{port}.{}.sock", process::id()))
    } else {
        return Err(io::ErrorKind::AddrInUse.into());
    };
    Ok(Port::Unix { listener: UnixListener::bind(&path)?, path })
}

async fn tcp(host: &str, port: u16, shares: bool) -> io::Result<Port> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in lookup_host((host, port)).await? {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        if shares {
            socket.set_reuseport(true)?;
        }
        match socket.bind(address).and_then(|()| socket.listen(512)) {
            Ok(listener) => return Ok(Port::Tcp(listener)),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
