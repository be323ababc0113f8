//! The attributes of `damodel_private_image`.

use crate::framework::{
    Schema, Type,
    schema::{Attribute, Presence, Replacement, validator},
};

pub(super) fn schema() -> Schema {
    let mut attributes = vec![
        Attribute::computed("id", Type::String, "The image's number, as text."),
        Attribute::optional(
            "instance_id",
            Type::String,
            "The instance whose system disk is saved (`id` of `damodel_instance`). Needed to make an image; null \
             after an import.",
        )
        .replaces(Replacement::IfKnown),
        Attribute::with_default(
            "deletion_protection",
            Type::Bool,
            false,
            "Whether destroying or replacing the image is an error. What counts is the value in the state. Worth \
             setting: the replacement of the instance that it was made of would replace the image too.",
        ),
    ];
    attributes.extend(reported().into_iter().map(|mut attribute| {
        if attribute.name == "name" {
            attribute.presence = Presence::Required;
            attribute.description = "The image's name, unique in the account. Changed in place.".to_owned();
            return attribute.validate(validator::text("text that is not empty", |name| !name.trim().is_empty()));
        }
        attribute
    }));
    Schema::new(
        "A private image: the system disk of an instance, saved. The apply waits until it is pushed and ready, so \
         that an instance of the same apply can be made of it. Images are charged for as long as they are stored.",
        attributes,
    )
}

/// What the service reports (service API, Private image), all computed.
pub(super) fn reported() -> Vec<Attribute> {
    let text = |name: &str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        number("image_id", "The image's number; an instance takes it as `image_id` with `image_type = \"private\"`."),
        text("image_uuid", "The UUID."),
        text("name", "The name."),
        text("image_tag", "The full address; an instance takes it as `image`."),
        text("status", "`creating` or `ready`."),
        number("push_progress", "How far the image is pushed, 0 to 100."),
        number("image_size", "The size, as the service reports it."),
        text("original_image", "The image that the instance used."),
        text("region", "The region."),
        text("create_time", "When it was made (RFC 3339, UTC)."),
        text("updated_at", "When it was last changed (RFC 3339, UTC)."),
        number("upperdir_files", "How many files the instance's writable layer had."),
        number("upperdir_bytes", "How many bytes the instance's writable layer had."),
    ]
}
