//! Chats on the wire.

use std::time::Duration;

use damodel::sandbox::{FaultAction, Options};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::sandbox::client::{Reply, Site, exchange};

const STREAMED: &str = "/chat/completions";

async fn stream(site: &Site) -> Reply {
    let messages = json!([{ "role": "user", "content": "你好, how are you today?" }]);
    let body = json!({ "model": "deepseek-r1", "messages": messages, "stream": true });
    site.chat(STREAMED, &body).await.unwrap()
}

async fn site(form: &str) -> Site {
    Site::start(Options { form: form.parse().unwrap(), ..Options::default() }).await
}

#[rstest]
#[case("/chat/completions")]
#[case("/v1/chat/completions")]
#[tokio::test]
async fn both_base_addresses_want_the_key_and_not_the_token(#[case] path: &str) {
    let site = site("").await;
    let body = json!({ "model": "deepseek-r1", "messages": [{ "role": "user", "content": "hello" }] });
    let reply = site.chat(path, &body).await.unwrap();
    assert_eq!((reply.status, &reply.json()["choices"][0]["message"]["content"]), (200, &json!("You said: hello")));
    assert_eq!(site.ask("POST", path, Some(&body)).await.unwrap().status, 401);
    assert_eq!(exchange(&site.running.base_url, "GET", path, "", None).await.unwrap().status, 405);
    let paths: Vec<String> =
        site.running.sandbox.ledger().requests_to("chat_completions").map(|request| request.path.clone()).collect();
    assert_eq!(paths, [path, path]);
    let state = site.running.sandbox.state().to_string();
    assert!(!state.contains("sk-main-"), "keys are kept out of the state that is shown");
}

#[tokio::test]
async fn a_stream_comes_event_by_event() {
    let site = site("").await;
    let reply = stream(&site).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    assert!(reply.is_whole());
    let chunks = reply.chunks();
    assert_eq!(chunks.len(), 10, "the role, seven words, the reason, the mark of the end");
    assert!(chunks.iter().all(|chunk| chunk.starts_with(b"data: ") && chunk.ends_with(b"\n\n")));
    assert_eq!(chunks.last().unwrap(), b"data: [DONE]\n\n");
}

#[tokio::test]
async fn pieces_cut_events_and_characters() {
    let pieces = stream(&site("chat_stream=pieces").await).await.chunks();
    assert!(pieces.iter().all(|piece| piece.len() <= 7));
    assert!(pieces.iter().any(|piece| std::str::from_utf8(piece).is_err()));
    let text = String::from_utf8(pieces.concat()).unwrap();
    assert_eq!((text.matches("data: ").count(), text.contains("你好, ")), (10, true));
}

#[tokio::test]
async fn a_truncated_stream_breaks_off_and_a_cut_one_ends_in_good_order() {
    let site = site("").await;
    site.arm("chat_completions", FaultAction::Truncated);
    let reply = stream(&site).await;
    assert_eq!((reply.status, reply.is_whole(), reply.chunks().len()), (200, false, 5));

    site.arm("chat_completions", FaultAction::CutStream { events: 4 });
    let reply = stream(&site).await;
    assert_eq!((reply.is_whole(), reply.chunks().len()), (true, 4));

    site.arm("chat_completions", FaultAction::StreamError { events: 1 });
    let chunks = stream(&site).await.chunks();
    let last: Value = serde_json::from_slice(chunks[1].strip_prefix(b"data: ").unwrap()).unwrap();
    assert_eq!((chunks.len(), &last["error"]["type"]), (2, &json!("server_error")));
}

#[tokio::test]
async fn a_slow_stream_pauses_before_each_event() {
    let site = site("").await;
    site.arm("chat_completions", FaultAction::SlowStream { ms: 20 });
    let before = Instant::now();
    assert_eq!(stream(&site).await.chunks().len(), 10);
    assert!(before.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn chats_are_throttled_and_dropped_like_everything_else() {
    let site = site("").await;
    site.arm("chat_completions", FaultAction::TooManyRequests { retry_after_seconds: Some(7) });
    let reply = stream(&site).await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (429, "7"));
    site.arm("*", FaultAction::DropAfter);
    let body = json!({ "model": "deepseek-r1", "messages": [{ "role": "user", "content": "hello" }] });
    assert!(site.chat(STREAMED, &body).await.is_none());
}
