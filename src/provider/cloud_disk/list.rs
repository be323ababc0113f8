//! The list resource `damodel_cloud_disk`: the disks of the account, for `terraform query`.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{
    listed::{Wanted, arguments, matching},
    model::CloudDisk,
};
use crate::{
    framework::{Attr, Context, Diagnostics, Found, ListResource, Listed, Schema},
    provider::Client,
};

/// The list resource.
#[derive(Debug)]
pub(in crate::provider) struct ListAll;

/// Its filters, which are those of the data source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Filters {
    name_or_uid: Attr<String>,
    status: Attr<String>,
    storage_classes: Attr<Vec<Attr<String>>>,
    cluster_id: Attr<i64>,
    support_ib_network: Attr<bool>,
}

impl ListResource for ListAll {
    type Client = Client;
    type Model = Filters;
    type Resource = CloudDisk;

    fn type_name(&self) -> &'static str {
        "damodel_cloud_disk"
    }

    fn schema(&self) -> Schema {
        Schema::new("The cloud disks of the account. Released ones are left out.", arguments())
    }

    async fn list(&self, config: Filters, mut found: Found<'_, CloudDisk>, context: Context<Client>) -> Diagnostics {
        let wanted = Wanted {
            name_or_uid: &config.name_or_uid,
            status: &config.status,
            storage_classes: &config.storage_classes,
            cluster_id: &config.cluster_id,
            support_ib_network: &config.support_ib_network,
        };
        let listing = match matching(&wanted, &context).await {
            Ok(listing) => listing,
            Err(diagnostic) => return diagnostic.into(),
        };
        for disk in listing.records.iter().filter(|disk| !disk.is_released()) {
            let mut state = CloudDisk::default();
            state.take(disk);
            let display_name = disk.name.clone().or_else(|| disk.uid.clone()).unwrap_or_else(|| disk.id.to_string());
            if let ControlFlow::Break(()) = found.tell(Listed { display_name, state }).await {
                break;
            }
        }
        Diagnostics::new()
    }
}
