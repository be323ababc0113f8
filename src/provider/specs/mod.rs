//! The data sources of specifications: one, and all of a region, with their prices (service API, GET /api/spec/list).

use std::cmp::Reverse;

use futures_util::future::BoxFuture;

use super::{
    StepContext,
    client::limits,
    columns::{Column, attributes, decimal, flag, is_positive, row, text, whole, word},
    errors::{missing_region, unknown_region},
    images::version,
    rules,
    source::{
        Filter, ListedRows, Needs, Plural, RowTest, RowsOrError, Singular, Source, Takes, at_least, at_most, pattern,
        true_if,
    },
    words::discount_status,
};
use crate::framework::{
    Type, Value,
    schema::{Attribute, Validator},
};

/// A specification (service API, Instance specification). Its region is that of the query.
pub(super) static COLUMNS: &[Column] = &[
    whole("spec_id", "The specification's number.").logged(),
    text("spec_type", "The specification's code.").logged(),
    text("region", "The specification's region.").logged(),
    text("capacity_type", "`ondemand` or `spot`.").logged(),
    text("gpu_name", "The GPU model; for a CPU specification, possibly a CPU identifier.").logged(),
    whole("gpu_mem_mb", "The memory of a GPU in MB.").of_field("gpu_mem").logged(),
    whole("max_gpu_count", "How many GPUs one instance can have now; 0 when sold out.").logged(),
    is_positive("available", "Whether an instance can be created now.").of_field("max_gpu_count"),
    whole("cpu_per_gpu", "CPU cores for each GPU."),
    whole("mem_per_gpu_gb", "Memory for each GPU in GB.").of_field("mem_per_gpu"),
    whole("sys_disk_size_gb", "The system disk in GB.").of_field("sys_disk_size"),
    whole("data_disk_size_gb", "The local data disk in GB.").of_field("data_disk_size").logged(),
    whole("data_disk_expand_quota_gb", "How many GB can be added to the local data disk.")
        .of_field("data_disk_expand_quota"),
    text("highest_cuda", "The highest CUDA version that is supported.").logged(),
    flag("support_ib_network", "Whether the specification has an IB network."),
    decimal("hourly_price", "The price of a GPU for an hour."),
    decimal("daily_price", "The price of a GPU for a day."),
    decimal("monthly_price", "The price of a GPU for a month."),
    decimal("hourly_data_disk_price", "The price of a GB of additional local data disk for an hour."),
    decimal("daily_data_disk_price", "The price of a GB of additional local data disk for a day."),
    decimal("monthly_data_disk_price", "The price of a GB of additional local data disk for a month."),
    decimal("hourly_discount", "The discount on an hour, as the service reports it; it is not applied to the prices."),
    word(
        "hourly_discount_status",
        discount_status,
        "The status of the discount on an hour: `none`, `voided`, `not_yet_effective`, `expired`, `effective` or \
         `effective_with_next`.",
    ),
    decimal("daily_discount", "The discount on a day, as the service reports it; it is not applied to the prices."),
    word(
        "daily_discount_status",
        discount_status,
        "The status of the discount on a day: `none`, `voided`, `not_yet_effective`, `expired`, `effective` or \
         `effective_with_next`.",
    ),
    decimal("monthly_discount", "The discount on a month, as the service reports it; it is not applied to the prices."),
    word(
        "monthly_discount_status",
        discount_status,
        "The status of the discount on a month: `none`, `voided`, `not_yet_effective`, `expired`, `effective` or \
         `effective_with_next`.",
    ),
    flag("rush_sale", "Whether this is a rush-sale specification.").of_field("rush_sale_status"),
];

/// `damodel_specs`.
pub(super) fn plural() -> Plural {
    let region = Attribute::optional("region", Type::String, "The region. Default: the provider's `region`.");
    let mut filters = filters();
    filters.push(Filter::Read(region.validate(rules::region())));
    Plural {
        source: Source {
            type_name: "damodel_specs",
            description: "The instance specifications of a region, with their stock and prices. Prices and stock \
                          change: every plan reads them again.",
            columns: columns(),
            filters,
            list,
        },
        rows: "specs",
        rows_description: "The specifications that match.",
    }
}

/// `damodel_spec`.
pub(super) fn singular() -> Singular {
    let first = "Whether to take the first of several, in the order of `sort_by`.";
    let mut filters = filters();
    filters.push(Filter::Exact("region"));
    filters.push(Filter::Read(Attribute::with_default("first", Type::Bool, false, first)));
    Singular {
        source: Source {
            type_name: "damodel_spec",
            description: "One instance specification: the only one that matches, or with `first` the first in the \
                          order of `sort_by`. Prices and stock change: every plan reads them again.",
            columns: columns(),
            filters,
            list,
        },
        noun: "specification",
        needs: Needs::Nothing,
        takes: Takes::First("first"),
        label,
        rest: None,
    }
}

/// The attributes of a specification, with the rules for those that are arguments.
fn columns() -> Vec<Attribute> {
    let mut columns = attributes(COLUMNS);
    for column in &mut columns {
        match &*column.name {
            "capacity_type" => column.validators.push(Validator::one_of(&["ondemand", "spot"])),
            "region" => column.validators.push(rules::region()),
            _ => {}
        }
    }
    columns
}

/// The filters, and the order.
fn filters() -> Vec<Filter> {
    let least = |column, name, description: &str| {
        let least = Attribute::optional(name, Type::Number, description).validate(Validator::between(0..=i64::MAX));
        Filter::On(column, at_least, least)
    };
    let available_only = "Whether to leave out sold-out specifications.";
    let sort_by = "`price` (by the hour, cheapest first), `gpu_mem` (largest first) or `spec_id`, the default.";
    vec![
        Filter::Exact("capacity_type"),
        Filter::Exact("gpu_name"),
        Filter::Exact("rush_sale"),
        pattern("gpu_name", "gpu_name_regex", "A regular expression that the GPU model must match."),
        least("max_gpu_count", "min_gpu_num", "How many GPUs must be available in one instance."),
        least("gpu_mem_mb", "min_gpu_mem_mb", "The minimum memory of a GPU, in MB."),
        least("cpu_per_gpu", "min_cpu_per_gpu", "The minimum number of CPU cores for each GPU."),
        least("mem_per_gpu_gb", "min_mem_per_gpu_gb", "The minimum memory for each GPU, in GB."),
        Filter::On(
            "highest_cuda",
            version_at_least,
            Attribute::optional("min_cuda", Type::String, "The minimum CUDA version, such as `12.4`.")
                .validate(Validator::text("a version such as \"12.4\"", |text| version(text).is_some())),
        ),
        Filter::On(
            "hourly_price",
            at_most,
            Attribute::optional("max_gpu_hourly_price", Type::Number, "The maximum price of a GPU per hour.")
                .validate(Validator::positive()),
        ),
        Filter::On("available", true_if, Attribute::with_default("available_only", Type::Bool, false, available_only)),
        Filter::Read(
            Attribute::optional("sort_by", Type::String, sort_by)
                .validate(Validator::one_of(&["price", "gpu_mem", "spec_id"])),
        ),
    ]
}

fn version_at_least(least: &Value) -> RowTest {
    let least = least.as_str().and_then(version);
    Box::new(move |own| own.as_str().and_then(version) >= least)
}

/// All specifications of the configured region, or of the provider's default region, in the configured order.
fn list<'a>(config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    Box::pin(async move {
        let region = config
            .attribute("region")
            .as_str()
            .or(context.client.region.as_deref())
            .ok_or_else(|| missing_region(&context.client))?;
        let specs = context.client.api.specs().snapshot(region, &limits(context)).await;
        if specs.as_ref().is_ok_and(|specs| specs.records.is_empty() && specs.complete) {
            return Err(unknown_region(region, &context.client, &limits(context)).await);
        }
        ListedRows::read(specs, &format!("specifications of region {region:?}"), config, |specs| {
            let mut rows: Vec<Value> = specs.iter().map(|spec| row(COLUMNS, &spec.json)).collect();
            for row in &mut rows {
                row.set_attribute("region", region.into());
            }
            sort(&mut rows, config.attribute("sort_by"));
            rows
        })
    })
}

/// Sorts specifications, which are in the order of their numbers. Those without the value come last.
fn sort(specs: &mut [Value], by: &Value) {
    let column = |name| move |spec: &Value| spec.attribute(name).clone();
    let (price, memory) = (column("hourly_price"), column("gpu_mem_mb"));
    match by.as_str() {
        Some("price") => specs.sort_by_cached_key(|spec| (price(spec).is_null(), price(spec))),
        Some("gpu_mem") => specs.sort_by_cached_key(|spec| Reverse(memory(spec))),
        _ => {}
    }
}

fn label(spec: &Value) -> String {
    let text = |name, otherwise| spec.attribute(name).as_str().unwrap_or(otherwise).to_owned();
    let number = |name| if let Value::Number(number) = spec.attribute(name) { Some(number) } else { None };
    let count = |name| number(name).map(ToString::to_string).unwrap_or_default();
    format!(
        "{} ({}, {}, up to {} GPUs{})",
        count("spec_id"),
        text("gpu_name", "unknown GPU"),
        text("capacity_type", "unknown capacity"),
        number("max_gpu_count").map_or_else(|| "0".to_owned(), ToString::to_string),
        number("hourly_price").map(|price| format!(", {price} an hour")).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(id: i64, gpu: &str, count: i64, cuda: &str, price: &str) -> Value {
        let spec = json!({
            "spec_id": id, "gpu_name": gpu, "max_gpu_count": count, "highest_cuda": cuda, "hourly_price": price,
        });
        row(COLUMNS, &spec)
    }

    /// The specifications that a filter accepts, in its order.
    fn ids(argument: &'static str, wanted: impl Into<Value>) -> Vec<Value> {
        let mut specs = vec![
            spec(1, "A100-80G", 4, "12.10", "6.9"),
            spec(2, "V100", 0, "11.8", "1.2"),
            spec(3, "H100", 8, "12.8", "12.5"),
        ];
        let config = Value::object([(argument, wanted.into())]);
        sort(&mut specs, config.attribute("sort_by"));
        let found = plural().source.accepted(&config, &specs);
        found.iter().map(|spec| spec.attribute("spec_id").clone()).collect()
    }

    fn are(ids: [i64; 3]) -> Vec<Value> {
        ids.into_iter().filter(|id| *id != 0).map(Value::from).collect()
    }

    #[test]
    fn the_order_is_by_number_unless_asked_otherwise() {
        assert_eq!(ids("sort_by", Value::Null), are([1, 2, 3]));
        assert_eq!(ids("sort_by", "price"), are([2, 1, 3]));
        assert_eq!(ids("sort_by", "gpu_mem"), are([1, 2, 3]));
    }

    #[test]
    fn versions_are_compared_part_by_part() {
        assert_eq!(ids("min_cuda", "12.9"), are([1, 0, 0]));
        assert_eq!(ids("min_cuda", "11"), are([1, 2, 3]));
    }

    #[test]
    fn filters_narrow() {
        assert_eq!(ids("available_only", true), are([1, 3, 0]));
        assert_eq!(ids("available_only", false), are([1, 2, 3]));
        assert_eq!(ids("gpu_name_regex", "^[AH]100"), are([1, 3, 0]));
        assert_eq!(ids("gpu_name", "A100-80G"), are([1, 0, 0]));
        assert_eq!(ids("gpu_name", "A100"), are([0, 0, 0]));
        assert_eq!(ids("min_gpu_num", 5), are([3, 0, 0]));
        assert_eq!(ids("max_gpu_hourly_price", Value::Number("6.9".parse().unwrap())), are([1, 2, 0]));
    }

    #[test]
    fn what_a_specification_does_not_say_does_not_match() {
        assert!(ids("min_gpu_mem_mb", 1).is_empty());
        assert!(ids("rush_sale", true).is_empty());
    }
}
