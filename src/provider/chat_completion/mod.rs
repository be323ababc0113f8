//! The data source `damodel_chat_completion`: a question to a hosted model, and its answer (service API, Chat completions).

use serde::{Deserialize, Serialize};

use super::{Client, client::limits, errors::Failure};
use crate::{
    api::{ChatMessage, ChatRequest},
    framework::{
        Attr, Context, DataSource, Outcome, Private, Schema, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
        value::Number,
    },
};

/// The data source.
#[derive(Debug)]
pub(super) struct ChatCompletion;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Chat {
    model: Attr<String>,
    messages: Attr<Vec<Message>>,
    temperature: Attr<Number>,
    max_tokens: Attr<i64>,
    content: Attr<String>,
    finish_reason: Attr<String>,
    usage: Attr<Usage>,
    response_json: Attr<String>,
}

/// One message.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Message {
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
        Schema::new(
            "A chat with a hosted model, asked anew in every plan: for `check` blocks that prove that the model answers. The answer is \
             streamed underneath, so that a long one hits no idle timeout. It needs the provider's `api_key`.",
            attributes(),
        )
    }

    async fn read(&self, mut config: Chat, context: Context<Client>) -> Outcome<Chat> {
        let text = |text: &Attr<String>| text.known().cloned().unwrap_or_default();
        let messages = config.messages.known().into_iter().flatten();
        let messages = messages.map(|m| ChatMessage { role: text(&m.role), content: text(&m.content) }).collect();
        let request = ChatRequest {
            temperature: config.temperature.known().map(|number| number.clone().into()),
            max_tokens: config.max_tokens.known().copied(),
            ..ChatRequest::new(text(&config.model), messages)
        };
        match context.client.api.chat(&request, &limits(&context)).await {
            Ok(answer) => {
                config.content = Attr::Known(answer.content);
                config.finish_reason = answer.finish_reason.into();
                config.usage = answer
                    .usage
                    .map(|usage| Usage {
                        prompt_tokens: usage.prompt_tokens.into(),
                        completion_tokens: usage.completion_tokens.into(),
                        total_tokens: usage.total_tokens.into(),
                    })
                    .into();
                config.response_json = Attr::Known(answer.response.to_string());
                Outcome::present(config, Private::default())
            }
            Err(error) => {
                let failure =
                    Failure { error: &error, tried: format!("chat with {:?}", request.model), now: String::new() };
                Outcome::absent().with(failure.diagnostic(|name| name == "model"))
            }
        }
    }
}

fn attributes() -> Vec<Attribute> {
    let number = |name: &str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        Attribute::required("model", Type::String, "The model's name, as the console's model marketplace shows it.")
            .validate(validator::text("text that is not empty", |model| !model.is_empty())),
        Attribute::required(
            "messages",
            AttributeType::Nested(
                Nesting::List,
                vec![
                    Attribute::required("role", Type::String, "Who says it: `system`, `user`, …"),
                    Attribute::required("content", Type::String, "What is said."),
                ],
            ),
            "The chat so far.",
        ),
        Attribute::optional("temperature", Type::Number, "The sampling temperature; sent only when set."),
        Attribute::optional("max_tokens", Type::Number, "The longest answer in tokens; sent only when set.")
            .validate(validator::between(1..=i64::MAX)),
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
            "What it took, when the service tells.",
        ),
        Attribute::computed("response_json", Type::String, "The whole answer as JSON."),
    ]
}
