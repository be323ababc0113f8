//! Local port forwarding, and a byte stream through a channel.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use russh::{ChannelStream, client::Msg};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy, split},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
    try_join,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Error, Link, handler::PeerFacts};

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

/// A connection that the server opened. Closed when dropped. Reads and writes have no time limit of their own, but end
/// with the session.
///
/// Reads end when the other side ends its output. If the session is lost they fail, so that a part of an answer is
/// never taken for the whole.
pub struct Stream {
    channel: ChannelStream<Msg>,
    facts: Arc<PeerFacts>,
}

impl Stream {
    pub(super) fn new(channel: ChannelStream<Msg>, facts: Arc<PeerFacts>) -> Self {
        Self { channel, facts }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let has_room = buffer.remaining() > 0;
        ready!(Pin::new(&mut self.channel).poll_read(context, buffer))?;
        let is_end = has_room && buffer.filled().len() == before;
        if is_end && self.facts.is_gone() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, self.facts.end())));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.channel).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_shutdown(context)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stream").finish_non_exhaustive()
    }
}
