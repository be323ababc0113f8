//! A network that can break.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};
use tokio_util::task::AbortOnDropHandle;

/// A port that forwards to another one, until it is broken. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Cable {
    port: u16,
    state: watch::Sender<State>,
    connections: Arc<AtomicUsize>,
    _listening: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Cut,
    Frozen,
    Whole,
}

impl Cable {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let here = listener.local_addr().unwrap().port();
        let (state, watched) = watch::channel(State::Whole);
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let listening = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                tokio::spawn(lead(near_read, far_write, watched.clone()));
                tokio::spawn(lead(far_read, near_write, watched.clone()));
            }
        });
        Self { port: here, state, connections, _listening: AbortOnDropHandle::new(listening) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The number of connections to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Ends every connection.
    pub(crate) fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Holds all data back, without ending a connection.
    pub(crate) fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    /// Forwards all data again.
    pub(crate) fn mend(&self) {
        self.state.send_replace(State::Whole);
    }
}

async fn lead(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            biased;
            _ = state.wait_for(|state| *state == State::Cut) => return,
            read = from.read(&mut buffer) => read.unwrap_or(0),
        };
        if read == 0 || state.wait_for(|state| *state != State::Frozen).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
