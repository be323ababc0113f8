//! What a plan creates, imports and moves.

use serde::Serialize;

use super::{
    actions::Action,
    cost::INSTANCE,
    plan::{Change, Plan},
    values::{Seen, Values, told},
};

/// The arguments by which a reviewer knows an object of this provider, by its type.
const TELLING: [(&str, &[&str]); 4] = [
    (
        INSTANCE,
        &[
            "name",
            "region",
            "spec_type",
            "spec_id",
            "gpu_num",
            "image",
            "image_id",
            "payment_type",
            "purchase_duration",
            "auto_renew",
            "data_disk_expand_size_gb",
        ],
    ),
    ("damodel_cloud_disk", &["name", "size_gb", "spec_id", "mount_path", "purchase_duration"]),
    ("damodel_private_image", &["name", "instance_id"]),
    ("damodel_llama_server", &["instance_id", "model", "host", "port"]),
];

/// An object that a plan creates.
#[derive(Clone, Debug, Serialize)]
pub struct Created {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it will be, where this program knows which arguments tell that.
    pub arguments: Vec<Argument>,
    /// The cloud disks that are created with it.
    pub disks: Vec<PlannedDisk>,
}

/// An argument with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// The argument, as one writes it.
    pub name: String,
    /// Its value as JSON, or why it is not shown.
    pub value: String,
}

/// A cloud disk that is created with an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedDisk {
    /// Its size in GB.
    pub size_gb: Option<i64>,
    /// Where it is mounted.
    pub mount_path: Option<String>,
    /// Whether it is released with the instance.
    pub release_with_instance: bool,
}

/// An object that a plan takes into the state.
#[derive(Clone, Debug, Serialize)]
pub struct Imported {
    /// Its address.
    pub address: String,
    /// Its import id, or its identity as JSON; none while that is unknown.
    pub id: Option<String>,
    /// What is done to it beside.
    pub action: Action,
}

/// An object that gets another address.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Its address.
    pub address: String,
    /// Its address before.
    pub previous_address: String,
    /// What is done to it beside.
    pub action: Action,
}

impl Created {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let created = plan.changes.iter().filter(|change| change.managed && change.action == Action::Create);
        created.map(Self::of).collect()
    }

    fn of(change: &Change) -> Self {
        let after = &change.side.after;
        let telling = TELLING.iter().find(|(kind, _)| *kind == change.kind).map(|(_, names)| *names);
        Self {
            address: change.title(),
            kind: change.kind.clone(),
            arguments: telling.unwrap_or_default().iter().filter_map(|name| Argument::of(after, name)).collect(),
            disks: after.elements("new_disks").iter().map(PlannedDisk::of).collect(),
        }
    }
}

impl Argument {
    fn of(values: &Values, name: &str) -> Option<Self> {
        let seen = values.at(&[name]);
        let is_set = !matches!(seen, Seen::Null | Seen::Unknown);
        is_set.then(|| Self { name: name.to_owned(), value: told(seen) })
    }
}

impl PlannedDisk {
    fn of(disk: &Values) -> Self {
        Self {
            size_gb: disk.number(&["size_gb"]).and_then(serde_json::Number::as_i64),
            mount_path: disk.text(&["mount_path"]).map(str::to_owned),
            release_with_instance: disk.at(&["release_with_instance"]) != Seen::Known(&serde_json::Value::Bool(false)),
        }
    }
}

impl Imported {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let imported = plan.changes.iter().filter(|change| change.managed);
        let imported = imported.filter_map(|change| {
            let id = change.importing.as_ref()?.id.clone();
            Some(Self { address: change.title(), id, action: change.action })
        });
        imported.collect()
    }
}

impl Moved {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let moved = plan.changes.iter().filter(|change| change.managed && change.is_moved());
        let moved = moved.filter_map(|change| {
            let previous_address = change.previous_address.clone()?;
            Some(Self { address: change.title(), previous_address, action: change.action })
        });
        moved.collect()
    }
}
