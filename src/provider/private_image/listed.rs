//! The data source `damodel_private_images` (service API, GET /api/image/privates).

use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{
    model::{PrivateImage, Record},
    schema::reported,
};
use crate::{
    api::{self, Listing},
    framework::{
        Attr, Context, DataSource, Diagnostic, Outcome, Private, Schema, Type, project,
        schema::{Attribute, AttributeType, Nesting, validator},
    },
    provider::{
        Client,
        client::limits,
        errors::Failure,
        lifecycle::{self, Filters as _},
        words::image_status,
    },
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
        let filters: Filters = project(&config).unwrap_or_default();
        match filters.matching(&context).await {
            Ok(listing) => {
                let selection = Selection::of(&filters);
                let records = listing.records.iter().filter(|image| selection.accepts(image)).map(Record::of).collect();
                config.images = Attr::Known(records);
                Outcome::present(config, Private::default())
            }
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}

/// The filters of the data source and of the list resource.
fn arguments() -> Vec<Attribute> {
    vec![
        Attribute::optional("name", Type::String, "The name, exactly."),
        Attribute::optional("name_regex", Type::String, "A regular expression that the name must match.")
            .validate(validator::regular_expression()),
        Attribute::optional("status", Type::String, "`creating` or `ready`.")
            .validate(validator::one_of(&["creating", "ready"])),
        Attribute::optional("region", Type::String, "Only images of this region."),
    ]
}

/// The filters, which are also the configuration of the list resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Filters {
    name: Attr<String>,
    name_regex: Attr<String>,
    status: Attr<String>,
    region: Attr<String>,
}

impl lifecycle::Filters for Filters {
    type Managed = PrivateImage;

    fn schema() -> Schema {
        Schema::new("The private images of the account.", arguments())
    }

    async fn matching(&self, context: &Context<Client>) -> Result<Arc<Listing<api::PrivateImage>>, Diagnostic> {
        context.client.api.private_images().snapshot(&limits(context)).await.map_err(|error| {
            Failure { error: &error, tried: "list the private images".to_owned(), now: String::new() }.whole()
        })
    }

    fn accepts(&self, image: &api::PrivateImage) -> bool {
        Selection::of(self).accepts(image)
    }
}

/// The filters, ready to be held against images: the service filters by nothing of these.
pub(super) struct Selection<'a> {
    filters: &'a Filters,
    name_regex: Option<Regex>,
}

impl<'a> Selection<'a> {
    pub(super) fn of(filters: &'a Filters) -> Self {
        Self { filters, name_regex: filters.name_regex.as_str().and_then(|pattern| Regex::new(pattern).ok()) }
    }

    pub(super) fn accepts(&self, image: &api::PrivateImage) -> bool {
        let (filters, own_name) = (self.filters, image.image_name.as_deref());
        let status = || image.image_status.map(image_status);
        filters.name.as_str().is_none_or(|name| own_name == Some(name))
            && self.name_regex.as_ref().is_none_or(|regex| own_name.is_some_and(|name| regex.is_match(name)))
            && filters.status.as_str().is_none_or(|wanted| status().as_deref() == Some(wanted))
            && filters.region.as_str().is_none_or(|region| image.region.as_deref() == Some(region))
    }
}
