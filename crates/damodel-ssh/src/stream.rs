//! A byte stream through a channel.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use russh::{ChannelStream, client::Msg};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::handler::PeerFacts;

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
