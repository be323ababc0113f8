//! The judgement about instances with a max_age, without requests.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{
    UNSAID,
    holders::{StateAddress, proved},
    inventory::{BilledObject, Inventory},
    states::{AgeTerms, AuditedState, Held},
};
use crate::{
    api::{self, InstanceStatus, ObjectKind},
    framework::timeouts::parse_duration,
    review::{Item, Money, deleted_with, visible},
};

/// The longest text in a title, in characters.
const LONGEST: usize = 100;

/// An instance with a max_age in a state.
#[derive(Debug)]
pub(in crate::commands) struct AgedInstance {
    pub(in crate::commands) uid: String,
    /// The addresses that hold it.
    pub(in crate::commands) holders: Vec<StateAddress>,
    /// The indexes of their states.
    pub(in crate::commands) states: Vec<usize>,
    /// The terms of each holder.
    pub(in crate::commands) terms: Vec<AgeTerms>,
    /// The shortest max_age, as configured.
    pub(in crate::commands) max_age: String,
    pub(in crate::commands) age_seconds: Option<i64>,
    pub(in crate::commands) hourly: Option<Money>,
    /// What its release deletes.
    pub(in crate::commands) deletes: Vec<Item>,
    pub(in crate::commands) verdict: AgeVerdict,
}

/// The judgement about an instance with a max_age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum AgeVerdict {
    /// The account does not have it any more.
    Gone,
    /// Its age is over, and it is not to be released, for this reason.
    Left(String),
    /// Its age is over.
    Over,
    Released,
    /// Its age is over, and it is being released.
    Releasing,
    /// It cannot be judged or released, for this reason.
    Unjudged(String),
    /// Its age is not over.
    Young,
}

/// The time, in Unix seconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct TwoClocks {
    /// The `Date` of the service's answer.
    pub(in crate::commands) service: Option<i64>,
    /// This computer's clock.
    pub(in crate::commands) computer: i64,
}

/// What the service shows of an instance.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct ShownInstance<'a> {
    status: Option<&'a str>,
    start_time: Option<i64>,
    payment_type: Option<&'a str>,
}

impl AgedInstance {
    /// The instance in messages: its uid and its addresses.
    pub(in crate::commands) fn title(&self) -> String {
        format!("instance {} ({})", visible(&self.uid, LONGEST), self.addresses())
    }

    /// Its addresses.
    pub(in crate::commands) fn addresses(&self) -> String {
        let address = |place: &StateAddress| {
            format!("{} in {}", visible(&place.address, LONGEST), visible(&place.source, LONGEST))
        };
        self.holders.iter().map(address).collect::<Vec<_>>().join(", ")
    }
}

impl<'a> ShownInstance<'a> {
    fn listed(billed: &'a BilledObject) -> Self {
        let payment_type = billed.payment_type.as_deref();
        Self { status: billed.status.as_deref(), start_time: billed.since, payment_type }
    }

    /// What a look shows.
    pub(in crate::commands) fn seen(instance: &'a api::Instance) -> Self {
        Self {
            status: instance.status.as_ref().map(InstanceStatus::as_str),
            start_time: instance.start_time,
            payment_type: instance.payment_type.as_deref(),
        }
    }
}

/// Judges the instances with a max_age in states of format 4, at a time of this computer's clock in Unix seconds.
pub(in crate::commands) fn judged(account: &Inventory, states: &[AuditedState], now: i64) -> Vec<AgedInstance> {
    let clocks = TwoClocks { service: account.date, computer: now };
    let proved = proved(account, states);
    let instances = account.billed.iter().filter(|billed| billed.kind == ObjectKind::Instance);
    let billed: BTreeMap<&str, &BilledObject> = instances.map(|billed| (billed.id.as_str(), billed)).collect();
    let mut held: BTreeMap<&str, Vec<(usize, &Held)>> = BTreeMap::new();
    for (index, state) in states.iter().enumerate() {
        for one in state.held.iter().filter(|held| held.kind == ObjectKind::Instance) {
            held.entry(&one.id).or_default().push((index, one));
        }
    }
    let judged = |(uid, holders): (&str, Vec<(usize, &Held)>)| {
        let terms: Vec<AgeTerms> = holders.iter().map(|(_, held)| held.age.clone()).collect();
        let ages = terms.iter().filter_map(|terms| terms.max_age.as_deref());
        let max_age = ages.min_by_key(|age| parse_duration(age))?.to_owned();
        let billed = billed.get(uid).copied();
        let is_proved = || holders.iter().any(|(index, held)| proved.contains(&(*index, held.provider.as_str())));
        let first = holders.first().and_then(|(index, _)| states.get(*index));
        let deletes = first.map_or_else(Vec::new, |state| deletes(uid, state, account));
        let protected = deletes.iter().find_map(|item| {
            let manager = first?.held.iter().find(|held| item.managed_by.as_ref() == Some(&held.address));
            let manager = manager.filter(|held| held.age.is_protected)?;
            Some(format!("its release deletes {item}, and {} has deletion_protection = true", manager.address))
        });
        let verdict = match billed {
            Some(billed) => judge(&terms, ShownInstance::listed(billed), clocks),
            None if account.uids.contains(&(ObjectKind::Instance, uid.to_owned())) => AgeVerdict::Released,
            None if is_proved() => AgeVerdict::Gone,
            None if holders.iter().any(|(_, held)| held.provider.is_empty()) => {
                AgeVerdict::Unjudged(UNSAID.to_owned())
            }
            None => AgeVerdict::Unjudged(
                "the account lists neither it nor another object of its provider configuration: check DAMODEL_API_TOKEN"
                    .to_owned(),
            ),
        };
        let verdict = match protected {
            Some(reason) if verdict == AgeVerdict::Over => AgeVerdict::Left(visible(&reason, 3 * LONGEST)),
            _ => verdict,
        };
        let since = billed.and_then(|billed| billed.since);
        let extra_disk = holders.first().map_or(0, |(_, held)| held.extra_disk);
        let address = |(index, held): &(usize, &Held)| {
            let source = states.get(*index).map(|state| state.source.clone()).unwrap_or_default();
            StateAddress { source, address: held.address.clone() }
        };
        Some(AgedInstance {
            uid: uid.to_owned(),
            holders: holders.iter().map(address).collect(),
            states: holders.iter().map(|(index, _)| *index).collect(),
            terms,
            max_age,
            age_seconds: since.zip(clocks.service).map(|(since, now)| now.saturating_sub(since).max(0)),
            hourly: billed.and_then(|billed| account.hourly(billed, extra_disk)),
            deletes,
            verdict,
        })
    };
    held.into_iter().filter_map(judged).collect()
}

/// What the release of an instance deletes, by a state that holds it and the disks of the account.
pub(in crate::commands) fn deletes(uid: &str, state: &AuditedState, account: &Inventory) -> Vec<Item> {
    let mut instances = state.held.iter().filter(|held| held.kind == ObjectKind::Instance);
    let held = instances.find(|held| held.id == uid);
    held.map_or_else(Vec::new, |held| deleted_with(&held.attributes, &cloud_disks(account, &state.held)))
}

/// The cloud disks of the account, then as a state that manages them has them.
fn cloud_disks(account: &Inventory, held: &[Held]) -> Vec<(String, Value)> {
    let listed = account.disks.values().filter(|disk| !disk.is_released()).map(|disk| {
        let attributes = json!({
            "id": disk.id.to_string(),
            "name": disk.name,
            "size_gb": disk.size_gb,
            "binding_instances": disk.binding_instances,
            "release_with_instance": disk.release_with_instance,
        });
        (String::new(), attributes)
    });
    let is_here = |held: &&Held| {
        let disk = account.disks.get(&held.id).filter(|_| held.kind == ObjectKind::CloudDisk);
        disk.is_some_and(|disk| !disk.is_released() && held.uid.as_deref() == disk.uid.as_deref())
    };
    listed.chain(held.iter().filter(is_here).map(|held| (held.address.clone(), held.attributes.clone()))).collect()
}

/// Judges an instance that the service shows, with the terms of each address that holds it. One max_age that is over
/// by both clocks counts.
pub(in crate::commands) fn judge(terms: &[AgeTerms], shown: ShownInstance<'_>, clocks: TwoClocks) -> AgeVerdict {
    let is = |status: &str| shown.status.is_some_and(|shown| shown.eq_ignore_ascii_case(status));
    let unjudged = |reason: String| AgeVerdict::Unjudged(reason);
    let left = |reason: &str| AgeVerdict::Left(reason.to_owned());
    if is("Released") {
        return AgeVerdict::Released;
    }
    let Some(start) = shown.start_time.filter(|start| *start > 0) else {
        let is_creating = is("Creating");
        return if is_creating { AgeVerdict::Young } else { unjudged("it has no start_time".to_owned()) };
    };
    let Some(service) = clocks.service else {
        return unjudged("the service's answer has no Date".to_owned());
    };
    let age = service.min(clocks.computer).saturating_sub(start);
    let mut is_over = false;
    for text in terms.iter().filter_map(|terms| terms.max_age.as_deref()) {
        let Some(max_age) = parse_duration(text) else {
            return unjudged(format!("its max_age {:?} is not a duration", visible(text, LONGEST)));
        };
        is_over |= u64::try_from(age).is_ok_and(|age| Duration::from_secs(age) > max_age);
    }
    let is_hourly = shown.payment_type.is_none_or(|payment| payment == "Hourly");
    match terms {
        _ if !is_over => AgeVerdict::Young,
        _ if is("Releasing") => AgeVerdict::Releasing,
        [_, _, ..] => left("it is managed more than once"),
        [terms] if terms.is_protected => left("deletion_protection is true in the state"),
        [terms] if terms.is_prepaid || !is_hourly => left("it is prepaid"),
        _ => AgeVerdict::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    fn terms(max_age: &str) -> AgeTerms {
        AgeTerms { max_age: Some(max_age.to_owned()), ..AgeTerms::default() }
    }

    fn shown(status: &'static str) -> ShownInstance<'static> {
        ShownInstance { status: Some(status), start_time: Some(HOUR), payment_type: Some("Hourly") }
    }

    fn at(service: i64, computer: i64) -> TwoClocks {
        TwoClocks { service: Some(service), computer }
    }

    fn name(verdict: &AgeVerdict) -> String {
        match verdict {
            AgeVerdict::Left(reason) => format!("left: {reason}"),
            AgeVerdict::Unjudged(reason) => format!("unjudged: {reason}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_over_by_both_clocks_is_released_unless_something_forbids_it() {
        let (running, over) = (shown("Running"), at(10 * HOUR, 10 * HOUR));
        let no_start = |status| ShownInstance { start_time: None, ..shown(status) };
        let daily = ShownInstance { payment_type: Some("Daily"), ..running };
        let protected = AgeTerms { is_protected: true, ..terms("8h") };
        let prepaid = AgeTerms { is_prepaid: true, ..terms("8h") };
        let without = AgeTerms::default();
        for (terms, shown, clocks, expected) in [
            (vec![terms("8h")], running, over, "Over"),
            (vec![terms("9h")], running, over, "Young"),
            (vec![terms("8h")], running, at(10 * HOUR, 2 * HOUR), "Young"),
            (vec![terms("8h")], running, at(2 * HOUR, 10 * HOUR), "Young"),
            (vec![terms("8h")], running, at(0, 0), "Young"),
            (vec![terms("8h")], shown("Stopped"), over, "Over"),
            (vec![terms("8h")], shown("Failed"), over, "Over"),
            (vec![terms("8h")], shown("Released"), over, "Released"),
            (vec![terms("8h")], shown("releasing"), over, "Releasing"),
            (vec![terms("9h")], shown("releasing"), over, "Young"),
            (vec![terms("8h")], no_start("Creating"), over, "Young"),
            (vec![terms("8h")], no_start("Running"), over, "unjudged: it has no start_time"),
            (
                vec![terms("8h")],
                running,
                TwoClocks { service: None, ..over },
                "unjudged: the service's answer has no Date",
            ),
            (vec![terms("7d")], running, over, "unjudged: its max_age \"7d\" is not a duration"),
            (vec![protected.clone()], running, over, "left: deletion_protection is true in the state"),
            (vec![AgeTerms { max_age: Some("9h".to_owned()), ..protected }], running, over, "Young"),
            (vec![prepaid], running, over, "left: it is prepaid"),
            (vec![terms("8h")], daily, over, "left: it is prepaid"),
            (vec![terms("8h")], ShownInstance { payment_type: None, ..running }, over, "Over"),
            (vec![terms("8h"), without.clone()], running, over, "left: it is managed more than once"),
            (vec![terms("100h"), terms("8h")], running, over, "left: it is managed more than once"),
            (vec![terms("100h"), without], running, over, "Young"),
        ] {
            assert_eq!(name(&judge(&terms, shown, clocks)), expected, "{terms:?} {shown:?} {clocks:?}");
        }
    }

    #[test]
    fn what_the_account_lacks_is_gone_if_the_account_is_the_right_one() {
        let held = |id: &str, provider: &str| Held {
            kind: ObjectKind::Instance,
            id: id.to_owned(),
            uid: Some(id.to_owned()),
            address: format!("damodel_instance.{id}"),
            provider: provider.to_owned(),
            extra_disk: 0,
            new_disks: Vec::new(),
            mounted: Vec::new(),
            attributes: Value::Null,
            age: terms("8h"),
        };
        let billed = BilledObject {
            kind: ObjectKind::Instance,
            id: "a".to_owned(),
            name: None,
            region: None,
            status: Some("Running".to_owned()),
            since: Some(HOUR),
            payment_type: None,
            order: None,
        };
        let uids = ["a", "released"].map(|uid| (ObjectKind::Instance, uid.to_owned()));
        let account =
            Inventory { billed: vec![billed], uids: uids.into(), date: Some(10 * HOUR), ..Inventory::default() };
        let state = |held: Vec<Held>| AuditedState { source: "s".to_owned(), held, file: None };
        let verdicts = |states: &[AuditedState]| -> Vec<String> {
            let judged = judged(&account, states, 10 * HOUR);
            judged.iter().map(|it| format!("{} {}", it.uid, name(&it.verdict))).collect()
        };
        let gone = state(vec![held("a", "p"), held("released", "p"), held("lost", "p"), held("foreign", "q")]);
        assert_eq!(
            verdicts(&[gone]),
            [
                "a Over",
                "foreign unjudged: the account lists neither it nor another object of its provider configuration: \
                 check DAMODEL_API_TOKEN",
                "lost Gone",
                "released Released",
            ]
        );
        // Another state proves nothing.
        let apart = verdicts(&[state(vec![held("a", "p")]), state(vec![held("lost", "p")])]);
        assert!(apart[1].starts_with("lost unjudged"), "{apart:?}");
        let unsaid = verdicts(&[state(vec![held("a", ""), held("lost", "")])]);
        assert_eq!(unsaid[0], "a Over");
        assert!(unsaid[1].starts_with("lost unjudged: not listed in the account, and the state "), "{unsaid:?}");
        let without = Held { age: AgeTerms::default(), ..held("a", "p") };
        assert!(verdicts(&[state(vec![without.clone()])]).is_empty());
        assert_eq!(
            verdicts(&[state(vec![held("a", "p")]), state(vec![without])]),
            ["a left: it is managed more than once"]
        );
    }
}
