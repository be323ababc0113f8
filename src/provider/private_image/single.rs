//! The data source `damodel_private_image`: one private image.

use serde::{Deserialize, Serialize};

use super::{listed::Filter, model::with_image, schema::reported};
use crate::{
    api,
    framework::{
        Attr, Context, DataSource, Diagnostics, Outcome, Path, Private, Schema, Type,
        schema::{Attribute, Presence, validator},
        value::Number,
    },
    provider::{
        Client,
        choose::{Choice, Takes},
        client::limits,
        errors::Failure,
        words::{image_status, time},
    },
};

/// The data source.
#[derive(Debug)]
pub(in crate::provider) struct Single;

with_image!(
    /// Its configuration and result.
    One {
        id: String,
        name_regex: String,
        most_recent: bool,
    }
);

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

    async fn read(&self, mut config: One, context: Context<Client>) -> Outcome<One> {
        let listing = match context.client.api.images().private_snapshot(&limits(&context)).await {
            Ok(listing) => listing,
            Err(error) => {
                let failure =
                    Failure { error: &error, tried: "list the private images".to_owned(), now: String::new() };
                return Outcome::absent().with(failure.whole());
            }
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
        let filter = Filter::of(&config.name, &config.name_regex, &config.status, &config.region);
        let matches = |image: &api::PrivateImage| {
            config.id.as_str().is_none_or(|id| image.image_id.to_string() == id) && filter.accepts(image)
        };
        match choice.one(&listing.records, matches) {
            Ok(image) => {
                config.id = Attr::Known(image.image_id.to_string());
                config.take(image);
                Outcome::present(config, Private::default())
            }
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}
