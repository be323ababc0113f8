//! The data source `damodel_specs`: the specifications of a region and their prices (service API, GET /api/spec/list).

mod cheapest;
mod record;
mod single;

use std::{cmp::Ordering, sync::Arc};

use regex::Regex;
use serde::{Deserialize, Serialize};

use self::record::SpecRecord;
use super::{
    ProviderClient,
    client::limits,
    errors::Failure,
    images::{self, version},
};
use crate::{
    api::{Listing, Spec},
    framework::{
        Attr, DataSource, Diagnostic, Outcome, Path, Private, Schema, StepContext, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
        value::Number,
    },
};

pub(super) use self::{cheapest::CheapestSpec, single::Single};

#[derive(Debug)]
pub(super) struct List;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SpecsQuery {
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
    type Client = ProviderClient;
    type Model = SpecsQuery;

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
            "The instance specifications of a region, with their stock and prices. Prices and stock change: every plan \
             reads them again.",
            attributes,
        )
    }

    async fn read(&self, mut config: SpecsQuery, context: StepContext<ProviderClient>) -> Outcome<SpecsQuery> {
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

/// All specifications of the configured region, or of the provider's default region.
async fn specs_of(
    configured: &Attr<String>,
    context: &StepContext<ProviderClient>,
) -> Result<(Arc<Listing<Spec>>, String), Diagnostic> {
    let region = configured.known().or(context.client.region.as_ref()).cloned().ok_or_else(|| {
        Diagnostic::error("Missing region", "Set region here, in the provider block, or in DAMODEL_REGION.")
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
    let number = |name: &'static str, description: &str| {
        Attribute::optional(name, Type::Number, description).validate(validator::between(0..=i64::MAX))
    };
    vec![
        Attribute::optional("region", Type::String, "The region. Default: the provider's `region`."),
        Attribute::optional("capacity_type", Type::String, "Only `ondemand` or only `spot` capacity. Default: both.")
            .validate(validator::one_of(&["ondemand", "spot"])),
        Attribute::optional("gpu_name", Type::String, "A regular expression that the GPU model must match.")
            .validate(validator::regular_expression()),
        number("min_gpu_num", "How many GPUs must be available in one instance."),
        number("min_gpu_mem_mb", "The minimum memory of a GPU, in MB."),
        number("min_cpu_per_gpu", "The minimum number of CPU cores for each GPU."),
        number("min_mem_per_gpu_gb", "The minimum memory for each GPU, in GB."),
        Attribute::optional("min_cuda", Type::String, "The minimum CUDA version, such as `12.4`.")
            .validate(validator::text("a version such as \"12.4\"", |version| images::version(version).is_some())),
        Attribute::optional("max_hourly_price", Type::Number, "The maximum price of a GPU per hour.")
            .validate(validator::positive()),
        Attribute::optional("rush_sale", Type::Bool, "`true`: only rush-sale specifications; `false`: only others."),
        Attribute::with_default("available_only", Type::Bool, false, "Whether to leave out sold-out specifications."),
        Attribute::optional(
            "sort_by",
            Type::String,
            "`price` (by the hour, cheapest first), `gpu_mem` (largest first) or `spec_id`, the default.",
        )
        .validate(validator::one_of(&["price", "gpu_mem", "spec_id"])),
    ]
}

/// The filters of a configuration.
#[derive(Debug)]
struct Filter {
    wanted: SpecsQuery,
    gpu_name: Option<Regex>,
    min_cuda: Option<Vec<u64>>,
}

impl Filter {
    fn of(wanted: &SpecsQuery) -> Result<Self, Diagnostic> {
        let gpu_name = wanted.gpu_name.as_str().map(Regex::new).transpose().map_err(|error| {
            Diagnostic::error("Invalid value", format!("gpu_name is not a regular expression: {error}."))
                .at(Path::to("gpu_name"))
        })?;
        Ok(Self { wanted: wanted.clone(), gpu_name, min_cuda: wanted.min_cuda.as_str().and_then(version) })
    }

    /// Whether a specification matches. If it lacks a filtered value, it does not match.
    fn accepts(&self, spec: &SpecRecord) -> bool {
        let wanted = &self.wanted;
        equals(&wanted.capacity_type, &spec.capacity_type)
            && equals(&wanted.rush_sale, &spec.rush_sale)
            && at_least(&wanted.min_gpu_num, &spec.max_gpu_count)
            && at_least(&wanted.min_gpu_mem_mb, &spec.gpu_mem_mb)
            && at_least(&wanted.min_cpu_per_gpu, &spec.cpu_per_gpu)
            && at_least(&wanted.min_mem_per_gpu_gb, &spec.mem_per_gpu_gb)
            && at_most(&wanted.max_hourly_price, &spec.hourly_price)
            && (wanted.available_only.known() != Some(&true) || spec.available.known() == Some(&true))
            && self
                .gpu_name
                .as_ref()
                .is_none_or(|regex| spec.gpu_name.as_str().is_some_and(|name| regex.is_match(name)))
            && self.min_cuda.as_ref().is_none_or(|least| {
                spec.highest_cuda.as_str().and_then(version).is_some_and(|highest| highest >= *least)
            })
    }

    /// The configured order, then by number, so that the result is stable.
    fn order(&self, a: &SpecRecord, b: &SpecRecord) -> Ordering {
        let order = match self.wanted.sort_by.as_str() {
            Some("price") => unset_last(&a.hourly_price, &b.hourly_price, Ord::cmp),
            Some("gpu_mem") => unset_last(&a.gpu_mem_mb, &b.gpu_mem_mb, |a, b| b.cmp(a)),
            _ => Ordering::Equal,
        };
        order.then_with(|| a.spec_id.cmp(&b.spec_id))
    }
}

fn equals<T: PartialEq>(wanted: &Attr<T>, actual: &Attr<T>) -> bool {
    wanted.known().is_none_or(|wanted| actual.known() == Some(wanted))
}

fn at_least<T: PartialOrd>(least: &Attr<T>, actual: &Attr<T>) -> bool {
    least.known().is_none_or(|least| actual.known().is_some_and(|actual| actual >= least))
}

fn at_most<T: PartialOrd>(most: &Attr<T>, actual: &Attr<T>) -> bool {
    most.known().is_none_or(|most| actual.known().is_some_and(|actual| actual <= most))
}

fn unset_last<T>(a: &Attr<T>, b: &Attr<T>, compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a.known(), b.known()) {
        (Some(a), Some(b)) => compare(a, b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(id: i64, gpu: &str, count: i64, cuda: &str, price: &str) -> SpecRecord {
        SpecRecord {
            spec_id: id.into(),
            gpu_name: gpu.into(),
            max_gpu_count: count.into(),
            available: (count > 0).into(),
            highest_cuda: cuda.into(),
            hourly_price: Attr::Known(price.parse().unwrap()),
            ..SpecRecord::default()
        }
    }

    fn specs() -> Vec<SpecRecord> {
        vec![
            spec(3, "H100", 8, "12.8", "12.5"),
            spec(1, "A100-80G", 4, "12.10", "6.9"),
            spec(2, "V100", 0, "11.8", "1.2"),
        ]
    }

    fn ids(wanted: &SpecsQuery) -> Vec<i64> {
        let filter = Filter::of(wanted).unwrap();
        let mut found: Vec<_> = specs().into_iter().filter(|spec| filter.accepts(spec)).collect();
        found.sort_by(|a, b| filter.order(a, b));
        found.iter().filter_map(|spec| spec.spec_id.known().copied()).collect()
    }

    #[test]
    fn the_order_is_by_number_unless_asked_otherwise() {
        assert_eq!(ids(&SpecsQuery::default()), [1, 2, 3]);
        assert_eq!(ids(&SpecsQuery { sort_by: "price".into(), ..SpecsQuery::default() }), [2, 1, 3]);
    }

    #[test]
    fn versions_are_compared_part_by_part() {
        assert_eq!(ids(&SpecsQuery { min_cuda: "12.9".into(), ..SpecsQuery::default() }), [1]);
        assert_eq!(ids(&SpecsQuery { min_cuda: "11".into(), ..SpecsQuery::default() }), [1, 2, 3]);
    }

    #[test]
    fn filters_narrow() {
        assert_eq!(ids(&SpecsQuery { available_only: true.into(), ..SpecsQuery::default() }), [1, 3]);
        assert_eq!(ids(&SpecsQuery { gpu_name: "^[AH]100".into(), ..SpecsQuery::default() }), [1, 3]);
        assert_eq!(ids(&SpecsQuery { min_gpu_num: 5.into(), ..SpecsQuery::default() }), [3]);
        let cheap = SpecsQuery { max_hourly_price: Attr::Known("6.9".parse().unwrap()), ..SpecsQuery::default() };
        assert_eq!(ids(&cheap), [1, 2]);
    }

    #[test]
    fn what_a_specification_does_not_say_does_not_match() {
        assert!(ids(&SpecsQuery { min_gpu_mem_mb: 1.into(), ..SpecsQuery::default() }).is_empty());
        assert!(ids(&SpecsQuery { rush_sale: true.into(), ..SpecsQuery::default() }).is_empty());
    }
}
