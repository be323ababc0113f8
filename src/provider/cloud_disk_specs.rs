//! The data source `damodel_cloud_disk_specs` (service API, GET /api/storage/cloud_disk/spec).

use serde::{Deserialize, Serialize};

use super::{
    ProviderClient,
    client::limits,
    errors::Failure,
    words::{storage_class, storage_class_number},
};
use crate::{
    api::{CloudDiskSpec, CloudDiskSpecFilter},
    framework::{
        Attr, DataSource, Outcome, Private, Schema, StepContext, Type,
        schema::{Attribute, AttributeType, Nesting, validator},
    },
};

#[derive(Debug)]
pub(super) struct List;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CloudDiskSpecs {
    spec_alias: Attr<String>,
    storage_classes: Attr<Vec<Attr<String>>>,
    support_ib_network: Attr<bool>,
    specs: Attr<Vec<DiskSpecRecord>>,
}

/// One specification (service API, Cloud disk specification).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct DiskSpecRecord {
    id: Attr<String>,
    spec_alias: Attr<String>,
    multiple_mounting: Attr<bool>,
    max_size_gib: Attr<i64>,
    storage_class: Attr<String>,
}

impl DataSource for List {
    type Client = ProviderClient;
    type Model = CloudDiskSpecs;

    fn type_name(&self) -> &'static str {
        "damodel_cloud_disk_specs"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The specifications of cloud disks.",
            vec![
                Attribute::optional("spec_alias", Type::String, "A part of the name."),
                Attribute::optional(
                    "storage_classes",
                    Type::list(Type::String),
                    "Only specifications of these storage classes: `RBD`, `FS`, `S3`.",
                )
                .validate(validator::one_of(&["RBD", "FS", "S3"])),
                Attribute::optional(
                    "support_ib_network",
                    Type::Bool,
                    "`false` leaves out specifications that are for IB networks only; `true` includes them.",
                ),
                Attribute::computed(
                    "specs",
                    AttributeType::Nested(Nesting::List, attributes()),
                    "The specifications that match, by id.",
                ),
            ],
        )
    }

    async fn read(&self, mut config: CloudDiskSpecs, context: StepContext<ProviderClient>) -> Outcome<CloudDiskSpecs> {
        let filter = CloudDiskSpecFilter {
            spec_alias: config.spec_alias.known().cloned(),
            spec_types: config
                .storage_classes
                .elements()
                .filter_map(|(_, class)| storage_class_number(class))
                .collect(),
            support_ib_network: config.support_ib_network.known().copied(),
        };
        match context.client.api.cloud_disks().specs(&filter, &limits(&context)).await {
            Ok(listing) => {
                config.specs = Attr::Known(listing.records.iter().map(DiskSpecRecord::of).collect());
                Outcome::present(config, Private::default())
            }
            Err(error) => {
                let tried = "list the cloud disk specifications".to_owned();
                let failure = Failure { error: &error, tried, now: String::new() };
                Outcome::absent().with(failure.diagnostic(|name| match name {
                    "spec_alias" => !config.spec_alias.is_null(),
                    "storage_classes" => !config.storage_classes.is_null(),
                    "support_ib_network" => !config.support_ib_network.is_null(),
                    _ => false,
                }))
            }
        }
    }
}

impl DiskSpecRecord {
    fn of(spec: &CloudDiskSpec) -> Self {
        Self {
            id: Attr::Known(spec.id.to_string()),
            spec_alias: spec.spec_alias.clone().into(),
            multiple_mounting: spec.multiple_mounting.into(),
            max_size_gib: spec.max_size_g.into(),
            storage_class: spec.storage_class_type.map(storage_class).into(),
        }
    }
}

fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::computed("id", Type::String, "The specification's number, as text; disks take it as `spec_id`."),
        Attribute::computed("spec_alias", Type::String, "The name."),
        Attribute::computed(
            "multiple_mounting",
            Type::Bool,
            "Whether several instances can mount one disk at the same time.",
        ),
        Attribute::computed("max_size_gib", Type::Number, "The largest capacity of one disk in GiB."),
        Attribute::computed("storage_class", Type::String, "`RBD`, `FS` or `S3`."),
    ]
}
