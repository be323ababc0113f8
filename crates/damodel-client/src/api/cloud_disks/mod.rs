//! The cloud disk endpoints (service API, Cloud disks).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::{Flight, Freshness},
    listing::Listing,
    object::{Creation, Object, ObjectKind, Objects, bare, look_in_lists},
    pages::{paged, whole},
    presence::Presence,
    records::{CloudDisk, CloudDiskSpec, WithJson},
    retry::Retry,
    snapshots::Snapshots,
    watch::{Poller, Watch},
};

impl Client {
    /// Calls on cloud disks. The answer to a create has no id, so the id is looked up by the marker in the list;
    /// creates at the same time share these lists.
    #[must_use]
    pub fn cloud_disks(&self) -> Objects<CloudDisk> {
        self.objects()
    }
}

/// Filters of the cloud disk list.
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
    /// Reserved by the service, which does not promise to filter by it.
    pub support_ib_network: Option<bool>,
}

/// Filters of the cloud disk specification list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudDiskSpecFilter {
    /// A part of a name.
    pub spec_alias: Option<String>,
    /// Storage classes: 1 RBD, 2 FS, 3 S3. Empty: all.
    pub spec_types: Vec<i64>,
    /// `false` excludes specifications for IB networks only; `true` includes them.
    pub support_ib_network: Option<bool>,
}

impl Objects<CloudDisk> {
    /// The cloud disks that match a filter, in a separate request.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn list(&self, filter: &CloudDiskFilter, context: &Context) -> Result<Listing<CloudDisk>, Error> {
        let request = Request::new(Endpoint::CloudDiskList)
            .query_if("name_or_uid", filter.name_or_uid.as_ref())
            .query_if("status", filter.status)
            .query_if("spec_types", comma_separated(&filter.spec_types))
            .query_if("cluster_id", filter.cluster_id)
            .query_if("support_ib_network", filter.support_ib_network.map(i64::from));
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// Starts to resize a cloud disk to this total size in GB. The caller waits for the size and the status.
    ///
    /// # Errors
    /// Those of a repeatable change; 100002 if the size is smaller than before.
    pub async fn resize(&self, id: i64, size_gb: i64, context: &Context) -> Result<(), Error> {
        let body = json!({ "id": id, "size_gb": size_gb });
        self.client.change(context, Request::new(Endpoint::CloudDiskResize).body(&body)).await.map(drop)
    }

    /// The cloud disk specifications that match a filter. An empty filter uses a snapshot of at most 30 s.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn specs(
        &self,
        filter: &CloudDiskSpecFilter,
        context: &Context,
    ) -> Result<Arc<Listing<WithJson<CloudDiskSpec>>>, Error> {
        if *filter != CloudDiskSpecFilter::default() {
            return self.ask_specs(filter, context).await.map(Arc::new);
        }
        let flight = &self.client.snapshots().cloud_disk_specs;
        self.client
            .shared(context, flight, Freshness::Catalogue, Endpoint::CloudDiskSpecList, |client, context| async move {
                client.cloud_disks().ask_specs(&CloudDiskSpecFilter::default(), &context).await
            })
            .await
    }

    /// Without a page the service returns the whole list (service API, GET /api/storage/cloud_disk/spec); if the list
    /// is incomplete, its pages are requested.
    async fn ask_specs(
        &self,
        filter: &CloudDiskSpecFilter,
        context: &Context,
    ) -> Result<Listing<WithJson<CloudDiskSpec>>, Error> {
        let request = Request::new(Endpoint::CloudDiskSpecList)
            .query_if("spec_alias", filter.spec_alias.as_ref())
            .query_if("spec_types", comma_separated(&filter.spec_types))
            .query_if("support_ib_network", filter.support_ib_network.map(i64::from));
        let listing = whole(&self.client, context, &request).await?;
        if listing.complete {
            return Ok(listing);
        }
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }
}

#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
impl Object for CloudDisk {
    type Shown = Self;

    const KIND: ObjectKind = ObjectKind::CloudDisk;
    const LIST: Endpoint = Endpoint::CloudDiskList;
    const SEARCH: &'static str = "name_or_uid";

    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>> {
        &snapshots.cloud_disks
    }

    fn poller(watch: &Watch) -> &Arc<Poller<Self>> {
        &watch.cloud_disks
    }

    fn of_id(id: &str) -> Option<Self> {
        bare("id", &json!(id))
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    fn is_released(&self) -> bool {
        Self::is_released(self)
    }

    fn is_living(&self) -> bool {
        !matches!(self.status_name(), Some("releasing" | "released"))
    }

    fn status_text(&self) -> String {
        let status = match (self.status_name(), self.status) {
            (Some(name), _) => name.to_owned(),
            (None, Some(number)) => format!("with status {number}"),
            (None, None) => "without a status".to_owned(),
        };
        self.size_gb.map_or_else(|| status.clone(), |size| format!("{status} with {size} GB"))
    }

    fn as_shown(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn look(
        objects: &Objects<Self>,
        id: &i64,
        hint: Option<&str>,
        context: &Context,
    ) -> Result<Presence<Self>, Error> {
        look_in_lists(objects, id, hint, context).await
    }

    fn rename_request(id: &i64, name: &str) -> Request {
        Request::new(Endpoint::CloudDiskRename).body(&json!({ "id": id, "name": name }))
    }

    /// Deletes the disk's data permanently.
    fn release_request(id: &i64) -> Request {
        Request::new(Endpoint::CloudDiskRelease).body(&json!({ "id": id }))
    }
}

/// The numbers as a parameter; without numbers there is none.
fn comma_separated(numbers: &[i64]) -> Option<String> {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    (!numbers.is_empty()).then(|| numbers.join(","))
}

/// The configured cloud disk. A field that is `None` is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateCloudDisk {
    /// `size_gb`, at least 20, at most the specification's `max_size_g`.
    pub size_gb: i64,
    /// `spec_id`, of the cloud disk specification list.
    pub spec_id: i64,
    /// The configured `disk_name`. The create sends a name with a marker, and the disk is renamed after it was
    /// accepted.
    pub name: Option<String>,
    /// `mount_path`, absolute.
    pub mount_path: Option<String>,
}

impl CreateCloudDisk {
    /// A create with only the required fields.
    #[must_use]
    pub fn new(size_gb: i64, spec_id: i64) -> Self {
        Self { size_gb, spec_id, name: None, mount_path: None }
    }
}

impl Creation for CreateCloudDisk {
    type Object = CloudDisk;

    const ENDPOINT: Endpoint = Endpoint::CloudDiskCreate;

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
        // The service API requires 1 while disks are billed by use only.
        put("purchase_duration", json!(1));
        Value::Object(body)
    }
}
