//! The data sources of specifications of cloud disks, one and all that match (service API, GET
//! /api/storage/cloud_disk/spec).

use futures_util::future::BoxFuture;

use super::{
    StepContext,
    client::limits,
    columns::{Column, attributes, flag, id, row, text, whole, word},
    source::{self, Filter, ListedRows, Needs, Plural, RowsOrError, Singular, Source, Takes},
    words::{storage_class, storage_class_number},
};
use crate::{
    api::CloudDiskSpecFilter,
    framework::{
        Type, Value,
        schema::{Attribute, Validator},
    },
};

/// A specification of cloud disks (service API, Cloud disk specification).
pub(super) static COLUMNS: &[Column] = &[
    id("id", "The specification's number, as text.").logged(),
    whole("spec_id", "The specification's number; disks take it as `spec_id`.").of_field("id").logged(),
    text("spec_alias", "The specification's name.").logged(),
    flag("multiple_mounting", "Whether several instances can mount one disk at the same time.").logged(),
    whole("max_size_gib", "The largest capacity of one disk in GiB.").of_field("max_size_g").logged(),
    word("storage_class", storage_class, "`RBD`, `FS` or `S3`.").of_field("storage_class_type").logged(),
];

/// `damodel_cloud_disk_specs`.
pub(super) fn plural() -> Plural {
    let filters = vec![
        Attribute::optional("spec_alias", Type::String, "A part of the name."),
        Attribute::optional(
            "storage_classes",
            Type::list(Type::String),
            "Only specifications of these storage classes: `RBD`, `FS`, `S3`.",
        )
        .validate(Validator::one_of(&["RBD", "FS", "S3"])),
        Attribute::optional(
            "support_ib_network",
            Type::Bool,
            "`false` leaves out specifications that are for IB networks only; `true` includes them.",
        ),
    ];
    Plural {
        source: Source {
            type_name: "damodel_cloud_disk_specs",
            description: "The specifications of cloud disks.",
            columns: attributes(COLUMNS),
            filters: filters.into_iter().map(Filter::Read).collect(),
            list: |config, context| {
                let classes = source::texts(config.attribute("storage_classes"));
                let filter = CloudDiskSpecFilter {
                    spec_alias: source::text(config.attribute("spec_alias")),
                    spec_types: classes.filter_map(storage_class_number).collect(),
                    support_ib_network: source::flag(config.attribute("support_ib_network")),
                };
                list(filter, config, context)
            },
        },
        rows: "specs",
        rows_description: "The specifications that match, by id.",
    }
}

/// `damodel_cloud_disk_spec`.
pub(super) fn singular() -> Singular {
    Singular {
        source: Source {
            type_name: "damodel_cloud_disk_spec",
            description: "One cloud disk specification: the only one that matches.",
            columns: attributes(COLUMNS),
            filters: ["id", "spec_alias", "multiple_mounting", "storage_class"].map(Filter::Exact).into(),
            list: |config, context| list(CloudDiskSpecFilter::default(), config, context),
        },
        noun: "cloud disk specification",
        needs: Needs::Nothing,
        takes: Takes::TheOnlyOne,
        label: |spec| {
            let text = |name| spec.attribute(name).as_str().unwrap_or_default();
            format!("{} {:?} ({})", text("id"), text("spec_alias"), text("storage_class"))
        },
        rest: None,
    }
}

fn list<'a>(filter: CloudDiskSpecFilter, config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    Box::pin(async move {
        let specs = context.client.api.cloud_disks().specs(&filter, &limits(context)).await;
        ListedRows::read(specs, "cloud disk specifications", config, |specs| {
            specs.iter().map(|spec| row(COLUMNS, &spec.json)).collect()
        })
    })
}
