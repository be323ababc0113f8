//! The data source `damodel_specs`: what machines a region has, at what price (service API, GET /api/spec/list).

mod cheapest;
mod filter;
mod record;
mod single;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(super) use self::{cheapest::CheapestSpec, single::Single};
use self::{filter::Filter, record::SpecRecord};
use super::{Client, client::limits, errors::Failure, images};
use crate::{
    api::{Listing, Spec},
    framework::{
        Attr, Context, DataSource, Diagnostic, Outcome, Path, Private, Schema, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
        value::Number,
    },
};

/// The data source.
#[derive(Debug)]
pub(super) struct List;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Specs {
    region: Attr<String>,
    capacity_type: Attr<String>,
    gpu_name: Attr<String>,
    min_gpu_num: Attr<i64>,
    min_gpu_mem_mb: Attr<i64>,
    min_cpu_per_gpu: Attr<i64>,
    min_mem_per_gpu_gb: Attr<i64>,
    min_cuda: Attr<String>,
    max_hourly_price: Attr<Number>,
    rush_sale: Attr<bool>,
    available_only: Attr<bool>,
    sort_by: Attr<String>,
    specs: Attr<Vec<SpecRecord>>,
}

impl DataSource for List {
    type Client = Client;
    type Model = Specs;

    fn type_name(&self) -> &'static str {
        "damodel_specs"
    }

    fn schema(&self) -> Schema {
        let mut attributes = arguments();
        attributes.push(Attribute::computed(
            "specs",
            AttributeType::Nested(Nesting::List, record::attributes()),
            "The specifications that match.",
        ));
        Schema::new(
            "The instance specifications of a region, with their stock and prices. Prices and stock change: they are \
             asked for in every plan.",
            attributes,
        )
    }

    async fn read(&self, mut config: Specs, context: Context<Client>) -> Outcome<Specs> {
        let (listing, region) = match specs_of(&config.region, &context).await {
            Ok(found) => found,
            Err(diagnostic) => return Outcome::absent().with(diagnostic),
        };
        let filter = match Filter::of(&config) {
            Ok(filter) => filter,
            Err(diagnostic) => return Outcome::absent().with(diagnostic),
        };
        let mut records: Vec<SpecRecord> = listing
            .records
            .iter()
            .map(|spec| SpecRecord::of(spec, &region))
            .filter(|record| filter.accepts(record))
            .collect();
        records.sort_by(|a, b| filter.order(a, b));
        config.specs = Attr::Known(records);
        Outcome::present(config, Private::default())
    }
}

/// All specifications of the region that is configured here or in the provider.
async fn specs_of(
    configured: &Attr<String>,
    context: &Context<Client>,
) -> Result<(Arc<Listing<Spec>>, String), Diagnostic> {
    let region = configured.known().or(context.client.region.as_ref()).cloned().ok_or_else(|| {
        Diagnostic::error("Missing region", "Set region here, or for all in the provider (or with DAMODEL_REGION).")
            .at(Path::to("region"))
    })?;
    match context.client.api.specs().snapshot(&region, &limits(context)).await {
        Ok(listing) => Ok((listing, region)),
        Err(error) => {
            let tried = format!("list the specifications of region {region:?}");
            let failure = Failure { error: &error, tried, now: String::new() };
            Err(failure.diagnostic(|name| name == "region" && !configured.is_null()))
        }
    }
}

fn arguments() -> Vec<Attribute> {
    let number = |name: &str, description: &str| {
        Attribute::optional(name, Type::Number, description).validate(validator::between(0..=i64::MAX))
    };
    vec![
        Attribute::optional("region", Type::String, "The region. Default: the provider's `region`."),
        Attribute::optional("capacity_type", Type::String, "Only `ondemand` or only `spot` capacity. Default: both.")
            .validate(validator::one_of(&["ondemand", "spot"])),
        Attribute::optional("gpu_name", Type::String, "A regular expression that the GPU model must match.")
            .validate(validator::regular_expression()),
        number("min_gpu_num", "How many GPUs must be available in one instance."),
        number("min_gpu_mem_mb", "The least memory of a GPU, in MB."),
        number("min_cpu_per_gpu", "The least number of CPU cores for each GPU."),
        number("min_mem_per_gpu_gb", "The least memory for each GPU, in GB."),
        Attribute::optional("min_cuda", Type::String, "The least CUDA version, such as `12.4`.")
            .validate(validator::text("a version such as \"12.4\"", |version| images::version(version).is_some())),
        Attribute::optional("max_hourly_price", Type::Number, "The highest price of a GPU and hour.")
            .validate(validator::positive()),
        Attribute::optional(
            "rush_sale",
            Type::Bool,
            "Only rush-sale specifications (`true`), or none of them (`false`).",
        ),
        Attribute::with_default("available_only", Type::Bool, false, "Whether to leave out what is sold out."),
        Attribute::optional(
            "sort_by",
            Type::String,
            "`price` (by the hour, cheapest first), `gpu_mem` (largest first) or `spec_id`, the default.",
        )
        .validate(validator::one_of(&["price", "gpu_mem", "spec_id"])),
    ]
}
