//! The holders of billed objects, and the objects in states that do not exist in the account.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    expired::LONGEST,
    inventory::{BilledObject, Inventory},
    states::{AuditedState, Held, Note},
};
use crate::{
    api::{CloudDisk, ObjectKind},
    commands::Failure,
    review::{Money, visible},
};

/// The version of the JSON format. A new field does not change it.
const FORMAT: &str = "1.0";

/// The billed objects and their holders.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Audit {
    format_version: &'static str,
    /// The billed objects, by kind and id.
    pub(in crate::commands) objects: Vec<HeldObject>,
    /// Objects that are in a state and not in the account.
    pub(in crate::commands) missing: Vec<MissingObject>,
    /// Objects in states whose provider configuration is not of this account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::commands) not_of_this_account: Vec<MissingObject>,
    /// Objects that are not in the account, in states without their provider configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::commands) not_judged: Vec<MissingObject>,
    /// Objects that several addresses hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::commands) duplicates: Vec<Duplicate>,
    /// The sums over all objects, and over unmanaged ones, whatever is listed.
    pub(in crate::commands) total: AuditSum,
    pub(in crate::commands) unmanaged: AuditSum,
    /// What instances have cost, by holder.
    pub(in crate::commands) so_far_by_holder: Vec<HolderSum>,
    /// The number of pending records of creates at another address, which hold nothing here.
    #[serde(skip)]
    pub(in crate::commands) other_notes: usize,
}

/// A sum over objects.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct AuditSum {
    pub(in crate::commands) objects: usize,
    /// The sum of the known prices.
    pub(in crate::commands) monthly: Money,
    /// The instances whose price is unknown.
    pub(in crate::commands) unknown: Vec<String>,
}

/// What the instances of a holder have cost at today's prices, whatever is listed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct HolderSum {
    pub(in crate::commands) holder: Holder,
    pub(in crate::commands) source: Option<String>,
    pub(in crate::commands) so_far: Money,
    /// The objects that are not in the sum, as `release` names them.
    pub(in crate::commands) lacks: Vec<String>,
}

/// A billed object with its holder.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct HeldObject {
    #[serde(flatten)]
    pub(in crate::commands) billed: BilledObject,
    pub(in crate::commands) age_seconds: Option<i64>,
    pub(in crate::commands) hourly: Option<Money>,
    pub(in crate::commands) monthly: Option<Money>,
    /// The age at today's price; of instances that are billed by the hour.
    pub(in crate::commands) so_far: Option<Money>,
    pub(in crate::commands) holder: Holder,
    pub(in crate::commands) source: Option<String>,
    pub(in crate::commands) address: Option<String>,
}

/// The holder of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::commands) enum Holder {
    /// Neither a state nor a pending record.
    Unmanaged,
    /// A pending record.
    Pending,
    /// An address in a state.
    State,
}

/// An object that is in a state.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct MissingObject {
    pub(in crate::commands) kind: ObjectKind,
    pub(in crate::commands) id: String,
    pub(in crate::commands) address: String,
    pub(in crate::commands) source: String,
}

/// An object that several addresses hold.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Duplicate {
    pub(in crate::commands) kind: ObjectKind,
    pub(in crate::commands) id: String,
    pub(in crate::commands) holders: Vec<StateAddress>,
}

/// An address in a state.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct StateAddress {
    pub(in crate::commands) source: String,
    pub(in crate::commands) address: String,
}

impl Audit {
    /// Matches an account with states and pending records, at a time in Unix seconds.
    pub(in crate::commands) fn new(
        account: &Inventory,
        states: &[AuditedState],
        notes: &[Note],
        now: i64,
    ) -> Result<Self, Failure> {
        let (own, foreign) = of_account(account, states)?;
        let mut held: BTreeMap<(ObjectKind, &str), Vec<StateObject<'_>>> = BTreeMap::new();
        for (state, one) in own.iter().copied() {
            held.entry((one.kind, &one.id)).or_default().push((state, one));
        }
        let parts = parts(account, &own);
        let is_here = |note: &&Note| note.base_url == account.base_url;
        let open = || notes.iter().filter(is_here).filter(|note| !note.is_finished);
        let by_id: BTreeMap<(ObjectKind, &str), &Note> =
            open().filter_map(|note| Some(((note.kind, note.id.as_deref()?), note))).collect();
        let nameless = open().filter(|note| note.id.is_none());
        let by_name: BTreeMap<(ObjectKind, &str), &Note> =
            nameless.map(|note| ((note.kind, note.marker.as_str()), note)).collect();
        let object = |billed: &BilledObject| {
            let key = (billed.kind, billed.id.as_str());
            let part = || parts.get(billed.id.as_str()).filter(|_| billed.kind == ObjectKind::CloudDisk);
            let state = held.get(&key).and_then(|holders| holders.first()).or_else(part);
            let noted = || by_id.get(&key).or_else(|| by_name.get(&(billed.kind, billed.name.as_deref()?)));
            let (holder, source, address) = match (state, noted()) {
                (Some((state, held)), _) => (Holder::State, Some(state.source.clone()), Some(held.address.clone())),
                (None, Some(note)) => (Holder::Pending, Some(note.source.clone()), None),
                (None, None) => (Holder::Unmanaged, None, None),
            };
            let hourly = account.hourly(billed, state.map_or(0, |(_, held)| held.extra_disk));
            let age_seconds = billed.since.map(|since| now.saturating_sub(since).max(0));
            let by_hour = hourly.as_ref().filter(|_| billed.payment_type.as_deref() == Some("Hourly"));
            HeldObject {
                billed: billed.clone(),
                age_seconds,
                so_far: by_hour.zip(age_seconds).map(|(hourly, age)| hourly.of_seconds(age)),
                monthly: hourly.as_ref().map(Money::a_month),
                hourly,
                holder,
                source,
                address,
            }
        };
        let there: BTreeSet<(ObjectKind, &str)> =
            account.billed.iter().map(|billed| (billed.kind, billed.id.as_str())).collect();
        let missing = own.iter().filter(|(_, held)| !there.contains(&(held.kind, held.id.as_str())));
        let (unsaid, foreign): (Vec<StateObject<'_>>, _) =
            foreign.into_iter().partition(|(_, held)| held.provider.is_empty());
        let several = held.iter().filter(|(_, holders)| holders.len() > 1);
        let objects: Vec<HeldObject> = account.billed.iter().map(object).collect();
        Ok(Self {
            format_version: FORMAT,
            total: AuditSum::of(objects.iter()),
            unmanaged: AuditSum::of(objects.iter().filter(|object| object.holder == Holder::Unmanaged)),
            so_far_by_holder: HolderSum::all(&objects),
            objects,
            missing: missing.copied().map(MissingObject::of).collect(),
            not_of_this_account: foreign.into_iter().map(MissingObject::of).collect(),
            not_judged: unsaid.into_iter().map(MissingObject::of).collect(),
            duplicates: several.map(|((kind, id), holders)| Duplicate::of(*kind, id, holders)).collect(),
            other_notes: notes.len() - notes.iter().filter(is_here).count(),
        })
    }

    /// Removes younger objects.
    pub(in crate::commands) fn only_older_than(&mut self, seconds: i64) {
        self.objects.retain(|object| object.age_seconds.is_none_or(|age| age >= seconds));
    }

    /// Unmanaged objects that are listed.
    pub(in crate::commands) fn listed_unmanaged(&self) -> BTreeSet<(ObjectKind, String)> {
        let unowned = self.objects.iter().filter(|object| object.holder == Holder::Unmanaged);
        unowned.map(|object| (object.billed.kind, object.billed.id.clone())).collect()
    }

    /// The audit as JSON.
    pub(in crate::commands) fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl AuditSum {
    fn of<'a>(objects: impl Iterator<Item = &'a HeldObject>) -> Self {
        let mut sum = Self::default();
        for object in objects {
            sum.objects += 1;
            match &object.monthly {
                Some(monthly) => sum.monthly += monthly,
                None if object.billed.kind == ObjectKind::Instance => sum.unknown.push(object.billed.id.clone()),
                None => {}
            }
        }
        sum
    }
}

impl HeldObject {
    /// Its holder in words.
    pub(in crate::commands) fn held_by(&self) -> String {
        let [source, address] =
            [&self.source, &self.address].map(|text| visible(text.as_deref().unwrap_or_default(), LONGEST));
        match self.holder {
            Holder::Unmanaged => "unmanaged".to_owned(),
            Holder::Pending => format!("pending in {source}"),
            Holder::State => format!("{address} in {source}"),
        }
    }
}

impl HolderSum {
    fn all(objects: &[HeldObject]) -> Vec<Self> {
        let mut sums: BTreeMap<(Holder, &Option<String>), Self> = BTreeMap::new();
        for object in objects {
            let HeldObject { holder, source, .. } = object;
            let sum = sums.entry((*holder, source)).or_insert_with(|| Self {
                holder: *holder,
                source: source.clone(),
                so_far: Money::default(),
                lacks: Vec::new(),
            });
            match &object.so_far {
                Some(so_far) => sum.so_far += so_far,
                None => sum.lacks.push(object.billed.target()),
            }
        }
        sums.into_values().collect()
    }
}

/// An object with its state.
type StateObject<'a> = (&'a AuditedState, &'a Held);

/// The provider configurations that are provably of this account, each with the index of its state: one object with a
/// listed uid is proof.
pub(in crate::commands) fn proved<'a>(account: &Inventory, states: &'a [AuditedState]) -> BTreeSet<(usize, &'a str)> {
    let all = states.iter().enumerate().flat_map(|(index, state)| state.held.iter().map(move |held| (index, held)));
    let listed = all.filter(|(_, held)| !held.provider.is_empty() && is_listed(account, held));
    listed.map(|(index, held)| (index, held.provider.as_str())).collect()
}

fn is_listed(account: &Inventory, held: &Held) -> bool {
    held.uid.clone().is_some_and(|uid| account.uids.contains(&(held.kind, uid)))
}

/// The objects of provider configurations that are provably of this account, and those of others.
fn of_account<'a>(
    account: &Inventory,
    states: &'a [AuditedState],
) -> Result<(Vec<StateObject<'a>>, Vec<StateObject<'a>>), Failure> {
    let proved = proved(account, states);
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    for (index, state) in states.iter().enumerate() {
        for held in &state.held {
            let is_proved = proved.contains(&(index, held.provider.as_str())) || is_listed(account, held);
            if is_proved { &mut own } else { &mut foreign }.push((state, held));
        }
    }
    if own.is_empty() && !foreign.is_empty() {
        let sources: BTreeSet<&str> = foreign.iter().map(|(state, _)| state.source.as_str()).collect();
        let sources: Vec<&str> = sources.into_iter().collect();
        return Err(Failure::new(format!(
            "none of the {} objects of {} is in the account: it belongs to another account. Check DAMODEL_BASE_URL and \
             DAMODEL_API_TOKEN",
            foreign.len(),
            sources.join(", ")
        )));
    }
    Ok((own, foreign))
}

/// The cloud disks that were created with an instance, by id: for each of its new_disks the oldest mounted one that no
/// state holds and that has its specification, its path and at least its size.
fn parts<'a>(account: &Inventory, own: &[StateObject<'a>]) -> BTreeMap<String, StateObject<'a>> {
    let disks = own.iter().filter(|(_, held)| held.kind == ObjectKind::CloudDisk);
    let managed: BTreeSet<&str> = disks.map(|(_, held)| held.id.as_str()).collect();
    let mut parts = BTreeMap::new();
    for (state, held) in own {
        let mounted = held.mounted.iter().filter(|id| !managed.contains(id.as_str()));
        let mut mounted: Vec<&CloudDisk> = mounted.filter_map(|id| account.disks.get(id)).collect();
        mounted.sort_by_key(|disk| (disk.create_time, disk.id));
        let mut new_disks: Vec<_> = held.new_disks.iter().collect();
        // The one that fewer disks fit comes first.
        new_disks.sort_by_key(|new| (new.mount_path.is_none(), std::cmp::Reverse(new.size_gb)));
        for new in new_disks {
            if let Some(disk) = mounted.iter().copied().find(|disk| {
                disk.spec_id == new.spec_id
                    && (new.mount_path.is_none() || disk.mount_path == new.mount_path)
                    && disk.size_gb.is_some_and(|size| size >= new.size_gb)
                    && !parts.contains_key(&disk.id.to_string())
            }) {
                parts.insert(disk.id.to_string(), (*state, *held));
            }
        }
    }
    parts
}

impl MissingObject {
    fn of((state, held): (&AuditedState, &Held)) -> Self {
        Self { kind: held.kind, id: held.id.clone(), address: held.address.clone(), source: state.source.clone() }
    }
}

impl Duplicate {
    fn of(kind: ObjectKind, id: &str, holders: &[(&AuditedState, &Held)]) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            holders: holders
                .iter()
                .map(|(state, held)| StateAddress { source: state.source.clone(), address: held.address.clone() })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::states::AgeTerms, *};

    fn instance(id: &str) -> BilledObject {
        BilledObject {
            kind: ObjectKind::Instance,
            id: id.to_owned(),
            uid: None,
            name: Some(format!("name of {id}")),
            region: Some("r".to_owned()),
            status: Some("Running".to_owned()),
            since: Some(1_000),
            payment_type: None,
            order: Some(super::super::inventory::BilledTerms {
                payment_type: "Daily".to_owned(),
                spec_id: 1,
                gpu_num: 2,
            }),
            mounts: None,
        }
    }

    fn other(kind: ObjectKind, id: &str) -> BilledObject {
        BilledObject { kind, region: None, since: None, order: None, ..instance(id) }
    }

    fn account(billed: Vec<BilledObject>) -> Inventory {
        let spec =
            serde_json::from_value(json!({"spec_id": 1, "daily_price": 12, "daily_data_disk_price": 0.24})).unwrap();
        let uids = billed.iter().map(|billed| (billed.kind, uid(billed.kind, &billed.id))).collect();
        let specs = BTreeMap::from([(("r".to_owned(), 1), spec)]);
        Inventory { billed, uids, specs, base_url: "here".to_owned(), ..Inventory::default() }
    }

    /// Only instances have their uid as id.
    fn uid(kind: ObjectKind, id: &str) -> String {
        if kind == ObjectKind::Instance { id.to_owned() } else { format!("uid-{id}") }
    }

    fn state(source: &str, held: &[(ObjectKind, &str)]) -> AuditedState {
        let held = held.iter().map(|(kind, id)| Held {
            kind: *kind,
            id: (*id).to_owned(),
            uid: Some(uid(*kind, id)),
            address: format!("{}.a[{id:?}]", crate::provider::words::type_name(*kind)),
            provider: "p".to_owned(),
            extra_disk: 100,
            new_disks: Vec::new(),
            mounted: Vec::new(),
            attributes: Value::Null,
            age: AgeTerms::default(),
        });
        AuditedState { source: source.to_owned(), held: held.collect(), file: None }
    }

    fn audit(account: &Inventory, states: &[AuditedState], notes: &[Note]) -> Result<Audit, String> {
        Audit::new(account, states, notes, 4_600).map_err(|error| error.to_string())
    }

    /// A pending record of a cloud disk.
    fn note(id: Option<&str>, marker: &str) -> Note {
        Note {
            kind: ObjectKind::CloudDisk,
            id: id.map(str::to_owned),
            marker: marker.to_owned(),
            base_url: "here".to_owned(),
            is_finished: false,
            source: "notes".to_owned(),
        }
    }

    #[test]
    fn the_form_for_programs_is_a_contract() {
        let mut hourly = instance("ins-1");
        hourly.payment_type = Some("Hourly".to_owned());
        let account = account(vec![hourly, instance("ins-2"), other(ObjectKind::CloudDisk, "7")]);
        let note = note(None, "name of 7");
        let held = state("prod.tfstate", &[(ObjectKind::Instance, "ins-1"), (ObjectKind::Instance, "ins-gone")]);
        let audit = audit(&account, &[held], &[note]).unwrap();
        let json: Value = serde_json::from_str(&audit.to_json().unwrap()).unwrap();
        let object = |kind: &str, id: &str, holder: &str| {
            json!({"kind": kind, "id": id, "name": format!("name of {id}"), "region": null, "status": "Running",
                "age_seconds": null,
                "hourly": null, "monthly": null, "so_far": null, "holder": holder, "source": null, "address": null})
        };
        let mut first = object("instance", "ins-1", "state");
        first["source"] = "prod.tfstate".into();
        first["address"] = "damodel_instance.a[\"ins-1\"]".into();
        let mut second = object("instance", "ins-2", "unmanaged");
        for (object, hourly, monthly) in [(&mut first, 2.0, 1460.0), (&mut second, 1.0, 730.0)] {
            object["region"] = "r".into();
            object["age_seconds"] = 3_600.into();
            object["hourly"] = hourly.into();
            object["monthly"] = monthly.into();
        }
        first["so_far"] = 2.0.into();
        let mut third = object("cloud_disk", "7", "pending");
        third["source"] = "notes".into();
        let as_floats =
            |value: &Value| -> Value { serde_json::from_str(&value.to_string().replace(".0", "")).unwrap() };
        assert_eq!(json["format_version"], "1.0");
        assert_eq!(json["objects"], as_floats(&json!([first, second, third])));
        let missing = json!([{"kind": "instance", "id": "ins-gone", "address": "damodel_instance.a[\"ins-gone\"]",
            "source": "prod.tfstate"}]);
        assert_eq!((&json["missing"], json.as_object().unwrap().len()), (&missing, 6));
        let sum = |holder: &str, source: Value, so_far: f64, lacks: Value| {
            let mut sum = json!({"holder": holder, "source": source, "so_far": so_far});
            sum["lacks"] = lacks;
            sum
        };
        let sums = json!([
            sum("unmanaged", Value::Null, 0.0, json!(["ins-2"])),
            sum("pending", "notes".into(), 0.0, json!(["disk:7"])),
            sum("state", "prod.tfstate".into(), 2.0, json!([])),
        ]);
        assert_eq!(json["so_far_by_holder"], as_floats(&sums));
        assert_eq!(json["total"], as_floats(&json!({"objects": 3, "monthly": 2190.0, "unknown": []})));
        assert_eq!(json["unmanaged"], as_floats(&json!({"objects": 1, "monthly": 730.0, "unknown": []})));
    }

    #[test]
    fn what_does_not_belong_together_is_no_all_clear() {
        let mut released = account(vec![instance("ins-1")]);
        let held = |id: &str| [state("prod", &[(ObjectKind::Instance, id)])];
        assert!(
            audit(&released, &held("ins-9"), &[])
                .unwrap_err()
                .starts_with("none of the 1 objects of prod is in the account")
        );
        // The number of a disk proves nothing: another account has one of the same number.
        let mut numbered = account(vec![other(ObjectKind::CloudDisk, "7")]);
        numbered.uids = BTreeSet::from([(ObjectKind::CloudDisk, "another".to_owned())]);
        assert!(audit(&numbered, &[state("prod", &[(ObjectKind::CloudDisk, "7")])], &[]).is_err());
        // A released object proves that it is this account.
        released.billed.clear();
        let found = audit(&released, &held("ins-1"), &[]).unwrap();
        assert_eq!((found.objects.len(), found.missing.len()), (0, 1));
        assert!(audit(&released, &[state("empty", &[])], &[]).is_ok());
    }

    /// The last disk of the account was deleted, but an instance proves that it is the account.
    #[test]
    fn one_object_proves_the_account_for_its_provider_configuration() {
        let account = account(vec![instance("ins-1"), other(ObjectKind::CloudDisk, "8")]);
        let mut held = state("prod", &[(ObjectKind::CloudDisk, "7"), (ObjectKind::Instance, "ins-1")]);
        let mut elsewhere = state("", &[(ObjectKind::CloudDisk, "8"), (ObjectKind::Instance, "ins-9")]).held;
        elsewhere.iter_mut().for_each(|held| held.provider = "other".to_owned());
        elsewhere[0].uid = Some("of another account".to_owned());
        held.held.extend(elsewhere);
        let found = audit(&account, &[held], &[]).unwrap();
        let ids = |objects: &[MissingObject]| objects.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
        assert_eq!(
            (ids(&found.missing), ids(&found.not_of_this_account)),
            (vec!["7".into()], vec!["8".into(), "ins-9".into()])
        );
        assert_eq!(found.objects[1].holder, Holder::Unmanaged);
    }

    #[test]
    fn a_note_holds_what_it_made_at_its_own_address_until_it_is_finished() {
        let account = account(vec![other(ObjectKind::CloudDisk, "7")]);
        let holder = |notes: &[Note]| {
            let found = audit(&account, &[], notes).unwrap();
            (found.objects[0].holder, found.other_notes)
        };
        for (id, marker) in [(Some("7"), "x"), (None, "name of 7")] {
            assert_eq!(holder(&[note(id, marker)]), (Holder::Pending, 0));
            let foreign = Note { base_url: "there".to_owned(), ..note(id, marker) };
            assert_eq!(holder(&[foreign]), (Holder::Unmanaged, 1));
            assert_eq!(holder(&[Note { is_finished: true, ..note(id, marker) }]), (Holder::Unmanaged, 0));
        }
    }

    /// At most as many as new_disks, of their specification, path and size, the oldest first.
    #[test]
    fn a_disk_is_part_of_the_instance_that_it_was_created_with() {
        let ids = ["1", "2", "3", "4", "5", "6"];
        let disks = ids.map(|id| other(ObjectKind::CloudDisk, id));
        let mut account = account([&[instance("ins-1")][..], &disks].concat());
        let disk = |id: i64, size: i64, spec: i64, path: &str, since: i64| -> (String, CloudDisk) {
            let disk = json!({"id": id, "size_gb": size, "spec_id": spec, "mount_path": path, "create_time": since});
            (id.to_string(), serde_json::from_value(disk).unwrap())
        };
        account.disks = BTreeMap::from([
            disk(1, 20, 31, "/a", 300),
            disk(2, 20, 31, "/b", 200),
            disk(3, 20, 31, "/c", 100),
            disk(4, 20, 32, "/d", 50),
            disk(5, 10, 31, "/e", 40),
            disk(6, 90, 31, "/f", 30),
        ]);
        let new = |size_gb: i64, path: Option<&str>| super::super::states::OrderedDisk {
            size_gb,
            spec_id: Some(31),
            mount_path: path.map(str::to_owned),
        };
        let mut held = state("prod", &[(ObjectKind::Instance, "ins-1")]);
        held.held[0].mounted = ids.map(str::to_owned).to_vec();
        held.held[0].new_disks = vec![new(20, None), new(20, Some("/b"))];
        // Another state has the oldest one.
        let other_state = state("other", &[(ObjectKind::CloudDisk, "6")]);
        let found = audit(&account, &[held, other_state], &[]).unwrap();
        let by_state = found.objects.iter().filter(|object| object.holder == Holder::State);
        assert_eq!(by_state.map(|object| object.billed.id.as_str()).collect::<Vec<_>>(), ["ins-1", "2", "3", "6"]);
        assert!(found.duplicates.is_empty());
    }

    /// Such a state may have the object of another account.
    #[test]
    fn a_state_without_the_configuration_of_a_provider_proves_no_absence() {
        let account = account(vec![instance("ins-1")]);
        let mut state = state("a", &[(ObjectKind::Instance, "ins-1"), (ObjectKind::Instance, "ins-2")]);
        state.held.iter_mut().for_each(|held| held.provider = String::new());
        let audit = audit(&account, &[state], &[]).unwrap();
        assert_eq!(audit.objects[0].holder, Holder::State);
        assert!(audit.missing.is_empty() && audit.not_of_this_account.is_empty());
        assert_eq!(audit.not_judged.iter().map(|object| object.id.as_str()).collect::<Vec<_>>(), ["ins-2"]);
    }

    #[test]
    fn an_object_in_two_states_is_told() {
        let account = account(vec![instance("ins-1")]);
        let held = [(ObjectKind::Instance, "ins-1")];
        let audit = audit(&account, &[state("a", &held), state("b", &held)], &[]).unwrap();
        assert_eq!((audit.objects.len(), audit.objects[0].source.as_deref()), (1, Some("a")));
        let told: Vec<String> = crate::commands::audit::duplicates(&audit).collect();
        let address = "damodel_instance.a[\"ins-1\"]";
        assert_eq!(told, [format!("instance ins-1 is managed more than once: {address} in a, {address} in b")]);
    }

    #[test]
    fn what_is_young_is_left_out_and_what_has_no_age_is_not() {
        let mut young = instance("ins-2");
        young.since = Some(4_000);
        let account = account(vec![instance("ins-1"), young, other(ObjectKind::CloudDisk, "7")]);
        let mut audit = audit(&account, &[], &[]).unwrap();
        audit.only_older_than(3_600);
        // The sums are those of the account.
        assert_eq!((audit.total.objects, audit.total.monthly.with_digits(0).as_str()), (3, "1460"));
        let ids: Vec<String> = audit.listed_unmanaged().into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids, ["ins-1", "7"]);
    }
}
