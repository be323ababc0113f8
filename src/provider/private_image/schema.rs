//! The attributes and models of `damodel_private_image`.

use serde::{Deserialize, Serialize};

use crate::{
    framework::{
        Attr, Schema, Type,
        schema::{Attribute, Replacement},
        timeouts::Timeouts,
        value::Number,
    },
    provider::{
        columns::{self, Column, decimal, moment, text, whole, word},
        rules,
        words::image_status,
    },
};

/// A private image of a list (service API, Private image).
pub(in crate::provider) static COLUMNS: &[Column] = &[
    whole(
        "image_id",
        "image_id",
        "The image's number; an instance takes it as `image_id` with `image_type = \"private\"`.",
    )
    .logged(),
    text("image_uuid", "image_uuid", "The image's UUID.").logged(),
    text("name", "image_name", "The image's name.").logged(),
    text("image_tag", "image_tag", "The full address; an instance takes it as `image`.").logged(),
    word("status", "image_status", image_status, "`creating` or `ready`.").logged(),
    whole("push_progress", "push_progress", "How far the image is pushed, 0 to 100.").logged(),
    decimal("image_size", "image_size", "The size, as the service reports it."),
    text("original_image", "original_image", "The image that the instance used.").logged(),
    text("region", "region", "The image's region.").logged(),
    moment("create_time", "create_time", "When it was created (RFC 3339, UTC).").logged(),
    moment("updated_at", "updated_at", "When it was last changed (RFC 3339, UTC).").logged(),
    whole("upperdir_files", "upperdir_files", "How many files the instance's writable layer had."),
    whole("upperdir_bytes", "upperdir_bytes", "How many bytes the instance's writable layer had."),
];

pub(super) fn schema() -> Schema {
    let mut attributes = vec![
        Attribute::computed("id", Type::String, "The image's number, as text."),
        Attribute::optional(
            "instance_id",
            Type::String,
            "The instance whose system disk is saved (`id` of `damodel_instance`). Needed to create an image; null \
             after an import.",
        )
        .replaces(Replacement::IfKnown)
        .validate(rules::instance_uid()),
        Attribute::with_default(
            "deletion_protection",
            Type::Bool,
            false,
            "If `true`, destroying or replacing the image fails. To destroy it, first set this to `false` and apply. \
             Recommended: replacing the image's instance also replaces the image.",
        ),
        Attribute::required("name", Type::String, "The image's name, unique in the account. Changed in place.")
            .validate(rules::non_empty()),
    ];
    let reported = columns::reported(COLUMNS, &attributes);
    attributes.extend(reported);
    Schema::new(
        "A private image: a saved system disk of an instance. The apply waits until it is pushed and ready, so that \
         the same apply can create an instance from it. Images are billed for as long as they are stored.",
        attributes,
    )
}

/// A `damodel_private_image`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct PrivateImage {
    pub(super) id: Attr<String>,
    pub(super) instance_id: Attr<String>,
    pub(super) deletion_protection: Attr<bool>,
    pub(super) timeouts: Attr<Timeouts>,
    pub(super) image_id: Attr<i64>,
    pub(super) image_uuid: Attr<String>,
    pub(super) name: Attr<String>,
    pub(super) image_tag: Attr<String>,
    pub(super) status: Attr<String>,
    pub(super) push_progress: Attr<i64>,
    pub(super) image_size: Attr<Number>,
    pub(super) original_image: Attr<String>,
    pub(super) region: Attr<String>,
    pub(super) create_time: Attr<String>,
    pub(super) updated_at: Attr<String>,
    pub(super) upperdir_files: Attr<i64>,
    pub(super) upperdir_bytes: Attr<i64>,
}
