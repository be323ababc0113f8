//! The port space of a machine, and the machines beside it.
//!
//! A port is a unix socket in the machine's folder of ports: `8000.sock`, or `8000.<anything>.sock` where several share
//! the port.

use std::{
    collections::BTreeSet,
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::guest::Guest;

/// The port of SSH on internal addresses.
const SSH: u16 = 22;

/// A connection, of whatever kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Where the sshds of a sandbox listen: internal address and port.
#[derive(Debug, Default)]
pub(super) struct Neighbours(Mutex<BTreeSet<(String, u16)>>);

impl Neighbours {
    pub(super) fn add(&self, internal_ip: &str, port: u16) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((internal_ip.to_owned(), port));
    }

    pub(super) fn remove(&self, internal_ip: &str, port: u16) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(internal_ip.to_owned(), port));
    }

    /// The port of the sshd that is meant: by its internal address, or by the address in its records.
    fn sshd(&self, host: &str, port: u16) -> Option<u16> {
        let neighbours = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant =
            |(address, own): &&(String, u16)| (address == host && port == SSH) || (is_local(host) && *own == port);
        neighbours.iter().find(is_meant).map(|(_, own)| *own)
    }
}

/// Connects to what listens on a port of the machine, or to the sshd of a neighbour.
pub(super) async fn connect(guest: &Guest, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
    if is_local(host) {
        for socket in sockets(&guest.ports(), port) {
            // A socket whose process was killed is left behind, and refuses.
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

fn is_local(host: &str) -> bool {
    ["0.0.0.0", "127.0.0.1", "::", "::1", "localhost"].contains(&host)
}

fn sockets(folder: &Path, port: u16) -> Vec<PathBuf> {
    let is_of_port = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(&port.to_string()).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".sock"))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_of_port).collect();
    sockets.sort();
    // As the kernel does where a port is shared: now this one, now that.
    if !sockets.is_empty() {
        let first = rand::random_range(0..sockets.len());
        sockets.rotate_left(first);
    }
    sockets
}
