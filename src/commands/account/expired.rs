//! The judgement about instances with a max_age, and about the targets of `release`, without requests.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::{
    UNSAID,
    holders::{StateAddress, proved},
    inventory::{BilledObject, Inventory},
    states::{AgeTerms, AuditedState, Held},
};
use crate::{
    api::ObjectKind,
    framework::timeouts::parse_duration,
    review::{Item, ItemKind, Money, deleted_with, visible},
};

/// The longest text in a title, in characters.
pub(in crate::commands) const LONGEST: usize = 100;

/// A judged object: an instance with a max_age in a state, or a target of `release`.
#[derive(Debug)]
pub(in crate::commands) struct Judged {
    pub(in crate::commands) kind: ObjectKind,
    /// Its import id.
    pub(in crate::commands) id: String,
    /// What identifies it in all accounts, if the id is a number.
    pub(in crate::commands) uid: Option<String>,
    /// The addresses that hold it.
    pub(in crate::commands) holders: Vec<StateAddress>,
    /// The indexes of their states.
    pub(in crate::commands) states: Vec<usize>,
    /// The terms of each holder.
    pub(in crate::commands) terms: Vec<AgeTerms>,
    /// The shortest max_age, as configured; without one the age does not matter.
    pub(in crate::commands) max_age: Option<String>,
    pub(in crate::commands) age_seconds: Option<i64>,
    pub(in crate::commands) hourly: Option<Money>,
    /// The attributes of an instance that decide which disks are deleted with it.
    pub(in crate::commands) attributes: Value,
    /// What its release deletes besides the object.
    pub(in crate::commands) deletes: Vec<Item>,
    pub(in crate::commands) verdict: Verdict,
}

/// The judgement about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Verdict {
    /// The account does not have it any more.
    Gone,
    /// It is not to be released, for this reason.
    Left(String),
    /// It is to be released.
    Due,
    Released,
    /// It is being released.
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

/// What the service shows of an object.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct Shown<'a> {
    status: Option<&'a str>,
    start_time: Option<i64>,
    payment_type: Option<&'a str>,
    mounts: Option<&'a str>,
}

impl Judged {
    /// An object with its holders, not judged yet.
    fn new(
        kind: ObjectKind,
        id: &str,
        billed: Option<&BilledObject>,
        account: &Inventory,
        states: &[AuditedState],
    ) -> Self {
        let holders = holders(kind, id, billed, states);
        let first = holders.first().map(|(_, held)| *held);
        let since = billed.and_then(|billed| billed.since);
        Self {
            kind,
            id: id.to_owned(),
            uid: billed.and_then(|billed| billed.uid.clone()),
            holders: holders
                .iter()
                .map(|(index, held)| {
                    let source = states.get(*index).map(|state| state.source.clone()).unwrap_or_default();
                    StateAddress { source, address: held.address.clone() }
                })
                .collect(),
            states: holders.iter().map(|(index, _)| *index).collect(),
            terms: holders.iter().map(|(_, held)| held.age.clone()).collect(),
            max_age: None,
            age_seconds: since.zip(account.date).map(|(since, now)| now.saturating_sub(since).max(0)),
            hourly: billed.and_then(|billed| account.hourly(billed, first.map_or(0, |held| held.extra_disk))),
            attributes: first.map_or_else(|| json!({ "id": id }), |held| held.attributes.clone()),
            deletes: Vec::new(),
            verdict: Verdict::Young,
        }
    }

    /// Judges an object that the account lists.
    fn judge(
        &mut self,
        billed: &BilledObject,
        account: &Inventory,
        states: &[AuditedState],
        clocks: Option<TwoClocks>,
    ) {
        self.deletes = self.deletes(account, states);
        self.verdict = match judge(&self.terms, Shown::of(billed), clocks) {
            Verdict::Due => self.protected(states).map_or(Verdict::Due, Verdict::Left),
            other => other,
        };
    }

    /// What its release deletes besides the object, by its attributes, the disks of the account and those of states.
    pub(in crate::commands) fn deletes(&self, account: &Inventory, states: &[AuditedState]) -> Vec<Item> {
        match self.kind {
            ObjectKind::Instance => deleted_with(&self.attributes, &cloud_disks(account, states)),
            ObjectKind::CloudDisk | ObjectKind::PrivateImage => Vec::new(),
        }
    }

    /// Why its release would delete a protected disk.
    fn protected(&self, states: &[AuditedState]) -> Option<String> {
        let disks = states.iter().flat_map(|state| &state.held).filter(|held| held.kind == ObjectKind::CloudDisk);
        let (item, manager) = disks.filter(|held| held.age.is_protected).find_map(|held| {
            // Its state may be older than the mount, so that only the id connects them.
            let id = |item: &Item| item.name.as_deref().and_then(|name| name.split(' ').next()) == Some(&held.id);
            let item = self.deletes.iter().find(|item| item.kind == ItemKind::CloudDisk && id(item))?;
            Some((item, &held.address))
        })?;
        let reason = format!("its release deletes {item}, and {manager} has deletion_protection = true");
        Some(visible(&reason, 3 * LONGEST))
    }

    /// The object in messages: its id and its addresses.
    pub(in crate::commands) fn title(&self) -> String {
        let title = format!("{} {}", self.kind.noun(), visible(&self.id, LONGEST));
        if self.holders.is_empty() { title } else { format!("{title} ({})", self.addresses()) }
    }

    /// Its addresses.
    pub(in crate::commands) fn addresses(&self) -> String {
        self.holders
            .iter()
            .map(|place| format!("{} in {}", visible(&place.address, LONGEST), visible(&place.source, LONGEST)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl<'a> Shown<'a> {
    fn is(self, status: &str) -> bool {
        self.status.is_some_and(|shown| shown.eq_ignore_ascii_case(status))
    }

    pub(in crate::commands) fn of(billed: &'a BilledObject) -> Self {
        Self {
            status: billed.status.as_deref(),
            start_time: billed.since,
            payment_type: billed.payment_type.as_deref(),
            mounts: billed.mounts.as_deref(),
        }
    }
}

/// Why an instance that the account does not list is not called gone.
const UNPROVED: &str =
    "the account lists neither it nor another object of its provider configuration: check DAMODEL_API_TOKEN";

/// Judges the instances with a max_age in states of format 4, at a time of this computer's clock in Unix seconds.
pub(in crate::commands) fn judged(account: &Inventory, states: &[AuditedState], now: i64) -> Vec<Judged> {
    let clocks = TwoClocks { service: account.date, computer: now };
    let proved = proved(account, states);
    let all = states.iter().flat_map(|state| &state.held);
    let aged = all.filter(|held| held.kind == ObjectKind::Instance && held.age.max_age.is_some());
    let uids: BTreeSet<&str> = aged.map(|held| held.id.as_str()).collect();
    let judged = uids.into_iter().map(|uid| {
        let billed = account.billed.iter().find(|billed| billed.kind == ObjectKind::Instance && billed.id == uid);
        let mut instance = Judged::new(ObjectKind::Instance, uid, billed, account, states);
        let ages = instance.terms.iter().filter_map(|terms| terms.max_age.as_deref());
        instance.max_age = ages.min_by_key(|age| parse_duration(age)).map(str::to_owned);
        let holders = holders(ObjectKind::Instance, uid, billed, states);
        let is_proved = || holders.iter().any(|(index, held)| proved.contains(&(*index, held.provider.as_str())));
        instance.verdict = match billed {
            Some(billed) => {
                instance.judge(billed, account, states, Some(clocks));
                return instance;
            }
            None if account.uids.contains(&(ObjectKind::Instance, uid.to_owned())) => Verdict::Released,
            None if is_proved() => Verdict::Gone,
            None if holders.iter().any(|(_, held)| held.provider.is_empty()) => Verdict::Unjudged(UNSAID.to_owned()),
            None => Verdict::Unjudged(UNPROVED.to_owned()),
        };
        instance
    });
    judged.collect()
}

/// Judges an object that is to be released whatever its age. `attributes` are those of an instance that no state has.
pub(in crate::commands) fn named(
    billed: &BilledObject,
    attributes: Option<Value>,
    account: &Inventory,
    states: &[AuditedState],
) -> Judged {
    let mut object = Judged::new(billed.kind, &billed.id, Some(billed), account, states);
    if let Some(attributes) = attributes.filter(|_| object.holders.is_empty()) {
        object.attributes = attributes;
    }
    object.judge(billed, account, states, None);
    object
}

/// The addresses that hold an object, with the indexes of their states.
fn holders<'a>(
    kind: ObjectKind,
    id: &str,
    billed: Option<&BilledObject>,
    states: &'a [AuditedState],
) -> Vec<(usize, &'a Held)> {
    let uid = billed.and_then(|billed| billed.uid.as_ref());
    let all = states.iter().enumerate().flat_map(|(index, state)| state.held.iter().map(move |held| (index, held)));
    let named = all.filter(|(_, held)| held.kind == kind && held.id == id);
    named.filter(|(_, held)| held.uid.as_ref().zip(uid).is_none_or(|(own, uid)| own == uid)).collect()
}

/// The cloud disks of the account, then as the states that manage them have them.
fn cloud_disks(account: &Inventory, states: &[AuditedState]) -> Vec<(String, Value)> {
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
    let held = states.iter().flat_map(|state| &state.held).filter(|held| {
        let disk = account.disks.get(&held.id).filter(|_| held.kind == ObjectKind::CloudDisk);
        disk.is_some_and(|disk| !disk.is_released() && held.uid.as_deref() == disk.uid.as_deref())
    });
    listed.chain(held.map(|held| (held.address.clone(), held.attributes.clone()))).collect()
}

/// Judges an object that the service shows, with the terms of each address that holds it. Without clocks its age does
/// not matter.
pub(in crate::commands) fn judge(terms: &[AgeTerms], shown: Shown<'_>, clocks: Option<TwoClocks>) -> Verdict {
    if shown.is("Released") {
        return Verdict::Released;
    }
    match clocks.map_or(Verdict::Due, |clocks| by_age(terms, shown, clocks)) {
        Verdict::Due => {}
        other => return other,
    }
    let left = |reason: &str| Verdict::Left(reason.to_owned());
    let is_hourly = shown.payment_type.is_none_or(|payment| payment == "Hourly");
    match (terms, shown.mounts) {
        _ if shown.is("Releasing") => Verdict::Releasing,
        ([_, _, ..], _) => left("it is managed more than once"),
        ([terms], _) if terms.is_protected => left("deletion_protection is true in the state"),
        ([terms], _) if terms.is_prepaid => left("it is prepaid"),
        _ if !is_hourly => left("it is prepaid"),
        (_, Some(by)) => Verdict::Left(format!("it is mounted by {}", visible(by, LONGEST))),
        _ => Verdict::Due,
    }
}

/// Judges an age. One max_age that is over by both clocks counts.
fn by_age(terms: &[AgeTerms], shown: Shown<'_>, clocks: TwoClocks) -> Verdict {
    let unjudged = |reason: &str| Verdict::Unjudged(reason.to_owned());
    let Some(start) = shown.start_time.filter(|start| *start > 0) else {
        return if shown.is("Creating") { Verdict::Young } else { unjudged("it has no start_time") };
    };
    let Some(service) = clocks.service else {
        return unjudged("the service's answer has no Date");
    };
    let age = service.min(clocks.computer).saturating_sub(start);
    let mut is_over = false;
    for text in terms.iter().filter_map(|terms| terms.max_age.as_deref()) {
        let Some(max_age) = parse_duration(text) else {
            return unjudged(&format!("its max_age {:?} is not a duration", visible(text, LONGEST)));
        };
        is_over |= u64::try_from(age).is_ok_and(|age| Duration::from_secs(age) > max_age);
    }
    if is_over { Verdict::Due } else { Verdict::Young }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    fn terms(max_age: &str) -> AgeTerms {
        AgeTerms { max_age: Some(max_age.to_owned()), ..AgeTerms::default() }
    }

    fn shown(status: &'static str) -> Shown<'static> {
        Shown { status: Some(status), start_time: Some(HOUR), payment_type: Some("Hourly"), mounts: None }
    }

    fn at(service: i64, computer: i64) -> TwoClocks {
        TwoClocks { service: Some(service), computer }
    }

    fn name(verdict: &Verdict) -> String {
        match verdict {
            Verdict::Left(reason) => format!("left: {reason}"),
            Verdict::Unjudged(reason) => format!("unjudged: {reason}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_over_by_both_clocks_is_released_unless_something_forbids_it() {
        let (running, over) = (shown("Running"), at(10 * HOUR, 10 * HOUR));
        let no_start = |status| Shown { start_time: None, ..shown(status) };
        let daily = Shown { payment_type: Some("Daily"), ..running };
        let protected = AgeTerms { is_protected: true, ..terms("8h") };
        let prepaid = AgeTerms { is_prepaid: true, ..terms("8h") };
        let without = AgeTerms::default();
        for (terms, shown, clocks, expected) in [
            (vec![terms("8h")], running, over, "Due"),
            (vec![terms("9h")], running, over, "Young"),
            (vec![terms("8h")], running, at(10 * HOUR, 2 * HOUR), "Young"),
            (vec![terms("8h")], running, at(2 * HOUR, 10 * HOUR), "Young"),
            (vec![terms("8h")], running, at(0, 0), "Young"),
            (vec![terms("8h")], shown("Stopped"), over, "Due"),
            (vec![terms("8h")], shown("Failed"), over, "Due"),
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
            (vec![terms("8h")], Shown { payment_type: None, ..running }, over, "Due"),
            (vec![terms("8h"), without.clone()], running, over, "left: it is managed more than once"),
            (vec![terms("100h"), terms("8h")], running, over, "left: it is managed more than once"),
            (vec![terms("100h"), without], running, over, "Young"),
        ] {
            assert_eq!(name(&judge(&terms, shown, Some(clocks))), expected, "{terms:?} {shown:?} {clocks:?}");
        }
    }

    /// The rest is what forbids the release of an instance that is too old.
    #[test]
    fn a_target_is_released_whatever_its_age_unless_something_forbids_it() {
        let young = Shown { start_time: None, ..shown("Running") };
        let daily = Shown { payment_type: Some("Daily"), ..young };
        let (disk, mounted) = (Shown { payment_type: None, ..young }, Shown { mounts: Some("ins-1"), ..young });
        let protected = AgeTerms { is_protected: true, ..AgeTerms::default() };
        for (terms, shown, expected) in [
            (vec![], young, "Due"),
            (vec![terms("8h")], young, "Due"),
            (vec![terms("7d")], shown("Failed"), "Due"),
            (vec![], disk, "Due"),
            (vec![], daily, "left: it is prepaid"),
            (vec![], mounted, "left: it is mounted by ins-1"),
            (vec![protected.clone()], young, "left: deletion_protection is true in the state"),
            (vec![protected.clone(), protected], young, "left: it is managed more than once"),
            (vec![], shown("releasing"), "Releasing"),
            (vec![], shown("released"), "Released"),
        ] {
            assert_eq!(name(&judge(&terms, shown, None)), expected, "{terms:?} {shown:?}");
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
            uid: None,
            name: None,
            region: None,
            status: Some("Running".to_owned()),
            since: Some(HOUR),
            payment_type: None,
            order: None,
            mounts: None,
        };
        let uids = ["a", "released"].map(|uid| (ObjectKind::Instance, uid.to_owned()));
        let account =
            Inventory { billed: vec![billed], uids: uids.into(), date: Some(10 * HOUR), ..Inventory::default() };
        let state = |held: Vec<Held>| AuditedState { source: "s".to_owned(), held, file: None };
        let verdicts = |states: &[AuditedState]| -> Vec<String> {
            let judged = judged(&account, states, 10 * HOUR);
            judged.iter().map(|it| format!("{} {}", it.id, name(&it.verdict))).collect()
        };
        let gone = state(vec![held("a", "p"), held("released", "p"), held("lost", "p"), held("foreign", "q")]);
        assert_eq!(
            verdicts(&[gone]),
            [
                "a Due",
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
        assert_eq!(unsaid[0], "a Due");
        assert!(unsaid[1].starts_with("lost unjudged: not listed in the account, and the state "), "{unsaid:?}");
        let without = Held { age: AgeTerms::default(), ..held("a", "p") };
        assert!(verdicts(&[state(vec![without.clone()])]).is_empty());
        assert_eq!(
            verdicts(&[state(vec![held("a", "p")]), state(vec![without])]),
            ["a left: it is managed more than once"]
        );
    }
}
