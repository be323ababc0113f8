//! The gRPC server, and its end.

use std::{future::Future, time::Duration};

use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{service::Routes, transport::Server};

use super::{incoming::Incoming, services};

/// How the server and the rest of the process tell each other about the end.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Cancelled by the server as soon as the process is going to end: the host asked for it, the host died, or
    /// SIGTERM came. Cancelling it ends the server as a host's Shutdown call does.
    pub stopping: CancellationToken,
    /// Cancelled by the server as soon as nobody waits for an answer any more: the host asked for the end, which it
    /// does when it has all answers, or died. A signal alone says nothing of the host.
    pub caller_gone: CancellationToken,
    /// Tasks that may not be cut short. After `stopping` they have, together with the calls in flight, 500 ms when the
    /// host asked for the end (it kills after two seconds), else 5 s.
    pub work: TaskTracker,
}

/// Why the server ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// The host called Shutdown, or this process wants it.
    Asked,
    /// The process that started us died.
    Orphaned,
    /// A signal.
    Terminated,
}

impl Ending {
    /// How long calls in flight and tracked work may take to finish.
    fn grace(self) -> Duration {
        match self {
            Self::Asked => Duration::from_millis(500),
            Self::Orphaned | Self::Terminated => Duration::from_secs(5),
        }
    }
}

/// Serves `routes` and the host's own services on `incoming`, until `end` or until `options.stopping` is cancelled.
///
/// Returns when all calls and all tracked work are done, or their grace is over: those that are left then end
/// with the runtime.
pub(super) async fn run(incoming: Incoming, routes: Routes, options: &Options, end: impl Future<Output = Ending>) {
    let Options { stopping, caller_gone, work } = options;
    let routes = services::add(routes, stopping).prepare();
    let server =
        builder().add_routes(routes).serve_with_incoming_shutdown(incoming, stopping.clone().cancelled_owned());
    let stop_on_failure = stopping.clone().drop_guard();
    work.spawn(async move {
        let _guard = stop_on_failure;
        if let Err(error) = server.await {
            tracing::error!(%error, "the server failed");
        }
    });

    let ending = tokio::select! {
        ending = end => ending,
        () = stopping.cancelled() => Ending::Asked,
    };
    tracing::debug!(reason = ?ending, "ending");
    stopping.cancel();
    if !matches!(ending, Ending::Terminated) {
        caller_gone.cancel();
    }
    work.close();
    if timeout(ending.grace(), work.wait()).await.is_err() {
        tracing::warn!(reason = ?ending, unfinished = work.len(), "ended before everything was done");
    }
}

fn builder() -> Server {
    Server::builder()
        // Large schemas and states pass without waiting for the other side to grant more.
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // The host decides how much it does at once, and two of its streams stay open.
        .max_concurrent_streams(MAX_STREAMS)
        // OpenTofu resets the streams of calls it cancels; that is no attack of a stranger.
        .http2_max_pending_accept_reset_streams(Some(MAX_RESETS))
}

const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const MAX_STREAMS: u32 = 10_000;
const MAX_RESETS: usize = 1_000;

#[cfg(test)]
mod tests;
