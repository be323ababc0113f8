//! OpenAI's chat format: what a request asks for, and the answer to it, whole or in chunks. The service and the
//! inference servers in its instances share it; each reads requests by its own rules.
//!
//! The answer repeats the last user message; each word is one token.

use serde_json::{Map, Value, json};

/// A chat request.
#[derive(Debug)]
pub(super) struct ReceivedChat {
    pub(super) messages: Vec<ReceivedMessage>,
    pub(super) stream: bool,
    /// Whether a chunk with the usage is requested.
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<usize>,
}

#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) role: String,
    pub(super) content: String,
}

impl ReceivedChat {
    /// The reply, up to `max_tokens`.
    pub(super) fn reply(&self) -> ChatReply {
        let user = self.messages.iter().rfind(|message| message.role == "user");
        let said = user.or_else(|| self.messages.last()).map_or("", |message| message.content.as_str());
        let mut words = words_of(&format!("You said: {said}"));
        let limit = self.max_tokens.unwrap_or(usize::MAX);
        let finish = if words.len() > limit { "length" } else { "stop" };
        words.truncate(limit);
        ChatReply { words, finish }
    }

    /// The tokens of all messages, each with so many of the chat template.
    pub(super) fn prompt_tokens(&self, template: usize) -> usize {
        self.messages.iter().map(|message| words_of(&message.content).len() + template).sum()
    }
}

/// Words with the white space after them.
fn words_of(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned).collect()
}

#[derive(Debug)]
pub(super) struct ChatReply {
    /// One token each; together they are the content.
    pub(super) words: Vec<String>,
    /// `stop` or `length`.
    pub(super) finish: &'static str,
}

/// What all parts of an answer have in common.
#[derive(Clone, Debug)]
pub(super) struct ChatFrame {
    pub(super) id: String,
    /// In Unix seconds.
    pub(super) created: i64,
    pub(super) model: String,
    pub(super) prompt_tokens: usize,
    /// Whether a stream ends with a chunk with the usage.
    pub(super) include_usage: bool,
    /// The content of the first chunk.
    pub(super) opening: Value,
    /// Fields that OpenAI does not have.
    pub(super) further: Map<String, Value>,
}

impl ChatFrame {
    /// The complete answer, not streamed.
    pub(super) fn whole(&self, reply: &ChatReply) -> Value {
        let message = json!({ "role": "assistant", "content": reply.words.concat() });
        let choice = json!({ "index": 0, "message": message, "finish_reason": reply.finish });
        let mut answer = self.part("chat.completion", json!([choice]));
        answer["usage"] = self.usage(reply.words.len());
        answer
    }

    /// The first chunk of a stream: the role.
    pub(super) fn first(&self) -> Value {
        self.chunk(json!({ "role": "assistant", "content": self.opening }), &Value::Null)
    }

    /// The chunk of a word.
    pub(super) fn word(&self, word: &str) -> Value {
        self.chunk(json!({ "content": word }), &Value::Null)
    }

    /// The last chunks: the finish reason, and the usage if it is requested.
    pub(super) fn last(&self, finish: &str, tokens: usize) -> Vec<Value> {
        let mut chunks = vec![self.chunk(json!({}), &json!(finish))];
        if self.include_usage {
            let mut last = self.part("chat.completion.chunk", json!([]));
            last["usage"] = self.usage(tokens);
            chunks.push(last);
        }
        chunks
    }

    fn chunk(&self, delta: Value, finish: &Value) -> Value {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let mut chunk = self.part("chat.completion.chunk", json!([choice]));
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn part(&self, object: &str, choices: Value) -> Value {
        let mut part = self.further.clone();
        part.insert("id".to_owned(), json!(self.id));
        part.insert("object".to_owned(), json!(object));
        part.insert("created".to_owned(), json!(self.created));
        part.insert("model".to_owned(), json!(self.model));
        part.insert("choices".to_owned(), choices);
        Value::Object(part)
    }

    fn usage(&self, completion: usize) -> Value {
        let prompt = self.prompt_tokens;
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }
}
