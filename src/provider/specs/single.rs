//! The data source `damodel_spec`: one specification.

use bigdecimal::BigDecimal;
use serde::{Deserialize, Serialize};

use super::{
    Filter, SpecsQuery, arguments,
    record::{self, SpecRecord, number, with_spec},
};
use crate::{
    api::Spec,
    framework::{
        Attr, DataSource, Diagnostic, Outcome, Private, Schema, StepContext, Type,
        schema::{Attribute, Requirement, validator},
        value::Number,
    },
    provider::{ProviderClient, words::discount_status},
};

#[derive(Debug)]
pub(in crate::provider) struct Single;

with_spec!(
    /// The configuration and result.
    One {
        gpu_name_regex: String,
        min_gpu_num: i64,
        min_gpu_mem_mb: i64,
        min_cpu_per_gpu: i64,
        min_mem_per_gpu_gb: i64,
        min_cuda: String,
        max_hourly_price: Number,
        available_only: bool,
        sort_by: String,
        first: bool,
    }
);

/// Results that are also arguments, which must match exactly.
const BOTH: [&str; 4] = ["region", "capacity_type", "gpu_name", "rush_sale"];

impl DataSource for Single {
    type Client = ProviderClient;
    type Model = One;

    fn type_name(&self) -> &'static str {
        "damodel_spec"
    }

    fn schema(&self) -> Schema {
        let mut attributes: Vec<Attribute> =
            arguments().into_iter().filter(|attribute| !BOTH.contains(&&*attribute.name)).collect();
        attributes.push(
            Attribute::optional("gpu_name_regex", Type::String, "A regular expression that the GPU model must match.")
                .validate(validator::regular_expression()),
        );
        attributes.push(Attribute::with_default(
            "first",
            Type::Bool,
            false,
            "Whether to take the first of several, in the order of `sort_by`.",
        ));
        for mut attribute in record::attributes() {
            if BOTH.contains(&&*attribute.name) {
                attribute.requirement = Requirement::OptionalComputed;
                attribute.description.push_str(" As an argument it must match exactly.");
            }
            attributes.push(attribute);
        }
        Schema::new(
            "One instance specification: the only one that matches, or with `first` the first in the order of \
             `sort_by`. Prices and stock change: every plan reads them again.",
            attributes,
        )
    }

    async fn read(&self, mut config: One, context: StepContext<ProviderClient>) -> Outcome<One> {
        let wanted = config.filters();
        let (specs, region) = match super::specs_of(&wanted.region, &context).await {
            Ok(found) => found,
            Err(diagnostic) => return Outcome::absent().with(diagnostic),
        };
        let filter = match Filter::of(&wanted) {
            Ok(filter) => filter,
            Err(diagnostic) => return Outcome::absent().with(diagnostic),
        };
        let of_that_gpu = |record: &SpecRecord| config.gpu_name.is_null() || record.gpu_name == config.gpu_name;
        let mut records: Vec<(SpecRecord, &Spec)> =
            specs.records.iter().map(|spec| (SpecRecord::of(spec, &region), spec)).collect();
        records.retain(|(record, _)| of_that_gpu(record) && filter.accepts(record));
        records.sort_by(|(a, _), (b, _)| filter.order(a, b));
        let takes_first = config.first.known() == Some(&true);
        match records.as_slice() {
            [(_, spec), others @ ..] if others.is_empty() || takes_first => {
                config.take(spec, &region);
                Outcome::present(config, Private::default())
            }
            [] => Outcome::absent().with(Diagnostic::error(
                "No specification matches",
                format!("Region {region} has {}.", listed(specs.records.iter())),
            )),
            several => Outcome::absent().with(Diagnostic::error(
                "Several specifications match",
                format!(
                    "These match: {}. Narrow the filters, or set sort_by and first = true.",
                    listed(several.iter().map(|(_, spec)| *spec))
                ),
            )),
        }
    }
}

impl One {
    /// The filters that this data source shares with the list.
    fn filters(&self) -> SpecsQuery {
        SpecsQuery {
            region: self.region.clone(),
            capacity_type: self.capacity_type.clone(),
            gpu_name: self.gpu_name_regex.clone(),
            min_gpu_num: self.min_gpu_num,
            min_gpu_mem_mb: self.min_gpu_mem_mb,
            min_cpu_per_gpu: self.min_cpu_per_gpu,
            min_mem_per_gpu_gb: self.min_mem_per_gpu_gb,
            min_cuda: self.min_cuda.clone(),
            max_hourly_price: self.max_hourly_price.clone(),
            rush_sale: self.rush_sale,
            available_only: self.available_only,
            sort_by: self.sort_by.clone(),
            specs: Attr::Null,
        }
    }
}

fn listed<'a>(specs: impl Iterator<Item = &'a Spec>) -> String {
    let names: Vec<String> = specs
        .map(|spec| {
            let price = spec.hourly_price.as_ref().map(BigDecimal::normalized);
            format!(
                "{} ({}, {}, up to {} GPUs{})",
                spec.spec_id,
                spec.gpu_name.as_deref().unwrap_or("unknown GPU"),
                spec.capacity_type.as_deref().unwrap_or("unknown capacity"),
                spec.max_gpu_count.unwrap_or_default(),
                price.map(|price| format!(", {price} an hour")).unwrap_or_default(),
            )
        })
        .collect();
    if names.is_empty() { "no specifications".to_owned() } else { names.join("; ") }
}
