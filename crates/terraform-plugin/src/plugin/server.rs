//! The gRPC server, its end, and the services that a plugin host expects in addition to the plugin itself (plugin
//! protocol, other gRPC services).

use std::{
    future::{Future, ready},
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use tokio::{
    task::{JoinError, JoinHandle},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status, Streaming, codegen::BoxStream, service::Routes, transport::Server};

use super::proto::{
    health::{
        HealthCheckRequest, HealthCheckResponse,
        health_check_response::ServingStatus,
        health_server::{Health, HealthServer},
    },
    plugin::{
        ConnInfo, Empty, StdioData,
        grpc_broker_server::{GrpcBroker, GrpcBrokerServer},
        grpc_controller_server::{GrpcController, GrpcControllerServer},
        grpc_stdio_server::{GrpcStdio, GrpcStdioServer},
    },
};
use super::{Error, incoming::IncomingConnections};

/// The tokens and the tracker that coordinate the end of the server and of the process.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// Cancelled by the server as soon as the process is about to end: the host requested it, the host exited, or
    /// SIGTERM arrived. Cancelling it ends the server like a host's Shutdown call.
    pub stopping: CancellationToken,
    /// Cancelled by the server as soon as no caller waits for an answer: the host requested the end, which it does
    /// after the last answer, or exited. After a signal alone the host may still wait.
    pub caller_gone: CancellationToken,
    /// Tasks that must not be cut short. After `stopping`, they and the calls in progress have 500 ms if the host
    /// requested the end (it kills after two seconds), otherwise 5 s.
    pub work: TaskTracker,
}

/// The reason for the end of the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// The host called Shutdown, or this process cancelled `stopping`.
    Asked,
    /// The parent process exited.
    Orphaned,
    /// A signal.
    Terminated,
}

impl Ending {
    /// The grace period of calls in progress and tracked work.
    fn grace(self) -> Duration {
        match self {
            Self::Asked => Duration::from_millis(500),
            Self::Orphaned | Self::Terminated => Duration::from_secs(5),
        }
    }
}

/// The time for the server's last log line after the grace.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Waits on a runtime of its own until the server has ended, or until the grace after its end is over: whatever stalls
/// the server's threads cannot keep the process alive. So it writes nothing, not even to the log.
pub(super) async fn attend(
    mut serving: JoinHandle<Result<(), Error>>,
    end: impl Future<Output = Ending>,
    options: &ServeOptions,
    grace_over: &CancellationToken,
) -> Result<(), Error> {
    let failed = |failed: JoinError| Err(Error::Runtime(failed.into()));
    let ending = tokio::select! {
        served = &mut serving => return served.unwrap_or_else(failed),
        ending = end => ending,
        () = options.stopping.cancelled() => Ending::Asked,
    };
    options.stopping.cancel();
    if !matches!(ending, Ending::Terminated) {
        options.caller_gone.cancel();
    }
    match timeout(ending.grace(), &mut serving).await {
        Ok(served) => served.unwrap_or_else(failed),
        Err(_) => {
            grace_over.cancel();
            let _ = timeout(LAST_WORDS, serving).await;
            Ok(())
        }
    }
}

/// Serves `routes` and the host's own services on `incoming`, until `options.stopping` is cancelled.
///
/// Returns when all calls and tracked work are done, or when `grace_over` is cancelled: unfinished ones then end with
/// the runtime.
pub(super) async fn run(
    incoming: IncomingConnections,
    routes: Routes,
    options: &ServeOptions,
    grace_over: &CancellationToken,
) {
    let ServeOptions { stopping, work, .. } = options;
    let routes = add(routes, stopping).prepare();
    let server =
        builder().add_routes(routes).serve_with_incoming_shutdown(incoming, stopping.clone().cancelled_owned());
    let stop_on_failure = stopping.clone().drop_guard();
    work.spawn(async move {
        let _guard = stop_on_failure;
        if let Err(error) = server.await {
            tracing::error!(%error, "the server failed");
        }
    });

    stopping.cancelled().await;
    tracing::debug!("ending");
    work.close();
    tokio::select! {
        () = work.wait() => {}
        () = grace_over.cancelled() => {
            tracing::warn!(unfinished = work.len(), "ended before everything was done");
        }
    }
}

fn builder() -> Server {
    Server::builder()
        // Large schemas and states are sent without waiting for window updates.
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // The host limits its own concurrency, and keeps two streams open.
        .max_concurrent_streams(MAX_STREAMS)
        // OpenTofu resets the streams of cancelled calls, which is not an attack.
        .http2_max_pending_accept_reset_streams(Some(MAX_RESETS))
}

const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const MAX_STREAMS: u32 = 10_000;
const MAX_RESETS: usize = 1_000;

/// Adds the host's services to `routes`. The Shutdown call cancels `stopping`, which ends their open streams, so that
/// the server need not wait for the client to close them.
pub(super) fn add(routes: Routes, stopping: &CancellationToken) -> Routes {
    routes
        .add_service(GrpcControllerServer::new(Controller(stopping.clone())))
        .add_service(GrpcStdioServer::new(Stdio(stopping.clone())))
        .add_service(GrpcBrokerServer::new(Broker(stopping.clone())))
        .add_service(HealthServer::new(Serving))
}

/// A stream without events that ends when `stopping` is cancelled.
fn silence<T: Send + 'static>(stopping: &CancellationToken) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
    stream::pending().take_until(stopping.clone().cancelled_owned())
}

/// Ends the process on request. Without it the host waits two seconds and kills the process.
#[derive(Debug)]
struct Controller(CancellationToken);

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        tracing::debug!("the host asked for the shutdown");
        self.0.cancel();
        Ok(Response::new(Empty {}))
    }
}

/// The service for the plugin's output. It sends none, because the host reports output as a mistake.
#[derive(Debug)]
struct Stdio(CancellationToken);

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<BoxStream<StdioData>>, Status> {
        Ok(Response::new(Box::pin(silence(&self.0))))
    }
}

/// The service for further connections, of which none is opened. The host keeps the stream open until it exits.
#[derive(Debug)]
struct Broker(CancellationToken);

#[tonic::async_trait]
impl GrpcBroker for Broker {
    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<BoxStream<ConnInfo>>, Status> {
        // The host's messages are read and dropped; the answering stream ends with the host's.
        let unanswered = request.into_inner().filter_map(|_| ready(None));
        let unanswered = unanswered.take_until(self.0.clone().cancelled_owned());
        Ok(Response::new(Box::pin(unanswered)))
    }
}

/// The standard health service for the name "plugin", which go-plugin asks for. It always reports "serving".
#[derive(Debug)]
struct Serving;

#[tonic::async_trait]
impl Health for Serving {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        if matches!(request.get_ref().service.as_str(), "" | "plugin") {
            Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
        } else {
            Err(Status::not_found("unknown service"))
        }
    }

    /// Hosts do not use this call.
    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<BoxStream<HealthCheckResponse>>, Status> {
        Err(Status::unimplemented("ask with Check"))
    }
}

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
        proto::plugin::{Empty, grpc_controller_client::GrpcControllerClient},
    };

    /// A listener without clients.
    async fn listener() -> Listener {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        Listener::Tcp(listener)
    }

    /// The time until the server ends, and the number of unfinished tasks.
    async fn ended(end: impl Future<Output = Ending>, options: &ServeOptions) -> (Duration, usize) {
        let start = Instant::now();
        attended(listener().await, Routes::default(), end, options).await;
        (start.elapsed(), options.work.len())
    }

    async fn attended(listener: Listener, routes: Routes, end: impl Future<Output = Ending>, options: &ServeOptions) {
        let grace_over = CancellationToken::new();
        let incoming = incoming(listener, None, Callers::One(options.caller_gone.clone()));
        let (its_options, over) = (options.clone(), grace_over.clone());
        let serving = tokio::spawn(async move {
            run(incoming, routes, &its_options, &over).await;
            Ok(())
        });
        attend(serving, end, options, &grace_over).await.unwrap();
    }

    /// Nothing on the server's runtime moves any more, its timers included.
    #[test]
    fn a_server_that_stalls_ends_with_its_grace() {
        let serving = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (stalled, stall) = std::sync::mpsc::channel();
        let handle = serving.spawn(async move {
            stalled.send(()).unwrap();
            std::thread::sleep(Duration::from_secs(3600));
            Ok(())
        });
        stall.recv().unwrap();
        let attending = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let start = std::time::Instant::now();
        let (options, grace_over) = (ServeOptions::default(), CancellationToken::new());
        attending.block_on(attend(handle, ready(Ending::Asked), &options, &grace_over)).unwrap();
        serving.shutdown_background();
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn without_work_the_end_is_immediate() {
        for ending in [Ending::Asked, Ending::Orphaned, Ending::Terminated] {
            let options = ServeOptions::default();
            let (took, left) = ended(ready(ending), &options).await;
            assert!(took < Duration::from_millis(10), "{ending:?} took {took:?}");
            assert_eq!(left, 0);
            assert!(options.stopping.is_cancelled());
            // After a signal the host may still receive and store answers.
            assert_eq!(options.caller_gone.is_cancelled(), !matches!(ending, Ending::Terminated));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_stop_ends_the_server() {
        let options = ServeOptions::default();
        options.stopping.cancel();
        let (took, left) = ended(pending(), &options).await;
        assert!(took < Duration::from_millis(10));
        assert_eq!(left, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_told_and_waited_for() {
        let options = ServeOptions::default();
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
            let options = ServeOptions::default();
            options.work.spawn(pending::<()>());
            let (took, left) = ended(ready(ending), &options).await;
            assert!(took.as_millis().abs_diff(grace) < 10, "{ending:?} took {took:?}");
            assert_eq!(left, 1);
        }
    }

    /// A call that never returns is cut off after the grace period of the host's Shutdown call, which is answered.
    #[tokio::test]
    async fn a_call_in_flight_is_given_its_grace() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut routes = Routes::default();
        let router = routes.axum_router_mut();
        *router = router.clone().route("/test.Slow/Hang", axum::routing::post(pending::<()>));
        let options = ServeOptions::default();
        let server = tokio::spawn(async move { attended(Listener::Tcp(listener), routes, pending(), &options).await });

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
