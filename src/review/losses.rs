//! The objects that a plan destroys, and the data that is lost with them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    cost::INSTANCE,
    plan::{ResourceChange, ReviewedPlan, is_own},
    values::{ChangeSide, ShownValue},
};

/// The data that is lost with a destroyed object.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// Whether the lost data is known; it is unknown for most objects of other providers.
    pub known: bool,
    /// The data that is lost with it.
    pub data: Vec<Item>,
    /// Cloud disks that stay, with their data, and are still billed.
    pub staying: Vec<Item>,
    /// Whether the state has `deletion_protection = true`, so that the apply will be refused.
    pub protected: bool,
    /// The ids of the cloud disks among the data, hidden ones too: to compare, never to show.
    #[serde(skip)]
    pub(super) disks: Vec<String>,
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
    pub(super) fn of(change: &ResourceChange, plan: &ReviewedPlan) -> Self {
        let before = &change.side.before;
        let (mut data, mut staying, mut disks) = (Vec::new(), Vec::new(), Vec::new());
        match change.kind.as_str() {
            INSTANCE => {
                data.push(Item { size_gb: size(before, "sys_disk_size_gb"), ..Item::of(ItemKind::SystemDisk) });
                data.push(Item {
                    name: before.text(&["data_disk_mount_path"]).map(str::to_owned),
                    size_gb: size(before, "data_disk_size_gb"),
                    ..Item::of(ItemKind::LocalDataDisk)
                });
                let found = Disks::of(before, plan);
                data.extend(found.items(true));
                staying.extend(found.items(false));
                disks.extend(found.known.iter().filter(|(_, disk)| disk.dies).map(|(id, _)| id.clone()));
            }
            "damodel_cloud_disk" => {
                disks.extend(before.raw(&["id"]).and_then(Value::as_str).map(str::to_owned));
                data.push(Item {
                    name: disk_name(before, "id"),
                    size_gb: size(before, "size_gb"),
                    ..Item::of(ItemKind::CloudDisk)
                });
            }
            "damodel_private_image" => {
                data.push(Item { name: disk_name(before, "id"), ..Item::of(ItemKind::PrivateImage) });
            }
            // Its destroy stops the server, and keeps builds and model.
            "damodel_llama_server" => {}
            kind if is_own(kind) => data.push(Item::of(ItemKind::Unknown)),
            _ => {}
        }
        Self {
            known: is_own(&change.kind) || is_state_only(change),
            data,
            staying,
            protected: before.at(&["deletion_protection"]) == ShownValue::Known(&Value::Bool(true)),
            disks,
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
    /// Whether its id is sensitive wherever it is found.
    is_hidden: bool,
}

impl Disks {
    fn of(machine: &ChangeSide, plan: &ReviewedPlan) -> Self {
        let mut disks = Self::default();
        for disk in machine.elements("exist_disks") {
            if let Some(id) = disk.raw(&["disk_id"]).and_then(Value::as_i64) {
                let is_shown = disk.number(&["disk_id"]).is_some();
                disks.found(id.to_string(), is_shown).dies |= is_true(&disk, "release_with_instance");
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
        let Some(Value::String(text)) = document.raw(&[]) else { return };
        let Ok(record) = serde_json::from_str::<Value>(text) else { return };
        let is_shown = document.whole() != ShownValue::Sensitive;
        let record = ChangeSide::new(Some(&record), None, Some(&Value::Bool(!is_shown)));
        let id = |name: &str| record.raw(&[name]).and_then(Value::as_i64);
        let Some(id) = id("id").or_else(|| id("disk_id")) else { return };
        let disk = self.found(id.to_string(), is_shown);
        disk.name = disk.name.take().or_else(|| record.text(&["name"]).map(str::to_owned));
        disk.size_gb = disk.size_gb.or_else(|| size(&record, "size_gb"));
        disk.dies |= is_true(&record, "release_with_instance");
    }

    /// Adds disks of the plan or the prior state that are bound to the instance by any resource.
    fn of_other_resources(&mut self, machine: &ChangeSide, plan: &ReviewedPlan) {
        let uid = machine.raw(&["id"]).and_then(Value::as_str).filter(|uid| !uid.is_empty());
        let changes = plan.changes.iter().filter(|change| change.deposed.is_none());
        let of_changes = changes.map(|change| (&change.address, &change.kind, change.managed, &change.side.before));
        let of_state = plan.prior.iter().map(|stated| (&stated.address, &stated.kind, stated.managed, &stated.values));
        for (address, kind, managed, disk) in of_changes.chain(of_state) {
            if !managed || kind != "damodel_cloud_disk" {
                continue;
            }
            let Some(id) = disk.raw(&["id"]).and_then(Value::as_str) else { continue };
            let bindings = disk.raw(&["binding_instances"]).and_then(Value::as_array).into_iter().flatten();
            let is_bound = uid.is_some_and(|uid| bindings.clone().any(|binding| names(binding, uid)));
            if is_bound || self.known.contains_key(id) {
                let found = self.found(id.to_owned(), disk.text(&["id"]).is_some());
                found.name = disk.text(&["name"]).map(str::to_owned).or_else(|| found.name.take());
                found.size_gb = size(disk, "size_gb").or(found.size_gb);
                found.dies |= is_bound && is_true(disk, "release_with_instance");
                found.managed_by = Some(address.clone());
            }
        }
    }

    fn found(&mut self, id: String, is_shown: bool) -> &mut Disk {
        let disk = self.known.entry(id).or_insert_with(|| Disk { is_hidden: true, ..Disk::default() });
        disk.is_hidden &= !is_shown;
        disk
    }

    fn items(&self, dies: bool) -> impl Iterator<Item = Item> {
        let known = self.known.iter().map(|(id, disk)| (Some(id), disk));
        let all = known.chain(self.unnamed.iter().map(|disk| (None, disk)));
        all.filter(move |(_, disk)| disk.dies == dies).map(|(id, disk)| Item {
            kind: ItemKind::CloudDisk,
            name: id.filter(|_| !disk.is_hidden).map(|id| named(id, disk.name.as_deref())),
            size_gb: disk.size_gb,
            managed_by: disk.managed_by.clone(),
        })
    }
}

/// Whether a binding, a document of a structure that the service does not describe, names an instance.
fn names(binding: &Value, uid: &str) -> bool {
    match binding {
        Value::String(text) => text == uid || serde_json::from_str(text).is_ok_and(|inner: Value| names(&inner, uid)),
        Value::Array(elements) => elements.iter().any(|element| names(element, uid)),
        Value::Object(fields) => fields.values().any(|field| names(field, uid)),
        Value::Bool(_) | Value::Null | Value::Number(_) => false,
    }
}

/// Whether the object exists only in the state, so that its destroy loses no data.
fn is_state_only(change: &ResourceChange) -> bool {
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
