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
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use std::future::{pending, ready};

    use tokio::time::{Instant, sleep};
    use tonic::{Request, codegen::http::uri::PathAndQuery};

    use super::*;
    use crate::plugin::{
        incoming::{Callers, incoming},
        listener::Listener,
        services::plugin::{Empty, grpc_controller_client::GrpcControllerClient},
    };

    /// A listener that nobody knows.
    async fn listener() -> Listener {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        Listener::Tcp(listener)
    }

    /// How long the server takes to end, and what it leaves unfinished.
    async fn ended(end: impl Future<Output = Ending>, options: &Options) -> (Duration, usize) {
        let start = Instant::now();
        let incoming = incoming(listener().await, None, Callers::One(options.caller_gone.clone()));
        run(incoming, Routes::default(), options, end).await;
        (start.elapsed(), options.work.len())
    }

    #[tokio::test(start_paused = true)]
    async fn without_work_the_end_is_immediate() {
        for ending in [Ending::Asked, Ending::Orphaned, Ending::Terminated] {
            let options = Options::default();
            let (took, left) = ended(ready(ending), &options).await;
            assert!(took < Duration::from_millis(10), "{ending:?} took {took:?}");
            assert_eq!(left, 0);
            assert!(options.stopping.is_cancelled());
            // A signal says nothing of the host: it may hear and store what is answered yet.
            assert_eq!(options.caller_gone.is_cancelled(), !matches!(ending, Ending::Terminated));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_stop_ends_the_server() {
        let options = Options::default();
        options.stopping.cancel();
        let (took, left) = ended(pending(), &options).await;
        assert!(took < Duration::from_millis(10));
        assert_eq!(left, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_told_and_waited_for() {
        let options = Options::default();
        let stop = options.stopping.clone();
        options.work.spawn(async move {
            stop.cancelled().await;
            sleep(Duration::from_secs(3)).await;
        });
        let (took, left) = ended(ready(Ending::Orphaned), &options).await;
        assert_eq!(took.as_secs(), 3);
        assert_eq!(left, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_end_is_waited_for_within_its_grace() {
        let graces = [(Ending::Asked, 500), (Ending::Orphaned, 5_000), (Ending::Terminated, 5_000)];
        for (ending, grace) in graces {
            let options = Options::default();
            options.work.spawn(pending::<()>());
            let (took, left) = ended(ready(ending), &options).await;
            assert!(took.as_millis().abs_diff(grace) < 10, "{ending:?} took {took:?}");
            assert_eq!(left, 1);
        }
    }

    /// A call that never comes back is cut after the grace of the host's Shutdown, and the call for that is answered.
    #[tokio::test]
    async fn a_call_in_flight_is_given_its_grace() {
        let Listener::Tcp(listener) = listener().await else {
            unreachable!("it is made of a port");
        };
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut routes = Routes::default();
        let router = routes.axum_router_mut();
        *router = router.clone().route("/test.Slow/Hang", axum::routing::post(pending::<()>));
        let options = Options::default();
        let server = {
            let options = options.clone();
            let incoming = incoming(Listener::Tcp(listener), None, Callers::One(options.caller_gone.clone()));
            tokio::spawn(async move { run(incoming, routes, &options, pending()).await })
        };

        let channel = tonic::transport::Endpoint::from_shared(address).unwrap();
        let channel = channel.connect().await.unwrap();
        let mut hanging = tonic::client::Grpc::new(channel.clone());
        hanging.ready().await.unwrap();
        let call = tokio::spawn(async move {
            let codec = tonic_prost::ProstCodec::<Empty, Empty>::default();
            let path = PathAndQuery::from_static("/test.Slow/Hang");
            hanging.unary(Request::new(Empty {}), path, codec).await
        });

        let mut controller = GrpcControllerClient::new(channel);
        controller.shutdown(Empty {}).await.unwrap();
        server.await.unwrap();
        assert!(!call.is_finished());
    }
}
