//! Who holds what is billed, and what is held and is not there.

use std::collections::{BTreeMap, BTreeSet};

use bigdecimal::{BigDecimal, RoundingMode};
use serde::{Serialize, Serializer};
use serde_json::Number;

use super::{
    Error,
    account::{Account, Billed, monthly},
    notes::Note,
    states::{Held, State},
};
use crate::commands::adopt::Kind;

/// The version of the JSON form. A new field is no new version.
const FORMAT: &str = "1.0";

/// Digits behind the point of a price.
const DIGITS: i64 = 6;

/// What is billed, and who holds it.
#[derive(Debug, Serialize)]
pub(super) struct Audit {
    format_version: &'static str,
    /// What is billed, by kind and id.
    pub(super) objects: Vec<Object>,
    /// What a state holds and the account lacks.
    pub(super) missing: Vec<Missing>,
    /// What several addresses hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) duplicates: Vec<Duplicate>,
}

/// Something that is billed.
#[derive(Debug, Serialize)]
pub(super) struct Object {
    #[serde(serialize_with = "kind")]
    pub(super) kind: Kind,
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) region: Option<String>,
    pub(super) status: Option<String>,
    pub(super) age_seconds: Option<i64>,
    #[serde(serialize_with = "price")]
    pub(super) hourly: Option<BigDecimal>,
    #[serde(serialize_with = "price")]
    pub(super) monthly: Option<BigDecimal>,
    pub(super) holder: Holder,
    pub(super) source: Option<String>,
    pub(super) address: Option<String>,
}

/// Who holds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Holder {
    /// Neither a state nor a note.
    Nobody,
    /// A note in a pending directory.
    Pending,
    /// An address in a state.
    State,
}

/// Something that a state holds and the account lacks.
#[derive(Debug, Serialize)]
pub(super) struct Missing {
    #[serde(serialize_with = "kind")]
    pub(super) kind: Kind,
    pub(super) id: String,
    pub(super) address: String,
    pub(super) source: String,
}

/// Something that several addresses hold.
#[derive(Debug, Serialize)]
pub(super) struct Duplicate {
    #[serde(serialize_with = "kind")]
    pub(super) kind: Kind,
    pub(super) id: String,
    pub(super) holders: Vec<Place>,
}

/// An address in a state.
#[derive(Debug, Serialize)]
pub(super) struct Place {
    pub(super) source: String,
    pub(super) address: String,
}

impl Audit {
    /// Matches an account with states and notes, at a time in Unix seconds.
    pub(super) fn new(account: &Account, states: &[State], notes: &[Note], now: i64) -> Result<Self, Error> {
        belongs_together(account, states)?;
        let mut held: BTreeMap<(Kind, &str), Vec<(&State, &Held)>> = BTreeMap::new();
        for state in states {
            for one in &state.held {
                held.entry((one.kind, &one.id)).or_default().push((state, one));
            }
        }
        let by_id: BTreeMap<(Kind, &str), &Note> =
            notes.iter().filter_map(|note| Some(((note.kind, note.id.as_deref()?), note))).collect();
        let by_name: BTreeMap<(Kind, &str), &Note> = notes
            .iter()
            .filter(|note| note.id.is_none())
            .map(|note| ((note.kind, note.marker.as_str()), note))
            .collect();
        let object = |billed: &Billed| {
            let key = (billed.kind, billed.id.as_str());
            let state = held.get(&key).and_then(|holders| holders.first());
            let noted = || by_id.get(&key).or_else(|| by_name.get(&(billed.kind, billed.name.as_deref()?)));
            let (holder, source, address) = match (state, noted()) {
                (Some((state, held)), _) => (Holder::State, Some(state.source.clone()), Some(held.address.clone())),
                (None, Some(note)) => (Holder::Pending, Some(note.source.clone()), None),
                (None, None) => (Holder::Nobody, None, None),
            };
            let hourly = account.hourly(billed, state.map_or(0, |(_, held)| held.extra_disk));
            Object {
                kind: billed.kind,
                id: billed.id.clone(),
                name: billed.name.clone(),
                region: billed.region.clone(),
                status: billed.status.clone(),
                age_seconds: billed.since.map(|since| now.saturating_sub(since).max(0)),
                monthly: hourly.as_ref().map(monthly),
                hourly,
                holder,
                source,
                address,
            }
        };
        let there: BTreeSet<(Kind, &str)> =
            account.billed.iter().map(|billed| (billed.kind, billed.id.as_str())).collect();
        let all = states.iter().flat_map(|state| state.held.iter().map(move |held| (state, held)));
        let missing = all.filter(|(_, held)| !there.contains(&(held.kind, held.id.as_str())));
        let several = held.iter().filter(|(_, holders)| holders.len() > 1);
        Ok(Self {
            format_version: FORMAT,
            objects: account.billed.iter().map(object).collect(),
            missing: missing.map(Missing::of).collect(),
            duplicates: several.map(|((kind, id), holders)| Duplicate::of(*kind, id, holders)).collect(),
        })
    }

    /// Leaves out what is younger.
    pub(super) fn only_older_than(&mut self, seconds: i64) {
        self.objects.retain(|object| object.age_seconds.is_none_or(|age| age >= seconds));
    }

    /// What nobody holds.
    pub(super) fn unmanaged(&self) -> BTreeSet<(Kind, String)> {
        let nobodys = self.objects.iter().filter(|object| object.holder == Holder::Nobody);
        nobodys.map(|object| (object.kind, object.id.clone())).collect()
    }

    /// As data.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Whether the lists can be of the account that the states are of.
fn belongs_together(account: &Account, states: &[State]) -> Result<(), Error> {
    for state in states {
        let is_listed = |held: &Held| account.listed.contains(&(held.kind, held.id.clone()));
        let is_empty = |kind: Kind| !account.listed.iter().any(|(listed, _)| *listed == kind);
        let own = || state.held.iter().filter(|held| !held.is_part);
        let kinds: BTreeSet<Kind> = own().map(|held| held.kind).collect();
        if let Some(held) =
            kinds.into_iter().find(|kind| is_empty(*kind)).and_then(|kind| own().find(|held| held.kind == kind))
        {
            return Err(Error::Empty {
                kind: held.kind.noun(),
                source_name: state.source.clone(),
                address: held.address.clone(),
            });
        }
        if own().next().is_some() && !state.held.iter().any(is_listed) {
            return Err(Error::OtherAccount { source_name: state.source.clone(), count: own().count() });
        }
    }
    Ok(())
}

impl Missing {
    fn of((state, held): (&State, &Held)) -> Self {
        Self { kind: held.kind, id: held.id.clone(), address: held.address.clone(), source: state.source.clone() }
    }
}

impl Duplicate {
    fn of(kind: Kind, id: &str, holders: &[(&State, &Held)]) -> Self {
        let place =
            |(state, held): &(&State, &Held)| Place { source: state.source.clone(), address: held.address.clone() };
        Self { kind, id: id.to_owned(), holders: holders.iter().map(place).collect() }
    }
}

fn kind<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.type_name().trim_start_matches("damodel_"))
}

#[expect(clippy::ref_option, reason = "serde hands a field over as it is")]
fn price<S: Serializer>(price: &Option<BigDecimal>, serializer: S) -> Result<S::Ok, S::Error> {
    let number = price.as_ref().map(|price| {
        let text = price.with_scale_round(DIGITS, RoundingMode::HalfUp).normalized().to_plain_string();
        text.parse::<Number>().map_err(serde::ser::Error::custom)
    });
    number.transpose()?.serialize(serializer)
}

#[cfg(test)]
mod tests;
