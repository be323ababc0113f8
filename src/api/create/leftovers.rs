//! What earlier runs left under the name of a create that is about to be sent, and what it does not adopt: objects of
//! records, of markers without a record, and of the configured name itself.

use tokio::time::Instant;

use super::{
    Creation, VISIBILITY_WINDOW,
    flow::{CreateAccount, Flow, age, blocking},
    resume::{RecordAccount, Settled, window_left},
};
use crate::api::{
    error::Error,
    flight::Freshness,
    object::{Object, is_marked},
    pending::{CreatePhase, PendingCreate},
    presence::{LastSeen, Presence},
    records::Record as _,
};

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

impl<C: Creation> Flow<C> {
    /// Looks for what earlier runs left, in the family of this create. `others` are the left records that it does not
    /// resume.
    pub(super) async fn leftovers(
        &self,
        others: Vec<PendingCreate>,
        account: &CreateAccount,
    ) -> Result<Vec<Leftover>, Error> {
        let mut found = Vec::new();
        for other in others {
            found.extend(self.judge_record(&other, account).await?);
        }
        // The list of the run may be old by now: what it shows is looked at once more.
        let mut named = self.named(Freshness::Since(self.journal.begun()), account).await?;
        if !named.is_empty() {
            named = self.named(Freshness::Fresh, account).await?;
        }
        named.retain(|leftover| found.iter().all(|known| known.id != leftover.id));
        found.extend(named);
        Ok(found)
    }

    /// The living objects with the configured name, or with a marker of this family and no record.
    async fn named(&self, freshness: Freshness, account: &CreateAccount) -> Result<Vec<Leftover>, Error> {
        let Some(wanted) = self.wanted_name().filter(|_| C::IS_MARKED) else { return Ok(Vec::new()) };
        let listing = self.whole_list(freshness).await?;
        let living = listing.records.iter().filter(|object| object.is_living());
        let named = living.filter_map(|object| {
            let name = object.name()?;
            let is_marked = is_marked(name, C::Object::KIND, wanted, self.journal.scope());
            let kind = if is_marked { LeftoverKind::Marked } else { LeftoverKind::Named };
            (is_marked || (self.options.unique_names && name == wanted)).then_some((kind, object))
        });
        let mut named: Vec<_> = named.collect();
        if named.iter().any(|(kind, _)| *kind == LeftoverKind::Marked) {
            let journal = self.journal.clone();
            let entries = blocking(move || journal.list()).await?.entries;
            named.retain(|(kind, object)| {
                let has_record = |listed: &PendingCreate| {
                    Some(listed.record.marker.as_str()) == object.name()
                        || object.is_named_by(&listed.record, &account.base_url)
                };
                *kind != LeftoverKind::Marked || !entries.iter().any(has_record)
            });
        }
        Ok(named.into_iter().map(|(kind, object)| leftover(kind, object, None)).collect())
    }

    /// Judges a record that is not resumed, without taking it: the create that it belongs to may do that meanwhile. One
    /// that certainly made nothing is removed. One of another state is no leftover of this one.
    async fn judge_record(&self, other: &PendingCreate, account: &CreateAccount) -> Result<Option<Leftover>, Error> {
        let (record, whose) = (&other.record, account.of(&other.record));
        let is_finished = record.phase == CreatePhase::Finished;
        let is_of_this_state = record.scope.has_state_of(self.journal.scope());
        if is_finished && (record.request != self.request || !is_of_this_state) {
            return Ok(None);
        }
        let kind = if is_finished { LeftoverKind::Finished } else { LeftoverKind::Unfinished };
        let seen = if record.refused { None } else { self.seen(record, account).await? };
        let is_over = match seen {
            Some(object) if object.is_living() => {
                return Ok(is_of_this_state.then(|| leftover(kind, &object, Some(other))));
            }
            Some(object) => object.is_released(),
            None if whose == RecordAccount::Other => return Ok(None),
            None if record.refused => true,
            None => {
                let unseen = self.settle_record(other).await?;
                let evidence = match unseen {
                    Unseen::Gone | Unseen::Lacking => None,
                    Unseen::Taken => return Ok(None),
                    Unseen::Young => Some(Evidence::Lacking),
                    Unseen::Unknown => Some(Evidence::Unknown),
                };
                if let Some(evidence) = evidence {
                    return Ok(is_of_this_state.then(|| Leftover {
                        kind,
                        id: record.ids.as_ref().map(|ids| ids.id.clone()),
                        name: record.marker.clone(),
                        evidence,
                        record: Some(other.name().to_owned()),
                    }));
                }
                unseen == Unseen::Gone
            }
        };
        if is_over && whose == RecordAccount::Own {
            let (journal, other) = (self.journal.clone(), other.clone());
            blocking(move || journal.forget(&other)).await?;
        }
        Ok(None)
    }

    /// Whether a record whose object a list lacks made nothing, or its object is gone.
    async fn settle_record(&self, other: &PendingCreate) -> Result<Unseen, Error> {
        let record = &other.record;
        let Some(known) = record.ids.as_ref().and_then(|ids| C::Object::of_id(&ids.id)) else {
            let until = Instant::now() + window_left(record);
            return Ok(match self.settle(record, Some(&other.path), until).await? {
                Settled::Found(made) if made.is_released() => Unseen::Gone,
                Settled::Found(_) => Unseen::Unknown,
                Settled::NotSeen { conclusive: true, .. } => Unseen::Gone,
                Settled::NotSeen { conclusive: false, .. } => Unseen::Unknown,
                Settled::Taken => Unseen::Taken,
            });
        };
        match self.client.objects::<C::Object>().look(&known.key(), Some(&record.marker), &self.context).await? {
            Presence::Released => Ok(Unseen::Gone),
            Presence::Absent if age(record.begun_at) < VISIBILITY_WINDOW => Ok(Unseen::Young),
            Presence::Absent => {
                let last_seen =
                    LastSeen { account: Some(&record.account), made_at: record.begun_at, grace: VISIBILITY_WINDOW };
                let absence = self.client.judge_absence(last_seen, &known.key().to_string(), &self.context).await?;
                Ok(if absence.is_proof() { Unseen::Gone } else { Unseen::Lacking })
            }
            Presence::Present(_) | Presence::Unproved { .. } => Ok(Unseen::Unknown),
        }
    }
}

/// What became of a record whose object was not seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unseen {
    /// It made nothing, or its object is certainly gone.
    Gone,
    /// Two looks lack its object, which may be in another account.
    Lacking,
    /// Another create has taken it.
    Taken,
    /// Its object may exist.
    Unknown,
    /// Two looks lack its object, which may be too young to be shown.
    Young,
}

fn leftover<K: Object>(kind: LeftoverKind, object: &K, record: Option<&PendingCreate>) -> Leftover {
    Leftover {
        kind,
        id: Some(object.key().to_string()),
        name: object.name().unwrap_or_default().to_owned(),
        evidence: Evidence::Seen,
        record: record.map(|record| record.name().to_owned()),
    }
}
