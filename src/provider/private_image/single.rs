//! The data source `damodel_private_image`: one private image.

use serde::{Deserialize, Serialize};

use super::{listed::Filters, model::PrivateImage, schema::reported};
use crate::{
    api,
    framework::{
        Attr, Diagnostics, Path, Schema, Type, project,
        schema::{Attribute, Presence, validator},
        value::Number,
    },
    provider::{
        choose::Takes,
        lifecycle::{self, Filters as _},
    },
};

/// The configuration and result of the data source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct SingleImage {
    id: Attr<String>,
    name_regex: Attr<String>,
    most_recent: Attr<bool>,
    image_id: Attr<i64>,
    image_uuid: Attr<String>,
    name: Attr<String>,
    image_tag: Attr<String>,
    status: Attr<String>,
    push_progress: Attr<i64>,
    image_size: Attr<Number>,
    original_image: Attr<String>,
    region: Attr<String>,
    create_time: Attr<String>,
    updated_at: Attr<String>,
    upperdir_files: Attr<i64>,
    upperdir_bytes: Attr<i64>,
}

impl lifecycle::SingularModel for SingleImage {
    type Managed = PrivateImage;

    fn schema() -> Schema {
        let mut attributes = vec![
            Attribute::optional_computed("id", Type::String, "The image's number, as text."),
            Attribute::optional("name_regex", Type::String, "A regular expression that the name must match.")
                .validate(validator::regular_expression()),
            Attribute::with_default(
                "most_recent",
                Type::Bool,
                false,
                "Whether to take the most recently made of several.",
            ),
        ];
        attributes.extend(reported().into_iter().map(|mut attribute| {
            if matches!(attribute.name.as_str(), "name" | "status" | "region") {
                attribute.presence = Presence::OptionalComputed;
                attribute.description.push_str(" As an argument it must match exactly.");
            }
            attribute
        }));
        Schema::new(
            "One private image: by id or name, or by filters that match only one, or the most recent of several.",
            attributes,
        )
    }

    fn validate(&self, diagnostics: &mut Diagnostics) {
        let asks = [&self.id, &self.name, &self.name_regex, &self.status, &self.region];
        if asks.iter().all(|asked| asked.is_null()) {
            diagnostics.error_at(Path::to("id"), "Which image?", "Set id, name, name_regex, status or region.");
        }
    }

    fn takes(&self) -> Takes<api::PrivateImage> {
        match self.most_recent.known() {
            Some(true) => Takes::MostRecent(|image| image.create_time),
            _ => Takes::TheOnlyOne,
        }
    }

    fn matches(&self) -> impl Fn(&api::PrivateImage) -> bool + Send + Sync {
        let filters: Filters = project(self).unwrap_or_default();
        move |image| self.id.as_str().is_none_or(|id| image.image_id.to_string() == id) && filters.accepts()(image)
    }
}
