//! What the model says, as one answer and as chunks.

use serde_json::{Value, json};

use super::request::Request;
use crate::sandbox::form::Form;

#[derive(Debug)]
pub(super) struct Completion {
    id: String,
    created: i64,
    model: String,
    /// One token each; together they are the content.
    words: Vec<String>,
    finish_reason: &'static str,
    prompt_tokens: usize,
}

impl Completion {
    /// The last user message, repeated, as far as `max_tokens` lets it.
    pub(super) fn of(request: &Request, id: String, created: i64) -> Self {
        let users = request.messages.iter().rfind(|message| message.role == "user");
        let said = users.or_else(|| request.messages.last()).map_or("", |message| message.content.as_str());
        let mut words = words(&format!("You said: {said}"));
        let limit = request.max_tokens.unwrap_or(usize::MAX);
        let finish_reason = if words.len() > limit { "length" } else { "stop" };
        words.truncate(limit);
        let prompt_tokens = request.messages.iter().map(|message| self::words(&message.content).len().max(1)).sum();
        Self { id, created, model: request.model.clone(), words, finish_reason, prompt_tokens }
    }

    /// The answer as a whole.
    pub(super) fn whole(&self, form: &Form) -> Value {
        let message = json!({ "role": "assistant", "content": self.words.concat() });
        let choice = json!({ "index": 0, "message": message, "finish_reason": self.finish_reason });
        let mut answer = self.frame("chat.completion", json!([choice]), form);
        answer["usage"] = self.usage();
        answer
    }

    /// The chunks of a stream: the role, each word, the reason of the end, and the usage where it is wanted.
    pub(super) fn events(&self, include_usage: bool, form: &Form) -> Vec<Value> {
        let chunk = |delta: Value, finish_reason: Value| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
            let mut chunk = self.frame("chat.completion.chunk", json!([choice]), form);
            if include_usage {
                chunk["usage"] = Value::Null;
            }
            chunk
        };
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        events.extend(self.words.iter().map(|word| chunk(json!({ "content": word }), Value::Null)));
        events.push(chunk(json!({}), json!(self.finish_reason)));
        if include_usage {
            let mut last = self.frame("chat.completion.chunk", json!([]), form);
            last["usage"] = self.usage();
            events.push(last);
        }
        events
    }

    fn frame(&self, object: &str, choices: Value, form: &Form) -> Value {
        let mut frame = json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if form.extra_fields {
            frame["sandbox_extra"] = json!("not in the document");
        }
        frame
    }

    fn usage(&self) -> Value {
        let (prompt, completion) = (self.prompt_tokens, self.words.len());
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }
}

/// Words with the white space after them.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned).collect()
}
