//! The data source `damodel_private_images` (service API, GET /api/image/privates).

use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{model::Record, schema::reported};
use crate::{
    api::{self, Listing},
    framework::{
        Attr, Context, DataSource, Diagnostic, Outcome, Private, Schema, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
    },
    provider::{Client, client::limits, errors::Failure, words::image_status},
};

/// The data source.
#[derive(Debug)]
pub(in crate::provider) struct List;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct PrivateImages {
    name: Attr<String>,
    name_regex: Attr<String>,
    status: Attr<String>,
    region: Attr<String>,
    images: Attr<Vec<Record>>,
}

impl DataSource for List {
    type Client = Client;
    type Model = PrivateImages;

    fn type_name(&self) -> &'static str {
        "damodel_private_images"
    }

    fn schema(&self) -> Schema {
        let mut attributes = arguments();
        attributes.push(Attribute::computed(
            "images",
            AttributeType::Nested(Nesting::List, reported()),
            "The images that match, by id.",
        ));
        Schema::new("The private images of the account.", attributes)
    }

    async fn read(&self, mut config: PrivateImages, context: Context<Client>) -> Outcome<PrivateImages> {
        match snapshot(&context).await {
            Ok(listing) => {
                let filter = Filter::of(&config.name, &config.name_regex, &config.status, &config.region);
                let records = listing.records.iter().filter(|image| filter.accepts(image)).map(Record::of).collect();
                config.images = Attr::Known(records);
                Outcome::present(config, Private::default())
            }
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}

/// The filters of the data source and of the list resource.
pub(super) fn arguments() -> Vec<Attribute> {
    vec![
        Attribute::optional("name", Type::String, "The name, exactly."),
        Attribute::optional("name_regex", Type::String, "A regular expression that the name must match.")
            .validate(validator::regular_expression()),
        Attribute::optional("status", Type::String, "`creating` or `ready`.")
            .validate(validator::one_of(&["creating", "ready"])),
        Attribute::optional("region", Type::String, "Only images of this region."),
    ]
}

/// All private images.
pub(super) async fn snapshot(context: &Context<Client>) -> Result<Arc<Listing<api::PrivateImage>>, Diagnostic> {
    context.client.api.images().private_snapshot(&limits(context)).await.map_err(|error| {
        Failure { error: &error, tried: "list the private images".to_owned(), now: String::new() }.whole()
    })
}

/// What everything that looks for private images asks for.
pub(super) struct Filter<'a> {
    name: Option<&'a str>,
    name_regex: Option<Regex>,
    status: Option<&'a str>,
    region: Option<&'a str>,
}

impl<'a> Filter<'a> {
    pub(super) fn of(
        name: &'a Attr<String>,
        name_regex: &'a Attr<String>,
        status: &'a Attr<String>,
        region: &'a Attr<String>,
    ) -> Self {
        Self {
            name: name.as_str(),
            name_regex: name_regex.as_str().and_then(|pattern| Regex::new(pattern).ok()),
            status: status.as_str(),
            region: region.as_str(),
        }
    }

    pub(super) fn accepts(&self, image: &api::PrivateImage) -> bool {
        let own_name = image.image_name.as_deref();
        self.name.is_none_or(|name| own_name == Some(name))
            && self.name_regex.as_ref().is_none_or(|regex| own_name.is_some_and(|name| regex.is_match(name)))
            && self.status.is_none_or(|status| image.image_status.map(image_status).as_deref() == Some(status))
            && self.region.is_none_or(|region| image.region.as_deref() == Some(region))
    }
}
