//! The data sources of public images: one image, and all images (service API, GET /api/image/publics_v2).

mod record;

use regex::Regex;
use serde::{Deserialize, Serialize};

use self::record::{ImageRecord, with_image};
use super::{
    ProviderClient,
    choose::{self, Selection},
    client::limits,
    errors::Failure,
    words::time,
};
use crate::{
    api::{PublicImage, PublicImageFilter},
    framework::{
        Attr, DataSource, Diagnostics, Outcome, Path, Private, Schema, StepContext, Type,
        schema::{Attribute, AttributeType, Nesting, Requirement, validator},
    },
};

#[derive(Debug)]
pub(super) struct List;

/// The configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PublicImages {
    label: Attr<String>,
    name: Attr<String>,
    name_regex: Attr<String>,
    images: Attr<Vec<ImageRecord>>,
}

impl DataSource for List {
    type Client = ProviderClient;
    type Model = PublicImages;

    fn type_name(&self) -> &'static str {
        "damodel_public_images"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The public images, from which instances are created.",
            vec![
                Attribute::optional("label", Type::String, "A label that an image must have."),
                Attribute::optional(
                    "name",
                    Type::String,
                    "A part of the image's name, or of the name or version of its software.",
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

    async fn read(&self, mut config: PublicImages, context: StepContext<ProviderClient>) -> Outcome<PublicImages> {
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

#[derive(Debug)]
pub(super) struct Single;

with_image!(
    /// The configuration and result.
    One {
        label: String,
        name_regex: String,
        most_recent: bool,
    }
);

impl DataSource for Single {
    type Client = ProviderClient;
    type Model = One;

    fn type_name(&self) -> &'static str {
        "damodel_public_image"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::optional("label", Type::String, "A label that the image must have."),
            Attribute::optional("name_regex", Type::String, "A regular expression that the image's name must match.")
                .validate(validator::regular_expression()),
            Attribute::with_default(
                "most_recent",
                Type::Bool,
                false,
                "Whether to take the most recently updated of several.",
            ),
        ];
        for mut attribute in record::attributes() {
            if matches!(&*attribute.name, "id" | "name") {
                attribute.requirement = Requirement::OptionalComputed;
                attribute.description.push_str(" As an argument it must match exactly.");
            }
            attributes.push(attribute);
        }
        Schema::new(
            "One public image: by id, or by filters that match only one, or the most recent of several.",
            attributes,
        )
    }

    fn validate(&self, config: &One, diagnostics: &mut Diagnostics) {
        if config.id.is_null() && config.name.is_null() && config.name_regex.is_null() && config.label.is_null() {
            diagnostics.error_at(Path::to("id"), "Missing required argument", "Set id, name, name_regex or label.");
        }
    }

    async fn read(&self, mut config: One, context: StepContext<ProviderClient>) -> Outcome<One> {
        let filter = PublicImageFilter { label: config.label.known().cloned(), name: None };
        let listing = match context.client.api.public_images(&filter, &limits(&context)).await {
            Ok(listing) => listing,
            Err(error) => {
                let failure = Failure { error: &error, tried: "list the public images".to_owned(), now: String::new() };
                return Outcome::absent().with(failure.diagnostic(|name| name == "label" && !config.label.is_null()));
            }
        };
        let pattern = config.name_regex.as_str().and_then(|pattern| Regex::new(pattern).ok());
        let matches = |image: &PublicImage| {
            config.id.as_str().is_none_or(|id| image.id.to_string() == id)
                && config.name.as_str().is_none_or(|name| image.name.as_deref() == Some(name))
                && pattern.as_ref().is_none_or(|regex| image.name.as_deref().is_some_and(|name| regex.is_match(name)))
        };
        let choice = Selection {
            what: "public image",
            takes: if config.most_recent.known() == Some(&true) {
                choose::Takes::MostRecent(|image: &PublicImage| image.update_time.or(image.create_time))
            } else {
                choose::Takes::TheOnlyOne
            },
            label: |image: &PublicImage| format!("{} {:?}", image.id, image.name.as_deref().unwrap_or_default()),
        };
        match choice.one(&listing.records, matches) {
            Ok(image) => {
                config.take(image);
                Outcome::present(config, Private::default())
            }
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}
