//! An answer, and how it is put together from its pieces (service API, Chat completions: OpenAI-compatible).

use std::fmt;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::api::lenient::read_integer;

/// What a model answered. Its text is not shown by `Debug`.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ChatAnswer {
    /// The text.
    pub content: String,
    /// Why it ended: stop, length, …
    pub finish_reason: Option<String>,
    /// What it cost, when the service told.
    pub usage: Option<ChatUsage>,
    /// The whole answer: as it came when it came whole, else as it would have come.
    pub response: Value,
}

impl fmt::Debug for ChatAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatAnswer")
            .field("content", &format_args!("{} bytes", self.content.len()))
            .field("finish_reason", &self.finish_reason)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

/// `usage` of an answer, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatUsage {
    /// `prompt_tokens`.
    pub prompt_tokens: Option<i64>,
    /// `completion_tokens`.
    pub completion_tokens: Option<i64>,
    /// `total_tokens`.
    pub total_tokens: Option<i64>,
}

/// An answer that is being put together from the data of its events.
#[derive(Default)]
pub struct ChatAssembly {
    /// What is not in `choices`: id, model, usage, …
    head: Map<String, Value>,
    message: Map<String, Value>,
    finish_reason: Option<String>,
    begun: bool,
    /// Who is told the pieces of the text.
    heard_by: Option<UnboundedSender<String>>,
}

impl fmt::Debug for ChatAssembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatAssembly").field("finish_reason", &self.finish_reason).finish_non_exhaustive()
    }
}

/// What the data of an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The end.
    Done,
    /// No piece of an answer: an error, or something unknown.
    Foreign,
    /// A piece of the answer.
    Taken,
}

impl ChatAssembly {
    /// One that passes the pieces of the answer's text on as they come.
    #[must_use]
    pub fn heard_by(pieces: UnboundedSender<String>) -> Self {
        Self { heard_by: Some(pieces), ..Self::default() }
    }

    /// Takes the data of one event in.
    pub fn push(&mut self, data: &str) -> Pushed {
        if data.trim() == "[DONE]" {
            return Pushed::Done;
        }
        match serde_json::from_str(data) {
            Ok(document) => self.push_document(document),
            Err(_) => Pushed::Foreign,
        }
    }

    /// Takes a piece in, or a whole answer.
    fn push_document(&mut self, document: Value) -> Pushed {
        let Some(mut piece) = completion(document) else {
            return Pushed::Foreign;
        };
        let choices = piece.remove("choices");
        self.head.extend(piece.into_iter().filter(|(_, value)| !value.is_null()));
        let Some(Value::Array(choices)) = choices else {
            return Pushed::Taken;
        };
        for choice in choices {
            // One choice is asked for.
            if let Value::Object(choice) = choice
                && choice.get("index").and_then(read_integer).unwrap_or(0) == 0
            {
                self.begun = true;
                self.push_choice(choice);
            }
        }
        Pushed::Taken
    }

    fn push_choice(&mut self, mut choice: Map<String, Value>) {
        if let Some(Value::String(reason)) = choice.remove("finish_reason")
            && !reason.is_empty()
        {
            self.finish_reason = Some(reason);
        }
        let whole = choice.remove("message").filter(|_| self.message.is_empty());
        let Some(Value::Object(delta)) = choice.remove("delta").or(whole) else {
            return;
        };
        if let (Some(pieces), Some(Value::String(text))) = (&self.heard_by, delta.get("content")) {
            let _ = pieces.send(text.clone());
        }
        for (name, value) in delta {
            match (self.message.get_mut(&name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more)) if name != "role" => text.push_str(&more),
                (_, value) => drop(self.message.insert(name, value)),
            }
        }
    }

    /// Whether a part of the answer's text came: asking again would pay for it twice.
    #[must_use]
    pub fn has_content(&self) -> bool {
        let is_text = |(name, value): (&String, &Value)| name != "role" && value.as_str() != Some("");
        self.message.iter().any(is_text)
    }

    /// Whether the model said why it ended. Only the usage may still come.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The answer after its `[DONE]`; none when nothing was answered.
    #[must_use]
    pub fn into_answer(self) -> Option<ChatAnswer> {
        if !self.begun {
            return None;
        }
        let content = self.message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
        let usage = self.head.get("usage").map(|usage| {
            let count = |name: &str| usage.get(name).and_then(read_integer);
            ChatUsage {
                prompt_tokens: count("prompt_tokens"),
                completion_tokens: count("completion_tokens"),
                total_tokens: count("total_tokens"),
            }
        });
        let mut response = self.head;
        response.insert("object".to_owned(), json!("chat.completion"));
        let choice = json!({"index": 0, "message": self.message, "finish_reason": self.finish_reason});
        response.insert("choices".to_owned(), json!([choice]));
        Some(ChatAnswer { content, finish_reason: self.finish_reason, usage, response: Value::Object(response) })
    }
}

impl ChatAnswer {
    /// An answer that came whole, as JSON; none when this is none.
    #[must_use]
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        let document = completion(serde_json::from_slice(bytes).ok()?)?;
        let mut assembly = ChatAssembly::default();
        assembly.push_document(Value::Object(document.clone()));
        Some(Self { response: Value::Object(document), ..assembly.into_answer()? })
    }
}

/// The fields of a piece or a whole answer, out of the service's envelope when it has one; none for anything else.
fn completion(document: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut fields) = document else {
        return None;
    };
    if !fields.contains_key("choices")
        && let Some(Value::Object(inner)) = fields.remove("result")
    {
        fields = inner;
    }
    let failed = fields.get("error").is_some_and(|error| !error.is_null());
    let is_piece = fields.contains_key("choices") || fields.get("usage").is_some_and(Value::is_object);
    (is_piece && !failed).then_some(fields)
}

#[cfg(test)]
mod tests;
