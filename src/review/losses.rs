//! The objects that a plan destroys, and the data that is lost with them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    actions::ChangeAction,
    cost::INSTANCE,
    plan::{Change, ReviewedPlan},
    values::{ChangeSide, ShownValue},
};

/// An object that a plan destroys.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The planned action.
    pub action: ChangeAction,
    /// The core's code of the reason, if the plan has one.
    pub reason: Option<String>,
    /// Whether the lost data is known; it is unknown for most objects of other providers.
    pub known: bool,
    /// The data that is lost with it.
    pub data: Vec<Item>,
    /// Cloud disks that stay, with their data, and are still billed.
    pub staying: Vec<Item>,
    /// Whether the state has `deletion_protection = true`, so that the apply will be refused.
    pub protected: bool,
}

/// A disk or image with data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its kind.
    pub kind: ItemKind,
    /// Its number, path or name, if it is not sensitive.
    pub name: Option<String>,
    /// Its size in GB.
    pub size_gb: Option<i64>,
    /// The resource that manages it, if it is not the destroyed one.
    pub managed_by: Option<String>,
}

/// The kind of a disk or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// A cloud disk.
    CloudDisk,
    /// The local data disk of an instance.
    LocalDataDisk,
    /// A private image.
    PrivateImage,
    /// The system disk of an instance.
    SystemDisk,
    /// Data of a resource type of this provider that is unknown to this version.
    Unknown,
}

impl Loss {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let destroyed = plan.changes.iter().filter(|change| change.managed && change.action.destroys());
        destroyed.map(|change| Self::of(change, plan)).collect()
    }

    fn of(change: &Change, plan: &ReviewedPlan) -> Self {
        let before = &change.side.before;
        let (mut data, mut staying) = (Vec::new(), Vec::new());
        match change.kind.as_str() {
            INSTANCE => {
                data.push(Item { size_gb: size(before, "sys_disk_size_gb"), ..Item::of(ItemKind::SystemDisk) });
                data.push(Item {
                    name: before.text(&["data_disk_mount_path"]).map(str::to_owned),
                    size_gb: size(before, "data_disk_size_gb"),
                    ..Item::of(ItemKind::LocalDataDisk)
                });
                let disks = Disks::of(before, plan);
                data.extend(disks.items(true));
                staying.extend(disks.items(false));
            }
            "damodel_cloud_disk" => data.push(Item {
                name: disk_name(before, "id"),
                size_gb: size(before, "size_gb"),
                ..Item::of(ItemKind::CloudDisk)
            }),
            "damodel_private_image" => {
                data.push(Item { name: disk_name(before, "id"), ..Item::of(ItemKind::PrivateImage) });
            }
            // Its destroy stops the server, and keeps builds and model.
            "damodel_llama_server" => {}
            kind if kind.starts_with("damodel_") => data.push(Item::of(ItemKind::Unknown)),
            _ => {}
        }
        Self {
            address: change.title(),
            kind: change.kind.clone(),
            action: change.action,
            reason: change.reason.clone(),
            known: change.kind.starts_with("damodel_") || is_state_only(change),
            data,
            staying,
            protected: before.at(&["deletion_protection"]) == ShownValue::Known(&Value::Bool(true)),
        }
    }
}

impl Item {
    fn of(kind: ItemKind) -> Self {
        Self { kind, name: None, size_gb: None, managed_by: None }
    }
}

impl ItemKind {
    /// The words for reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud disk",
            Self::LocalDataDisk => "local data disk",
            Self::PrivateImage => "private image",
            Self::SystemDisk => "system disk",
            Self::Unknown => "data that this version does not know",
        }
    }
}

/// The cloud disks of an instance by number. A disk counts as released with it if any source marks it so.
#[derive(Default)]
struct Disks {
    known: BTreeMap<String, Disk>,
    /// Disks that were created with the instance and are in no record.
    unnamed: Vec<Disk>,
}

#[derive(Default)]
struct Disk {
    name: Option<String>,
    size_gb: Option<i64>,
    dies: bool,
    managed_by: Option<String>,
}

impl Disks {
    fn of(machine: &ChangeSide, plan: &ReviewedPlan) -> Self {
        let mut disks = Self::default();
        for disk in machine.elements("exist_disks") {
            if let Some(id) = disk.number(&["disk_id"]) {
                disks.found(id.to_string()).dies |= is_true(&disk, "release_with_instance");
            }
        }
        for document in machine.elements("cloud_disks") {
            disks.reported(&document);
        }
        disks.of_other_resources(machine, plan);
        for disk in machine.elements("new_disks") {
            let made = Disk {
                size_gb: size(&disk, "size_gb"),
                dies: is_true(&disk, "release_with_instance"),
                ..Disk::default()
            };
            let is_shown =
                |shown: &Disk| shown.size_gb.is_some() && shown.size_gb == made.size_gb && shown.dies == made.dies;
            if !disks.known.values().any(is_shown) {
                disks.unnamed.push(made);
            }
        }
        disks
    }

    /// Adds a disk that the service reports with the instance, in an undocumented structure (service API, Instance,
    /// cloud_disks).
    fn reported(&mut self, document: &ChangeSide) {
        let ShownValue::Known(Value::String(text)) = document.whole() else { return };
        let Ok(record) = serde_json::from_str::<Value>(text) else { return };
        let record = ChangeSide::new(Some(&record), None, None);
        let Some(id) = record.number(&["id"]).or_else(|| record.number(&["disk_id"])) else { return };
        let disk = self.found(id.to_string());
        disk.name = disk.name.take().or_else(|| record.text(&["name"]).map(str::to_owned));
        disk.size_gb = disk.size_gb.or_else(|| size(&record, "size_gb"));
        disk.dies |= is_true(&record, "release_with_instance");
    }

    /// Adds disks of the plan or the prior state that are bound to the instance by any resource.
    fn of_other_resources(&mut self, machine: &ChangeSide, plan: &ReviewedPlan) {
        let uid = machine.text(&["id"]).filter(|uid| !uid.is_empty());
        let changes = plan.changes.iter().filter(|change| change.deposed.is_none());
        let of_changes = changes.map(|change| (&change.address, &change.kind, change.managed, &change.side.before));
        let of_state = plan.prior.iter().map(|stated| (&stated.address, &stated.kind, stated.managed, &stated.values));
        for (address, kind, managed, disk) in of_changes.chain(of_state) {
            if !managed || kind != "damodel_cloud_disk" {
                continue;
            }
            let Some(id) = disk.text(&["id"]) else { continue };
            let names_machine = |binding: &ChangeSide| match (binding.whole(), uid) {
                (ShownValue::Known(Value::String(binding)), Some(uid)) => binding.contains(uid),
                _ => false,
            };
            let is_bound = disk.elements("binding_instances").iter().any(names_machine);
            if is_bound || self.known.contains_key(id) {
                let found = self.found(id.to_owned());
                found.name = disk.text(&["name"]).map(str::to_owned).or_else(|| found.name.take());
                found.size_gb = size(disk, "size_gb").or(found.size_gb);
                found.dies |= is_bound && is_true(disk, "release_with_instance");
                found.managed_by = Some(address.clone());
            }
        }
    }

    fn found(&mut self, id: String) -> &mut Disk {
        self.known.entry(id).or_default()
    }

    fn items(&self, dies: bool) -> impl Iterator<Item = Item> {
        let known = self.known.iter().map(|(id, disk)| (Some(id), disk));
        let all = known.chain(self.unnamed.iter().map(|disk| (None, disk)));
        all.filter(move |(_, disk)| disk.dies == dies).map(|(id, disk)| Item {
            kind: ItemKind::CloudDisk,
            name: id.map(|id| named(id, disk.name.as_deref())),
            size_gb: disk.size_gb,
            managed_by: disk.managed_by.clone(),
        })
    }
}

/// Whether the object exists only in the state, so that its destroy loses no data.
fn is_state_only(change: &Change) -> bool {
    let (kind, provider) = (change.kind.as_str(), change.provider.as_deref());
    let is_of = |name: &str| provider.is_none_or(|provider| provider.ends_with(name));
    match kind.split('_').next() {
        Some("null") => is_of("/hashicorp/null"),
        Some("random") => is_of("/hashicorp/random"),
        Some("time") => is_of("/hashicorp/time"),
        _ => kind == "terraform_data" && is_of("/builtin/terraform"),
    }
}

/// A number and a name, if they are not sensitive.
fn disk_name(values: &ChangeSide, id: &str) -> Option<String> {
    values.text(&[id]).map(|id| named(id, values.text(&["name"])))
}

fn named(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{id} {name:?}"))
}

fn size(values: &ChangeSide, name: &str) -> Option<i64> {
    values.number(&[name]).and_then(serde_json::Number::as_i64)
}

/// A flag, which the service may also write as a number (service API, booleans).
fn is_true(values: &ChangeSide, name: &str) -> bool {
    match values.at(&[name]) {
        ShownValue::Known(Value::Bool(flag)) => *flag,
        ShownValue::Known(Value::Number(number)) => number.as_i64() == Some(1),
        // A sensitive value may be true.
        ShownValue::Sensitive => true,
        ShownValue::Known(_) | ShownValue::Null | ShownValue::Unknown => false,
    }
}
