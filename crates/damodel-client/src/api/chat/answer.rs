//! A chat answer, assembled from its pieces (service API, Chat completions: OpenAI-compatible).

use std::fmt;

use serde_json::{Map, Value, json};

use crate::api::lenient::Lenient as _;

/// The answer of a model. `Debug` does not print its text.
#[derive(Clone, PartialEq)]
pub struct ChatAnswer {
    /// The text.
    pub content: String,
    /// The reason why it ended: `stop`, `length`, …
    pub finish_reason: Option<String>,
    /// The tokens that it used, if the service reported them.
    pub usage: Option<ChatUsage>,
    /// The whole answer in the form of one JSON document, also if it came in pieces.
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
pub struct ChatUsage {
    /// `prompt_tokens`.
    pub prompt_tokens: Option<i64>,
    /// `completion_tokens`.
    pub completion_tokens: Option<i64>,
    /// `total_tokens`.
    pub total_tokens: Option<i64>,
}

/// An answer that is assembled from the data of its events.
#[derive(Default)]
pub struct ChatAssembly {
    /// All fields except `choices`: `id`, `model`, `usage`, …
    head: Map<String, Value>,
    message: Map<String, Value>,
    finish_reason: Option<String>,
    begun: bool,
}

impl fmt::Debug for ChatAssembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatAssembly").field("finish_reason", &self.finish_reason).finish_non_exhaustive()
    }
}

/// The kind of an event's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The end marker, `[DONE]`.
    Done,
    /// Not a piece of an answer: an error, or an unknown document.
    Foreign,
    /// A piece of the answer.
    Taken,
}

impl ChatAssembly {
    /// Adds the data of one event.
    pub fn push(&mut self, data: &str) -> Pushed {
        if data.trim() == "[DONE]" {
            return Pushed::Done;
        }
        match serde_json::from_str(data) {
            Ok(document) => self.push_document(document),
            Err(_) => Pushed::Foreign,
        }
    }

    /// Adds a piece, or a whole answer.
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
            // The request asks for one choice.
            if let Value::Object(choice) = choice
                && choice.get("index").and_then(i64::read).unwrap_or(0) == 0
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
        for (name, value) in delta {
            match (self.message.get_mut(&name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more)) if name != "role" => text.push_str(&more),
                (_, value) => drop(self.message.insert(name, value)),
            }
        }
    }

    /// Whether a part of the answer's text has arrived: a repeated request would be billed twice.
    #[must_use]
    pub fn has_content(&self) -> bool {
        let is_text = |(name, value): (&String, &Value)| name != "role" && value.as_str() != Some("");
        self.message.iter().any(is_text)
    }

    /// Whether the model has sent its finish reason. After it only the usage may follow.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The answer after its `[DONE]`; `None` if no choice arrived.
    #[must_use]
    pub fn into_answer(self) -> Option<ChatAnswer> {
        if !self.begun {
            return None;
        }
        let content = self.message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
        let usage = self.head.get("usage").map(|usage| {
            let count = |name: &str| usage.get(name).and_then(i64::read);
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
    /// An answer in one JSON document; `None` for any other document.
    #[must_use]
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        let document = completion(serde_json::from_slice(bytes).ok()?)?;
        let mut assembly = ChatAssembly::default();
        assembly.push_document(Value::Object(document.clone()));
        Some(Self { response: Value::Object(document), ..assembly.into_answer()? })
    }
}

/// The fields of a piece or of a whole answer, without the service's envelope; `None` for any other document.
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
mod tests {
    use rstest::rstest;

    use super::*;

    fn assembled(pieces: &[&str]) -> ChatAssembly {
        let mut assembly = ChatAssembly::default();
        for piece in pieces {
            assert_eq!(assembly.push(piece), Pushed::Taken, "{piece}");
        }
        assembly
    }

    #[test]
    fn pieces_become_the_answer_that_would_have_come_whole() {
        let assembly = assembled(&[
            r#"{"id":"c1","object":"chat.completion.chunk","model":"m","usage":null,
                "choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"id":"c1","choices":[
                {"index":0,"delta":{"content":"Hel","reasoning_content":"hm"},"finish_reason":null}]}"#,
            r#"{"id":"c1","choices":[{"index":1,"delta":{"content":"other"}}]}"#,
            r#"{"id":"c1","choices":[{"delta":{"role":"assistant","content":"lo","reasoning_content":null}}]}"#,
            r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":"2","total_tokens":5.0}}"#,
        ]);
        let answer = assembly.into_answer().unwrap();
        assert_eq!(answer.content, "Hello");
        assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
        let usage = ChatUsage { prompt_tokens: Some(3), completion_tokens: Some(2), total_tokens: Some(5) };
        assert_eq!(answer.usage, Some(usage));
        let message = json!({"role": "assistant", "content": "Hello", "reasoning_content": "hm"});
        assert_eq!(answer.response["object"], "chat.completion");
        assert_eq!(answer.response["model"], "m");
        assert_eq!(answer.response["choices"][0]["message"], message);
        assert!(!format!("{answer:?}").contains("Hello"));
    }

    #[rstest]
    #[case::message(r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"length"}]}"#)]
    #[case::enveloped(
        r#"{"result":{"choices":[{"message":{"content":"hi"},"finish_reason":"length"}]},
    "response_metadata":{"error":null}}"#
    )]
    #[case::no_error(r#"{"error":null,"choices":[{"delta":{"content":"hi"},"finish_reason":"length"}]}"#)]
    fn a_whole_answer_is_read_and_kept(#[case] text: &str) {
        let answer = ChatAnswer::from_json(text.as_bytes()).unwrap();
        assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("hi", Some("length")));
        assert_eq!(answer.usage, None);
        let came: Value = serde_json::from_str(text).unwrap();
        assert_eq!(answer.response, came.get("result").cloned().unwrap_or(came));
    }

    #[rstest]
    #[case::text("overloaded")]
    #[case::error(r#"{"error":{"message":"no"}}"#)]
    #[case::error_with_choices(r#"{"error":{"message":"no"},"choices":[{"delta":{"content":""}}]}"#)]
    #[case::envelope(r#"{"result":null,"response_metadata":{"error":{"code_n":100006}}}"#)]
    #[case::something(r#"{"ping":1}"#)]
    #[case::list("[]")]
    fn what_is_no_answer_is_foreign(#[case] text: &str) {
        assert_eq!(ChatAssembly::default().push(text), Pushed::Foreign);
        assert_eq!(ChatAnswer::from_json(text.as_bytes()), None);
    }

    #[rstest]
    #[case::nothing(&[], false, false)]
    #[case::role(&[r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#], false, false)]
    #[case::text(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#], true, false)]
    #[case::thoughts(&[r#"{"choices":[{"delta":{"reasoning_content":"x"}}]}"#], true, false)]
    #[case::end(&[r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#], false, true)]
    #[case::empty_reason(&[r#"{"choices":[{"delta":{},"finish_reason":""}]}"#], false, false)]
    fn content_and_end_are_told_apart(#[case] pieces: &[&str], #[case] content: bool, #[case] finished: bool) {
        let assembly = assembled(pieces);
        assert_eq!((assembly.has_content(), assembly.is_finished()), (content, finished));
    }

    #[test]
    fn done_without_a_choice_is_no_answer() {
        let mut assembly = assembled(&[r#"{"choices":[],"usage":{}}"#]);
        assert_eq!(assembly.push(" [DONE] "), Pushed::Done);
        assert_eq!(assembly.into_answer(), None);
    }
}
