//! The cloud disks of an instance, as configured.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    api::{self, ExistDisk, NewDisk},
    framework::{
        Attr, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, validator},
    },
    provider::{
        Client, rules,
        words::{STARTING, UNMOUNTING},
    },
};

/// How many cloud disks one instance takes (service API, Limits).
pub(super) const MOST: usize = 8;

/// An existing cloud disk to mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Existing {
    pub(super) disk_id: Attr<i64>,
    pub(super) uid: Attr<String>,
    pub(super) mount_path: Attr<String>,
    pub(super) release_with_instance: Attr<bool>,
}

/// A cloud disk to make with the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct New {
    pub(super) size_gb: Attr<i64>,
    pub(super) spec_id: Attr<i64>,
    pub(super) mount_path: Attr<String>,
    pub(super) release_with_instance: Attr<bool>,
}

impl Existing {
    /// What the create sends, once the uid is known.
    pub(super) fn request(&self) -> Option<ExistDisk> {
        Some(ExistDisk {
            id: *self.disk_id.known()?,
            uid: self.uid.known()?.clone(),
            mount_path: self.mount_path.known().cloned(),
            release_with_instance: self.release_with_instance.known() == Some(&true),
        })
    }

    /// The uid of the disk, from the list of all.
    pub(super) fn find_uid(&mut self, disks: &api::Listing<api::CloudDisk>) {
        if self.uid.known().is_none()
            && let Some(uid) = self.disk_id.known().and_then(|id| disks.find(id)).and_then(|disk| disk.uid.clone())
        {
            self.uid = Attr::Known(uid);
        }
    }
}

impl New {
    /// What the create sends.
    pub(super) fn request(&self) -> Option<NewDisk> {
        Some(NewDisk {
            size_gb: *self.size_gb.known()?,
            spec_id: *self.spec_id.known()?,
            mount_path: self.mount_path.known().cloned(),
            release_with_instance: self.release_with_instance.known() != Some(&false),
        })
    }
}

/// Finds the uids that are not known yet, in a list that all share.
pub(super) async fn find_uids(
    disks: &mut Attr<Vec<Attr<Existing>>>,
    client: &Client,
    limits: &api::Context,
) -> Result<(), api::Error> {
    if disks.elements().any(|(_, disk)| disk.uid.known().is_none()) {
        let listing = client.api.cloud_disks().snapshot(limits).await?;
        disks.elements_mut().for_each(|(_, disk)| disk.find_uid(&listing));
    }
    Ok(())
}

/// Keeps the uids that a plan found: the plan inside the apply must not know less, even when the service does not
/// answer it.
pub(super) fn keep_uids(disks: &Attr<Vec<Attr<Existing>>>, client: &Client) {
    for (id, uid) in disks.elements().filter_map(|(_, disk)| disk.disk_id.known().zip(disk.uid.known())) {
        client.quotes.keep(&uid_key(*id, client), uid, jiff::Timestamp::now().as_second());
    }
}

/// Recalls the uids that an earlier plan found.
pub(super) fn recall_uids(disks: &mut Attr<Vec<Attr<Existing>>>, client: &Client) {
    for (_, disk) in disks.elements_mut().filter(|(_, disk)| disk.uid.known().is_none()) {
        let found = disk.disk_id.known().map(|id| uid_key(*id, client));
        if let Some(uid) = found.and_then(|key| client.quotes.find(&key, jiff::Timestamp::now().as_second())) {
            disk.uid = Attr::Known(uid);
        }
    }
}

/// Under this key a uid is kept.
fn uid_key(id: i64, client: &Client) -> String {
    format!("{}|cloud disk {id}", client.base_url().unwrap_or_default())
}

/// Whether the service shows a disk as mounted in an instance. It does not describe its bindings: any with a text that
/// is the uid counts.
pub(super) fn is_bound(disk: &api::CloudDisk, uid: &str) -> bool {
    !uid.is_empty() && disk.binding_instances.iter().any(|binding| names(binding, uid))
}

fn names(binding: &Value, uid: &str) -> bool {
    match binding {
        Value::String(text) => text == uid,
        Value::Array(elements) => elements.iter().any(|element| names(element, uid)),
        Value::Object(fields) => fields.values().any(|field| names(field, uid)),
        Value::Bool(_) | Value::Null | Value::Number(_) => false,
    }
}

/// Whether a disk is about to be available: a create waits for it.
pub(super) fn is_on_its_way(disk: &api::CloudDisk) -> bool {
    matches!(disk.status, Some(STARTING | UNMOUNTING))
}

/// The three arguments (service API, POST /api/instance/create).
pub(super) fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "exist_disks",
            AttributeType::Nested(Nesting::List, existing()),
            "Existing cloud disks to mount. Together with `new_disks` at most 8.",
        )
        .replaces(Replacement::IfKnown),
        Attribute::optional(
            "new_disks",
            AttributeType::Nested(Nesting::List, new()),
            "Cloud disks to create with the instance. Together with `exist_disks` at most 8. A disk that should outlive \
             the instance is better created with `damodel_cloud_disk` and mounted with `exist_disks`.",
        )
        .replaces(Replacement::IfKnown),
        Attribute::optional(
            "object_mounts",
            Type::list(Type::String),
            "Object storage mounts, each a JSON document that is passed on as it is.",
        )
        .sensitive()
        .replaces(Replacement::IfKnown)
        .validate(validator::text("a JSON document", |text| serde_json::from_str::<Value>(text).is_ok())),
    ]
}

fn existing() -> Vec<Attribute> {
    vec![
        Attribute::required("disk_id", Type::Number, "The disk's number (`id` of `damodel_cloud_disk`).")
            .validate(validator::between(1..=i64::MAX)),
        Attribute::optional_computed("uid", Type::String, "The disk's uid; looked up when it is not given."),
        mount_path("Where it is mounted. Default: the disk's own mount path."),
        Attribute::with_default(
            "release_with_instance",
            Type::Bool,
            false,
            "Whether the disk and its data are deleted when the instance is released.",
        ),
    ]
}

fn new() -> Vec<Attribute> {
    vec![
        Attribute::required("size_gb", Type::Number, "The capacity in GB.").validate(validator::between(20..=i64::MAX)),
        Attribute::required("spec_id", Type::Number, "The cloud disk specification (see `damodel_cloud_disk_specs`).")
            .validate(validator::between(1..=i64::MAX)),
        mount_path("Where it is mounted."),
        Attribute::with_default(
            "release_with_instance",
            Type::Bool,
            true,
            "Whether the disk and its data are deleted when the instance is released. Otherwise it stays, and is \
             billed.",
        ),
    ]
}

fn mount_path(description: &str) -> Attribute {
    Attribute::optional("mount_path", Type::String, description)
        .validate(validator::text("an absolute path without `.` or `..`", rules::is_absolute_path))
        .validate(validator::text(rules::DISK_PATH_RULE, rules::is_allowed_disk_path))
}
