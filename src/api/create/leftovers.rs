//! What earlier runs left under the name of a create that is about to be sent, and what it does not adopt: objects of
//! records, of markers without a record, and of the configured name itself.

use super::{
    Creation,
    decide::{Decision, Whose, decide},
    flow::{CreateAccount, Flow, blocking},
    found::Found,
    resume::Patience,
};
use crate::api::{
    error::Error,
    flight::Freshness,
    object::{Object, is_marked},
    pending::{CreatePhase, PendingCreate},
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
        let leftover = |(kind, object): (LeftoverKind, &C::Object)| Leftover {
            kind,
            id: Some(object.key().to_string()),
            name: object.name().unwrap_or_default().to_owned(),
            evidence: Evidence::Seen,
            record: None,
        };
        Ok(named.into_iter().map(leftover).collect())
    }

    /// Judges a record that is not resumed, without taking it: the create that it belongs to may do that meanwhile. One
    /// that certainly made nothing is removed.
    async fn judge_record(&self, other: &PendingCreate, account: &CreateAccount) -> Result<Option<Leftover>, Error> {
        let (record, whose) = (&other.record, account.of(&other.record));
        let mut found = self.examine(record, Patience::Glance).await?;
        if matches!(found, Found::Unknown { .. }) && whose != Whose::Other {
            found = self.examine(record, Patience::Left(&other.path)).await?;
            // Another create has taken it.
            if !other.path.exists() {
                return Ok(None);
            }
        }
        let place = record.scope.place(self.journal.scope());
        let evidence = match decide(&found, record.phase, whose, place, false) {
            Decision::Stop(evidence) => evidence,
            Decision::Forget => {
                let (journal, other) = (self.journal.clone(), other.clone());
                blocking(move || journal.forget(&other)).await?;
                return Ok(None);
            }
            Decision::Adopt | Decision::Leave | Decision::SendAgain => return Ok(None),
        };
        if let Found::Several(_) = found {
            return Err(self.stopped(found, &record.marker, None));
        }
        let is_finished = record.phase == CreatePhase::Finished;
        let kind = if is_finished { LeftoverKind::Finished } else { LeftoverKind::Unfinished };
        let object = found.object_of(record);
        let name = object.as_ref().and_then(|object| object.name().map(str::to_owned));
        Ok(Some(Leftover {
            kind,
            id: object.map(|object| object.key().to_string()),
            name: name.unwrap_or_else(|| record.marker.clone()),
            evidence,
            record: Some(other.name().to_owned()),
        }))
    }
}
