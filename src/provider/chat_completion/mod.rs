//! The data source `damodel_chat_completion`: a question to a hosted model, or to a llama server in an instance, and
//! its answer (service API, Chat completions and In-instance inference server guide).

mod action;
mod local;
mod schema;

pub(super) use self::action::Action;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Client, client::limits, errors::Failure, ssh::Ssh};
use crate::{
    api::{ChatAnswer, ChatMessage, ChatRequest, Error},
    framework::{Attr, Context, DataSource, Diagnostic, Diagnostics, Outcome, Private, Schema, Secret, value::Number},
};

/// How long an answer may take: a long one of a large model takes more than the usual time of a data source.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The data source.
#[derive(Debug)]
pub(super) struct ChatCompletion;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Chat {
    model: Attr<String>,
    messages: Attr<Vec<Attr<Message>>>,
    temperature: Attr<Number>,
    max_tokens: Attr<i64>,
    target: Attr<String>,
    llama_server_id: Attr<String>,
    ssh: Attr<Ssh>,
    host_key: Attr<String>,
    api_key: Attr<Secret>,
    content: Attr<String>,
    finish_reason: Attr<String>,
    usage: Attr<Usage>,
    response_json: Attr<String>,
}

/// One message.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Message {
    role: Attr<String>,
    content: Attr<String>,
}

/// What an answer took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Usage {
    prompt_tokens: Attr<i64>,
    completion_tokens: Attr<i64>,
    total_tokens: Attr<i64>,
}

impl DataSource for ChatCompletion {
    type Client = Client;
    type Model = Chat;

    fn type_name(&self) -> &'static str {
        "damodel_chat_completion"
    }

    fn schema(&self) -> Schema {
        schema::schema()
    }

    fn timeout(&self) -> Duration {
        PATIENCE
    }

    fn validate(&self, config: &Chat, diagnostics: &mut Diagnostics) {
        local::validate(config, diagnostics);
    }

    async fn read(&self, config: Chat, context: Context<Client>) -> Outcome<Chat> {
        let request = request(&config.model, &config.messages, &config.temperature, &config.max_tokens);
        if config.target.as_str() == Some(schema::LLAMA_SERVER) {
            return Box::pin(local::read(config, &request, &context)).await;
        }
        match context.client.api.chat(&request, &limits(&context)).await {
            Ok(answer) => Outcome::present(config.answered(answer), Private::default()),
            Err(error) => Outcome::absent().with(failed(&error, &request, |name| match name {
                "messages" | "model" => true,
                "max_tokens" => !config.max_tokens.is_null(),
                "temperature" => !config.temperature.is_null(),
                _ => false,
            })),
        }
    }
}

/// What is asked.
fn request(
    model: &Attr<String>,
    messages: &Attr<Vec<Attr<Message>>>,
    temperature: &Attr<Number>,
    max_tokens: &Attr<i64>,
) -> ChatRequest {
    let text = |text: &Attr<String>| text.known().cloned().unwrap_or_default();
    let messages = messages.known().into_iter().flatten().filter_map(Attr::known);
    let messages = messages.map(|m| ChatMessage { role: text(&m.role), content: text(&m.content) }).collect();
    ChatRequest {
        temperature: temperature.known().map(|number| number.clone().into()),
        max_tokens: max_tokens.known().copied(),
        ..ChatRequest::new(text(model), messages)
    }
}

/// Why there is no answer of a hosted model.
fn failed(error: &Error, request: &ChatRequest, is_set: impl Fn(&str) -> bool) -> Diagnostic {
    Failure { error, tried: format!("chat with {:?}", request.model), now: String::new() }.diagnostic(is_set)
}

impl Chat {
    /// The same with its answer.
    fn answered(mut self, answer: ChatAnswer) -> Self {
        self.content = Attr::Known(answer.content);
        self.finish_reason = answer.finish_reason.into();
        self.usage = answer
            .usage
            .map(|usage| Usage {
                prompt_tokens: usage.prompt_tokens.into(),
                completion_tokens: usage.completion_tokens.into(),
                total_tokens: usage.total_tokens.into(),
            })
            .into();
        self.response_json = Attr::Known(answer.response.to_string());
        self
    }
}
