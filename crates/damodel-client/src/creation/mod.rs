//! Creates that are sent once and whose objects are never lost.
//!
//! A create writes a pending record and sends its request once. If no answer arrives, it looks up the object by the
//! marker in its name, and sends the request again only after proof that nothing was created. If the caller gives
//! several choices, one request after the other is recorded and sent until one is accepted.

mod choices;
mod decide;
mod flow;
mod found;
mod marker;
mod pending;
pub mod progress;
mod quotes;
#[cfg(test)]
mod tests;

use std::{future::Future, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{Context, Error, Object, RequestIds};

pub use self::{
    choices::Choices,
    flow::{create, request_hash},
    found::Found,
    marker::{is_marked, marker_of},
    pending::{
        CreatePhase, Entry, Journal, JournalReport, Maker, PendingCreate, PendingRecord, Scope, Unreadable, fingerprint,
    },
    quotes::{Quoted, Quotes},
};

/// The longest time from a create until a list shows the object. A create with an unknown outcome that is older than
/// this and missing in two complete lists created nothing.
pub const VISIBILITY_WINDOW: Duration = Duration::from_secs(120);

/// The same for a create that the service accepted.
pub const ACCEPTED_WINDOW: Duration = Duration::from_secs(600);

/// Options of a create.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// How long to repeat the requests of all choices in turn, with growing pauses, while they are refused for lack of
    /// stock (160001, 160004, 160014). Added to the time of the context. Default: no repetition.
    pub wait_for_capacity: Option<Duration>,
    /// What to do while the service is busy with another image (130002, 130003). Default: fail.
    pub while_busy: WhileBusy,
    /// Whether a living object with the configured name is a leftover too.
    pub unique_names: bool,
    /// Cancelled when the caller has gone. No request is sent after that, because the next run may have read the
    /// journal already.
    pub caller_gone: CancellationToken,
}

/// The answer of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Do not send this request. A create without another choice fails with [`Error::Withdrawn`].
    Refuse,
    /// Send the request.
    Send,
}

/// One request of a create that is about to be sent.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its index among the choices.
    pub choice: usize,
    /// When the round over the choices began: answers requested since then are fresh enough for this round.
    pub since: Instant,
    /// The name that is sent, the same for all requests of this create.
    pub marker: String,
    /// The limits of the create.
    pub context: Context,
}

/// What an earlier run left under the name of a create.
#[derive(Debug, Clone)]
pub struct Leftover {
    /// How it is known.
    pub kind: LeftoverKind,
    /// Its id, if it is known.
    pub id: Option<String>,
    /// Its name, or the name that was sent.
    pub name: String,
    /// Whether it was seen.
    pub evidence: Evidence,
    /// The name of its pending record.
    pub record: Option<String>,
}

impl Leftover {
    /// An object of a list, without a record.
    #[must_use]
    pub fn seen<K: Object>(kind: LeftoverKind, object: &K) -> Self {
        let (id, name) = (object.key().to_string(), object.name().unwrap_or_default().to_owned());
        Self { kind, id: Some(id), name, evidence: Evidence::Seen, record: None }
    }
}

/// Whether the object of a leftover was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// It was seen.
    Seen,
    /// Two complete looks lack it, and it may be too young to be shown.
    Lacking,
    /// Its object may exist.
    Unknown,
}

/// How a leftover is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// By a finished record of the same request, and no state has shown it.
    Finished,
    /// By the marker of this family and backend in its name, without a record.
    Marked,
    /// By the configured name, if names are unique. It may belong to anything.
    Named,
    /// By an unfinished record that is not resumed.
    Unfinished,
}

/// A check before the requests of a create. An earlier run's object is adopted without it.
pub trait Guard: Send + 'static {
    /// Judges, once before the first request, what earlier runs left under the same name, or the error of looking for
    /// it.
    fn judge(&mut self, found: Result<Vec<Leftover>, Error>) -> Permission;

    /// Decides about a request: asked for each choice in each round, because the price and more may have changed.
    fn permit(&mut self, attempt: Attempt) -> impl Future<Output = Permission> + Send;
}

/// What to do while the service is busy with another request of the same kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhileBusy {
    /// Fail with the service's code.
    #[default]
    Fail,
    /// Repeat the request with growing pauses until the context ends.
    Wait,
}

/// An object whose create the service accepted.
#[derive(Debug)]
pub struct Accepted<K> {
    /// The object: its id, and the other fields that the service returned.
    pub made: K,
    /// Its entry in the journal: [finish it](Entry::finish) just before the object is returned to Terraform. If it is
    /// dropped instead, the next run's same create adopts the object.
    pub entry: Entry,
    /// Why the acceptance is not in the entry. The object must then keep its name: without the record, the marker is
    /// its only trace.
    pub not_noted: Option<Error>,
    /// Its current name: the configured one with a marker. A private image has the configured name without a marker.
    pub sent_name: String,
    /// The name to give it. `None` if it keeps its name: none is configured, or it has it already.
    pub rename_to: Option<String>,
    /// The ids to give to support, if the service answered.
    pub ids: RequestIds,
    /// The deadline of the context, plus the wait for capacity.
    pub deadline: Instant,
    /// How the create learned the id.
    pub origin: Origin,
    /// The index of the choice that created it.
    pub choice: usize,
}

/// How a create learned the id of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An earlier run created it, and this one adopted it.
    Adopted,
    /// From the service's answer.
    Answered,
    /// The answer was lost or had no id, and an object with the sent name was found.
    Found,
}

impl<K: Object> Accepted<K> {
    /// The id that operations use, as text.
    #[must_use]
    pub fn id(&self) -> String {
        self.made.key().to_string()
    }
}
