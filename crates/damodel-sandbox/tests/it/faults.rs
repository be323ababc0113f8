//! Faults on the wire.

use std::time::Duration;

use damodel_sandbox::{FaultAction, Options};
use rstest::rstest;
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::client::Site;

/// How long a test waits for an immediate event.
const SOON: Duration = Duration::from_secs(10);

#[rstest]
#[case(FaultAction::Status { status: 502, processed: true }, 502, 1)]
#[case(FaultAction::Status { status: 503, processed: false }, 503, 0)]
#[case(FaultAction::Html { status: 504, processed: true }, 504, 1)]
#[case(FaultAction::TooManyRequests { retry_after_seconds: Some(7) }, 429, 0)]
#[tokio::test]
async fn a_gateways_answer_is_no_envelope(#[case] action: FaultAction, #[case] status: u16, #[case] created: i64) {
    let site = Site::start(Options::default()).await;
    site.arm("*", action.clone());
    let reply = site.create().await.unwrap();
    assert_eq!(reply.status, status);
    assert!(serde_json::from_slice::<serde_json::Value>(&reply.body).is_err());
    assert_eq!(reply.headers["content-type"] == "text/html", matches!(action, FaultAction::Html { .. }));
    assert_eq!(reply.headers.get("retry-after").map(String::as_str), (status == 429).then_some("7"));
    assert_eq!(site.total().await, created);
}

#[tokio::test]
async fn a_slow_answer_is_late_and_whole() {
    let site = Site::start(Options::default()).await;
    site.arm("instance_list", FaultAction::Slow { ms: 300 });
    let before = Instant::now();
    assert!(site.list().await.unwrap().is_whole());
    assert!(before.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_truncated_body_breaks_off() {
    let site = Site::start(Options::default()).await;
    assert!(site.list().await.unwrap().is_whole());
    site.arm("instance_list", FaultAction::Truncated);
    let reply = site.list().await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(!reply.is_whole() && !reply.body.is_empty());
}

#[tokio::test]
async fn a_streamed_chat_comes_event_by_event_slowly_or_breaks_off() {
    let site = Site::start(Options::default()).await;
    let messages = json!([{ "role": "user", "content": "你好, how are you today?" }]);
    let body = json!({ "model": "deepseek-r1", "messages": messages, "stream": true });
    let stream = async || site.chat("/v1/chat/completions", &body).await.unwrap();
    site.arm("chat_completions", FaultAction::SlowStream { ms: 20 });
    let before = Instant::now();
    let reply = stream().await;
    assert_eq!((reply.is_whole(), reply.chunks().len()), (true, 10), "the role, seven words, the reason, the end");
    assert!(before.elapsed() >= Duration::from_millis(200));
    site.arm("chat_completions", FaultAction::Truncated);
    let reply = stream().await;
    assert_eq!((reply.is_whole(), reply.chunks().len()), (false, 5));
}

#[tokio::test]
async fn a_hang_ends_at_its_limit_or_with_the_client() {
    let site = Site::start(Options::default()).await;
    site.arm("instance_create", FaultAction::Hang { limit_ms: 100, processed: false });
    assert!(timeout(SOON, site.create()).await.unwrap().is_none());
    assert_eq!(site.total().await, 0);
    site.arm("instance_create", FaultAction::Hang { limit_ms: 3_600_000, processed: true });
    give_up_once_received(&site).await;
    assert_eq!(site.total().await, 1);
    // A hanging request does not keep the sandbox from ending.
    site.arm("instance_list", FaultAction::Hang { limit_ms: 3_600_000, processed: false });
    let base_url = site.running.base_url.clone();
    let hung = tokio::spawn(async move { crate::client::ask(&base_url, "", "GET", "/api/instance/list", None).await });
    while site.running.sandbox.ledger().requests_to("instance_list").all(|request| request.status.is_some()) {
        tokio::task::yield_now().await;
    }
    timeout(SOON, site.running.stop()).await.unwrap();
    assert!(timeout(SOON, hung).await.unwrap().unwrap().is_none());
}

/// Sends a create, and closes the connection when the sandbox has the request.
async fn give_up_once_received(site: &Site) {
    let count = || site.running.sandbox.ledger().requests_to("instance_create").count();
    let before = count();
    let received = async {
        while count() == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        reply = site.create() => panic!("answered: {reply:?}"),
        received = timeout(SOON, received) => received.unwrap(),
    }
}

#[rstest]
#[case("GET", "/api/instance/unheard-of", 404)]
#[case("GET", "/", 404)]
#[case("GET", "/sandbox", 404)]
#[case("GET", "/api/instance/create", 405)]
#[case("DELETE", "/api/spec/list", 405)]
#[case("GET", "/v1/api/spec/list?region=cn-east-1", 200)]
#[case("GET", "/api/spec/list?region=cn-east-1", 200)]
#[tokio::test]
async fn paths_and_methods_are_those_of_the_document(#[case] method: &str, #[case] path: &str, #[case] status: u16) {
    let site = Site::start(Options::default()).await;
    let reply = site.ask(method, path, None).await.unwrap();
    assert_eq!(reply.status, status);
    assert_eq!(reply.json()["response_metadata"]["error"].is_null(), status == 200);
    assert_eq!(site.running.sandbox.ledger().requests.len(), 1);
}
