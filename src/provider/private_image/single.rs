//! The data source `damodel_private_image`: one private image.

use serde::{Deserialize, Serialize};

use super::{
    listed::{Filters, Selection},
    model::PrivateImage,
    schema::reported,
};
use crate::{
    api,
    framework::{
        Attr, Context, DataSource, Diagnostic, Diagnostics, Outcome, Path, Private, Schema, Type, overlay, project,
        schema::{Attribute, Presence, validator},
        value::Number,
    },
    provider::{
        Client,
        choose::{Choice, Takes},
        lifecycle::Filters as _,
    },
};

/// The data source.
#[derive(Debug)]
pub(in crate::provider) struct Single;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct One {
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

impl DataSource for Single {
    type Client = Client;
    type Model = One;

    fn type_name(&self) -> &'static str {
        "damodel_private_image"
    }

    fn schema(&self) -> Schema {
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

    fn validate(&self, config: &One, diagnostics: &mut Diagnostics) {
        let asks = [&config.id, &config.name, &config.name_regex, &config.status, &config.region];
        if asks.iter().all(|asked| asked.is_null()) {
            diagnostics.error_at(Path::to("id"), "Which image?", "Set id, name, name_regex, status or region.");
        }
    }

    async fn read(&self, config: One, context: Context<Client>) -> Outcome<One> {
        let filters: Filters = project(&config).unwrap_or_default();
        let listing = match filters.matching(&context).await {
            Ok(listing) => listing,
            Err(diagnostic) => return Outcome::absent().with(diagnostic),
        };
        let choice = Choice {
            what: "private image",
            takes: if config.most_recent.known() == Some(&true) {
                Takes::MostRecent(|image: &api::PrivateImage| image.create_time)
            } else {
                Takes::TheOnlyOne
            },
            label: |image: &api::PrivateImage| {
                format!("{} {:?}", image.image_id, image.image_name.as_deref().unwrap_or_default())
            },
        };
        let selection = Selection::of(&filters);
        let matches = |image: &api::PrivateImage| {
            config.id.as_str().is_none_or(|id| image.image_id.to_string() == id) && selection.accepts(image)
        };
        match choice.one(&listing.records, matches) {
            Ok(image) => {
                let mut state = PrivateImage::default();
                state.take_image(image);
                match overlay(&config, &state) {
                    Ok(found) => Outcome::present(found, Private::default()),
                    Err(error) => Outcome::absent()
                        .with(Diagnostic::error("The provider could not read a value", error.to_string())),
                }
            }
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}
