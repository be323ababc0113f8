//! The data source `damodel_chat_completion`: a question to a hosted model, or to a llama server in an instance, and
//! its answer (service API, Chat completions and In-instance inference server guide).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::timeout_at;

use super::{
    ProviderClient, StepContext,
    client::limits,
    errors::Failure,
    login::{Access, Login, Ssh, SshFailure, schema as login},
    rules,
};
use crate::{
    api::{ChatAnswer, ChatMessage, ChatRequest, InstanceUid},
    framework::{
        Attr, DataSource, Diagnostic, Diagnostics, Outcome, Path, Private, Result, Schema, Secret, Type,
        schema::{Attribute, AttributeType, Nesting, Validator},
        value::Number,
    },
    llama::{ChatFailure, complete_chat},
};

/// The timeout of an answer. A long answer of a large model takes longer than the usual timeout of a data source.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub(super) struct ChatCompletion;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Chat {
    model: Attr<String>,
    messages: Attr<Vec<Attr<MessageModel>>>,
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

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MessageModel {
    role: Attr<String>,
    content: Attr<String>,
}

/// The tokens of an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Usage {
    prompt_tokens: Attr<i64>,
    completion_tokens: Attr<i64>,
    total_tokens: Attr<i64>,
}

impl DataSource for ChatCompletion {
    type Client = ProviderClient;
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
        validate(config, diagnostics);
    }

    async fn read(&self, config: Chat, context: StepContext) -> Result<Outcome<Chat>> {
        let request = config.request();
        if config.target.as_str() == Some(LLAMA_SERVER) {
            return Box::pin(read(config, &request, &context)).await;
        }
        let answer = context.client.api.chat(&request, &limits(&context)).await.map_err(|error| {
            let failure =
                Failure { error: &error, tried: format!("chat with {:?}", request.model), now: String::new() };
            failure.diagnostic(|name| match name {
                "messages" | "model" => true,
                "max_tokens" => !config.max_tokens.is_null(),
                "temperature" => !config.temperature.is_null(),
                _ => false,
            })
        })?;
        Ok(Outcome::present(config.answered(answer), Private::default()))
    }
}

impl Chat {
    /// The request to send.
    fn request(&self) -> ChatRequest {
        let text = |text: &Attr<String>| text.known().cloned().unwrap_or_default();
        let messages = self.messages.known().into_iter().flatten().filter_map(Attr::known);
        let messages = messages.map(|m| ChatMessage { role: text(&m.role), content: text(&m.content) }).collect();
        ChatRequest {
            temperature: self.temperature.known().map(|number| number.clone().into()),
            max_tokens: self.max_tokens.known().copied(),
            ..ChatRequest::new(text(&self.model), messages)
        }
    }

    /// The result with this answer.
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

/// The `target` for an instance's own server.
const LLAMA_SERVER: &str = "llama_server";

fn schema() -> Schema {
    let mut attributes = question();
    attributes.extend(target());
    attributes.extend(answer());
    Schema::new(
        "A chat with a model, repeated in every plan, for `check` blocks that test whether the model answers. By \
         default it calls a hosted model with the provider's `chat_api_key`; `target = \"llama_server\"` calls a \
         `damodel_llama_server` through SSH. The answer may take 15 minutes and is streamed.",
        attributes,
    )
}

fn question() -> Vec<Attribute> {
    vec![
        Attribute::required(
            "model",
            Type::String,
            "The model's name, as the console's model marketplace shows it. A llama server has one model and accepts \
             any name.",
        )
        .validate(rules::non_empty()),
        Attribute::required(
            "messages",
            AttributeType::Nested(
                Nesting::List,
                vec![
                    Attribute::required("role", Type::String, "The role: `system`, `user`, …"),
                    Attribute::required("content", Type::String, "The message's text."),
                ],
            ),
            "The chat so far.",
        ),
        Attribute::optional("temperature", Type::Number, "The sampling temperature; sent only when set."),
        Attribute::optional(
            "max_tokens",
            Type::Number,
            "The maximum length of the answer in tokens; sent only when set.",
        )
        .validate(Validator::between(1..=i64::MAX)),
    ]
}

fn target() -> Vec<Attribute> {
    vec![
        Attribute::with_default(
            "target",
            Type::String,
            "hosted",
            "The target of the chat: `hosted`, a model of the service, or `llama_server`, a server in an instance.",
        )
        .validate(Validator::one_of(&["hosted", LLAMA_SERVER])),
        Attribute::optional(
            "llama_server_id",
            Type::String,
            "The id of a `damodel_llama_server`: the instance's UID, or the host of `ssh`, and the port.",
        )
        .validate(Validator::text("the id of a damodel_llama_server, such as ins-…:8000", |id| {
            id.rsplit_once(':')
                .is_some_and(|(instance, port)| !instance.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0))
        })),
        login::attribute(
            login::Visitor::DataSource,
            "How to log in to the server's instance, as in `damodel_llama_server`. Only what the service does not \
             provide is needed.",
        ),
        login::visited_host_key(),
        Attribute::optional("api_key", Type::String, "The llama server's API key, if it has one; stored in the state.")
            .sensitive()
            .validate(rules::one_line()),
    ]
}

fn answer() -> Vec<Attribute> {
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        Attribute::computed("content", Type::String, "The model's answer."),
        Attribute::computed("finish_reason", Type::String, "Why the answer ended: `stop`, `length`, …"),
        Attribute::computed(
            "usage",
            AttributeType::Nested(
                Nesting::Single,
                vec![
                    number("prompt_tokens", "Tokens of the chat so far."),
                    number("completion_tokens", "Tokens of the answer."),
                    number("total_tokens", "Tokens of the chat so far and of the answer."),
                ],
            ),
            "Tokens used, if the server reports them.",
        ),
        Attribute::computed("response_json", Type::String, "The whole answer as JSON."),
    ]
}

/// The rules between the arguments of a target.
fn validate(config: &Chat, diagnostics: &mut Diagnostics) {
    match config.target.as_str() {
        Some(LLAMA_SERVER) if config.llama_server_id.is_null() => diagnostics.error_at(
            Path::to("llama_server_id"),
            "Missing required argument",
            "target = \"llama_server\" needs llama_server_id: the id of a damodel_llama_server.",
        ),
        Some(LLAMA_SERVER) | None => {}
        Some(_) => {
            let set = [
                ("llama_server_id", config.llama_server_id.is_known()),
                ("ssh", config.ssh.is_known()),
                ("host_key", config.host_key.is_known()),
                ("api_key", config.api_key.is_known()),
            ];
            for (name, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
                diagnostics.error_at(
                    Path::to(name),
                    format!("{name} needs target = \"llama_server\""),
                    format!(
                        "Set target = \"llama_server\", or remove {name}. The key of hosted models is the provider's \
                         chat_api_key."
                    ),
                );
            }
        }
    }
}

/// Sends the request to the server, over an SSH login for this request only.
async fn read(config: Chat, request: &ChatRequest, context: &StepContext) -> Result<Outcome<Chat>> {
    let mut warnings = Diagnostics::new();
    match ask(&config, request, context, &mut warnings).await {
        Ok(answer) => Ok(Outcome::present(config.answered(answer), Private::default()).with(warnings)),
        Err(failed) => Err(Diagnostics::from(failed).with(warnings)),
    }
}

async fn ask(
    config: &Chat,
    request: &ChatRequest,
    context: &StepContext,
    warnings: &mut Diagnostics,
) -> Result<ChatAnswer, Box<Diagnostic>> {
    let id = config.llama_server_id.as_str().unwrap_or_default();
    let (instance, port) = id.rsplit_once(':').unwrap_or((id, ""));
    let port: u16 = port.parse().unwrap_or_default();
    let login = Login::visit(&config.ssh, &config.host_key);
    // An id that begins with the host belongs to a server over plain SSH. Any other id names an instance, even with an
    // SSH host of its own: like for the server itself, the service provides the missing arguments.
    let access = if login.ssh.host() == Some(instance) {
        None
    } else {
        let found = Access::to_running(&InstanceUid::new(instance), "", &context.client, &limits(context)).await;
        Some(found.map_err(|diagnostic| Box::new(diagnostic.at(Path::to("llama_server_id"))))?)
    };
    let tried = || format!("chat with llama server {id}");
    let (_link, session) = login.open(access.as_ref(), &tried(), context, warnings).await?;
    let key = config.api_key.known().map(Secret::trimmed);
    let asked = tokio::select! {
        () = context.stopping.cancelled() => return Err(Box::new(stopped(&tried(), "the run was stopped"))),
        asked = timeout_at(context.deadline, complete_chat(&session, port, key.as_ref(), request)) => asked,
    };
    match asked {
        Err(_) => Err(Box::new(stopped(&tried(), "timed out"))),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Box::new(unanswered(&tried(), port, &error))),
    }
}

fn stopped(tried: &str, why: &str) -> Diagnostic {
    Diagnostic::error(format!("Cannot {tried}: {why}"), "The server did not answer in time.")
}

fn unanswered(tried: &str, port: u16, error: &ChatFailure) -> Diagnostic {
    match error {
        ChatFailure::Ssh(crate::ssh::Error::Refused { .. }) => Diagnostic::error(
            format!("Cannot {tried}: the server is not running"),
            format!(
                "No program listens on port {port} of the instance. The plan of damodel_llama_server shows whether the \
                 server has stopped; an apply starts it."
            ),
        )
        .at(Path::to("llama_server_id")),
        ChatFailure::Ssh(error) => SshFailure { error, tried: tried.to_owned(), now: String::new() }.diagnostic(),
        ChatFailure::Refused { status, .. } if status.as_u16() == 401 => Diagnostic::error(
            format!("Cannot {tried}: the server requires an API key"),
            format!("The server refused the request: {error}. Set api_key to the key of the damodel_llama_server."),
        )
        .at(Path::to("api_key")),
        _ => Diagnostic::error(
            format!("Cannot {tried}: no answer"),
            format!(
                "The request went to port {port} of the instance, and {error}. See the server's log in the instance."
            ),
        ),
    }
}
