//! The holders of billed objects, and the objects in states that do not exist in the account.

use std::collections::{BTreeMap, BTreeSet};

use bigdecimal::{BigDecimal, RoundingMode};
use serde::{Serialize, Serializer};
use serde_json::Number;

use super::{
    Error,
    account::{AccountLists, BilledObject, monthly},
    states::{AuditedState, Held, Note},
};
use crate::commands::adopt::Adoptable;

/// The version of the JSON format. A new field does not change it.
const FORMAT: &str = "1.0";

/// The decimal places of a price.
const DIGITS: i64 = 6;

/// The billed objects and their holders.
#[derive(Debug, Serialize)]
pub(super) struct Audit {
    format_version: &'static str,
    /// The billed objects, by kind and id.
    pub(super) objects: Vec<HeldObject>,
    /// Objects that are in a state and not in the account.
    pub(super) missing: Vec<MissingObject>,
    /// Objects that several addresses hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) duplicates: Vec<Duplicate>,
}

/// A billed object.
#[derive(Debug, Serialize)]
pub(super) struct HeldObject {
    #[serde(serialize_with = "kind")]
    pub(super) kind: Adoptable,
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

/// The holder of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Holder {
    /// Neither a state nor a pending record.
    Nobody,
    /// A pending record.
    Pending,
    /// An address in a state.
    State,
}

/// An object that is in a state and not in the account.
#[derive(Debug, Serialize)]
pub(super) struct MissingObject {
    #[serde(serialize_with = "kind")]
    pub(super) kind: Adoptable,
    pub(super) id: String,
    pub(super) address: String,
    pub(super) source: String,
}

/// An object that several addresses hold.
#[derive(Debug, Serialize)]
pub(super) struct Duplicate {
    #[serde(serialize_with = "kind")]
    pub(super) kind: Adoptable,
    pub(super) id: String,
    pub(super) holders: Vec<StateAddress>,
}

/// An address in a state.
#[derive(Debug, Serialize)]
pub(super) struct StateAddress {
    pub(super) source: String,
    pub(super) address: String,
}

impl Audit {
    /// Matches an account with states and pending records, at a time in Unix seconds.
    pub(super) fn new(
        account: &AccountLists,
        states: &[AuditedState],
        notes: &[Note],
        now: i64,
    ) -> Result<Self, Error> {
        belongs_together(account, states)?;
        let mut held: BTreeMap<(Adoptable, &str), Vec<(&AuditedState, &Held)>> = BTreeMap::new();
        for state in states {
            for one in &state.held {
                held.entry((one.kind, &one.id)).or_default().push((state, one));
            }
        }
        let by_id: BTreeMap<(Adoptable, &str), &Note> =
            notes.iter().filter_map(|note| Some(((note.kind, note.id.as_deref()?), note))).collect();
        let by_name: BTreeMap<(Adoptable, &str), &Note> = notes
            .iter()
            .filter(|note| note.id.is_none())
            .map(|note| ((note.kind, note.marker.as_str()), note))
            .collect();
        let object = |billed: &BilledObject| {
            let key = (billed.kind, billed.id.as_str());
            let state = held.get(&key).and_then(|holders| holders.first());
            let noted = || by_id.get(&key).or_else(|| by_name.get(&(billed.kind, billed.name.as_deref()?)));
            let (holder, source, address) = match (state, noted()) {
                (Some((state, held)), _) => (Holder::State, Some(state.source.clone()), Some(held.address.clone())),
                (None, Some(note)) => (Holder::Pending, Some(note.source.clone()), None),
                (None, None) => (Holder::Nobody, None, None),
            };
            let hourly = account.hourly(billed, state.map_or(0, |(_, held)| held.extra_disk));
            HeldObject {
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
        let there: BTreeSet<(Adoptable, &str)> =
            account.billed.iter().map(|billed| (billed.kind, billed.id.as_str())).collect();
        let all = states.iter().flat_map(|state| state.held.iter().map(move |held| (state, held)));
        let missing = all.filter(|(_, held)| !there.contains(&(held.kind, held.id.as_str())));
        let several = held.iter().filter(|(_, holders)| holders.len() > 1);
        Ok(Self {
            format_version: FORMAT,
            objects: account.billed.iter().map(object).collect(),
            missing: missing.map(MissingObject::of).collect(),
            duplicates: several.map(|((kind, id), holders)| Duplicate::of(*kind, id, holders)).collect(),
        })
    }

    /// Removes younger objects.
    pub(super) fn only_older_than(&mut self, seconds: i64) {
        self.objects.retain(|object| object.age_seconds.is_none_or(|age| age >= seconds));
    }

    /// Unmanaged objects.
    pub(super) fn unmanaged(&self) -> BTreeSet<(Adoptable, String)> {
        let nobodys = self.objects.iter().filter(|object| object.holder == Holder::Nobody);
        nobodys.map(|object| (object.kind, object.id.clone())).collect()
    }

    /// The audit as JSON.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Checks that the states can belong to the listed account.
fn belongs_together(account: &AccountLists, states: &[AuditedState]) -> Result<(), Error> {
    for state in states {
        let is_listed = |held: &Held| account.listed.contains(&(held.kind, held.id.clone()));
        let is_empty = |kind: Adoptable| !account.listed.iter().any(|(listed, _)| *listed == kind);
        let own = || state.held.iter().filter(|held| !held.is_part);
        let kinds: BTreeSet<Adoptable> = own().map(|held| held.kind).collect();
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

impl MissingObject {
    fn of((state, held): (&AuditedState, &Held)) -> Self {
        Self { kind: held.kind, id: held.id.clone(), address: held.address.clone(), source: state.source.clone() }
    }
}

impl Duplicate {
    fn of(kind: Adoptable, id: &str, holders: &[(&AuditedState, &Held)]) -> Self {
        let place = |(state, held): &(&AuditedState, &Held)| StateAddress {
            source: state.source.clone(),
            address: held.address.clone(),
        };
        Self { kind, id: id.to_owned(), holders: holders.iter().map(place).collect() }
    }
}

fn kind<S: Serializer>(kind: &Adoptable, serializer: S) -> Result<S::Ok, S::Error> {
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(id: &str) -> BilledObject {
        BilledObject {
            kind: Adoptable::Instance,
            id: id.to_owned(),
            name: Some(format!("name of {id}")),
            region: Some("r".to_owned()),
            status: Some("Running".to_owned()),
            since: Some(1_000),
            order: Some(super::super::account::BilledTerms {
                payment_type: "Daily".to_owned(),
                spec_id: 1,
                gpu_num: 2,
            }),
        }
    }

    fn other(kind: Adoptable, id: &str) -> BilledObject {
        BilledObject { kind, region: None, since: None, order: None, ..instance(id) }
    }

    fn account(billed: Vec<BilledObject>) -> AccountLists {
        let spec =
            serde_json::from_value(json!({"spec_id": 1, "daily_price": 12, "daily_data_disk_price": 0.24})).unwrap();
        let listed = billed.iter().map(|billed| (billed.kind, billed.id.clone())).collect();
        AccountLists { billed, listed, specs: BTreeMap::from([(("r".to_owned(), 1), spec)]) }
    }

    fn state(source: &str, held: &[(Adoptable, &str)]) -> AuditedState {
        let held = held.iter().map(|(kind, id)| Held {
            kind: *kind,
            id: (*id).to_owned(),
            address: format!("{}.a[{id:?}]", kind.type_name()),
            extra_disk: 100,
            is_part: false,
        });
        AuditedState { source: source.to_owned(), held: held.collect() }
    }

    fn audit(account: &AccountLists, states: &[AuditedState], notes: &[Note]) -> Result<Audit, String> {
        Audit::new(account, states, notes, 4_600).map_err(|error| error.to_string())
    }

    #[test]
    fn the_form_for_programs_is_a_contract() {
        let account = account(vec![instance("ins-1"), instance("ins-2"), other(Adoptable::CloudDisk, "7")]);
        let note =
            Note { kind: Adoptable::CloudDisk, id: None, marker: "name of 7".to_owned(), source: "notes".to_owned() };
        let held = state("prod.tfstate", &[(Adoptable::Instance, "ins-1"), (Adoptable::Instance, "ins-gone")]);
        let audit = audit(&account, &[held], &[note]).unwrap();
        let json: Value = serde_json::from_str(&audit.to_json().unwrap()).unwrap();
        let object = |kind: &str, id: &str, holder: &str| {
            json!({"kind": kind, "id": id, "name": format!("name of {id}"), "region": null, "status": "Running",
                "age_seconds": null,
                "hourly": null, "monthly": null, "holder": holder, "source": null, "address": null})
        };
        let mut first = object("instance", "ins-1", "state");
        first["source"] = "prod.tfstate".into();
        first["address"] = "damodel_instance.a[\"ins-1\"]".into();
        let mut second = object("instance", "ins-2", "nobody");
        for (object, hourly, monthly) in [(&mut first, 2.0, 1460.0), (&mut second, 1.0, 730.0)] {
            object["region"] = "r".into();
            object["age_seconds"] = 3_600.into();
            object["hourly"] = hourly.into();
            object["monthly"] = monthly.into();
        }
        let mut third = object("cloud_disk", "7", "pending");
        third["source"] = "notes".into();
        let as_floats =
            |value: &Value| -> Value { serde_json::from_str(&value.to_string().replace(".0", "")).unwrap() };
        assert_eq!(json["format_version"], "1.0");
        assert_eq!(json["objects"], as_floats(&json!([first, second, third])));
        let missing = json!([{"kind": "instance", "id": "ins-gone", "address": "damodel_instance.a[\"ins-gone\"]",
            "source": "prod.tfstate"}]);
        assert_eq!((&json["missing"], json.as_object().unwrap().len()), (&missing, 3));
    }

    #[test]
    fn what_does_not_belong_together_is_no_all_clear() {
        let mut released = account(vec![instance("ins-1")]);
        let held = |id: &str| [state("prod", &[(Adoptable::Instance, id)])];
        assert!(
            audit(&released, &held("ins-9"), &[])
                .unwrap_err()
                .starts_with("none of the 1 objects of prod is in the account")
        );
        let disk = [state("prod", &[(Adoptable::CloudDisk, "7"), (Adoptable::Instance, "ins-1")])];
        let error = audit(&released, &disk, &[]).unwrap_err();
        assert!(
            error.starts_with("the account has no cloud disk at all, but prod holds damodel_cloud_disk.a"),
            "{error}"
        );
        // A released object proves that it is this account.
        released.billed.clear();
        let found = audit(&released, &held("ins-1"), &[]).unwrap();
        assert_eq!((found.objects.len(), found.missing.len()), (0, 1));
        assert!(audit(&released, &[state("empty", &[])], &[]).is_ok());
    }

    #[test]
    fn an_object_in_two_states_is_told() {
        let account = account(vec![instance("ins-1")]);
        let held = [(Adoptable::Instance, "ins-1")];
        let audit = audit(&account, &[state("a", &held), state("b", &held)], &[]).unwrap();
        assert_eq!((audit.objects.len(), audit.objects[0].source.as_deref()), (1, Some("a")));
        let told: Vec<String> = crate::commands::audit::duplicates(&audit).collect();
        let address = "damodel_instance.a[\"ins-1\"]";
        assert_eq!(told, [format!("instance ins-1 is held more than once: {address} in a, {address} in b")]);
    }

    #[test]
    fn what_is_young_is_left_out_and_what_has_no_age_is_not() {
        let mut young = instance("ins-2");
        young.since = Some(4_000);
        let account = account(vec![instance("ins-1"), young, other(Adoptable::CloudDisk, "7")]);
        let mut audit = audit(&account, &[], &[]).unwrap();
        audit.only_older_than(3_600);
        let ids: Vec<String> = audit.unmanaged().into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids, ["ins-1", "7"]);
    }

    /// 10,000 objects of every kind in 20 states, 300 of them without a holder, which are found exactly.
    #[test]
    fn orphans_are_found_among_ten_thousand() {
        let kinds = [Adoptable::Instance, Adoptable::CloudDisk, Adoptable::PrivateImage];
        let all: Vec<BilledObject> = (0..10_000)
            .map(|number| match kinds[number % 3] {
                Adoptable::Instance => instance(&format!("ins-{number}")),
                kind => other(kind, &number.to_string()),
            })
            .collect();
        let is_orphan = |number: usize| number % 32 == 7 && number < 32 * 300;
        let mut states: Vec<AuditedState> = (0..20).map(|number| state(&number.to_string(), &[])).collect();
        for (number, billed) in all.iter().enumerate().filter(|(number, _)| !is_orphan(*number)) {
            states[number % 20].held.extend(state("", &[(billed.kind, &billed.id)]).held);
        }
        let planted: BTreeSet<(Adoptable, String)> = all
            .iter()
            .enumerate()
            .filter(|(number, _)| is_orphan(*number))
            .map(|(_, billed)| (billed.kind, billed.id.clone()))
            .collect();
        assert_eq!(
            (planted.len(), kinds.iter().all(|kind| planted.iter().any(|(planted, _)| planted == kind))),
            (300, true)
        );
        let account = account(all);
        let audit = audit(&account, &states, &[]).unwrap();
        let (text, data) = (crate::commands::audit::plain(&audit), audit.to_json().unwrap());
        assert_eq!(audit.unmanaged(), planted);
        assert_eq!((audit.objects.len(), audit.missing.len()), (10_000, 0));
        assert!(text.lines().nth(1).unwrap().ends_with("nobody") && data.len() > 1_000_000);
    }
}
