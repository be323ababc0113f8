//! The data sources of cloud disks: one disk, and all disks that match the filters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::schema::{CloudDisk, DiskRecord, reported};
use crate::{
    api::{self, CloudDiskFilter, Listing},
    framework::{
        Attr, Diagnostic, Diagnostics, Path, Schema, StepContext, Type, is_set,
        schema::{Attribute, AttributeType, Nesting, Requirement, validator},
    },
    provider::{
        ProviderClient,
        client::limits,
        errors::Failure,
        lifecycle::{self, PluralModel, SingularModel},
        words::{disk_status_number, storage_class_number},
    },
};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct CloudDisks {
    name_or_uid: Attr<String>,
    status: Attr<String>,
    storage_classes: Attr<Vec<Attr<String>>>,
    cluster_id: Attr<i64>,
    support_ib_network: Attr<bool>,
    cloud_disks: Attr<Vec<DiskRecord>>,
}

impl PluralModel for CloudDisks {
    type Filters = Filters;
    type Row = DiskRecord;

    const TYPE_NAME: &'static str = "damodel_cloud_disks";

    fn schema() -> Schema {
        let mut attributes = arguments();
        attributes.push(Attribute::computed(
            "cloud_disks",
            AttributeType::Nested(Nesting::List, reported()),
            "The disks that match, by id.",
        ));
        Schema::new("The cloud disks of the account.", attributes)
    }

    fn rows(&mut self) -> &mut Attr<Vec<DiskRecord>> {
        &mut self.cloud_disks
    }
}

/// The filters of the data source and of the list resource.
fn arguments() -> Vec<Attribute> {
    vec![
        Attribute::optional("name_or_uid", Type::String, "A part of the name or UID."),
        Attribute::optional("status", Type::String, "Only disks of this status.").validate(validator::one_of(&[
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
        .validate(validator::one_of(&["RBD", "FS", "S3"])),
        Attribute::optional("cluster_id", Type::Number, "Only disks of this cluster.").validate(validator::whole()),
        Attribute::optional(
            "support_ib_network",
            Type::Bool,
            "Sent to the service, which reserves this filter: it may have no effect.",
        ),
    ]
}

/// The filters, which are also the configuration of the list resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Filters {
    name_or_uid: Attr<String>,
    status: Attr<String>,
    storage_classes: Attr<Vec<Attr<String>>>,
    cluster_id: Attr<i64>,
    support_ib_network: Attr<bool>,
}

impl lifecycle::Filters for Filters {
    type Managed = CloudDisk;

    fn schema() -> Schema {
        Schema::new("The cloud disks of the account. Released ones are left out.", arguments())
    }

    async fn matching(
        &self,
        context: &StepContext<ProviderClient>,
    ) -> Result<Arc<Listing<api::CloudDisk>>, Diagnostic> {
        let filter = CloudDiskFilter {
            name_or_uid: self.name_or_uid.known().cloned(),
            status: self.status.as_str().and_then(disk_status_number),
            spec_types: self.storage_classes.elements().filter_map(|(_, class)| storage_class_number(class)).collect(),
            cluster_id: self.cluster_id.known().copied(),
            support_ib_network: self.support_ib_network.known().copied(),
        };
        let (disks, limits) = (context.client.api.cloud_disks(), limits(context));
        let listing = if filter == CloudDiskFilter::default() {
            disks.snapshot(&limits).await
        } else {
            disks.list(&filter, &limits).await.map(Arc::new)
        };
        listing.map_err(|error| {
            let failure = Failure { error: &error, tried: "list the cloud disks".to_owned(), now: String::new() };
            failure.diagnostic(|name| is_set(self, name))
        })
    }
}

impl SingularModel for DiskRecord {
    type Managed = CloudDisk;

    fn schema() -> Schema {
        let as_argument = |mut attribute: Attribute| {
            if matches!(&*attribute.name, "id" | "uid" | "name") {
                attribute.requirement = Requirement::OptionalComputed;
                attribute.description.push_str(" As an argument it must match exactly.");
            }
            attribute
        };
        Schema::new("One cloud disk, by id, UID or name.", reported().into_iter().map(as_argument).collect())
    }

    fn validate(&self, diagnostics: &mut Diagnostics) {
        if self.id.is_null() && self.uid.is_null() && self.name.is_null() {
            diagnostics.error_at(Path::to("id"), "Which disk?", "Set id, uid or name.");
        }
    }

    fn label(disk: &api::CloudDisk) -> String {
        let (name, uid) = (disk.name.as_deref().unwrap_or_default(), disk.uid.as_deref().unwrap_or("no uid"));
        format!("{} {name:?} ({uid})", disk.id)
    }

    fn matches(&self) -> impl Fn(&api::CloudDisk) -> bool + Send + Sync {
        |disk| {
            self.id.as_str().is_none_or(|id| disk.id.to_string() == id)
                && self.uid.as_str().is_none_or(|uid| disk.uid.as_deref() == Some(uid))
                && self.name.as_str().is_none_or(|name| disk.name.as_deref() == Some(name))
        }
    }
}
