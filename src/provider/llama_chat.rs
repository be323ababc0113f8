//! A chat with a server inside an instance, through an SSH session: for the probe of `damodel_llama_server` and for
//! `damodel_chat_completion` (service API, In-instance inference server guide).

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::{
    api::{ChatAnswer, ChatAssembly, ChatRequest, EventError, EventStream, Pushed},
    ssh::{
        self, Session,
        http::{Method, Request, StatusCode, header},
    },
};

/// The largest answer that is read whole, in bytes; pieces of a stream are not counted.
const LARGEST: usize = 1 << 20;
/// The longest text of a server's own error that is shown, in characters.
const LONGEST: usize = 500;

/// How long an answer may be silent. A question may wait behind those of others, however healthy the server is: what
/// ends the wait is the deadline of whoever asks.
const SILENCE: Duration = Duration::MAX;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChatFailure {
    /// The server's answer is none, or ended too early.
    #[error("{0}")]
    NoAnswer(String),
    /// The server refused, in its own words.
    #[error("it answered {status}{}{message}", if .message.is_empty() { "" } else { ": " })]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// What it said.
        message: String,
    },
    /// The connection failed.
    #[error(transparent)]
    Ssh(#[from] ssh::Error),
}

impl ChatFailure {
    /// Whether the server is there and has no room for another request.
    pub(super) fn is_busy(&self) -> bool {
        let busy = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        matches!(self, Self::Refused { status, .. } if busy.contains(status))
    }

    /// Whether the server is there and asks for a key that was not given.
    pub(super) fn asks_for_key(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::UNAUTHORIZED)
    }
}

/// What `/health` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It is loading the model.
    Loading,
    /// It is ready, as it thinks.
    Ok,
    /// Nobody listens on the port.
    Refused,
    /// Somebody answers who is no such server.
    Strange,
}

/// Asks whether a server has loaded its model. That it has does not prove that it can compute.
///
/// # Errors
/// The connection's; a port where nobody listens is none.
pub(super) async fn health(session: &Session, port: u16) -> Result<Health, ssh::Error> {
    let request = Request::get("/health").body(Bytes::new());
    let request = request.map_err(|error| ssh::Error::BadAnswer { port, reason: error.to_string() })?;
    match session.http(port, request).await {
        Ok(answer) => Ok(match answer.status() {
            StatusCode::OK => Health::Ok,
            StatusCode::SERVICE_UNAVAILABLE => Health::Loading,
            _ => Health::Strange,
        }),
        Err(ssh::Error::Refused { .. }) => Ok(Health::Refused),
        Err(ssh::Error::BadAnswer { .. }) => Ok(Health::Strange),
        Err(error) => Err(error),
    }
}

/// Asks, and puts the answer together from its pieces. That takes as long as the caller waits; it may be dropped.
///
/// # Errors
/// Why there is no whole answer.
pub(super) async fn ask(
    session: &Session,
    port: u16,
    api_key: Option<&SecretString>,
    request: &ChatRequest,
) -> Result<ChatAnswer, ChatFailure> {
    let mut body = request.body();
    if let Value::Object(fields) = &mut body {
        fields.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    let mut outgoing = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat/completions")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "text/event-stream, application/json");
    if let Some(key) = api_key {
        outgoing = outgoing.header(header::AUTHORIZATION, format!("Bearer {}", key.expose_secret()));
    }
    let outgoing = outgoing.body(Bytes::from(body.to_string()));
    let outgoing = outgoing.map_err(|_| ChatFailure::NoAnswer("its api_key cannot be sent in a header".to_owned()))?;
    let answering = session.http_within(SILENCE, port, outgoing).await?;
    let status = answering.status();
    let is_stream = answering
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if status.is_success() && is_stream {
        return read_events(answering.into_body()).await;
    }
    let whole = answering.into_body().collect(LARGEST).await?;
    if status.is_success() {
        ChatAnswer::from_json(&whole)
            .ok_or_else(|| ChatFailure::NoAnswer("its answer is no chat completion".to_owned()))
    } else {
        Err(ChatFailure::Refused { status, message: message(&whole) })
    }
}

async fn read_events(body: ssh::Body) -> Result<ChatAnswer, ChatFailure> {
    let mut events = EventStream::new(body);
    let mut assembly = ChatAssembly::default();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(_) if assembly.is_finished() => break,
            Err(EventError::Broken(error)) => return Err(error.into()),
            Err(error) => return Err(ChatFailure::NoAnswer(error.to_string())),
        };
        match assembly.push(&event.data) {
            Pushed::Done => break,
            Pushed::Taken => {}
            Pushed::Foreign => {
                let message = message(event.data.as_bytes());
                return Err(ChatFailure::NoAnswer(format!("it broke off its answer: {message}")));
            }
        }
    }
    if !assembly.is_finished() {
        return Err(ChatFailure::NoAnswer("the stream ended before the answer did".to_owned()));
    }
    assembly.into_answer().ok_or_else(|| ChatFailure::NoAnswer("its answer is empty".to_owned()))
}

/// What a server says about its error; nothing when that is no JSON of the usual form, since a page of HTML helps
/// nobody.
fn message(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = document.get("error").unwrap_or(&document);
    let text = error.get("message").and_then(Value::as_str).or(error.as_str()).unwrap_or_default();
    text.chars().take(LONGEST).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_own_words_are_found_and_bounded() {
        assert_eq!(message(br#"{"error":{"code":503,"message":"Loading model"}}"#), "Loading model");
        assert_eq!(message(br#"{"error":"no\nline"}"#), "noline");
        assert_eq!(message(b"<html>"), "");
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(2000));
        assert_eq!(message(long.as_bytes()).len(), LONGEST);
    }

    #[test]
    fn a_refusal_reads_well_with_and_without_words() {
        let refused =
            |message: &str| ChatFailure::Refused { status: StatusCode::UNAUTHORIZED, message: message.to_owned() };
        assert_eq!(refused("Invalid API Key").to_string(), "it answered 401 Unauthorized: Invalid API Key");
        assert_eq!(refused("").to_string(), "it answered 401 Unauthorized");
    }
}
