//! The data that is lost with the objects that a plan destroys.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use serde_json::Value;

use super::super::{
    plan::{CLOUD_DISK, Change, INSTANCE, LLAMA_SERVER, PRIVATE_IMAGE, Plan, is_own},
    rules::{bound_to, goes_with_instance, thousands},
    values::{PathPart, ShownValue, Values},
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
    pub(crate) disks: Vec<String>,
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
    pub(super) fn of(change: &Change, disks: &Disks<'_>) -> Self {
        let before = &change.before;
        let (mut data, mut staying, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        match change.kind.as_str() {
            INSTANCE => {
                let found = disks.of(before);
                data.extend(own_disks(before));
                data.extend(found.items(true));
                staying.extend(found.items(false));
                ids.extend(found.known.iter().filter(|(_, disk)| disk.goes).map(|(id, _)| id.clone()));
            }
            CLOUD_DISK => {
                ids.extend(before.raw(&["id"]).and_then(Value::as_str).map(str::to_owned));
                data.push(item(ItemKind::CloudDisk, name(before), size(before, &["size_gb"])));
            }
            PRIVATE_IMAGE => data.push(item(ItemKind::PrivateImage, name(before), None)),
            LLAMA_SERVER => {}
            kind if is_own(kind) => data.push(item(ItemKind::Unknown, None, None)),
            _ => {}
        }
        Self {
            known: is_own(&change.kind) || is_state_only(change),
            data,
            staying,
            protected: before.at(&["deletion_protection"]) == ShownValue::Known(&Value::Bool(true)),
            disks: ids,
        }
    }
}

/// What the release of an instance deletes, by its attributes, and those of cloud disks with their addresses, which are
/// empty for unmanaged ones. The later attributes of a disk are its present ones.
#[must_use]
pub fn deleted_with(instance: &Value, disks: &[(String, Value)]) -> Vec<Item> {
    let plain = |value: &Value| Values::new(value.clone(), Value::Null, Value::Null);
    let disks: Vec<(&str, Values)> = disks.iter().map(|(address, disk)| (address.as_str(), plain(disk))).collect();
    let instance = plain(instance);
    let found = Disks::among(disks.iter().map(|(address, disk)| (*address, disk))).of(&instance);
    own_disks(&instance).into_iter().chain(found.items(true)).collect()
}

/// The disks that every release deletes.
fn own_disks(instance: &Values) -> [Item; 2] {
    let path = instance.text(&["data_disk_mount_path"]).map(str::to_owned);
    [
        item(ItemKind::SystemDisk, None, size(instance, &["reported", "sys_disk_size_gb"])),
        item(ItemKind::LocalDataDisk, path, size(instance, &["reported", "data_disk_size_gb"])),
    ]
}

fn item(kind: ItemKind, name: Option<String>, size_gb: Option<i64>) -> Item {
    Item { kind, name, size_gb, managed_by: None }
}

impl fmt::Display for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind.word())?;
        self.shown_name().iter().try_for_each(|name| write!(formatter, " {name}"))?;
        let size = self.size_gb.map(|size| thousands(&size.to_string()));
        size.iter().try_for_each(|size| write!(formatter, " ({size} GB)"))
    }
}

impl Item {
    /// Its name beside its kind. There is one local disk.
    pub(crate) fn shown_name(&self) -> Option<&String> {
        self.name.as_ref().filter(|_| self.kind != ItemKind::LocalDataDisk)
    }
}

impl ItemKind {
    /// The words for reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud disk",
            Self::LocalDataDisk => "local disk",
            Self::PrivateImage => "private image",
            Self::SystemDisk => "system disk",
            Self::Unknown => "data that this version does not know",
        }
    }
}

/// The managed cloud disks of a plan and its prior state, by id and by what they are bound to: in the order in which
/// they are found, because the later ones have the present values.
#[derive(Debug, Default)]
pub(super) struct Disks<'a> {
    managed: Vec<(&'a str, &'a str, &'a Values)>,
    by_id: BTreeMap<&'a str, Vec<usize>>,
    by_binding: BTreeMap<String, Vec<usize>>,
}

impl<'a> Disks<'a> {
    pub(super) fn read(plan: &'a Plan) -> Self {
        let changes = plan.changes.iter().filter(|change| change.is(CLOUD_DISK));
        let changes = changes.map(|change| (change.address.as_str(), &change.before));
        let stated = plan.prior.iter().filter(|stated| stated.managed && stated.kind == CLOUD_DISK);
        Self::among(changes.chain(stated.map(|stated| (stated.address.as_str(), &stated.values))))
    }

    fn among(all: impl Iterator<Item = (&'a str, &'a Values)>) -> Self {
        let mut disks = Self::default();
        for (address, values) in all {
            let Some(id) = values.raw(&["id"]).and_then(Value::as_str) else { continue };
            let index = disks.managed.len();
            disks.managed.push((id, address, values));
            disks.by_id.entry(id).or_default().push(index);
            let mut bound = BTreeSet::new();
            let bindings = values.raw(&["binding_instances"]).and_then(Value::as_array);
            bindings.into_iter().flatten().for_each(|binding| bound_to(binding, &mut bound));
            bound.into_iter().for_each(|name| disks.by_binding.entry(name).or_default().push(index));
        }
        disks
    }

    /// The cloud disks of an instance, from all sources.
    fn of(&self, instance: &Values) -> Mounted {
        let mut mounted = Mounted::default();
        for disk in instance.elements("exist_disks") {
            if let Some(id) = disk.raw(&["disk_id"]).and_then(Value::as_i64) {
                let is_shown = disk.number(&["disk_id"]).is_some();
                mounted.found(id.to_string(), is_shown, mark(&disk));
            }
        }
        for document in instance.part(&[PathPart::Key("reported".to_owned())]).elements("cloud_disks") {
            mounted.reported(&document);
        }
        let uid = instance.raw(&["id"]).and_then(Value::as_str).filter(|uid| !uid.is_empty());
        let bound: BTreeSet<usize> =
            uid.and_then(|uid| self.by_binding.get(uid)).into_iter().flatten().copied().collect();
        let named = mounted.known.keys().filter_map(|id| self.by_id.get(id.as_str())).flatten().copied();
        for index in bound.iter().copied().chain(named).collect::<BTreeSet<_>>() {
            let Some((id, address, disk)) = self.managed.get(index) else { continue };
            let own = mark(disk).filter(|_| bound.contains(&index));
            let found = mounted.found((*id).to_owned(), disk.text(&["id"]).is_some(), own);
            found.name = disk.text(&["name"]).map(str::to_owned).or_else(|| found.name.take());
            found.size_gb = size(disk, &["size_gb"]).or(found.size_gb);
            found.managed_by = Some((*address).to_owned());
        }
        for disk in instance.elements("new_disks") {
            let goes = mark(&disk) != Some(false);
            let made = Disk { size_gb: size(&disk, &["size_gb"]), goes, ..Disk::default() };
            let is_made = |known: &Disk| known.size_gb.is_some() && known.size_gb == made.size_gb && known.goes == goes;
            if !mounted.known.values().any(is_made) {
                mounted.unnamed.push(made);
            }
        }
        mounted
    }
}

/// The cloud disks of an instance by number.
#[derive(Default)]
struct Mounted {
    known: BTreeMap<String, Disk>,
    /// Disks that were created with the instance and are in no record.
    unnamed: Vec<Disk>,
}

#[derive(Default)]
struct Disk {
    name: Option<String>,
    size_gb: Option<i64>,
    goes: bool,
    managed_by: Option<String>,
    /// Whether its id is sensitive wherever it is found.
    is_hidden: bool,
}

impl Mounted {
    /// Adds a disk that the service reports with the instance, in an undocumented structure (service API, Instance,
    /// cloud_disks).
    fn reported(&mut self, document: &Values) {
        let Some(Value::String(text)) = document.raw(&[]) else { return };
        let Ok(record) = serde_json::from_str::<Value>(text) else { return };
        let is_shown = document.whole() != ShownValue::Sensitive;
        let record = Values::new(record, Value::Null, Value::Bool(!is_shown));
        let id = |name: &str| record.raw(&[name]).and_then(Value::as_i64);
        let Some(id) = id("id").or_else(|| id("disk_id")) else { return };
        let disk = self.found(id.to_string(), is_shown, mark(&record));
        disk.name = disk.name.take().or_else(|| record.text(&["name"]).map(str::to_owned));
        disk.size_gb = disk.size_gb.or_else(|| size(&record, &["size_gb"]));
    }

    /// The disk of this id, which this source marks as released with the instance or not.
    fn found(&mut self, id: String, is_shown: bool, mark: Option<bool>) -> &mut Disk {
        let disk = self.known.entry(id).or_insert_with(|| Disk { is_hidden: true, ..Disk::default() });
        disk.is_hidden &= !is_shown;
        disk.goes = goes_with_instance([Some(disk.goes), mark]);
        disk
    }

    fn items(&self, goes: bool) -> impl Iterator<Item = Item> {
        let known = self.known.iter().map(|(id, disk)| (Some(id), disk));
        let all = known.chain(self.unnamed.iter().map(|disk| (None, disk)));
        all.filter(move |(_, disk)| disk.goes == goes).map(|(id, disk)| Item {
            kind: ItemKind::CloudDisk,
            name: id.filter(|_| !disk.is_hidden).map(|id| named(id, disk.name.as_deref())),
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
fn name(values: &Values) -> Option<String> {
    values.text(&["id"]).map(|id| named(id, values.text(&["name"])))
}

fn named(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{id} {name:?}"))
}

fn size(values: &Values, path: &[&str]) -> Option<i64> {
    values.number(path).and_then(serde_json::Number::as_i64)
}

/// The flag `release_with_instance`, which the service may also write as a number (service API, booleans).
fn mark(values: &Values) -> Option<bool> {
    match values.at(&["release_with_instance"]) {
        ShownValue::Known(Value::Bool(flag)) => Some(*flag),
        ShownValue::Known(Value::Number(number)) => Some(number.as_i64() == Some(1)),
        // A sensitive value may be true.
        ShownValue::Sensitive => Some(true),
        ShownValue::Known(_) | ShownValue::Null | ShownValue::Unknown => None,
    }
}
