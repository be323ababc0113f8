//! The data source `damodel_public_images` (service API, GET /api/image/publics_v2).

mod record;
mod single;

use regex::Regex;
use serde::{Deserialize, Serialize};

use self::record::ImageRecord;
pub(super) use self::single::Single;
use super::{Client, client::limits, errors::Failure};
use crate::{
    api::{PublicImage, PublicImageFilter},
    framework::{
        Attr, Context, DataSource, Outcome, Private, Schema, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
    },
};

/// The data source.
#[derive(Debug)]
pub(super) struct List;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PublicImages {
    label: Attr<String>,
    name: Attr<String>,
    name_regex: Attr<String>,
    images: Attr<Vec<ImageRecord>>,
}

impl DataSource for List {
    type Client = Client;
    type Model = PublicImages;

    fn type_name(&self) -> &'static str {
        "damodel_public_images"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The public images, from which instances are made.",
            vec![
                Attribute::optional("label", Type::String, "One label that an image must carry."),
                Attribute::optional(
                    "name",
                    Type::String,
                    "A part of the image's name, or of the name or version of a software in it.",
                ),
                Attribute::optional(
                    "name_regex",
                    Type::String,
                    "A regular expression that the image's name must match.",
                )
                .validate(validator::regular_expression()),
                Attribute::computed(
                    "images",
                    AttributeType::Nested(Nesting::List, record::attributes()),
                    "The images that match, by id.",
                ),
            ],
        )
    }

    async fn read(&self, mut config: PublicImages, context: Context<Client>) -> Outcome<PublicImages> {
        let filter = PublicImageFilter { label: config.label.known().cloned(), name: config.name.known().cloned() };
        let pattern = config.name_regex.as_str().and_then(|pattern| Regex::new(pattern).ok());
        match context.client.api.public_images(&filter, &limits(&context)).await {
            Ok(listing) => {
                let matches = |image: &&PublicImage| {
                    pattern.as_ref().is_none_or(|regex| image.name.as_deref().is_some_and(|name| regex.is_match(name)))
                };
                let mut images: Vec<&PublicImage> = listing.records.iter().filter(matches).collect();
                images.sort_by_key(|image| image.id);
                config.images = Attr::Known(images.into_iter().map(ImageRecord::of).collect());
                Outcome::present(config, Private::default())
            }
            Err(error) => {
                let tried = "list the public images".to_owned();
                let failure = Failure { error: &error, tried, now: String::new() };
                Outcome::absent().with(failure.diagnostic(|name| match name {
                    "label" => !config.label.is_null(),
                    "name" => !config.name.is_null(),
                    _ => false,
                }))
            }
        }
    }
}
