//! The chat endpoint: answers, streams, errors, and their forms.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::{Bench, START};
use crate::sandbox::{
    answer::{Content, HttpAnswer},
    fault::FaultAction,
};

/// A request that is accepted, with changes; a change to null removes the field.
fn body(changes: &Value) -> String {
    let mut body = json!({ "model": "deepseek-r1", "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "你好 there" },
    ] });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body.to_string()
}

impl Bench {
    fn chat(&mut self, changes: &Value) -> HttpAnswer {
        let key = self.service.world().account(self.account).unwrap().chat_key.clone();
        self.chat_as(Some(&format!("Bearer {}", key.reveal())), &body(changes))
    }

    /// The data of the events of a stream.
    fn events(&mut self, changes: &Value) -> Vec<String> {
        let answer = self.chat(changes);
        assert_eq!((answer.status, answer.content_type), (200, "text/event-stream"));
        let text = String::from_utf8(answer.bytes()).unwrap().replace("\r\n", "\n");
        let data = |line: &str| line.strip_prefix("data:").map(|data| data.trim_start().to_owned());
        text.split("\n\n").flat_map(str::lines).filter_map(data).collect()
    }
}

/// The text of all chunks.
fn said(events: &[String]) -> String {
    events
        .iter()
        .filter_map(|event| serde_json::from_str::<Value>(event).ok())
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn an_answer_is_openais() {
    let mut bench = Bench::new();
    let answer = bench.chat(&json!({ "temperature": 0.7, "max_tokens": 100, "stream": false }));
    assert_eq!((answer.status, answer.content_type), (200, "application/json"));
    let mut answer = answer.json();
    assert!(answer["id"].take().as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(
        answer,
        json!({
            "id": null, "object": "chat.completion", "created": START, "model": "deepseek-r1",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": "You said: 你好 there" },
            }],
            "usage": { "prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8 },
        })
    );
    let entry = bench.last_request();
    assert_eq!((entry.endpoint.as_deref(), entry.account.as_deref()), (Some("chat_completions"), Some("main")));
}

#[test]
fn max_tokens_ends_the_answer() {
    let answer = Bench::new().chat(&json!({ "max_tokens": 3 })).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: 你好 ");
    assert_eq!(
        (&answer["choices"][0]["finish_reason"], &answer["usage"]["completion_tokens"]),
        (&json!("length"), &json!(3))
    );
}

#[test]
fn a_stream_comes_in_chunks() {
    let events = Bench::new().events(&json!({ "stream": true }));
    assert_eq!((events.len(), events.last().map(String::as_str)), (7, Some("[DONE]")));
    assert_eq!(said(&events), "You said: 你好 there");
    let chunks: Vec<Value> = events[..6].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert_eq!(chunks[5]["choices"][0], json!({ "index": 0, "delta": {}, "finish_reason": "stop" }));
    for chunk in &chunks {
        assert_eq!((&chunk["object"], &chunk["id"]), (&json!("chat.completion.chunk"), &chunks[0]["id"]));
        assert_eq!(chunk.get("usage"), None);
    }
}

#[test]
fn the_usage_comes_last_where_it_is_wanted() {
    let events = Bench::new().events(&json!({ "stream": true, "stream_options": { "include_usage": true } }));
    let chunks: Vec<Value> = events[..7].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    assert!(chunks[..6].iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(chunks[6]["choices"], json!([]));
    assert_eq!(chunks[6]["usage"], json!({ "prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8 }));
}

#[rstest]
#[case("chat_stream=comments")]
#[case("chat_stream=crlf")]
#[case("chat_stream=pieces")]
#[case("extra_fields")]
fn a_stream_says_the_same_in_every_form(#[case] form: &str) {
    let events = Bench::with_form(form).events(&json!({ "stream": true }));
    assert_eq!((events.len(), said(&events).as_str()), (7, "You said: 你好 there"));
    let first: Value = serde_json::from_str(&events[0]).unwrap();
    assert_eq!(first.get("sandbox_extra").is_some(), form == "extra_fields");
}

#[test]
fn a_stream_can_be_refused_in_silence() {
    let answer = Bench::with_form("chat_stream=whole").chat(&json!({ "stream": true }));
    assert_eq!(answer.json()["object"], "chat.completion");
}

#[rstest]
#[case(json!({ "model": null }), "model: missing")]
#[case(json!({ "model": 7 }), "model: expected a string")]
#[case(json!({ "messages": null }), "messages: at least one")]
#[case(json!({ "messages": [] }), "messages: at least one")]
#[case(json!({ "messages": "hello" }), "messages: expected an array")]
#[case(json!({ "messages": ["hello"] }), "messages[0]: expected an object")]
#[case(json!({ "messages": [{ "content": "a" }] }), "messages[0].role: missing")]
#[case(json!({ "messages": [{ "role": "user" }] }), "messages[0].content: missing")]
#[case(json!({ "messages": [{ "role": "pirate", "content": "a" }] }), "messages[0].role: \"pirate\"")]
#[case(json!({ "messages": [{ "role": "user", "content": null }] }), "messages[0].content: expected a string, got \
    null")]
#[case(json!({ "messages": [{ "role": "user", "content": "a", "mood": "b" }] }), "messages[0].mood: unknown field")]
#[case(json!({ "stream": "true" }), "stream: expected a boolean")]
#[case(json!({ "temperature": 2.1 }), "temperature: is not within")]
#[case(json!({ "temperature": "warm" }), "temperature: expected a number")]
#[case(json!({ "max_tokens": 0 }), "max_tokens: 0 is less than 1")]
#[case(json!({ "stream_options": { "include_usage": true } }), "stream_options: is for streams only")]
#[case(json!({ "stream": true, "stream_options": { "colour": "red" } }), "stream_options.colour: unknown field")]
#[case(json!({ "colour": "red" }), "colour: unknown field")]
fn a_request_is_held_to_its_rules(#[case] changes: Value, #[case] message: &str) {
    let mut bench = Bench::new();
    let answer = bench.chat(&changes);
    let error = answer.json()["error"].take();
    assert_eq!((answer.status, &error["type"]), (400, &json!("invalid_request_error")));
    assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    assert_eq!(bench.last_request().code_n, Some(100_002));
}

#[rstest]
#[case("gpt-retired")]
#[case("gpt-unheard-of")]
#[case("DeepSeek-R1")]
fn a_model_must_be_enabled(#[case] model: &str) {
    let mut bench = Bench::new();
    let answer = bench.chat(&json!({ "model": model }));
    let error = answer.json()["error"].take();
    assert_eq!((answer.status, &error["code"], &error["param"]), (404, &json!("model_not_found"), &json!("model")));
    bench.mutate(json!({ "set_model": { "name": model, "enabled": true } }));
    assert_eq!(bench.chat(&json!({ "model": model })).status, 200);
    bench.mutate(json!({ "set_model": { "name": model, "enabled": false } }));
    assert_eq!(bench.chat(&json!({ "model": model })).status, 404);
}

#[test]
fn a_chat_needs_a_key_and_a_balance() {
    let mut bench = Bench::new();
    let account = bench.service.world().account("main").unwrap().clone();
    let (key, token) = (account.chat_key.reveal(), account.token.reveal());
    for authorization in [
        None,
        Some("Bearer"),
        Some("Bearer wrong"),
        Some(key),
        Some(&format!("Bearer {token}")),
        Some(&format!("Basic {key}")),
    ] {
        let answer = bench.chat_as(authorization, &body(&json!({})));
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (401, &json!("invalid_api_key")),
            "{authorization:?}"
        );
        assert_eq!((bench.last_request().code_n, bench.last_request().account), (Some(100_006), None));
    }
    assert_eq!(bench.chat_as(Some(&format!("bearer {key}")), &body(&json!({}))).status, 200);
    bench.set_balance("main", -1.0);
    let answer = bench.chat(&json!({}));
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (402, &json!("insufficient_quota")));
}

#[rstest]
#[case("", 401, "application/json", "/error/message")]
#[case("chat_error=openai_200", 200, "application/json", "/error/message")]
#[case("chat_error=envelope", 200, "application/json", "/response_metadata/error/message")]
#[case(
    "chat_error=envelope,error_status=matched,error_shape=nested",
    401,
    "application/json",
    "/response_metadata/error/error/message"
)]
#[case("chat_error=text", 401, "text/plain", "")]
fn errors_take_each_form(#[case] form: &str, #[case] status: u16, #[case] content_type: &str, #[case] pointer: &str) {
    let answer = Bench::with_form(form).chat_as(None, &body(&json!({})));
    assert_eq!((answer.status, answer.content_type), (status, content_type));
    let message = "Authorization: invalid API key";
    if pointer.is_empty() {
        assert_eq!(answer.bytes(), format!("{message}\n").into_bytes());
    } else {
        assert_eq!(answer.json().pointer(pointer), Some(&json!(message)));
    }
}

#[test]
fn faults_strike_chats() {
    let mut bench = Bench::new();
    let stream = json!({ "stream": true });
    bench.arm(FaultAction::SlowStream { ms: 250 });
    let Content::Stream { pieces, pause } = bench.chat(&stream).body else { panic!("not streamed") };
    assert_eq!((pieces.len(), pause), (7, Duration::from_millis(250)));

    bench.arm(FaultAction::CutStream { events: 3 });
    let events = bench.events(&stream);
    assert_eq!((events.len(), said(&events).as_str()), (3, "You said: "));

    bench.arm(FaultAction::StreamError { events: 2 });
    let events = bench.events(&stream);
    let last: Value = serde_json::from_str(&events[2]).unwrap();
    assert_eq!((events.len(), &last["error"]["type"]), (3, &json!("server_error")));

    bench.arm(FaultAction::Error { code_n: serde_json::from_value(json!(100_014)).unwrap(), processed: false });
    let answer = bench.chat(&stream);
    assert_eq!((answer.status, &answer.json()["error"]["message"]), (500, &json!("injected by the sandbox")));
    assert_eq!(bench.last_request().code_n, Some(100_014));

    bench.arm(FaultAction::TooManyRequests { retry_after_seconds: Some(3) });
    let answer = bench.chat(&stream);
    assert_eq!((answer.status, answer.retry_after), (429, Some(3)));
    assert!(!bench.last_request().processed);
}
