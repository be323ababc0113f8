//! The data source `damodel_chat_completion`: a question to a hosted model, or to a llama server in an instance, and
//! its answer (service API, Chat completions and In-instance inference server guide).

mod action;
mod local;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Client, client::limits, errors::Failure, ssh::Ssh, ssh_schema as ssh};
use crate::{
    api::{ChatAnswer, ChatMessage, ChatRequest, Error},
    framework::{
        Attr, Context, DataSource, Diagnostic, Diagnostics, Outcome, Private, Schema, Secret, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, validator},
        value::Number,
    },
};

pub(super) use self::action::Action;

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
        schema()
    }

    fn timeout(&self) -> Duration {
        PATIENCE
    }

    fn validate(&self, config: &Chat, diagnostics: &mut Diagnostics) {
        local::validate(config, diagnostics);
    }

    async fn read(&self, config: Chat, context: Context<Client>) -> Outcome<Chat> {
        let request = request(&config.model, &config.messages, &config.temperature, &config.max_tokens);
        if config.target.as_str() == Some(LLAMA_SERVER) {
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

/// The target that is an instance's own server.
const LLAMA_SERVER: &str = "llama_server";

fn schema() -> Schema {
    let mut attributes = question();
    attributes.extend(target());
    attributes.extend(answer());
    Schema::new(
        "A chat with a model, asked anew in every plan: for `check` blocks that prove that the model answers. By \
         default with a hosted model, which needs the provider's `api_key`; with `target = \"llama_server\"` with a \
         `damodel_llama_server`, through SSH. The answer is streamed underneath, so that a long one hits no idle \
         timeout; it may take 15 minutes.",
        attributes,
    )
}

fn question() -> Vec<Attribute> {
    vec![
        Attribute::required(
            "model",
            Type::String,
            "The model's name, as the console's model marketplace shows it. A llama server has one model and takes \
             any name.",
        )
        .validate(validator::text("text that is not empty", |model| !model.is_empty())),
        Attribute::required(
            "messages",
            AttributeType::Nested(
                Nesting::List,
                vec![
                    Attribute::required("role", Type::String, "The role: `system`, `user`, …"),
                    Attribute::required("content", Type::String, "The text."),
                ],
            ),
            "The chat so far.",
        ),
        Attribute::optional("temperature", Type::Number, "The sampling temperature; sent only when set."),
        Attribute::optional("max_tokens", Type::Number, "The longest answer in tokens; sent only when set.")
            .validate(validator::between(1..=i64::MAX)),
    ]
}

fn target() -> Vec<Attribute> {
    vec![
        Attribute::with_default(
            "target",
            Type::String,
            "hosted",
            "Who is asked: `hosted`, a model of the service, or `llama_server`, a server in an instance.",
        )
        .validate(validator::one_of(&["hosted", LLAMA_SERVER])),
        Attribute::optional(
            "llama_server_id",
            Type::String,
            "The id of a `damodel_llama_server`: the instance's UID, or the host of `ssh`, and the port.",
        )
        .validate(validator::text("the id of a damodel_llama_server, such as ins-…:8000", |id| {
            id.rsplit_once(':')
                .is_some_and(|(machine, port)| !machine.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0))
        })),
        ssh::attribute(
            Replacement::Never,
            "How to log in to the server's instance, as in `damodel_llama_server`: only what the service does not \
             provide.",
        ),
        ssh::visited_host_key(),
        Attribute::optional(
            "api_key",
            Type::String,
            "The llama server's own key, where it has one. It is stored in the state.",
        )
        .sensitive(),
    ]
}

fn answer() -> Vec<Attribute> {
    let number = |name: &str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        Attribute::computed("content", Type::String, "The answer."),
        Attribute::computed("finish_reason", Type::String, "Why it ended: `stop`, `length`, …"),
        Attribute::computed(
            "usage",
            AttributeType::Nested(
                Nesting::Single,
                vec![
                    number("prompt_tokens", "Tokens of the chat so far."),
                    number("completion_tokens", "Tokens of the answer."),
                    number("total_tokens", "Both."),
                ],
            ),
            "Tokens used, if the server reports them.",
        ),
        Attribute::computed("response_json", Type::String, "The whole answer as JSON."),
    ]
}
