//! Faults on the wire.

use std::time::Duration;

use damodel::sandbox::{Balance, FaultAction, LedgerObject, Options};
use rstest::rstest;
use tokio::time::{Instant, timeout};

use crate::sandbox::client::Site;

/// How long a test waits for an immediate event.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_drop_before_does_nothing_and_a_drop_after_does_all() {
    let site = Site::start(Options::default()).await;
    site.arm("instance_create", FaultAction::DropBefore);
    assert!(site.create().await.is_none());
    assert_eq!(site.total().await, 0);
    site.arm("instance_create", FaultAction::DropAfter);
    assert!(site.create().await.is_none());
    assert_eq!(site.total().await, 1);
    assert_eq!(site.create().await.unwrap().status, 200);

    let ledger = site.running.sandbox.ledger();
    assert_eq!(ledger.balance(LedgerObject::Instance), Balance { created: 2, released: 0, removed: 0, live: 2 });
    let creates: Vec<_> =
        ledger.requests_to("instance_create").map(|request| (request.processed, request.status)).collect();
    assert_eq!(creates, [(false, None), (true, None), (true, Some(200))]);
    assert_eq!(
        ledger.duplicates(LedgerObject::Instance).len(),
        1,
        "the same name twice is what a blind retry looks like"
    );
}

#[rstest]
#[case(FaultAction::Status { status: 500, processed: false }, 500, 0)]
#[case(FaultAction::Status { status: 502, processed: true }, 502, 1)]
#[case(FaultAction::Status { status: 503, processed: false }, 503, 0)]
#[case(FaultAction::Html { status: 200, processed: false }, 200, 0)]
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
async fn a_truncated_body_breaks_off() {
    let site = Site::start(Options::default()).await;
    assert!(site.list().await.unwrap().is_whole());
    site.arm("instance_list", FaultAction::Truncated);
    let reply = site.list().await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(!reply.is_whole() && !reply.body.is_empty());
}

#[tokio::test]
async fn a_slow_answer_comes_late_but_is_processed() {
    let site = Site::start(Options::default()).await;
    site.arm("instance_create", FaultAction::Slow { ms: 300 });
    let before = Instant::now();
    assert_eq!(site.create().await.unwrap().status, 200);
    assert!(before.elapsed() >= Duration::from_millis(300));

    site.arm("instance_create", FaultAction::Slow { ms: 3_600_000 });
    give_up_once_received(&site).await;
    assert_eq!(site.total().await, 2);
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
    let hung =
        tokio::spawn(
            async move { crate::sandbox::client::ask(&base_url, "", "GET", "/api/instance/list", None).await },
        );
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

#[tokio::test]
async fn the_date_header_shows_the_services_clock() {
    let skew: i64 = -7200;
    let site = Site::start(Options {
        form: format!("clock_skew={skew},error_status=matched").parse().unwrap(),
        ..Options::default()
    })
    .await;
    let reply = site.list().await.unwrap();
    assert_eq!((reply.status, &reply.json()["response_metadata"]["error"]["code_n"]), (401, &100_006.into()));
    let date = jiff::fmt::rfc2822::parse(&reply.headers["date"]).unwrap().timestamp();
    let behind = jiff::Timestamp::now().as_second() - date.as_second();
    assert!((7195..=7260).contains(&behind), "{behind}");
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
