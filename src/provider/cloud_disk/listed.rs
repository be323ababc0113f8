//! The data sources of cloud disks, one disk and all disks that match, and their list resource.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{COLUMNS, CloudDisk};
use crate::{
    api::{self, CloudDiskFilter},
    framework::{
        Type, Value, from_value,
        schema::{Attribute, Validator},
    },
    provider::{
        StepContext,
        client::limits,
        columns::attributes,
        lifecycle::rows,
        source::{self, Filter, ListAll, ListedRows, Needs, Plural, RowsOrError, Singular, Source, Takes},
        words::{disk_status_number, storage_class_number},
    },
};

/// `damodel_cloud_disks`.
pub(in crate::provider) fn plural() -> Plural {
    Plural {
        source: Source {
            type_name: "damodel_cloud_disks",
            description: "The cloud disks of the account.",
            columns: attributes(COLUMNS),
            filters: filters(),
            list: |config, context| Box::pin(list(|_| true, config, context)),
        },
        rows: "cloud_disks",
        rows_description: "The disks that match, by id.",
    }
}

/// `damodel_cloud_disk`.
pub(in crate::provider) fn singular() -> Singular {
    Singular {
        source: Source {
            type_name: "damodel_cloud_disk",
            description: "One cloud disk, by id, UID or name.",
            columns: attributes(COLUMNS),
            filters: ["id", "uid", "name"].map(Filter::Exact).into(),
            list: existing,
        },
        noun: "cloud disk",
        needs: Needs::Any(&["id", "uid", "name"]),
        takes: Takes::TheOnlyOne,
        label: |disk| format!("{} ({})", source::numbered(disk), disk.attribute("uid").as_str().unwrap_or("no uid")),
        rest: None,
    }
}

/// The list resource `damodel_cloud_disk`.
pub(in crate::provider) fn list_all() -> ListAll {
    ListAll {
        source: Source {
            type_name: "damodel_cloud_disk",
            description: "The cloud disks of the account. Released ones are left out.",
            columns: Vec::new(),
            filters: filters(),
            list: existing,
        },
        noun: "cloud disk",
        rest: None,
    }
}

fn filters() -> Vec<Filter> {
    let filters = [
        Attribute::optional("name_or_uid", Type::String, "A part of the name or UID."),
        Attribute::optional("status", Type::String, "Only disks of this status.").validate(Validator::one_of(&[
            "starting",
            "available",
            "mounting",
            "unmounting",
            "releasing",
            "mounted",
            "released",
            "in_arrears",
        ])),
        Attribute::optional(
            "storage_classes",
            Type::list(Type::String),
            "Only disks of these storage classes: `RBD`, `FS`, `S3`.",
        )
        .validate(Validator::one_of(&["RBD", "FS", "S3"])),
        Attribute::optional("cluster_id", Type::Number, "Only disks of this cluster.").validate(Validator::whole()),
        Attribute::optional(
            "support_ib_network",
            Type::Bool,
            "The service reserves this filter: it may have no effect.",
        ),
    ];
    filters.map(Filter::Read).into()
}

/// The disks that match and are not released.
fn existing<'a>(config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    Box::pin(list(|disk| !disk.is_released(), config, context))
}

async fn list(is_shown: fn(&api::CloudDisk) -> bool, config: &Value, context: &StepContext) -> RowsOrError {
    let filter = CloudDiskFilter {
        name_or_uid: source::text(config.attribute("name_or_uid")),
        status: config.attribute("status").as_str().and_then(disk_status_number),
        spec_types: source::texts(config.attribute("storage_classes")).filter_map(storage_class_number).collect(),
        cluster_id: from_value(config.attribute("cluster_id")).ok(),
        support_ib_network: source::flag(config.attribute("support_ib_network")),
    };
    let (disks, limits) = (context.client.api.cloud_disks(), limits(context));
    let listing = if filter == CloudDiskFilter::default() {
        disks.snapshot(&limits).await
    } else {
        disks.list(&filter, &limits).await.map(Arc::new)
    };
    ListedRows::read(listing, "cloud disks", config, |disks| rows::<CloudDisk>(disks, is_shown))
}
