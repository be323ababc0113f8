//! The end of the server, in paused time: no client is connected.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::future::{pending, ready};

use tokio::time::{Instant, sleep};

use super::*;
use crate::plugin::{
    incoming::incoming,
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
    let incoming = incoming(listener().await, None);
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
        assert!(options.stop.is_cancelled());
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_stop_ends_the_server() {
    let options = Options::default();
    options.stop.cancel();
    let (took, left) = ended(pending(), &options).await;
    assert!(took < Duration::from_millis(10));
    assert_eq!(left, 0);
}

#[tokio::test(start_paused = true)]
async fn work_is_told_and_waited_for() {
    let options = Options::default();
    let stop = options.stop.clone();
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
    let graces = [
        (Ending::Asked, 500),
        (Ending::Orphaned, 5_000),
        (Ending::Terminated, 5_000),
    ];
    for (ending, grace) in graces {
        let options = Options::default();
        options.work.spawn(pending::<()>());
        let (took, left) = ended(ready(ending), &options).await;
        assert!(took.as_millis().abs_diff(grace) < 10, "{ending:?} took {took:?}");
        assert_eq!(left, 1);
    }
}
