//! What a plan destroys, and which data goes with it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    actions::Action,
    cost::INSTANCE,
    plan::{Change, Plan},
    values::{Seen, Values},
};

/// An object that a plan destroys.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the plan does to it.
    pub action: Action,
    /// Why, in the core's word, where that is not the configuration alone.
    pub reason: Option<String>,
    /// Whether this program knows what goes with it: of most objects of other providers it does not.
    pub known: bool,
    /// The data that goes with it.
    pub data: Vec<Item>,
    /// Cloud disks that stay, with their data, and are still billed.
    pub staying: Vec<Item>,
    /// Whether the state says deletion_protection = true: the apply will be refused.
    pub protected: bool,
}

/// Something that holds data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its number, path or name, where that may be shown.
    pub name: Option<String>,
    /// Its size in GB.
    pub size_gb: Option<i64>,
    /// The resource that manages it, when it is not what is destroyed.
    pub managed_by: Option<String>,
}

/// What holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// A cloud disk.
    CloudDisk,
    /// The local data disk of a machine.
    LocalDataDisk,
    /// A private image.
    PrivateImage,
    /// The system disk of a machine.
    SystemDisk,
    /// Something of this provider that this program does not know.
    Unknown,
}

impl Loss {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let destroyed = plan.changes.iter().filter(|change| change.managed && change.action.destroys());
        destroyed.map(|change| Self::of(change, plan)).collect()
    }

    fn of(change: &Change, plan: &Plan) -> Self {
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
            // Its destroy stops the server, and leaves builds and model where they are.
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
            protected: before.at(&["deletion_protection"]) == Seen::Known(&Value::Bool(true)),
        }
    }
}

impl Item {
    fn of(kind: ItemKind) -> Self {
        Self { kind, name: None, size_gb: None, managed_by: None }
    }
}

impl ItemKind {
    /// For people.
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

/// The cloud disks that are mounted in a machine, by their number; what dies is what any source says that it dies.
#[derive(Default)]
struct Disks {
    known: BTreeMap<String, Disk>,
    /// Disks that were made with the machine and that no record shows.
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
    fn of(machine: &Values, plan: &Plan) -> Self {
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

    /// A disk as the service reports it with the machine (service API, Instance, cloud_disks): a structure that is not
    /// described.
    fn reported(&mut self, document: &Values) {
        let Seen::Known(Value::String(text)) = document.whole() else { return };
        let Ok(record) = serde_json::from_str::<Value>(text) else { return };
        let record = Values::new(Some(&record), None, None);
        let Some(id) = record.number(&["id"]).or_else(|| record.number(&["disk_id"])) else { return };
        let disk = self.found(id.to_string());
        disk.name = disk.name.take().or_else(|| record.text(&["name"]).map(str::to_owned));
        disk.size_gb = disk.size_gb.or_else(|| size(&record, "size_gb"));
        disk.dies |= is_true(&record, "release_with_instance");
    }

    /// Disks of the plan or the prior state that are bound to the machine, whatever mounted them.
    fn of_other_resources(&mut self, machine: &Values, plan: &Plan) {
        let uid = machine.text(&["id"]).filter(|uid| !uid.is_empty());
        let changes = plan.changes.iter().filter(|change| change.deposed.is_none());
        let of_changes = changes.map(|change| (&change.address, &change.kind, change.managed, &change.side.before));
        let of_state = plan.prior.iter().map(|stated| (&stated.address, &stated.kind, stated.managed, &stated.values));
        for (address, kind, managed, disk) in of_changes.chain(of_state) {
            if !managed || kind != "damodel_cloud_disk" {
                continue;
            }
            let Some(id) = disk.text(&["id"]) else { continue };
            let names_machine = |binding: &Values| match (binding.whole(), uid) {
                (Seen::Known(Value::String(binding)), Some(uid)) => binding.contains(uid),
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

/// Whether it is nothing but its entry in the state, whoever destroys it.
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

/// A number and a name, as far as they may be shown.
fn disk_name(values: &Values, id: &str) -> Option<String> {
    values.text(&[id]).map(|id| named(id, values.text(&["name"])))
}

fn named(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{id} {name:?}"))
}

fn size(values: &Values, name: &str) -> Option<i64> {
    values.number(&[name]).and_then(serde_json::Number::as_i64)
}

/// A flag, also where the service writes it as a number (service API, booleans).
fn is_true(values: &Values, name: &str) -> bool {
    match values.at(&[name]) {
        Seen::Known(Value::Bool(flag)) => *flag,
        Seen::Known(Value::Number(number)) => number.as_i64() == Some(1),
        // What may not be shown may be so.
        Seen::Sensitive => true,
        Seen::Known(_) | Seen::Null | Seen::Unknown => false,
    }
}
