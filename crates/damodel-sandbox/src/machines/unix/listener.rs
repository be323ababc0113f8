//! The port of an sshd: reserved while the machine exists, listened on while the sshd is up.

use std::{
    fs, io,
    net::{Ipv4Addr, Shutdown, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use russh::server::{Config, run_stream};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream, UnixStream},
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{guest::Guest, session::MachineSession, site::is_local};

/// How long a client may take to authenticate. OpenSSH's LoginGraceTime.
const GRACE: Duration = Duration::from_secs(120);

/// How many connections may wait to be accepted. OpenSSH's.
const BACKLOG: u32 = 128;

/// The wanted state of an sshd.
#[derive(Clone, Debug)]
pub(super) enum Sshd {
    Down,
    /// Its machine was removed.
    Gone,
    Up(Up),
}

#[derive(Clone, Debug)]
pub(super) struct Up {
    /// It listens from this moment on.
    pub(super) from: Instant,
    pub(super) config: Arc<Config>,
    /// Cuts the sessions.
    pub(super) boot: CancellationToken,
}

/// A reserved port, with or without a listener.
#[derive(Debug)]
pub(super) enum Port {
    Listening(TcpListener),
    /// The port stays bound without a listener: connections are refused.
    Reserved(TcpSocket),
}

impl Port {
    /// Reserves this port, or a free one for 0, and returns its number.
    pub(super) fn reserve(port: u16) -> io::Result<(Self, u16)> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        let port = socket.local_addr()?.port();
        Ok((Self::Reserved(socket), port))
    }

    /// Listens on it. Must be called on a runtime.
    pub(super) fn listen(self) -> io::Result<TcpListener> {
        match self {
            Self::Listening(listener) => Ok(listener),
            Self::Reserved(socket) => socket.listen(BACKLOG),
        }
    }
}

/// Listens while the sshd is up, until its machine is removed.
pub(super) async fn serve(
    mut held: Option<Port>,
    port: u16,
    mut changes: watch::Receiver<Sshd>,
    guest: Arc<Guest>,
    tasks: TaskTracker,
) {
    loop {
        let sshd = changes.borrow_and_update().clone();
        let up = match sshd {
            Sshd::Gone => return,
            Sshd::Down => {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Sshd::Up(up) => up,
        };
        tokio::select! {
            _ = changes.changed() => continue,
            () = sleep_until(up.from) => {}
        }
        let listener = held.take().map_or_else(|| Port::reserve(port).map(|(held, _)| held), Ok).and_then(Port::listen);
        match listener {
            Ok(listener) => {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = accept(&listener, &up, &guest, &tasks) => {}
                }
                drop(listener);
                held = Port::reserve(port).ok().map(|(held, _)| held);
            }
            Err(error) => {
                tracing::error!(%error, port, "the port of an instance's sshd is not served");
                tokio::select! {
                    _ = changes.changed() => {}
                    () = sleep(Duration::from_millis(50)) => {}
                }
            }
        }
    }
}

async fn accept(listener: &TcpListener, up: &Up, guest: &Arc<Guest>, tasks: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tasks.spawn(converse(stream, up.config.clone(), up.boot.clone(), guest.clone(), tasks.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn converse(
    stream: TcpStream,
    config: Arc<Config>,
    boot: CancellationToken,
    guest: Arc<Guest>,
    tasks: TaskTracker,
) {
    let talk = async {
        let stream = stream.into_std()?;
        let cut = stream.try_clone()?;
        let stream = TcpStream::from_std(stream)?;
        let session = MachineSession::new(guest, tasks);
        let begun = timeout(GRACE, run_stream(config, stream, session));
        let running = tokio::select! {
            () = boot.cancelled() => None,
            begun = begun => begun.ok().transpose()?,
        };
        if let Some(mut running) = running {
            tokio::select! {
                () = boot.cancelled() => {
                    // The session is a task of its own, and ends with its connection.
                    cut.shutdown(Shutdown::Both)?;
                    running.await?;
                }
                ended = &mut running => ended?,
            }
        }
        Ok::<(), russh::Error>(())
    };
    if let Err(error) = talk.await {
        tracing::debug!(%error, "an SSH connection ended");
    }
}

/// A connection of any kind.
pub(super) trait PortStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> PortStream for T {}

/// Connects to a listener on a port of the machine, or to the sshd of a neighbour.
pub(super) async fn connect(guest: &Guest, host: &str, port: u16) -> io::Result<Box<dyn PortStream>> {
    if is_local(host) {
        for socket in sockets(&guest.ports(), port) {
            // The socket of a killed process stays behind, and refuses.
            if let Ok(stream) = UnixStream::connect(socket).await {
                return Ok(Box::new(stream));
            }
        }
    }
    match guest.neighbours.sshd(host, port) {
        Some(port) => Ok(Box::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?)),
        None => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

fn sockets(folder: &Path, port: u16) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.strip_prefix(&port.to_string()).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".sock"))
        })
        .collect();
    sockets.sort();
    // Like the kernel with a shared port: a random listener gets the connection.
    if !sockets.is_empty() {
        let first = rand::random_range(0..sockets.len());
        sockets.rotate_left(first);
    }
    sockets
}
