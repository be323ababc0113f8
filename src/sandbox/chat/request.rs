//! The body of a chat request, held to its rules.

use crate::sandbox::{errors::Refusal, fields::Fields};

/// The roles of messages; the document names the first two as examples.
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

#[derive(Debug)]
pub(super) struct Message {
    pub(super) role: String,
    pub(super) content: String,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) model: String,
    /// At least one.
    pub(super) messages: Vec<Message>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<usize>,
}

impl Request {
    pub(super) fn read(mut fields: Fields) -> Result<Self, Refusal> {
        let model = fields.required_string("model")?;
        let messages = fields.objects("messages")?.into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
        if messages.is_empty() {
            return Err(fields.invalid("messages", "at least one is needed"));
        }
        let stream = fields.boolean("stream")?.unwrap_or(false);
        let include_usage = stream_options(&mut fields, stream)?;
        let max_tokens = max_tokens(&mut fields)?;
        if fields.number("temperature")?.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return Err(fields.invalid("temperature", "is not within 0 and 2"));
        }
        fields.finish()?;
        Ok(Self { model, messages, stream, include_usage, max_tokens })
    }
}

fn message(mut fields: Fields) -> Result<Message, Refusal> {
    let message = Message { role: fields.required_string("role")?, content: fields.required_string("content")? };
    if !ROLES.contains(&message.role.as_str()) {
        return Err(fields.invalid("role", &format!("{:?} is not one of {ROLES:?}", message.role)));
    }
    fields.finish()?;
    Ok(message)
}

/// Whether a chunk with the usage is wanted; only a stream can have one.
fn stream_options(fields: &mut Fields, stream: bool) -> Result<bool, Refusal> {
    match fields.object("stream_options")? {
        None => Ok(false),
        Some(_) if !stream => Err(fields.invalid("stream_options", "is for streams only")),
        Some(mut options) => {
            let include_usage = options.boolean("include_usage")?.unwrap_or(false);
            options.finish()?;
            Ok(include_usage)
        }
    }
}

fn max_tokens(fields: &mut Fields) -> Result<Option<usize>, Refusal> {
    match fields.integer("max_tokens")? {
        None => Ok(None),
        Some(tokens) if tokens >= 1 => Ok(Some(usize::try_from(tokens).unwrap_or(usize::MAX))),
        Some(tokens) => Err(fields.invalid("max_tokens", &format!("{tokens} is less than 1"))),
    }
}
