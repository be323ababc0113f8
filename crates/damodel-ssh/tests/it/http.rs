//! HTTP through a channel, against a server that listens behind sshd.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Path,
    http::{HeaderMap, StatusCode, Uri},
    routing::{get, post},
};
use damodel_ssh::{
    Error, Session, SessionLimits, connect,
    http::{Method, Request},
};
use futures_util::{StreamExt, stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::support::{
    ports::free_port,
    sshd::{Cable, Sshd},
};

async fn session(sshd: &Sshd, limits: SessionLimits, cancel: &CancellationToken) -> Session {
    let deadline = Instant::now() + Duration::from_secs(60);
    connect(&sshd.target(), &limits, deadline, cancel).await.unwrap()
}

fn ask(path: &str) -> Request<Bytes> {
    Request::get(path).body(Bytes::new()).unwrap()
}

/// How long `/slow` is silent, before its head and before its body.
const SILENCE: Duration = Duration::from_secs(1);

/// A server with a route for each case.
async fn serve() -> u16 {
    let router = Router::new()
        .route(
            "/seen",
            post(|uri: Uri, headers: HeaderMap, body: Bytes| async move {
                let of = |name: &str| headers[name].to_str().unwrap().to_owned();
                (StatusCode::CREATED, format!("{uri} {} {} {}", of("host"), of("x-own"), body.len()))
            }),
        )
        .route("/long/{bytes}", get(|Path(bytes): Path<usize>| async move { vec![b'x'; bytes] }))
        .route(
            "/events",
            get(|| async {
                let pieces = (0..50).map(|index| Ok::<_, Infallible>(format!("data: {index}\n\n")));
                Body::from_stream(stream::iter(pieces).then(|piece| async {
                    tokio::task::yield_now().await;
                    piece
                }))
            }),
        )
        .route(
            "/half",
            get(|| async {
                let begun = stream::iter([Ok::<_, Infallible>("begun".to_owned())]);
                Body::from_stream(begun.chain(stream::pending()))
            }),
        )
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(SILENCE).await;
                let later = stream::once(async {
                    tokio::time::sleep(SILENCE).await;
                    Ok::<_, Infallible>("late".to_owned())
                });
                Body::from_stream(later)
            }),
        )
        .route("/never", get(std::future::pending::<()>));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

/// A server that sends these bytes on each connection, and closes it.
async fn say(text: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.read(&mut [0; 1024]).await;
            let _ = connection.write_all(text.as_bytes()).await;
        }
    });
    port
}

#[tokio::test]
async fn a_question_arrives_as_it_was_asked_and_is_answered() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd, SessionLimits::default(), &CancellationToken::new()).await;
    let port = serve().await;
    let request = Request::builder().method(Method::POST).uri("http://elsewhere:1/seen?a=b").header("x-own", "1");
    let answer = session.http(port, request.body(Bytes::from(vec![b'x'; 1_500_000])).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 201);
    let body = answer.into_body().collect(1000).await.unwrap();
    assert_eq!(body, format!("/seen?a=b 127.0.0.1:{port} 1 1500000"));
    let answer = session.http(port, ask("/nothing")).await.unwrap();
    assert_eq!(answer.status(), 404);
}

#[tokio::test]
async fn a_long_answer_is_read_up_to_the_limit() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd, SessionLimits::default(), &CancellationToken::new()).await;
    let port = serve().await;
    let whole = session.http(port, ask("/long/5000000")).await.unwrap().into_body().collect(5_000_000).await;
    assert_eq!(whole.unwrap().len(), 5_000_000);
    let error = session.http(port, ask("/long/5000000")).await.unwrap().into_body().collect(4_999_999).await;
    assert!(matches!(error.unwrap_err(), Error::TooLong { limit: 4_999_999, .. }));
}

#[tokio::test]
async fn events_arrive_whole_and_in_order() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd, SessionLimits::default(), &CancellationToken::new()).await;
    let answer = session.http(serve().await, ask("/events")).await.unwrap();
    let pieces: Vec<Bytes> = answer.into_body().map(Result::unwrap).collect().await;
    let wanted: String = (0..50).map(|index| format!("data: {index}\n\n")).collect();
    assert_eq!(pieces.concat(), wanted.as_bytes());
}

#[tokio::test]
async fn an_answer_that_falls_silent_ends_by_the_limit_and_by_the_token() {
    let Some(sshd) = Sshd::started() else { return };
    let cancel = CancellationToken::new();
    let limits = SessionLimits { idle: Duration::from_millis(1500), ..SessionLimits::default() };
    let session = session(&sshd, limits, &cancel).await;
    let port = serve().await;
    let error = session.http(port, ask("/never")).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    let mut body = session.http(port, ask("/half")).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "begun");
    let error = body.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(body.next().await.is_none(), "nothing comes after an error");
    let mut body = session.http(port, ask("/half")).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "begun");
    cancel.cancel();
    let error = body.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
}

/// A model computes for one client at a time: the others wait, which is not an error.
#[tokio::test]
async fn whoever_asks_says_how_long_an_answer_may_be_silent() {
    let Some(sshd) = Sshd::started() else { return };
    let limits = SessionLimits { idle: SILENCE / 4, ..SessionLimits::default() };
    let session = session(&sshd, limits, &CancellationToken::new()).await;
    let port = serve().await;
    let error = session.http(port, ask("/slow")).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    let answer = session.http_within(Duration::MAX, port, ask("/slow")).await.unwrap();
    assert_eq!(answer.into_body().collect(100).await.unwrap(), "late");
}

#[tokio::test]
async fn a_connection_that_falls_silent_ends_an_answer_that_may_be_silent_for_ever() {
    let Some(sshd) = Sshd::started() else { return };
    let cable = Cable::to(sshd.port()).await;
    let mut target = sshd.target();
    target.port = cable.port();
    let limits = SessionLimits { keepalive: Duration::from_millis(200), missed: 2, ..SessionLimits::default() };
    let deadline = Instant::now() + Duration::from_secs(60);
    let session = connect(&target, &limits, deadline, &CancellationToken::new()).await.unwrap();
    let mut body = session.http_within(Duration::MAX, serve().await, ask("/half")).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "begun");
    cable.freeze();
    let error = body.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    cable.mend();
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd, SessionLimits::default(), &CancellationToken::new()).await;
    for text in ["", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 5"] {
        let error = session.http(say(text).await, ask("/")).await.unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. }), "{text:?}: {error}");
    }
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
        let answer = session.http(say(text).await, ask("/")).await.unwrap();
        let error = answer.into_body().collect(100).await.unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. }), "{text:?}: {error}");
    }
    let error = session.http(free_port(), ask("/")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_of_a_lost_session_is_told_as_such() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd, SessionLimits::default(), &CancellationToken::new()).await;
    let mut body = session.http(serve().await, ask("/half")).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "begun");
    sshd.kill_sessions();
    let error = body.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}
