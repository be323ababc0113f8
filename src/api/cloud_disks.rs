//! The cloud disk list (service API, Cloud disks).

use std::sync::Arc;

use crate::api::{
    client::Client,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    flight::Freshness,
    listing::{Listing, paged},
    records::CloudDisk,
    request::Request,
    retry::Retry,
    snapshots::{SNAPSHOT, shared},
};

/// Calls on cloud disks; made by [`Client::cloud_disks`].
#[derive(Debug, Clone)]
pub struct CloudDisks {
    client: Client,
}

impl Client {
    /// Calls on cloud disks.
    #[must_use]
    pub fn cloud_disks(&self) -> CloudDisks {
        CloudDisks { client: self.clone() }
    }
}

/// Which cloud disks a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudDiskFilter {
    /// A part of a name or UID.
    pub name_or_uid: Option<String>,
    /// A status, 1 to 8.
    pub status: Option<i64>,
    /// Storage classes: 1 RBD, 2 FS, 3 S3. Empty: all.
    pub spec_types: Vec<i64>,
    /// A cluster.
    pub cluster_id: Option<i64>,
    /// Reserved by the service: filtering is not guaranteed.
    pub support_ib_network: Option<bool>,
}

impl CloudDisks {
    /// The cloud disks that a filter selects, asked for now.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn list(&self, filter: &CloudDiskFilter, context: &Context) -> Result<Listing<CloudDisk>, Error> {
        let mut request = Request::new(Endpoint::CloudDiskList);
        if let Some(text) = &filter.name_or_uid {
            request = request.query("name_or_uid", text);
        }
        if let Some(status) = filter.status {
            request = request.query("status", status);
        }
        if !filter.spec_types.is_empty() {
            let types: Vec<String> = filter.spec_types.iter().map(i64::to_string).collect();
            request = request.query("spec_types", types.join(","));
        }
        if let Some(cluster) = filter.cluster_id {
            request = request.query("cluster_id", cluster);
        }
        if let Some(supported) = filter.support_ib_network {
            request = request.query("support_ib_network", i64::from(supported));
        }
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// All cloud disks, at most 30 s old and not older than this client's last change.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn snapshot(&self, context: &Context) -> Result<Arc<Listing<CloudDisk>>, Error> {
        self.all(SNAPSHOT, context).await
    }

    /// All cloud disks, asked for after this call; callers at the same time share the request.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn fresh(&self, context: &Context) -> Result<Arc<Listing<CloudDisk>>, Error> {
        self.all(Freshness::Fresh, context).await
    }

    async fn all(&self, freshness: Freshness, context: &Context) -> Result<Arc<Listing<CloudDisk>>, Error> {
        let flight = &self.client.snapshots().cloud_disks;
        shared(&self.client, context, flight, freshness, Endpoint::CloudDiskList, |client, context| async move {
            client.cloud_disks().list(&CloudDiskFilter::default(), &context).await
        })
        .await
    }
}
