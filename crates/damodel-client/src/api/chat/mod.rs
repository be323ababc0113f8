//! Chats: the request (service API, Chat completions), the answer in pieces, and its event stream.
//!
//! Independent of HTTP, so that a chat over any other byte stream is read the same way. The call itself is
//! [`Client::chat`](crate::api::Client::chat).

mod answer;
mod events;

use std::fmt;

use bigdecimal::BigDecimal;
use serde_json::{Map, Number, Value, json};

pub use self::{
    answer::{ChatAnswer, ChatAssembly, ChatUsage, Pushed},
    events::{EventError, EventStream, ServerEvent},
};

/// A chat request. A field that is `None` is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRequest {
    /// `model`, as the console's model marketplace names it.
    pub model: String,
    /// `messages`.
    pub messages: Vec<ChatMessage>,
    /// `temperature`. The service API does not describe it for the hosted endpoint.
    pub temperature: Option<BigDecimal>,
    /// `max_tokens`. The service API does not describe it for the hosted endpoint.
    pub max_tokens: Option<i64>,
}

/// One message of a chat. `Debug` does not print its text.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// `role`: system, user, …
    pub role: String,
    /// `content`.
    pub content: String,
}

impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChatMessage {{ role: {:?}, content: {} bytes }}", self.role, self.content.len())
    }
}

impl ChatRequest {
    /// A chat with the service's default temperature and length.
    pub fn new(model: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        Self { model: model.into(), messages, temperature: None, max_tokens: None }
    }

    /// The request's body. It asks for a stream, so that a long answer does not run into a timeout.
    #[must_use]
    pub fn body(&self) -> Value {
        let messages = self.messages.iter().map(|message| json!({"role": message.role, "content": message.content}));
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        body.insert("messages".to_owned(), messages.collect());
        body.insert("stream".to_owned(), json!(true));
        let temperature = self.temperature.as_ref().and_then(|number| number.to_plain_string().parse::<Number>().ok());
        if let Some(temperature) = temperature {
            body.insert("temperature".to_owned(), Value::Number(temperature));
        }
        if let Some(most) = self.max_tokens {
            body.insert("max_tokens".to_owned(), json!(most));
        }
        Value::Object(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_not_sent_and_what_is_keeps_its_digits() {
        let message = ChatMessage { role: "user".to_owned(), content: "hi".to_owned() };
        let plain = ChatRequest::new("m", vec![message]);
        let text = r#"{"messages":[{"content":"hi","role":"user"}],"model":"m","stream":true}"#;
        assert_eq!(plain.body().to_string(), text);
        let full = ChatRequest { temperature: Some("0.10".parse().unwrap()), max_tokens: Some(7), ..plain };
        let body = full.body();
        assert_eq!((body["temperature"].to_string(), body["max_tokens"].to_string()), ("0.10".into(), "7".into()));
    }

    #[test]
    fn messages_are_not_shown() {
        let message = ChatMessage { role: "user".to_owned(), content: "planted".to_owned() };
        assert!(!format!("{:?}", ChatRequest::new("m", vec![message])).contains("planted"));
    }
}
