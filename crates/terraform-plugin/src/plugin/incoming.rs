//! Connections for the gRPC server, after the TLS handshake if there is one.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::Stream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc::{Receiver, Sender, channel},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::server::Connected;

use super::listener::{Duplex, Listener};

/// Accepts from `listener` until the stream is dropped.
///
/// A peer cannot end it: each TLS handshake has its own task and deadline, and a failed one is only logged, because the
/// right client may still connect, or reconnect after a long idle time.
pub(super) fn incoming(listener: Listener, tls: Option<TlsAcceptor>, callers: Callers) -> IncomingConnections {
    let (sender, receiver) = channel(1);
    tokio::spawn(accept_all(listener, tls, callers, sender));
    IncomingConnections(receiver)
}

/// The callers behind the connections. Every request has the token of its caller as an extension.
#[derive(Clone, Debug)]
pub(super) enum Callers {
    /// All connections have one caller. The token is cancelled when it is gone.
    One(CancellationToken),
    /// Each connection has its own caller, which is gone when the connection closes or the token is cancelled.
    Each(CancellationToken),
}

impl Callers {
    fn connection(&self, stream: Box<dyn Duplex>) -> CoreConnection {
        match self {
            Self::One(gone) => CoreConnection { stream, caller_gone: gone.clone(), _closed: None },
            Self::Each(gone) => {
                let caller_gone = gone.child_token();
                CoreConnection { stream, _closed: Some(caller_gone.clone().drop_guard()), caller_gone }
            }
        }
    }
}

/// The connections that are ready for HTTP/2.
#[derive(Debug)]
pub(super) struct IncomingConnections(Receiver<CoreConnection>);

impl Stream for IncomingConnections {
    type Item = Result<CoreConnection, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|connection| connection.map(Ok))
    }
}

async fn accept_all(listener: Listener, tls: Option<TlsAcceptor>, callers: Callers, ready: Sender<CoreConnection>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ready.closed() => return,
        };
        match accepted {
            Ok(stream) => {
                tokio::spawn(establish(stream, tls.clone(), callers.clone(), ready.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // The usual cause is a lack of file descriptors: an immediate retry would only use the processor.
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn establish(stream: Box<dyn Duplex>, tls: Option<TlsAcceptor>, callers: Callers, ready: Sender<CoreConnection>) {
    let stream = match tls {
        None => stream,
        Some(tls) => match timeout(HANDSHAKE_DEADLINE, tls.accept(stream)).await {
            Ok(Ok(encrypted)) => Box::new(encrypted),
            Ok(Err(error)) if is_probe(&error) => return,
            Ok(Err(error)) => {
                tracing::warn!(%error, "refused a connection");
                return;
            }
            Err(_) => {
                tracing::warn!("refused a connection that took too long to be secured");
                return;
            }
        },
    };
    // Sending fails only if the server has ended.
    let _ = ready.send(callers.connection(stream)).await;
}

/// Whether the peer only checked that the port is open: it disconnected before the TLS handshake.
fn is_probe(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof)
}

/// The host is on this computer, but may be busy or stopped in a debugger.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(30);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection in the form that the gRPC server needs.
pub(super) struct CoreConnection {
    stream: Box<dyn Duplex>,
    caller_gone: CancellationToken,
    _closed: Option<DropGuard>,
}

impl std::fmt::Debug for CoreConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreConnection").finish_non_exhaustive()
    }
}

impl Connected for CoreConnection {
    type ConnectInfo = CancellationToken;

    fn connect_info(&self) -> CancellationToken {
        self.caller_gone.clone()
    }
}

impl AsyncRead for CoreConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CoreConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use futures_util::StreamExt;
    use tokio::{
        io::AsyncReadExt,
        net::{TcpListener, TcpStream},
        time::Instant,
    };

    use super::*;
    use crate::plugin::tls::{TlsIdentity, tests::client};

    async fn bound() -> (Listener, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Listener::Tcp(listener), address)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_says_a_word_is_dropped_in_the_end() {
        let (listener, address) = bound().await;
        let tls = TlsIdentity::for_client(&client()).unwrap().acceptor;
        let mut connections = incoming(listener, Some(tls), Callers::One(CancellationToken::new()));
        let start = Instant::now();
        let mut silent = TcpStream::connect(address).await.unwrap();
        assert_eq!(silent.read(&mut [0]).await.unwrap(), 0);
        assert!(start.elapsed() >= HANDSHAKE_DEADLINE);
        // The connection was not passed on, and the stream continues.
        let next = timeout(Duration::from_secs(60), connections.next());
        assert!(next.await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_stream_closes_the_listener() {
        let (listener, address) = bound().await;
        let mut connections = incoming(listener, None, Callers::One(CancellationToken::new()));
        let _peer = TcpStream::connect(address).await.unwrap();
        assert!(connections.next().await.is_some());
        drop(connections);
        let closed = async { while TcpStream::connect(address).await.is_ok() {} };
        timeout(Duration::from_secs(20), closed).await.unwrap();
    }

    #[tokio::test]
    async fn a_caller_is_gone_with_its_connection_or_with_all_others() {
        for ends in [true, false] {
            let all = CancellationToken::new();
            let callers = if ends { Callers::Each(all.clone()) } else { Callers::One(all.clone()) };
            let (listener, address) = bound().await;
            let mut connections = incoming(listener, None, callers);
            let _peers = (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
            let [closed, open] =
                [connections.next().await.unwrap().unwrap(), connections.next().await.unwrap().unwrap()];
            let gone = closed.connect_info();
            drop(closed);
            assert_eq!((gone.is_cancelled(), open.connect_info().is_cancelled()), (ends, false));
            all.cancel();
            assert!(open.connect_info().is_cancelled());
        }
    }
}
