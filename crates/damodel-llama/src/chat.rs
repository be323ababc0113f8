//! A chat with a model server in an instance, through an SSH session: for the probe of `damodel_llama_server` and for
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
        http::{Method, Request, Response, StatusCode, header},
    },
};

/// The largest answer in one document, in bytes; streams have no limit.
const MAX_ANSWER: usize = 1 << 20;
/// The longest error message of a server that is shown, in characters.
const MAX_MESSAGE: usize = 500;

/// The longest silence of an answer: unlimited, because a request may be queued behind others. The caller's deadline
/// ends the wait.
const SILENCE: Duration = Duration::MAX;

/// Why a chat failed.
#[derive(Debug, thiserror::Error)]
pub enum ChatFailure {
    /// The answer is invalid, or ended too early.
    #[error("{0}")]
    NoAnswer(String),
    /// The server refused the request.
    #[error("the server answered {status}{}{message}", if .message.is_empty() { "" } else { ": " })]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The server's message.
        message: String,
    },
    /// The connection failed.
    #[error(transparent)]
    Ssh(#[from] ssh::Error),
}

impl ChatFailure {
    /// Whether the server requires an API key and got none or a wrong one.
    pub fn asks_for_key(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, .. })
    }

    /// Whether the server says that it, or its model, is not made for this kind of request.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if message.contains("does not support"))
    }
}

/// The result of `/health`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It is loading the model.
    Loading,
    /// It reports that it is ready.
    Ok,
    /// The connection was refused.
    Refused,
    /// The answer is not that of a llama-server.
    Strange,
}

/// Checks whether a server has loaded its model. This does not prove that it can compute.
///
/// # Errors
/// Those of the connection; a refused connection is not an error.
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

/// Sends the request, and assembles the answer from its pieces. It has no time limit of its own. Cancel-safe.
///
/// # Errors
/// The reason why there is no complete answer.
pub async fn complete_chat(
    session: &Session,
    port: u16,
    api_key: Option<&SecretString>,
    request: &ChatRequest,
) -> Result<ChatAnswer, ChatFailure> {
    let mut body = request.body();
    if let Value::Object(fields) = &mut body {
        fields.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    let answering = send(session, port, api_key, "/v1/chat/completions", Some(&body)).await?;
    let status = answering.status();
    let is_stream = answering
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if status.is_success() && is_stream {
        return read_events(answering.into_body()).await;
    }
    let whole = answering.into_body().collect(MAX_ANSWER).await?;
    if status.is_success() {
        ChatAnswer::from_json(&whole)
            .ok_or_else(|| ChatFailure::NoAnswer("the answer is not a chat completion".to_owned()))
    } else {
        Err(ChatFailure::Refused { status, message: message(&whole) })
    }
}

/// Posts the document, or gets one if there is none to post; reads the document of the answer.
///
/// # Errors
/// The reason why there is no answer.
pub(super) async fn exchange(
    session: &Session,
    port: u16,
    api_key: Option<&SecretString>,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, ChatFailure> {
    let answering = send(session, port, api_key, path, body).await?;
    let status = answering.status();
    let whole = answering.into_body().collect(MAX_ANSWER).await?;
    if !status.is_success() {
        return Err(ChatFailure::Refused { status, message: message(&whole) });
    }
    serde_json::from_slice(&whole).map_err(|_| ChatFailure::NoAnswer("the answer is not JSON".to_owned()))
}

/// Posts the document, or gets one if there is none to post.
async fn send(
    session: &Session,
    port: u16,
    api_key: Option<&SecretString>,
    path: &str,
    body: Option<&Value>,
) -> Result<Response<ssh::Body>, ChatFailure> {
    let mut request = Request::builder()
        .method(if body.is_some() { Method::POST } else { Method::GET })
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "text/event-stream, application/json");
    if let Some(key) = api_key {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", key.expose_secret()));
    }
    let request = request.body(body.map(|body| Bytes::from(body.to_string())).unwrap_or_default());
    let request = request.map_err(|_| ChatFailure::NoAnswer("its api_key cannot be sent in a header".to_owned()))?;
    Ok(session.http_within(SILENCE, port, request).await?)
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
                return Err(ChatFailure::NoAnswer(format!(
                    "the server stopped in the middle of its answer: {message}"
                )));
            }
        }
    }
    if !assembly.is_finished() {
        return Err(ChatFailure::NoAnswer("the stream ended before the answer did".to_owned()));
    }
    assembly.into_answer().ok_or_else(|| ChatFailure::NoAnswer("the answer is empty".to_owned()))
}

/// The error message of a server; empty if the body is not JSON of the usual form, such as an HTML page.
fn message(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = document.get("error").unwrap_or(&document);
    let text = error.get("message").and_then(Value::as_str).or(error.as_str()).unwrap_or_default();
    text.chars().take(MAX_MESSAGE).filter(|c| !c.is_control()).collect()
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
        assert_eq!(message(long.as_bytes()).len(), MAX_MESSAGE);
    }

    #[test]
    fn a_refusal_reads_well_with_and_without_words() {
        let refused =
            |message: &str| ChatFailure::Refused { status: StatusCode::UNAUTHORIZED, message: message.to_owned() };
        assert_eq!(refused("Invalid API Key").to_string(), "the server answered 401 Unauthorized: Invalid API Key");
        assert_eq!(refused("").to_string(), "the server answered 401 Unauthorized");
    }
}
