//! Requests of the client: retries, limits, tokens and errors.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, AtomicUsize},
};

use jiff::Timestamp;
use rstest::rstest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::{
    Code, InstanceFilter, InstanceUid, SendFailure, TokenSource,
    testing::{self, TOKEN, answer, context, lost, never_sent, ok, page, raw, refusal, serve, serve_with},
};

fn uid() -> InstanceUid {
    InstanceUid::new("ins-1")
}

#[rstest]
#[case(Settings { base_url: None, ..testing::settings() }, Missing::BaseUrl)]
#[case(Settings { token: None, ..testing::settings() }, Missing::ApiToken)]
#[tokio::test(start_paused = true)]
async fn what_is_missing_is_the_error_of_the_first_call(#[case] settings: Settings, #[case] missing: Missing) {
    let (client, ledger) = serve_with(settings, |_| async { page(&[]) });
    let error = client.instances().snapshot(&context(60)).await.unwrap_err();
    assert!(matches!(error, Error::Missing(found) if found == missing), "{error}");
    assert_eq!(client.check_configured(), Err(missing));
    assert!(ledger.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_carries_what_the_service_asks_for() {
    let (client, ledger) = serve(|_| async { ok(&json!(null)) });
    client.instances().rename(&uid(), "web", &context(60)).await.unwrap();
    let asked = ledger.all().pop().unwrap();
    assert_eq!(asked.request.url.as_str(), "http://127.0.0.1:1/api/instance/rename");
    assert_eq!(asked.request.method, Method::POST);
    assert_eq!(asked.body(), json!({"instance_uid": "ins-1", "name": "web"}));
    let headers = &asked.request.headers;
    assert_eq!(headers["x-service-token"], TOKEN);
    let stamp: i64 = headers["x-service-timestamp"].to_str().unwrap().parse().unwrap();
    assert!((stamp - Timestamp::now().as_second()).abs() <= 2);
    assert!(headers[USER_AGENT].to_str().unwrap().starts_with("terraform-provider-damodel/"));
    assert!(!format!("{asked:?}").contains(TOKEN));
}

#[rstest]
#[case::lost(lost)]
#[case::gateway(|| raw(502, &[], "<html>"))]
#[case::busy(|| refusal(100014))]
#[case::cut(|| raw(200, &[], "{\"resu"))]
#[tokio::test(start_paused = true)]
async fn reads_and_repeatable_changes_are_sent_again(#[case] failure: fn() -> testing::Reply) {
    let (client, ledger) = serve(move |_| async move { failure() });
    client.instances().list(&InstanceFilter::default(), &context(600)).await.unwrap_err();
    assert_eq!(ledger.all().len(), 6);
    client.instances().rename(&uid(), "web", &context(600)).await.unwrap_err();
    assert_eq!(ledger.all().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_never_reached_is_not_tried_for_long() {
    let is_there = Arc::new(AtomicBool::new(false));
    let reached = Arc::clone(&is_there);
    let (client, ledger) = serve(move |_| {
        let answers = reached.swap(false, Ordering::SeqCst);
        async move { if answers { page(&[]) } else { never_sent() } }
    });
    let (instances, filter, start) = (client.instances(), InstanceFilter::default(), Instant::now());
    let error = instances.list(&filter, &context(600)).await.unwrap_err();
    assert!(error.to_string().contains("could not be sent to http://127.0.0.1:1: "), "{error}");
    assert!(start.elapsed() < Duration::from_secs(6) && (2..6).contains(&ledger.all().len()));
    // After the first answer, a failed connection is temporary.
    is_there.store(true, Ordering::SeqCst);
    instances.list(&filter, &context(600)).await.unwrap();
    let before = ledger.all().len();
    instances.list(&filter, &context(600)).await.unwrap_err();
    assert_eq!(ledger.all().len() - before, 6);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_final() {
    let (client, ledger) = serve(|_| async { refusal(160012) });
    let error = client.instances().release(&uid(), &context(600)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InstanceCanNotBeReleased));
    assert_eq!(error.request_ids().request_id.as_deref(), Some("req-9"));
    assert_eq!(ledger.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_within_the_deadline() {
    let asked = AtomicUsize::new(0);
    let (client, _) = serve(move |_| {
        let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { raw(429, &[("retry-after", "17")], "slow down") } else { page(&[]) } }
    });
    let start = Instant::now();
    client.instances().list(&InstanceFilter::default(), &context(60)).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 17);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_is_not_begun() {
    let (client, ledger) = serve(|_| async { raw(429, &[("retry-after", "100")], "slow down") });
    let start = Instant::now();
    let error = client.instances().list(&InstanceFilter::default(), &context(60)).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(ledger.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_service_asks_for_holds_every_request_and_one_goes_first() {
    let start = Instant::now();
    let settings = Settings { max_retries: 0, ..testing::settings() };
    let (client, ledger) = serve_with(settings, move |_| async move {
        let is_held = start.elapsed() < Duration::from_secs(17);
        tokio::time::sleep(Duration::from_millis(100)).await;
        if is_held { raw(429, &[("retry-after", "17")], "slow down") } else { page(&[]) }
    });
    let list = |after: u64| {
        let client = client.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            client.instances().list(&InstanceFilter::default(), &context(600)).await.is_ok()
        }
    };
    let (first, second, late, later) = tokio::join!(list(0), list(0), list(5000), list(6000));
    assert!(first != second && late && later, "one of two 429 counts an attempt, and there is no other");
    let asked: Vec<_> = ledger.all().iter().map(|asked| (asked.at - start).as_millis()).collect();
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert_eq!(asked[..3], [0, 0, 17_100], "{asked:?}");
    assert!(asked[3..].iter().all(|at| *at >= 17_200), "the others wait for the first one's answer: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_stamped_when_it_is_sent() {
    let start = Instant::now();
    let settings = Settings { max_concurrent_requests: NonZeroUsize::MIN, ..testing::settings() };
    let server = Timestamp::now().as_second() - 3600;
    let date = move || {
        let now = Timestamp::from_second(server).unwrap();
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap()
    };
    let (client, ledger) = serve_with(settings, move |request| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let stamp: i64 = request.headers["x-service-timestamp"].to_str().unwrap().parse().unwrap();
        if (stamp - server).abs() <= 5 {
            return page(&[]);
        }
        let body = json!({"response_metadata": {"error": {"code_n": 100006, "code": "InvalidToken"}}});
        raw(401, &[("date", &date())], body.to_string())
    });
    let (instances, filter, context) = (client.instances(), InstanceFilter::default(), context(60));
    let lists = futures_util::future::join_all((0..5).map(|_| instances.list(&filter, &context))).await;
    assert!(lists.iter().all(Result::is_ok) && start.elapsed() < Duration::from_secs(10));
    assert_eq!(ledger.all().len(), 6, "what waited for its place has the corrected clock");
}

#[rstest]
#[case::gateway(|| raw(504, &[], "<html>"))]
#[case::too_large(|| Err(SendFailure::NoAnswer(Cause::new(TooMuch::Large))))]
#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_long_for_one_answer_is_read_in_pages(#[case] failure: fn() -> testing::Reply) {
    let all: Vec<_> = (0..250).map(|number| json!({"instance_uid": format!("ins-{number}")})).collect();
    let (client, ledger) = serve(move |request| {
        let number = |name| testing::query(&request, name).unwrap().parse::<usize>().unwrap();
        let reply = match number("page_size") {
            0 => failure(),
            size => {
                let data: Vec<_> = all.iter().skip((number("page") - 1) * size).take(size).collect();
                ok(&json!({"total": all.len(), "data": data}))
            }
        };
        async move { reply }
    });
    for requests in [4, 7] {
        let listing = client.instances().list(&InstanceFilter::default(), &context(60)).await.unwrap();
        assert!(listing.complete && listing.records.len() == 250);
        assert_eq!(ledger.all().len(), requests);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_is_corrected_once() {
    let server = Timestamp::now().as_second() - 3600;
    let date = jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&Timestamp::from_second(server).unwrap())
        .unwrap();
    let (client, ledger) = serve(move |request| {
        let stamp: i64 = request.headers["x-service-timestamp"].to_str().unwrap().parse().unwrap();
        let right = (stamp - server).abs() <= 5;
        let date = date.clone();
        async move {
            if right {
                return page(&[]);
            }
            let body = json!({"response_metadata": {"error": {"code_n": 100006, "code": "InvalidToken"}}});
            raw(401, &[("date", &date)], body.to_string())
        }
    });
    for _ in 0..2 {
        client.instances().list(&InstanceFilter::default(), &context(60)).await.unwrap();
    }
    assert_eq!(ledger.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_wrong_is_not_tried_again() {
    let refusals = [|| refusal(100006), || raw(401, &[], "<html>"), || answer(401, &json!({"message": "who?"}))];
    for refused in refusals {
        let (client, ledger) = serve(move |_| async move { refused() });
        let error = client.instances().list(&InstanceFilter::default(), &context(60)).await.unwrap_err();
        assert!(error.refuses_token() && error.nothing_was_processed() && !error.is_retryable(), "{error}");
        assert_eq!(ledger.all().len(), 1);
    }
}

#[cfg(unix)]
#[rstest]
#[case::code(|| refusal(100006))]
#[case::status_alone(|| raw(401, &[], "<html>"))]
#[tokio::test]
async fn a_program_is_asked_for_another_token_once_until_one_was_accepted(#[case] refused: fn() -> testing::Reply) {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let script = format!("echo x >> {0}; printf 'token-%s' $(wc -l < {0})", count.display());
    let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let settings = Settings { token: Some(TokenSource::Command(argv)), ..testing::settings() };
    let accepted = Arc::new(std::sync::Mutex::new("token-2"));
    let valid = Arc::clone(&accepted);
    let (client, _) = serve_with(settings, move |request| {
        let is_valid = request.headers["x-service-token"] == *valid.lock().unwrap();
        async move { if is_valid { page(&[]) } else { refused() } }
    });
    let runs = || std::fs::read_to_string(&count).unwrap().lines().count();
    // Token 3 is the second one in a row that is refused, and nothing is run any more.
    for (token, works, ran) in [("token-2", true, 2), ("none", false, 3), ("none", false, 3), ("token-3", true, 3)] {
        *accepted.lock().unwrap() = token;
        let outcome = client.instances().list(&InstanceFilter::default(), &context(60)).await;
        assert_eq!((outcome.is_ok(), runs()), (works, ran), "{token}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_read_ends_at_once() {
    let (client, _) = serve(|_| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        page(&[])
    });
    let cancel = CancellationToken::new();
    let context = Context::within(Duration::from_secs(60), &cancel);
    let start = Instant::now();
    let instances = client.instances();
    let read = instances.snapshot(&context);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(read, stop);
    assert!(matches!(outcome.unwrap_err(), Error::Cancelled { .. }));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[rstest]
#[case::answers_in_time(3, 3, true)]
#[case::does_not(60, 6, false)]
#[tokio::test(start_paused = true)]
async fn a_cancelled_change_in_flight_may_still_answer(
    #[case] takes: u64,
    #[case] ends_after: u64,
    #[case] answered: bool,
) {
    let settings = Settings { request_timeout: Duration::from_secs(100), ..testing::settings() };
    let (client, _) = serve_with(settings, move |_| async move {
        tokio::time::sleep(Duration::from_secs(takes)).await;
        ok(&json!(null))
    });
    let cancel = CancellationToken::new();
    let context = Context::within(Duration::from_secs(60), &cancel);
    let start = Instant::now();
    let (instances, uid) = (client.instances(), uid());
    let change = instances.rename(&uid, "web", &context);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(change, stop);
    assert_eq!(outcome.is_ok(), answered);
    assert_eq!(start.elapsed(), Duration::from_secs(ends_after));
    if let Err(error) = outcome {
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_goes_on_when_its_caller_is_dropped() {
    let done = Arc::new(AtomicBool::new(false));
    let (client, _) = serve({
        let done = Arc::clone(&done);
        move |_| {
            let done = Arc::clone(&done);
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                done.store(true, Ordering::SeqCst);
                ok(&json!(null))
            }
        }
    });
    let work = client.settings().work.clone();
    let caller = tokio::spawn(async move { client.instances().release(&uid(), &context(60)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    caller.abort();
    // The end of the process waits for it.
    work.close();
    work.wait().await;
    assert!(done.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_counts_as_sent() {
    let settings = Settings { max_retries: 0, ..testing::settings() };
    let (client, _) = serve_with(settings, |_| async {
        tokio::time::sleep(Duration::from_secs(31)).await;
        page(&[])
    });
    let error = client.instances().list(&InstanceFilter::default(), &context(600)).await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_than_allowed_are_under_way() {
    let settings = Settings { max_concurrent_requests: NonZeroUsize::new(3).unwrap(), ..testing::settings() };
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (client, _) = serve_with(settings, {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move |_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                page(&[])
            }
        }
    });
    let (instances, context, filter) = (client.instances(), context(60), InstanceFilter::default());
    futures_util::future::join_all((0..20).map(|_| instances.list(&filter, &context))).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_shared_until_something_changes() {
    let (client, ledger) =
        serve(|request| async move { if request.endpoint.mutates() { ok(&json!(null)) } else { page(&[]) } });
    let (instances, context) = (client.instances(), context(600));
    futures_util::future::join_all((0..50).map(|_| instances.snapshot(&context))).await;
    assert_eq!(ledger.of(Endpoint::InstanceList).len(), 1);
    instances.rename(&uid(), "web", &context).await.unwrap();
    instances.snapshot(&context).await.unwrap();
    assert_eq!(ledger.of(Endpoint::InstanceList).len(), 2);
    tokio::time::sleep(Duration::from_secs(31)).await;
    instances.snapshot(&context).await.unwrap();
    assert_eq!(ledger.of(Endpoint::InstanceList).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn fingerprint_tells_accounts_apart_and_nothing_else() {
    let (client, _) = serve(|_| async { page(&[]) });
    let (same, _) = serve(|_| async { page(&[]) });
    let other = Settings { token: Some(TokenSource::Value("another".into())), ..testing::settings() };
    let (other, _) = serve_with(other, |_| async { page(&[]) });
    let print = client.fingerprint(&context(1)).await.unwrap();
    assert_eq!(print, same.fingerprint(&context(1)).await.unwrap());
    assert_ne!(print, other.fingerprint(&context(1)).await.unwrap());
    assert_eq!(print.len(), 24);
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_logged_shown_or_told() {
    let log = testing::Log::begin();
    let (client, _) = serve(|request| async move {
        match request.endpoint {
            Endpoint::InstanceDetail => ok(&json!({
                "instance_uid": "ins-1", "status": "Running", "ssh_password": "planted-password",
                "jupyter_token": "planted-jupyter", "jupyter_url": "http://x/?token=planted-url",
                "services": [{"url": "http://x/?token=planted-service"}],
            })),
            _ => answer(
                400,
                &json!({"response_metadata": {"request_id": "req-5", "error": {
                "code_n": 100002, "message": format!("bad header {TOKEN}")}}}),
            ),
        }
    });
    let detail = client.instances().detail(&uid(), &context(60)).await.unwrap();
    let error = client.instances().rename(&uid(), "web", &context(60)).await.unwrap_err();
    let logged = log.end();
    assert!(logged.contains("request_id=\"req-5\"") && logged.contains("ins-1"), "{logged}");
    assert!(logged.contains("status=400") && logged.contains("duration_ms="), "{logged}");
    let shown = format!("{logged} {detail:?} {error} {error:?} {client:?} {:?}", client.settings());
    assert!(!shown.contains("planted"), "{shown}");
    assert!(error.to_string().contains("bad header …"), "{error}");
}
