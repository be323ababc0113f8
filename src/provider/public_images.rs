//! The data sources of public images: one image, and all images (service API, GET /api/image/publics_v2).

use futures_util::future::BoxFuture;

use super::{
    StepContext,
    client::limits,
    columns::{Column, attributes, id, moment, row, text, texts, whole},
    images::name_filters,
    source::{self, Filter, ListedRows, Needs, Plural, RowsOrError, Singular, Source, Takes},
};
use crate::{
    api::PublicImageFilter,
    framework::{Type, Value, schema::Attribute},
};

/// A public image (service API, Public image).
pub(super) static COLUMNS: &[Column] = &[
    id("id", "The image's number, as text.").logged(),
    whole("image_id", "The image's number; an instance takes it as `image_id` with `image_type = \"public\"`.")
        .of_field("id")
        .logged(),
    text("name", "The display name.").logged(),
    text("image_url", "The full address; an instance takes it as `image`."),
    text("description", "The image's description."),
    texts("softwares", "The installed software."),
    texts("labels", "The image's labels."),
    text("size", "The size, as the service shows it."),
    text("document_url", "The address of its documentation."),
    text("icon", "The address of its icon."),
    moment("create_time", "When it was created (RFC 3339, UTC).").logged(),
    moment("update_time", "When it was last changed (RFC 3339, UTC)."),
];

/// `damodel_public_images`.
pub(super) fn plural() -> Plural {
    Plural {
        source: Source {
            type_name: "damodel_public_images",
            description: "The public images, from which instances are created.",
            columns: attributes(COLUMNS),
            filters: filters(),
            list,
        },
        rows: "images",
        rows_description: "The images that match, by id.",
    }
}

/// `damodel_public_image`.
pub(super) fn singular() -> Singular {
    let most_recent = "Whether to take the most recently updated of several.";
    let mut filters = filters();
    filters.push(Filter::Read(Attribute::with_default("most_recent", Type::Bool, false, most_recent)));
    filters.push(Filter::Exact("id"));
    Singular {
        source: Source {
            type_name: "damodel_public_image",
            description: "One public image: by id, or by filters that match only one, or the most recent of several.",
            columns: attributes(COLUMNS),
            filters,
            list,
        },
        noun: "public image",
        needs: Needs::Any(&["id", "name", "name_contains", "name_regex", "label"]),
        takes: Takes::MostRecent("most_recent", &["update_time", "create_time"]),
        label: source::numbered,
        rest: None,
    }
}

/// The filters by label and name. The service searches for a label and for a part of a name.
fn filters() -> Vec<Filter> {
    let part = "A part of the image's name, or of the name or version of its software. The service searches for it.";
    let mut filters = Vec::from(name_filters(part, Filter::Read));
    filters.push(Filter::Read(Attribute::optional("label", Type::String, "A label that the image must have.")));
    filters
}

fn list<'a>(config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    Box::pin(async {
        let filter = PublicImageFilter {
            label: source::text(config.attribute("label")),
            name: source::text(config.attribute("name_contains")),
        };
        let images = context.client.api.public_images(&filter, &limits(context)).await;
        ListedRows::read(images, "public images", config, |images| {
            images.iter().map(|image| row(COLUMNS, &image.json)).collect()
        })
    })
}
