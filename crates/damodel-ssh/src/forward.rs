//! Local port forwarding.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, split},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
    try_join,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Error, Link, Stream};

/// The largest number of concurrent connections; further ones wait to be accepted.
const CONNECTIONS: usize = 64;

/// The number of bytes in one read.
const BUFFER: usize = 32 * 1024;

/// A listener on 127.0.0.1 whose connections are forwarded through a link. It closes with its connections when dropped.
#[derive(Debug)]
pub struct Forward {
    address: SocketAddr,
    _listening: AbortOnDropHandle<()>,
}

impl Forward {
    /// Its address.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }
}

impl Link {
    /// Listens on a free port of 127.0.0.1 and forwards each connection to `host:port` as the server sees it.
    ///
    /// A connection that the server refuses is closed at once. If the session is lost, the listener stays, and the next
    /// connection logs in again.
    ///
    /// # Errors
    ///
    /// [`Error::Unreachable`] if no local port can be opened.
    pub async fn forward(self: Arc<Self>, host: &str, port: u16) -> Result<Forward, Error> {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let not_open = |error: io::Error| Error::Unreachable { address: here.to_string(), reason: error.to_string() };
        let listener = TcpListener::bind(here).await.map_err(not_open)?;
        let address = listener.local_addr().map_err(not_open)?;
        let host = host.to_owned();
        let listening = tokio::spawn(async move { self.lead(listener, host, port).await });
        Ok(Forward { address, _listening: AbortOnDropHandle::new(listening) })
    }

    /// Serves a listener until it is aborted or cancelled.
    async fn lead(self: Arc<Self>, listener: TcpListener, host: String, port: u16) {
        // Dropped with this task, which closes the connections.
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = self.cancel.cancelled() => return,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept(), if connections.len() < CONNECTIONS => accepted,
            };
            match accepted {
                Ok((local, _)) => {
                    connections.spawn(through(self.clone(), local, host.clone(), port));
                }
                // The client has closed the connection, or no file descriptor is free: later ones may succeed.
                Err(error) => {
                    tracing::debug!(%error, "no connection accepted");
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

async fn through(link: Arc<Link>, local: TcpStream, host: String, port: u16) {
    let _ = local.set_nodelay(true);
    let opened = async {
        let session = link.session().await?;
        session.open(&host, port).await
    };
    match opened.await {
        // Closes both sides in any case.
        Ok(remote) => {
            let _ = lead_both(local, remote, link.limits.idle).await;
        }
        Err(error) => tracing::debug!(%error, "a forwarded connection was not opened"),
    }
}

/// Copies bytes in both directions until both sides have ended. A client that reads nothing for so long is
/// disconnected, because the data that waits for it blocks the whole session.
async fn lead_both(local: TcpStream, remote: Stream, idle: Duration) -> io::Result<()> {
    let (mut local_read, mut local_write) = local.into_split();
    let (mut remote_read, mut remote_write) = split(remote);
    let there = async {
        copy(&mut local_read, &mut remote_write).await?;
        remote_write.shutdown().await
    };
    let back = async {
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = remote_read.read(&mut buffer).await?;
            let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
                return local_write.shutdown().await;
            };
            timeout(idle, local_write.write_all(piece)).await??;
        }
    };
    try_join!(there, back).map(drop)
}
