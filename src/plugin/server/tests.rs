//! The end of the server; in paused time where no client is connected.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::future::{pending, ready};

use tokio::time::{Instant, sleep};
use tonic::{Request, codegen::http::uri::PathAndQuery};

use super::*;
use crate::plugin::{
    generated::plugin::{Empty, grpc_controller_client::GrpcControllerClient},
    incoming::{Callers, incoming},
    listener::Listener,
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
