//! The attributes of `damodel_cloud_disk`.

use crate::{
    framework::{
        Schema, Type,
        schema::{Attribute, Presence, Replacement, validator},
    },
    provider::rules,
};

pub(super) fn schema() -> Schema {
    let mut attributes: Vec<Attribute> = reported().into_iter().map(as_argument).collect();
    attributes.push(
        Attribute::with_default(
            "purchase_duration",
            Type::Number,
            1,
            "How long the disk is bought for; the service takes 1 for on-demand disks.",
        )
        .replaces(Replacement::IfKnown)
        .validate(validator::between(1..=i64::MAX)),
    );
    attributes.push(Attribute::with_default(
        "deletion_protection",
        Type::Bool,
        false,
        "Whether destroying or replacing the disk is an error. What counts is the value in the state: to destroy the \
         disk, set this to `false`, apply, then destroy.",
    ));
    Schema::new(
        "A cloud disk, which is mounted in instances with their `exist_disks` and outlives them. It grows in place \
         and never shrinks. A destroy deletes its data; it waits for a disk that is still mounted.",
        attributes,
    )
}

/// The reported attributes that are arguments too.
fn as_argument(mut attribute: Attribute) -> Attribute {
    match attribute.name.as_str() {
        "name" => {
            attribute.presence = Presence::OptionalComputed;
            attribute.description = "The disk's name. Changed in place.".to_owned();
            attribute.validate(validator::text("text that is not empty", |name| !name.trim().is_empty()))
        }
        "size_gb" => {
            attribute.presence = Presence::Required;
            attribute.description = "The capacity in GB. It grows in place; a smaller value is an error.".to_owned();
            attribute.validate(validator::between(20..=i64::MAX))
        }
        "spec_id" => {
            attribute.presence = Presence::Required;
            attribute.description = "The cloud disk specification (see `damodel_cloud_disk_specs`).".to_owned();
            attribute.replaces(Replacement::Always).validate(validator::between(1..=i64::MAX))
        }
        "mount_path" => {
            attribute.presence = Presence::OptionalComputed;
            attribute.description = "Where the disk is mounted when an instance names no path of its own.".to_owned();
            attribute
                .replaces(Replacement::IfKnown)
                .validate(validator::text("an absolute path without `.` or `..`", rules::is_absolute_path))
                .validate(validator::text(rules::DISK_PATH_RULE, rules::is_allowed_disk_path))
        }
        "spec_type" | "storage_class" | "multiple_mounting" => attribute.follows(&["spec_id"]),
        _ => attribute,
    }
}

/// What the service reports (service API, Cloud disk), all computed.
pub(super) fn reported() -> Vec<Attribute> {
    let text = |name: &str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &str, description: &str| Attribute::computed(name, Type::Number, description);
    let flag = |name: &str, description: &str| Attribute::computed(name, Type::Bool, description);
    let texts = |name: &str, description: &str| Attribute::computed(name, Type::list(Type::String), description);
    vec![
        text("id", "The disk's database number, as text; an instance takes it as `disk_id`."),
        text("uid", "The disk's UID."),
        text("name", "The disk's name."),
        number("size_gb", "The capacity in GB."),
        text(
            "status",
            "`starting`, `available`, `mounting`, `unmounting`, `releasing`, `mounted`, `released` or `in_arrears`.",
        ),
        number("spec_id", "The cloud disk specification."),
        text("spec_type", "The specification's name."),
        text("storage_class", "`RBD`, `FS` or `S3`."),
        flag("multiple_mounting", "Whether several instances can mount it at once."),
        text("mount_path", "Where the disk is mounted by default."),
        texts("binding_instances", "The mounts on instances, each a JSON document as the service reports it."),
        texts("binding_clusters", "The mounts on clusters, each a JSON document as the service reports it."),
        flag("release_with_instance", "Whether the disk is released with its instance."),
        flag("release_with_cluster", "Whether the disk is released with its cluster."),
        text("create_time", "When it was made (RFC 3339, UTC)."),
        text("stop_time", "When it stopped (RFC 3339, UTC)."),
    ]
}
