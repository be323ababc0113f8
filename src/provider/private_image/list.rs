//! The list resource `damodel_private_image`: the private images of the account, for `terraform query`.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{
    listed::{Filter, arguments, snapshot},
    model::PrivateImage,
};
use crate::{
    framework::{Attr, Context, Diagnostics, Found, ListResource, Listed, Schema},
    provider::Client,
};

/// The list resource.
#[derive(Debug)]
pub(in crate::provider) struct ListAll;

/// Its filters, which are those of the data source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Filters {
    name: Attr<String>,
    name_regex: Attr<String>,
    status: Attr<String>,
    region: Attr<String>,
}

impl ListResource for ListAll {
    type Client = Client;
    type Model = Filters;
    type Resource = PrivateImage;

    fn type_name(&self) -> &'static str {
        "damodel_private_image"
    }

    fn schema(&self) -> Schema {
        Schema::new("The private images of the account.", arguments())
    }

    async fn list(&self, config: Filters, mut found: Found<'_, PrivateImage>, context: Context<Client>) -> Diagnostics {
        let listing = match snapshot(&context).await {
            Ok(listing) => listing,
            Err(diagnostic) => return diagnostic.into(),
        };
        let filter = Filter::of(&config.name, &config.name_regex, &config.status, &config.region);
        for image in listing.records.iter().filter(|image| filter.accepts(image)) {
            let mut state = PrivateImage::default();
            state.take_whole(image);
            let display_name = image.image_name.clone().unwrap_or_else(|| image.image_id.to_string());
            if let ControlFlow::Break(()) = found.tell(Listed { display_name, state }).await {
                break;
            }
        }
        Diagnostics::new()
    }
}
