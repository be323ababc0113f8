//! The attributes of `damodel_chat_completion`.

use crate::{
    framework::{
        Schema, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, validator},
    },
    provider::ssh_schema as ssh,
};

/// The target that is an instance's own server.
pub(super) const LLAMA_SERVER: &str = "llama_server";

pub(super) fn schema() -> Schema {
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

pub(super) fn question() -> Vec<Attribute> {
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
