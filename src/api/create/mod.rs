//! Creates: sent once, and never lost.
//!
//! A create writes itself down, sends its request once, and when no answer comes looks for what it may have
//! made by the marker in its name. It is sent again only when nothing was made for sure. Where the caller
//! leaves a choice, one request is sent after the other, each written down before, until one is accepted.

mod flow;
mod resume;
mod rounds;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::flow::Flow;
use super::{
    client::{Client, detached},
    context::Context,
    endpoint::Endpoint,
    error::{Error, RequestIds},
    object::{self, Object},
    pending::{Entry, Journal, PendingRecord},
    settings::Random,
};

pub use self::{
    flow::{Attempt, BeforeSending, Permission},
    rounds::Choices,
};

/// How long an object may take from its create to its first show in a list. A create whose outcome is unknown and
/// that is older than this, and not in two complete lists, made nothing.
pub const VISIBILITY_WINDOW: Duration = Duration::from_secs(120);

/// How a create goes about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CreateOptions<K> {
    /// How long to repeat the requests of all choices in turn, with growing pauses, while they are refused for lack of
    /// stock (160001, 160004, 160014). Added to the time of the context. Default: no repetition.
    pub wait_for_capacity: Option<Duration>,
    /// What is asked before each request.
    pub before_sending: BeforeSending<K>,
    /// What to do while the service is busy with another image (130002, 130003). Default: fail.
    pub while_busy: WhileBusy,
    /// Cancelled when the caller is gone. No request is sent after that, because the next run may have read the journal
    /// already.
    pub caller_gone: CancellationToken,
}

impl<K> Default for CreateOptions<K> {
    fn default() -> Self {
        Self {
            wait_for_capacity: None,
            before_sending: BeforeSending::default(),
            while_busy: WhileBusy::default(),
            caller_gone: CancellationToken::new(),
        }
    }
}

/// What to do while the service is busy with another request like ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhileBusy {
    /// Fail with its code.
    #[default]
    Fail,
    /// Go on asking, politely, until the context ends.
    Wait,
}

/// An object that the service took on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Accepted<K> {
    /// What is known of it: its id for sure, the rest as far as the service told.
    pub made: K,
    /// Its entry in the journal: to be [handed over](Entry::handed_over) just before the object is answered.
    /// Dropped instead, the next run's same create adopts the object.
    pub entry: Entry,
    /// Why the entry does not say that it was accepted. The object must then keep its name: without the record, the
    /// marker is the only trace of it.
    pub not_noted: Option<Error>,
    /// The name that it carries now: the wanted one with a marker; a private image's is the wanted one itself.
    pub sent_name: String,
    /// The name that it is to be given. When this is `None` it keeps its name: none was wanted, or it has it.
    pub rename_to: Option<String>,
    /// What support asks for, when the service answered.
    pub ids: RequestIds,
    /// When the time is over that the context gave: later than the context says by the wait for capacity.
    pub deadline: Instant,
    /// How we know.
    pub origin: Origin,
    /// The place among the choices of the request that made it.
    pub choice: usize,
}

/// How a create learned the id of what it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An earlier run made it, and this one adopted it.
    Adopted,
    /// The service answered.
    Answered,
    /// The answer did not say, or none came, and what carries the sent name was found.
    Found,
}

/// Creates an object, on a task of its own.
pub(super) async fn create<C: Creation>(
    client: &Client,
    choices: Choices<C>,
    key: &str,
    journal: &Journal,
    options: CreateOptions<C::Object>,
    context: &Context,
) -> Result<Accepted<C::Object>, Error> {
    let flow = Flow {
        client: client.clone(),
        choices,
        key: key.to_owned(),
        journal: journal.clone(),
        options,
        context: context.clone(),
    };
    detached(C::ENDPOINT, flow.run()).await
}

impl<K: Object> Accepted<K> {
    /// The id that operations use, as text.
    #[must_use]
    pub fn id(&self) -> String {
        self.made.key().to_string()
    }
}

/// A wanted object, and how it is asked for.
pub trait Creation: Send + Sync + 'static {
    /// What it makes.
    type Object: Object;

    /// The endpoint that makes it.
    const ENDPOINT: Endpoint;

    /// The name that it is to have in the end.
    fn wanted_name(&self) -> Option<&str>;

    /// The name that is sent, by which the object is found without an answer. `key` is the create's.
    #[doc(hidden)]
    fn marker(&self, key: &str, random: &Random) -> String {
        object::mark(self.wanted_name(), key, random)
    }

    /// The request, with the name that is sent.
    fn body(&self, marker: &str) -> Value;

    /// The name of this request among several choices; `None` if it is the only one.
    fn candidate(&self) -> Option<String> {
        None
    }

    /// What is asked for, as JSON without a marker. It is equal for the same wanted object, so that a key can be made
    /// of it, and equal for all choices of one create.
    fn wanted(&self) -> Value {
        self.body(self.wanted_name().unwrap_or_default())
    }

    /// Whether a create that sent this made the object.
    #[doc(hidden)]
    fn made(&self, object: &Self::Object, sent: &PendingRecord, _client: &Client) -> bool {
        object.name() == Some(&sent.marker)
    }
}
