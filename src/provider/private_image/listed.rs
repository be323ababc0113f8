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
        Attr, Context, Diagnostic, Schema, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
    },
    provider::{
        Client,
        lifecycle::{self, PluralModel},
        words::image_status,
    },
};

/// The configuration and result of the data source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct PrivateImages {
    name: Attr<String>,
    name_regex: Attr<String>,
    status: Attr<String>,
    region: Attr<String>,
    images: Attr<Vec<Record>>,
}

impl PluralModel for PrivateImages {
    type Filters = Filters;
    type Row = Record;

    const TYPE_NAME: &'static str = "damodel_private_images";

    fn schema() -> Schema {
        let mut attributes = arguments();
        attributes.push(Attribute::computed(
            "images",
            AttributeType::Nested(Nesting::List, reported()),
            "The images that match, by id.",
        ));
        Schema::new("The private images of the account.", attributes)
    }

    fn rows(&mut self) -> &mut Attr<Vec<Record>> {
        &mut self.images
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
        lifecycle::snapshot::<PrivateImage>(context).await
    }

    /// The service filters by nothing of these.
    fn accepts(&self) -> impl Fn(&api::PrivateImage) -> bool + Send + Sync {
        let name_regex = self.name_regex.as_str().and_then(|pattern| Regex::new(pattern).ok());
        move |image| {
            let own_name = image.image_name.as_deref();
            let status = || image.image_status.map(image_status);
            self.name.as_str().is_none_or(|name| own_name == Some(name))
                && name_regex.as_ref().is_none_or(|regex| own_name.is_some_and(|name| regex.is_match(name)))
                && self.status.as_str().is_none_or(|wanted| status().as_deref() == Some(wanted))
                && self.region.as_str().is_none_or(|region| image.region.as_deref() == Some(region))
        }
    }
}
