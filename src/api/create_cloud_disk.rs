//! What a cloud disk create sends, and how what it makes is found (service API, POST /api/storage/cloud_disk/create).

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::api::{
    client::Client,
    cloud_disks::CloudDiskFilter,
    context::Context,
    create::{Creation, Sought, VISIBILITY_WINDOW},
    endpoint::Endpoint,
    error::Error,
    flight::Freshness,
    lenient::{read_integer, read_text},
    listing::Listing,
    pending::{Ids, Kind, Record},
    presence::Presence,
    records::CloudDisk,
};

/// The wanted cloud disk. What is `None` is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateCloudDisk {
    /// `size_gb`, at least 20, at most the specification's `max_size_g`.
    pub size_gb: i64,
    /// `spec_id`, of the cloud disk specification list.
    pub spec_id: i64,
    /// The wanted `disk_name`. What is sent carries a marker, and is to be renamed when accepted.
    pub name: Option<String>,
    /// `mount_path`, absolute.
    pub mount_path: Option<String>,
    /// `purchase_duration`. Default: 1, which the document asks for while disks are paid by use only.
    pub purchase_duration: Option<i64>,
}

/// What is known of an accepted cloud disk. Its create answers nothing, so it comes from the list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreatedCloudDisk {
    /// `id`.
    pub id: i64,
    /// `uid`; unknown when an earlier run made it, and when the service did not show it yet.
    pub uid: Option<String>,
}

impl CreateCloudDisk {
    /// The least that a create needs.
    #[must_use]
    pub fn new(size_gb: i64, spec_id: i64) -> Self {
        Self { size_gb, spec_id, name: None, mount_path: None, purchase_duration: None }
    }

    /// What is asked for, as JSON without a marker: the same for the same wanted thing, so that a key can be made of it.
    #[must_use]
    pub fn wanted(&self) -> Value {
        Creation::body(self, self.name.as_deref().unwrap_or_default())
    }
}

impl Creation for CreateCloudDisk {
    type Made = CreatedCloudDisk;

    const ENDPOINT: Endpoint = Endpoint::CloudDiskCreate;
    const KIND: Kind = Kind::CloudDisk;

    fn wanted_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn body(&self, marker: &str) -> Value {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        put("size_gb", json!(self.size_gb));
        put("spec_id", json!(self.spec_id));
        put("disk_name", json!(marker));
        if let Some(path) = &self.mount_path {
            put("mount_path", json!(path));
        }
        put("purchase_duration", json!(self.purchase_duration.unwrap_or(1)));
        Value::Object(body)
    }

    /// The document promises null; a service that says more is believed.
    fn read(&self, result: &Value) -> Option<CreatedCloudDisk> {
        Some(CreatedCloudDisk {
            id: result.get("id").and_then(read_integer)?,
            uid: result.get("uid").and_then(read_text),
        })
    }

    async fn find(
        &self,
        client: &Client,
        sent: &Record,
        since: Instant,
        context: &Context,
    ) -> Result<Sought<CreatedCloudDisk>, Error> {
        let listing = client.cloud_disks().all(Freshness::Since(since), context).await?;
        Ok(marked(&listing, &sent.marker))
    }

    async fn search(
        &self,
        client: &Client,
        sent: &Record,
        context: &Context,
    ) -> Result<Sought<CreatedCloudDisk>, Error> {
        let filter = CloudDiskFilter { name_or_uid: Some(sent.marker.clone()), ..CloudDiskFilter::default() };
        Ok(marked(&client.cloud_disks().list(&filter, context).await?, &sent.marker))
    }

    async fn is_gone(&self, client: &Client, ids: &Ids, age: Duration, context: &Context) -> bool {
        let Some(made) = self.recall(ids) else {
            return false;
        };
        match client.cloud_disks().look(made.id, made.uid.as_deref(), context).await {
            Ok(Presence::Released(_)) => true,
            // A young one may not be visible yet.
            Ok(Presence::Absent { .. }) => age > VISIBILITY_WINDOW,
            Ok(Presence::Present(_) | Presence::Unproved { .. }) | Err(_) => false,
        }
    }

    fn ids(made: &CreatedCloudDisk) -> Ids {
        Ids { id: made.id.to_string(), database_id: Some(made.id) }
    }

    fn recall(&self, ids: &Ids) -> Option<CreatedCloudDisk> {
        Some(CreatedCloudDisk { id: ids.database_id?, uid: None })
    }
}

fn marked(listing: &Listing<CloudDisk>, marker: &str) -> Sought<CreatedCloudDisk> {
    let found = listing
        .records
        .iter()
        .filter(|disk| disk.name.as_deref() == Some(marker))
        .map(|disk| CreatedCloudDisk { id: disk.id, uid: disk.uid.clone() })
        .collect();
    Sought { found, complete: listing.complete }
}
