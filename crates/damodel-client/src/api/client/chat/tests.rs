//! Chat requests of the client.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use rstest::rstest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::{
    ChatMessage, Code, SendFailure, Settings, Transport,
    testing::{self, context, lost, never_sent, raw, refusal},
    transport::Answering,
};

const KEY: &str = "planted-key-5520";
const QUESTION: &str = "planted question";

/// One step of a scripted answer.
#[derive(Debug, Clone)]
enum Step {
    Break,
    Chunk(&'static str),
    /// Seconds of silence.
    Silence(u64),
}

type Script = Result<(u16, &'static str, Vec<Step>), SendFailure>;

/// A service that plays one script for each request, and repeats the last one.
struct Scripted {
    scripts: Mutex<VecDeque<Script>>,
    asked: Mutex<Vec<Outgoing>>,
}

#[async_trait]
impl Transport for Scripted {
    async fn send(&self, _: Outgoing) -> Result<IncomingAnswer, SendFailure> {
        panic!("a chat is streamed");
    }

    async fn stream(&self, request: Outgoing) -> Result<Answering, SendFailure> {
        self.asked.lock().unwrap().push(request);
        let mut scripts = self.scripts.lock().unwrap();
        let script = scripts.pop_front().unwrap();
        if scripts.is_empty() {
            scripts.push_back(script.clone());
        }
        let (status, kind, steps) = script?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let body = stream::iter(steps).filter_map(|step| async move {
            match step {
                Step::Break => Some(Err(Cause::new("connection reset"))),
                Step::Chunk(text) => Some(Ok(Bytes::from_static(text.as_bytes()))),
                Step::Silence(seconds) => {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    None
                }
            }
        });
        Ok(Answering { status, headers, body: body.boxed() })
    }
}

fn client(scripts: impl IntoIterator<Item = Script>) -> (Client, Arc<Scripted>) {
    let settings = Settings { api_key: Some(KEY.into()), token: None, ..testing::settings() };
    let service = Arc::new(Scripted { scripts: Mutex::new(scripts.into_iter().collect()), asked: Mutex::default() });
    (Client::with_transport(settings, Arc::<Scripted>::clone(&service)), service)
}

fn request() -> ChatRequest {
    ChatRequest::new("m", vec![ChatMessage { role: "user".to_owned(), content: QUESTION.to_owned() }])
}

/// The result of one chat, and the number of its requests.
async fn chat(scripts: impl IntoIterator<Item = Script>) -> (Result<ChatAnswer, Error>, usize) {
    let (client, service) = client(scripts);
    let outcome = client.chat(&request(), &context(3600)).await;
    let asked = service.asked.lock().unwrap().len();
    (outcome, asked)
}

fn events(steps: impl IntoIterator<Item = Step>) -> Script {
    Ok((200, "text/event-stream; charset=utf-8", steps.into_iter().collect()))
}

fn whole(status: u16, kind: &'static str, text: &'static str) -> Script {
    Ok((status, kind, vec![Step::Chunk(text)]))
}

const ROLE: Step = Step::Chunk("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n");
const HI: Step = Step::Chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n");
const STOP: Step = Step::Chunk("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
const USAGE: Step = Step::Chunk("data: {\"choices\":[],\"usage\":{\"total_tokens\":5}}\n\n");
const DONE: Step = Step::Chunk("data: [DONE]\n\n");

#[tokio::test(start_paused = true)]
async fn the_question_carries_the_key_and_only_what_is_set() {
    let (client, service) = client([events([HI, STOP, DONE])]);
    client.chat(&request(), &context(60)).await.unwrap();
    let asked = service.asked.lock().unwrap().remove(0);
    assert_eq!((asked.method.as_str(), asked.url.path()), ("POST", "/chat/completions"));
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    assert!(asked.headers["authorization"].is_sensitive());
    assert!(!asked.headers.contains_key("x-service-token"));
    let body: serde_json::Value = serde_json::from_slice(&asked.body.unwrap()).unwrap();
    assert_eq!(body, json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": QUESTION}]}));
}

#[rstest]
#[case::as_promised(events([HI, STOP, USAGE, DONE]), Some(5))]
#[case::nothing_after_done(events([HI, STOP, USAGE, DONE, Step::Silence(10_000)]), Some(5))]
#[case::done_is_missing(events([HI, STOP, USAGE]), Some(5))]
#[case::end_is_missing(events([HI, STOP, Step::Silence(10_000)]), None)]
#[case::broken_after_the_end(events([HI, STOP, Step::Break]), None)]
#[case::slow(events([Step::Silence(119), HI, Step::Silence(119), Step::Chunk(": ping\n\n"), Step::Silence(119),
    STOP, DONE]), None)]
#[case::something_new(events([Step::Chunk("data: {\"ping\":1}\n\n"), HI, STOP, DONE]), None)]
#[case::cut_anywhere(
    events([Step::Chunk("da"), Step::Chunk("ta: {\"choices\":[{\"delta\":{\"content\":\"h"),
        Step::Chunk("i\"},\"finish_reason\":\"stop\"}]}\r"), Step::Chunk("\n\r\n")]), None)]
#[case::under_another_name(
    whole(200, "text/plain", "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n"),
    None
)]
#[case::whole(
    whole(
        200,
        "application/json",
        "{\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":5}}"
    ),
    Some(5)
)]
#[tokio::test(start_paused = true)]
async fn answers_in_every_form(#[case] script: Script, #[case] tokens: Option<i64>) {
    let (outcome, asked) = chat([script]).await;
    let answer = outcome.unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("hi", Some("stop")));
    assert_eq!(answer.usage.and_then(|usage| usage.total_tokens), tokens);
    assert_eq!(asked, 1);
}

#[rstest]
#[case::chat_server(
    whole(
        404,
        "application/json",
        r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#
    ),
    "model_not_found"
)]
#[case::without_a_code(
    whole(400, "application/json", r#"{"error":{"message":"no","type":"invalid_request_error","code":null}}"#),
    "invalid_request_error"
)]
#[case::envelope(
    whole(
        200,
        "application/json",
        r#"{"result":null,"response_metadata":{"request_id":"r","error":{"code_n":100042,"code":"PermissionDenied"}}}"#
    ),
    "PermissionDenied"
)]
#[case::envelope_refused(
    whole(403, "application/json", r#"{"result":null,"response_metadata":{"error":{"code_n":100006}}}"#),
    "InvalidToken"
)]
#[case::in_the_stream(
    events([Step::Chunk("data: {\"error\":{\"message\":\"no\",\"code\":\"model_not_found\"}}\n\n")]),
    "model_not_found"
)]
#[case::envelope_in_the_stream(
    events([Step::Chunk("data: {\"result\":null,\"response_metadata\":{\"error\":{\"code_n\":100042}}}\n\n")]),
    "PermissionDenied"
)]
#[tokio::test(start_paused = true)]
async fn refusals_in_every_form(#[case] script: Script, #[case] name: &str) {
    let (outcome, asked) = chat([script]).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.service().unwrap().code_name(), name, "{error}");
    assert_eq!(asked, 1);
}

#[rstest]
#[case::text(whole(401, "text/plain", "who are you"), false)]
#[case::empty_object(whole(200, "application/json", "{\"result\":null,\"response_metadata\":{}}"), true)]
#[tokio::test(start_paused = true)]
async fn texts_are_no_answers(#[case] script: Script, #[case] decodable: bool) {
    let error = chat([script]).await.0.unwrap_err();
    assert_eq!(matches!(error, Error::Undecodable(_)), decodable, "{error}");
    assert!(!error.to_string().contains("who are you"));
}

fn failed(reply: testing::Reply) -> Script {
    match reply {
        Ok(incoming) => {
            let text = String::from_utf8(incoming.body.to_vec()).unwrap();
            Ok((incoming.status, "application/json", vec![Step::Chunk(text.leak())]))
        }
        Err(failure) => Err(failure),
    }
}

#[rstest]
#[case::limited(failed(raw(429, &[], "{\"error\":{\"message\":\"slow down\"}}")))]
#[case::gateway(failed(raw(502, &[], "<html>")))]
#[case::internal(failed(refusal(100_014)))]
#[case::never_sent(failed(never_sent()))]
#[case::lost(failed(lost()))]
#[case::broken_before_content(events([ROLE, Step::Break]))]
#[case::ended_before_content(events([Step::Chunk(": ping\n\n")]))]
#[case::silent(events([Step::Silence(10_000)]))]
#[tokio::test(start_paused = true)]
async fn before_the_first_piece_it_is_asked_again(#[case] first: Script) {
    let (outcome, asked) = chat([first, events([HI, STOP, DONE])]).await;
    assert_eq!(outcome.unwrap().content, "hi");
    assert_eq!(asked, 2);
}

#[rstest]
#[case::broken(events([HI, Step::Break]))]
#[case::ended(events([HI]))]
#[case::silent(events([HI, Step::Silence(10_000)]))]
#[case::refused(events([HI, Step::Chunk("data: {\"error\":{\"code_n\":100014}}\n\n")]))]
#[case::no_json(events([HI, Step::Chunk("data: overloaded\n\n")]))]
#[tokio::test(start_paused = true)]
async fn after_the_first_piece_it_is_not(#[case] first: Script) {
    let (outcome, asked) = chat([first, events([HI, STOP, DONE])]).await;
    outcome.unwrap_err();
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_silence_is_long_and_a_stream_has_no_total_time() {
    let settings = Settings { api_key: Some(KEY.into()), max_retries: 0, ..testing::settings() };
    let scripts = Mutex::new(VecDeque::from([events([HI, Step::Silence(10_000)])]));
    let client = Client::with_transport(settings, Arc::new(Scripted { scripts, asked: Mutex::default() }));
    let start = Instant::now();
    client.chat(&request(), &context(3600)).await.unwrap_err();
    assert_eq!(start.elapsed(), IDLE_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_operation_ends_it_at_once() {
    let (client, _) = client([events([HI, Step::Silence(10_000)])]);
    let error = client.chat(&request(), &context(7)).await.unwrap_err();
    assert!(matches!(error, Error::DeadlinePassed { .. }), "{error}");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = client.chat(&request(), &Context::within(Duration::from_secs(60), &cancel)).await.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_a_key_nothing_is_asked() {
    let (client, ledger) = testing::serve(|_| async { lost() });
    let error = client.chat(&request(), &context(60)).await.unwrap_err();
    assert!(matches!(error, Error::Missing(Missing::ApiKey)), "{error}");
    assert!(ledger.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_service_repeats_is_cut_out() {
    let text = r#"{"error":{"message":"Incorrect API key provided: planted-key-5520","code":"invalid_api_key"}}"#;
    let error = chat([whole(401, "application/json", text)]).await.0.unwrap_err();
    assert_eq!(error.code(), Some(Code::Other(0)));
    assert!(error.to_string().contains("Incorrect API key") && !error.to_string().contains(KEY), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_message_and_no_key_is_logged() {
    let log = testing::Log::begin();
    let echo = whole(400, "application/json", r#"{"error":{"code_n":100014,"message":"planted question"}}"#);
    let answer = Step::Chunk("data: {\"choices\":[{\"delta\":{\"content\":\"planted answer\"}}]}\n\n");
    let (outcome, _) = chat([echo, events([answer, STOP, DONE])]).await;
    outcome.unwrap();
    let logged = log.end();
    assert!(logged.contains("/chat/completions") && logged.contains("InternalError"), "{logged}");
    assert!(!logged.contains("planted"), "{logged}");
}
