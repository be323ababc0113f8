//! What creates have in common: what an operator is told when one ends otherwise than with a ready thing.

use tokio_util::sync::CancellationToken;

use super::{Client, errors::Failure};
use crate::{
    api::{self, Entry, Kind, Phase},
    framework::{Diagnostic, Diagnostics, Outcome, Private},
};

/// A create that the service accepted, and what has come of it.
pub(super) struct Creation<'a, M> {
    /// The state, from planned to wholly known.
    pub(super) state: M,
    /// What is kept beside it.
    pub(super) private: Private,
    /// Messages for the operator.
    pub(super) diagnostics: Diagnostics,
    pub(super) client: &'a Client,
    /// The create timeout.
    pub(super) limits: api::Context,
    /// Cancelled when nobody will hear the answer.
    pub(super) unheard: CancellationToken,
}

impl<M> Creation<'_, M> {
    /// What exists now: the state holds it on every path.
    pub(super) fn outcome(self) -> Outcome<M> {
        Outcome::present(self.state, self.private).with(self.diagnostics)
    }
}

/// A kind of thing that is created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noun {
    /// How the journal calls it.
    pub(super) kind: Kind,
    /// How an operator calls it.
    pub(super) word: &'static str,
    /// Its type in HCL.
    pub(super) type_name: &'static str,
}

impl Noun {
    /// Closes the note of a create: from here on the core has the thing. Where nobody hears the answer, the note stays, and
    /// the next run's same create takes the thing up.
    pub(super) fn hand_over(&self, entry: Entry, id: &str, unheard: &CancellationToken) {
        if unheard.is_cancelled() {
            tracing::warn!(id, "nobody hears of this {}: the next run's same create takes it up", self.word);
        } else if let Err(error) = entry.handed_over() {
            tracing::warn!(%error, id, "the note of the create could not be closed");
        }
    }

    /// Says that an earlier run's thing was taken up.
    pub(super) fn adopted(&self, title: &str) -> Diagnostic {
        Diagnostic::warning(
            format!("Took up {title}"),
            format!(
                "An earlier run created this {} and ended before it could say so. It was found by its note in the pending \
                 directory, and nothing was created again.",
                self.word
            ),
        )
    }

    /// Says that a wait ended before the thing was ready: an error when its time ran out, which taints it; otherwise a warning.
    pub(super) fn wait_ended(&self, error: &api::Error, title: &str, ids: &api::RequestIds) -> Diagnostic {
        let word = self.word;
        match error {
            api::Error::WaitEnded(ended) if !ended.cancelled => Diagnostic::error(
                format!("{title} is not ready in time"),
                format!(
                    "The create timeout ran out: {ended}. The {word} exists and is billed; the state holds it, tainted: the next apply \
                     would replace it. To keep it: terraform untaint <address>, then apply again. To wait longer set \
                     timeouts {{ create = \"…\" }}{ids}."
                ),
            ),
            api::Error::WaitEnded(_) | api::Error::Cancelled { .. } => Diagnostic::warning(
                format!("Stopped waiting for {title}"),
                format!(
                    "The run was told to stop: {error}. The {word} exists and is billed; the state holds it. The next plan shows how \
                     it is."
                ),
            ),
            error => {
                let now =
                    format!("The {word} exists and is billed; the state holds it. The next plan shows how it is.");
                Failure { error, tried: format!("wait for {title}"), now }.warning()
            }
        }
    }

    /// Says that a thing still has the name with the marker.
    pub(super) fn not_renamed(&self, error: &api::Error, title: &str, sent_name: &str) -> Diagnostic {
        let now = format!("The {} is there, under the name {sent_name:?}. The next plan repairs it.", self.word);
        Failure { error, tried: format!("rename {title}"), now }.warning()
    }

    /// Says that a create was not accepted, and what state things are in now.
    pub(super) fn not_accepted<'e>(&self, error: &'e api::Error, title: &str, client: &Client) -> Failure<'e> {
        let word = self.word;
        let now = match error {
            api::Error::Unsettled(unsettled) => format!(
                "Whether a {word} was made is not known. If there is one it is called {:?}, and the note of it is in {}.",
                unsettled.marker,
                client.journal.directory().display()
            ),
            api::Error::SeveralMatches { .. } => format!("At least one {word} too many was made."),
            _ => "Nothing was created.".to_owned(),
        };
        Failure { error, tried: format!("create {title}"), now }
    }

    /// Warns of things that an earlier run made from the same configuration and answered, and that no state has shown since.
    pub(super) fn never_seen(&self, key: &str, client: &Client) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        for listed in client.journal.list().map(|report| report.entries).unwrap_or_default() {
            let record = &listed.record;
            let of_another_run = record.phase == Phase::HandedOver && record.process != std::process::id();
            if of_another_run
                && record.kind == self.kind
                && record.key == key
                && let Some(ids) = &record.ids
            {
                let why = "An earlier run created it from the same configuration and answered it to the core, and no state has \
                           shown it since.";
                diagnostics.push(self.leftover(&ids.id, why));
            }
        }
        diagnostics
    }

    /// Warns of a thing that carries the name with a marker that a create of `name` sends.
    pub(super) fn look_alike(&self, id: &str, own_name: Option<&str>, name: &str) -> Diagnostic {
        self.leftover(
            id,
            &format!(
                "It is called {:?}: the name that a create of {name:?} gives it before it is renamed.",
                own_name.unwrap_or_default()
            ),
        )
    }

    fn leftover(&self, id: &str, why: &str) -> Diagnostic {
        Diagnostic::warning(
            format!("{} {id} may have been left behind", super::presence::capitalized(self.word)),
            format!(
                "{why} If it is in no state, it is billed and managed by nobody. To manage it: terraform import \
                 {}.<name> {id}. Otherwise release it in the console.",
                self.type_name
            ),
        )
    }
}
