//! The data sources of private images: one image, and all images (service API, GET /api/image/privates).

use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::schema::{PrivateImage, PrivateImageRecord, reported};
use crate::{
    api::{self, Listing},
    framework::{
        Attr, Diagnostic, Diagnostics, Path, Schema, StepContext, Type, project,
        schema::{Attribute, AttributeType, Nesting, Requirement, validator},
        value::Number,
    },
    provider::{
        ProviderClient,
        choose::Takes,
        lifecycle::{self, Filters as _, PluralModel},
        words::image_status,
    },
};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct PrivateImages {
    name: Attr<String>,
    name_regex: Attr<String>,
    status: Attr<String>,
    region: Attr<String>,
    images: Attr<Vec<PrivateImageRecord>>,
}

impl PluralModel for PrivateImages {
    type Filters = Filters;
    type Row = PrivateImageRecord;

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

    fn rows(&mut self) -> &mut Attr<Vec<PrivateImageRecord>> {
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

    async fn matching(
        &self,
        context: &StepContext<ProviderClient>,
    ) -> Result<Arc<Listing<api::PrivateImage>>, Diagnostic> {
        lifecycle::snapshot::<PrivateImage>(context).await
    }

    /// The service supports none of these filters.
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
                "Whether to take the most recently created of several.",
            ),
        ];
        attributes.extend(reported().into_iter().map(|mut attribute| {
            if matches!(&*attribute.name, "name" | "status" | "region") {
                attribute.requirement = Requirement::OptionalComputed;
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
