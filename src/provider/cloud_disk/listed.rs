//! The data source `damodel_cloud_disks` (service API, GET /api/storage/cloud_disk/list).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{model::Record, schema::reported};
use crate::{
    api::CloudDiskFilter,
    framework::{
        Attr, Context, DataSource, Outcome, Private, Schema, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
    },
    provider::{
        Client,
        client::limits,
        errors::Failure,
        words::{disk_status_number, storage_class_number},
    },
};

/// The data source.
#[derive(Debug)]
pub(in crate::provider) struct List;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct CloudDisks {
    name_or_uid: Attr<String>,
    status: Attr<String>,
    storage_classes: Attr<Vec<String>>,
    cluster_id: Attr<i64>,
    support_ib_network: Attr<bool>,
    cloud_disks: Attr<Vec<Record>>,
}

impl DataSource for List {
    type Client = Client;
    type Model = CloudDisks;

    fn type_name(&self) -> &'static str {
        "damodel_cloud_disks"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The cloud disks of the account.",
            vec![
                Attribute::optional("name_or_uid", Type::String, "A part of the name or UID."),
                Attribute::optional("status", Type::String, "Only disks of this status.").validate(validator::one_of(
                    &[
                        "starting",
                        "available",
                        "mounting",
                        "unmounting",
                        "releasing",
                        "mounted",
                        "released",
                        "in_arrears",
                    ],
                )),
                Attribute::optional(
                    "storage_classes",
                    Type::list(Type::String),
                    "Only disks of these storage classes: `RBD`, `FS`, `S3`.",
                )
                .validate(validator::one_of(&["RBD", "FS", "S3"])),
                Attribute::optional("cluster_id", Type::Number, "Only disks of this cluster."),
                Attribute::optional(
                    "support_ib_network",
                    Type::Bool,
                    "Passed on to the service, which reserves it: filtering is not guaranteed.",
                ),
                Attribute::computed(
                    "cloud_disks",
                    AttributeType::Nested(Nesting::List, reported()),
                    "The disks that match, by id.",
                ),
            ],
        )
    }

    async fn read(&self, mut config: CloudDisks, context: Context<Client>) -> Outcome<CloudDisks> {
        let filter = CloudDiskFilter {
            name_or_uid: config.name_or_uid.known().cloned(),
            status: config.status.as_str().and_then(disk_status_number),
            spec_types: config
                .storage_classes
                .known()
                .into_iter()
                .flatten()
                .filter_map(|class| storage_class_number(class))
                .collect(),
            cluster_id: config.cluster_id.known().copied(),
            support_ib_network: config.support_ib_network.known().copied(),
        };
        let (disks, limits) = (context.client.api.cloud_disks(), limits(&context));
        let listing = if filter == CloudDiskFilter::default() {
            disks.snapshot(&limits).await
        } else {
            disks.list(&filter, &limits).await.map(Arc::new)
        };
        match listing {
            Ok(listing) => {
                config.cloud_disks = Attr::Known(listing.records.iter().map(Record::of).collect());
                Outcome::present(config, Private::default())
            }
            Err(error) => {
                let failure = Failure { error: &error, tried: "list the cloud disks".to_owned(), now: String::new() };
                Outcome::absent().with(failure.diagnostic(|name| match name {
                    "name_or_uid" => !config.name_or_uid.is_null(),
                    "status" => !config.status.is_null(),
                    "storage_classes" => !config.storage_classes.is_null(),
                    "cluster_id" => !config.cluster_id.is_null(),
                    _ => false,
                }))
            }
        }
    }
}
