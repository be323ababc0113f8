//! POST /chat/completions (service API, Chat completions).
//!
//! The answer follows from the request: it repeats the last user message, one word being one token. The shapes of
//! answer, chunks and errors are OpenAI's, whose clients the document says will work; fields beyond those that the
//! document names anywhere are refused.

mod completion;
mod failure;
mod request;
mod stream;

use std::time::Duration;

pub(super) use self::failure::Failure;
use self::{completion::Completion, request::Request};
use super::{
    answer::Content,
    endpoints::Input,
    errors::{Code, Refusal},
    fault::Action,
    form::{ChatStream, Form},
    random::Random,
    world::{Account, World},
};

/// The endpoint's name in faults and ledgers.
pub(super) const NAME: &str = "chat_completions";
pub(super) const PATH: &str = "/chat/completions";

/// The account whose key the Authorization header bears.
pub(super) fn authenticate<'a>(world: &'a World, authorization: Option<&str>) -> Result<&'a Account, Failure> {
    authorization
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, key)| world.accounts.iter().find(|account| account.chat_key.reveal() == key.trim()))
        .ok_or_else(|| Failure::from(Refusal::new(Code::InvalidToken, "Authorization: invalid API key")))
}

/// The answer to a request of an account, cut short where a fault wants it.
pub(super) fn answer(
    world: &World,
    form: &Form,
    account: &Account,
    input: &Input<'_>,
    actions: &[Action],
    random: &mut Random,
    now_ms: i64,
) -> Result<Content, Failure> {
    input.no_query()?;
    let request = Request::read(input.fields()?)?;
    if !world.models.iter().any(|model| model.enabled && model.name == request.model) {
        return Err(Failure::unknown_model(&request.model));
    }
    if account.balance <= 0.0 {
        return Err(Failure::from(Refusal::new(Code::BalanceNotEnough, "the account's balance is too low")));
    }
    let completion = Completion::of(&request, format!("chatcmpl-{}", random.text(24)), now_ms / 1000);
    if !request.stream || form.chat_stream == ChatStream::Whole {
        return Ok(Content::Whole(completion.whole(form).to_string().into_bytes()));
    }
    let mut events: Vec<String> =
        completion.events(request.include_usage, form).iter().map(ToString::to_string).collect();
    events.push("[DONE]".to_owned());
    interrupt(&mut events, actions);
    let pause = actions.iter().find_map(|action| match action {
        Action::SlowStream { ms } => Some(Duration::from_millis(*ms)),
        _ => None,
    });
    Ok(Content::Stream { pieces: stream::written(&events, form.chat_stream), pause: pause.unwrap_or_default() })
}

/// Ends the events early, without the mark of the end, and with an error where one is wanted.
fn interrupt(events: &mut Vec<String>, actions: &[Action]) {
    for action in actions {
        match action {
            Action::CutStream { events: count } => events.truncate(length(*count)),
            Action::StreamError { events: count } => {
                events.truncate(length(*count));
                let broken = Failure::from(Refusal::new(Code::InternalError, "the model stopped answering"));
                events.push(broken.openai().to_string());
            }
            _ => {}
        }
    }
}

fn length(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
