//! POST /chat/completions (service API, Chat completions).
//!
//! Answer, chunks and errors have OpenAI's shapes, whose clients work according to the document. Fields that the
//! document names nowhere are refused.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    answer::Content,
    endpoints::EndpointInput,
    fault::FaultAction,
    form::{ChatError, ChatStream, Form},
    openai::{ChatFrame, ReceivedChat, ReceivedMessage},
    query::Fields,
    random::RandomStream,
    refusal::{Code, ServiceRefusal},
    render::{self, Identifiers},
    world::{Account, World},
};

/// The endpoint's name in faults and ledgers.
pub(super) const NAME: &str = "chat_completions";
pub(super) const PATH: &str = "/chat/completions";

/// The account whose key is in the Authorization header.
pub(super) fn authenticate<'a>(world: &'a World, authorization: Option<&str>) -> Result<&'a Account, ChatRefusal> {
    authorization
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, key)| world.accounts.iter().find(|account| account.chat_key.reveal() == key.trim()))
        .ok_or_else(|| ChatRefusal::from(ServiceRefusal::new(Code::InvalidToken, "Authorization: invalid API key")))
}

/// The answer to a request of an account, cut short if a fault asks for it.
pub(super) fn answer(
    world: &World,
    form: &Form,
    account: &Account,
    input: &EndpointInput<'_>,
    actions: &[FaultAction],
    random: &mut RandomStream,
    now_ms: i64,
) -> Result<Content, ChatRefusal> {
    input.no_query()?;
    let (model, request) = read(input.fields()?)?;
    if !world.models.iter().any(|known| known.enabled && known.name == model) {
        return Err(ChatRefusal::unknown_model(&model));
    }
    if account.balance <= 0.0 {
        return Err(ChatRefusal::from(ServiceRefusal::new(Code::BalanceNotEnough, "the account's balance is too low")));
    }
    let mut further = Map::new();
    if form.extra_fields {
        further.insert("sandbox_extra".to_owned(), json!("not in the document"));
    }
    let frame = ChatFrame {
        id: format!("chatcmpl-{}", random.text(24)),
        created: now_ms / 1000,
        model,
        prompt_tokens: request.prompt_tokens(0),
        include_usage: request.include_usage,
        opening: json!(""),
        further,
    };
    let reply = request.reply();
    if !request.stream || form.chat_stream == ChatStream::Whole {
        return Ok(Content::Whole(frame.whole(&reply).to_string().into_bytes()));
    }
    let words = reply.words.iter().map(|word| frame.word(word));
    let chunks = [frame.first()].into_iter().chain(words).chain(frame.last(reply.finish, reply.words.len()));
    let mut events: Vec<String> = chunks.map(|chunk| chunk.to_string()).collect();
    events.push("[DONE]".to_owned());
    interrupt(&mut events, actions);
    let pause = actions.iter().find_map(|action| match action {
        FaultAction::SlowStream { ms } => Some(Duration::from_millis(*ms)),
        _ => None,
    });
    Ok(Content::Stream { pieces: written(&events, form.chat_stream), pause: pause.unwrap_or_default() })
}

/// Ends the events early, without the final mark, and with an error event if the fault asks for one.
fn interrupt(events: &mut Vec<String>, actions: &[FaultAction]) {
    for action in actions {
        match action {
            FaultAction::CutStream { events: count } => events.truncate(length(*count)),
            FaultAction::StreamError { events: count } => {
                events.truncate(length(*count));
                let broken = ChatRefusal::from(ServiceRefusal::new(Code::InternalError, "the model stopped answering"));
                events.push(broken.openai().to_string());
            }
            _ => {}
        }
    }
}

fn length(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The roles of messages; the document names the first two as examples.
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

/// The model and the request.
fn read(mut fields: Fields) -> Result<(String, ReceivedChat), ServiceRefusal> {
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
    Ok((model, ReceivedChat { messages, stream, include_usage, max_tokens }))
}

fn message(mut fields: Fields) -> Result<ReceivedMessage, ServiceRefusal> {
    let message =
        ReceivedMessage { role: fields.required_string("role")?, content: fields.required_string("content")? };
    if !ROLES.contains(&message.role.as_str()) {
        return Err(fields.invalid("role", &format!("{:?} is not one of {ROLES:?}", message.role)));
    }
    fields.finish()?;
    Ok(message)
}

/// Whether a chunk with the usage is requested; only a stream can have one.
fn stream_options(fields: &mut Fields, stream: bool) -> Result<bool, ServiceRefusal> {
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

fn max_tokens(fields: &mut Fields) -> Result<Option<usize>, ServiceRefusal> {
    match fields.integer("max_tokens")? {
        None => Ok(None),
        Some(tokens) if tokens >= 1 => Ok(Some(usize::try_from(tokens).unwrap_or(usize::MAX))),
        Some(tokens) => Err(fields.invalid("max_tokens", &format!("{tokens} is less than 1"))),
    }
}

/// The bytes of one portion if events are cut anywhere: fewer than a Chinese character and its neighbours need.
const PIECE: usize = 7;

/// The events as the portions that are sent.
fn written(events: &[String], form: ChatStream) -> Vec<Vec<u8>> {
    let portions = events.iter().enumerate().map(|(index, data)| match form {
        ChatStream::Comments => format!(": keep-alive\n\nid: {index}\nevent: message\nretry: 500\ndata: {data}\n\n"),
        ChatStream::Crlf => format!("data:{data}\r\n\r\n"),
        ChatStream::Events | ChatStream::Pieces | ChatStream::Whole => format!("data: {data}\n\n"),
    });
    if form == ChatStream::Pieces {
        portions.collect::<String>().as_bytes().chunks(PIECE).map(<[u8]>::to_vec).collect()
    } else {
        portions.map(String::into_bytes).collect()
    }
}

/// A refused chat request: the service's refusal, and the further fields of an OpenAI error.
#[derive(Clone, Debug)]
pub(super) struct ChatRefusal {
    pub(crate) refusal: ServiceRefusal,
    status: u16,
    kind: &'static str,
    code: &'static str,
    param: Option<&'static str>,
}

impl From<ServiceRefusal> for ChatRefusal {
    fn from(refusal: ServiceRefusal) -> Self {
        let (kind, code) = match refusal.code {
            Code::BalanceNotEnough => ("insufficient_quota", "insufficient_quota"),
            Code::InternalError => ("server_error", "internal_error"),
            Code::InvalidToken => ("invalid_request_error", "invalid_api_key"),
            other => ("invalid_request_error", other.name()),
        };
        Self { status: refusal.code.fitting_status(), refusal, kind, code, param: None }
    }
}

impl ChatRefusal {
    /// A model that does not exist, or was not enabled in the console.
    fn unknown_model(name: &str) -> Self {
        let refusal = ServiceRefusal::invalid(format!("model: {name:?} does not exist or is not enabled"));
        Self { status: 404, code: "model_not_found", param: Some("model"), ..Self::from(refusal) }
    }

    /// Status, content type and body.
    pub(crate) fn rendered(&self, form: &Form, ids: &Identifiers) -> (u16, &'static str, Content) {
        let (status, content_type, text) = match form.chat_error {
            ChatError::Envelope => {
                let (status, envelope) = render::refusal(form, ids, &self.refusal);
                (status, "application/json", envelope.to_string())
            }
            ChatError::OpenAi => (self.status, "application/json", self.openai().to_string()),
            ChatError::OpenAi200 => (200, "application/json", self.openai().to_string()),
            ChatError::Text => (self.status, "text/plain", format!("{}\n", self.refusal.message)),
        };
        (status, content_type, Content::Whole(text.into_bytes()))
    }

    /// The error as OpenAI writes it.
    fn openai(&self) -> Value {
        json!({
            "error": {
                "message": self.refusal.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            },
        })
    }
}
