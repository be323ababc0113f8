//! The attributes and models of `damodel_cloud_disk`.

use serde::{Deserialize, Serialize};

use crate::{
    framework::{
        Attr, Schema, Type,
        schema::{Attribute, Replacement, Validator},
        timeouts::Timeouts,
    },
    provider::{
        columns::{self, Column, flag, id, moment, text, texts, whole, word},
        rules,
        words::{disk_status, storage_class},
    },
};

/// A cloud disk of a list (service API, Cloud disk).
pub(in crate::provider) static COLUMNS: &[Column] = &[
    id("id", "id", "The disk's database number, as text.").logged(),
    whole("disk_id", "id", "The disk's database number; an instance takes it as `disk_id`.").logged(),
    text("uid", "uid", "The disk's UID.").logged(),
    text("name", "name", "The disk's name.").logged(),
    whole("size_gb", "size_gb", "The capacity in GB.").logged(),
    word(
        "status",
        "status",
        disk_status,
        "`starting`, `available`, `mounting`, `unmounting`, `releasing`, `mounted`, `released` or `in_arrears`.",
    )
    .logged(),
    whole("spec_id", "spec_id", "The cloud disk specification.").logged(),
    text("spec_type", "spec_type", "The specification's name.").logged(),
    word("storage_class", "storage_class_type", storage_class, "`RBD`, `FS` or `S3`.").logged(),
    flag("multiple_mounting", "multiple_mounting", "Whether several instances can mount it at the same time.").logged(),
    text("mount_path", "mount_path", "Where the disk is mounted by default.").logged(),
    texts(
        "binding_instances",
        "binding_instances",
        "The mounts on instances, each a JSON document as the service reports it.",
    ),
    texts(
        "binding_clusters",
        "binding_clusters",
        "The mounts on clusters, each a JSON document as the service reports it.",
    ),
    flag("release_with_instance", "release_with_instance", "Whether the disk is released with its instance.").logged(),
    flag("release_with_cluster", "release_with_cluster", "Whether the disk is released with its cluster."),
    moment("create_time", "create_time", "When it was created (RFC 3339, UTC).").logged(),
    moment("stop_time", "stop_time", "When it stopped (RFC 3339, UTC).").logged(),
];

pub(super) fn schema() -> Schema {
    let mut attributes = vec![
        Attribute::optional_computed("name", Type::String, "The disk's name. Changed in place.")
            .validate(rules::non_empty()),
        Attribute::required(
            "size_gb",
            Type::Number,
            "The capacity in GB. A larger value grows the disk in place; a smaller one is an error.",
        )
        .validate(Validator::between(20..=i64::MAX)),
        Attribute::required("spec_id", Type::Number, "The cloud disk specification (see `damodel_cloud_disk_specs`).")
            .replaces(Replacement::Always)
            .validate(Validator::between(1..=i64::MAX)),
        Attribute::optional_computed(
            "mount_path",
            Type::String,
            "Where the disk is mounted if the instance sets no path.",
        )
        .replaces(Replacement::IfKnown)
        .validate(Validator::text("an absolute path without `.` or `..`", rules::is_absolute_path))
        .validate(Validator::text(rules::DISK_PATH_RULE, rules::is_allowed_disk_path)),
        Attribute::with_default(
            "deletion_protection",
            Type::Bool,
            false,
            "If `true`, destroying or replacing the disk fails. To destroy it, first set this to `false` and apply.",
        ),
    ];
    let of_the_spec = ["spec_type", "storage_class", "multiple_mounting"];
    let reported = columns::reported(COLUMNS, &attributes);
    attributes.extend(reported.into_iter().map(|attribute| {
        if of_the_spec.contains(&&*attribute.name) { attribute.follows(&["spec_id"]) } else { attribute }
    }));
    Schema::new(
        "A cloud disk. Instances mount it with `exist_disks`; it remains when an instance is released. A disk grows in \
         place and cannot shrink. Destroying it waits until it is unmounted, and deletes its data.",
        attributes,
    )
}

/// A `damodel_cloud_disk`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct CloudDisk {
    pub(super) deletion_protection: Attr<bool>,
    pub(super) timeouts: Attr<Timeouts>,
    pub(super) id: Attr<String>,
    pub(super) disk_id: Attr<i64>,
    pub(super) uid: Attr<String>,
    pub(super) name: Attr<String>,
    pub(super) size_gb: Attr<i64>,
    pub(super) status: Attr<String>,
    pub(super) spec_id: Attr<i64>,
    pub(super) spec_type: Attr<String>,
    pub(super) storage_class: Attr<String>,
    pub(super) multiple_mounting: Attr<bool>,
    pub(super) mount_path: Attr<String>,
    pub(super) binding_instances: Attr<Vec<String>>,
    pub(super) binding_clusters: Attr<Vec<String>>,
    pub(super) release_with_instance: Attr<bool>,
    pub(super) release_with_cluster: Attr<bool>,
    pub(super) create_time: Attr<String>,
    pub(super) stop_time: Attr<String>,
}
