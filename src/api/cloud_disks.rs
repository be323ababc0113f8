//! The cloud disk endpoints (service API, Cloud disks).

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;

use crate::api::{
    client::Client,
    context::Context,
    create::{Accepted, CreateOptions, create},
    create_cloud_disk::{CreateCloudDisk, CreatedCloudDisk},
    endpoint::Endpoint,
    error::Error,
    flight::Freshness,
    listing::{Listing, paged, whole},
    marker,
    pending::{Journal, Kind},
    presence::{Presence, judge_missing},
    records::{CloudDisk, CloudDiskSpec},
    request::Request,
    retry::Retry,
    snapshots::{SNAPSHOT, shared},
    watch::Sighting,
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

/// Which cloud disk specifications a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudDiskSpecFilter {
    /// A part of a name.
    pub spec_alias: Option<String>,
    /// Storage classes: 1 RBD, 2 FS, 3 S3. Empty: all.
    pub spec_types: Vec<i64>,
    /// `false` leaves out those for IB networks only; `true` allows them.
    pub support_ib_network: Option<bool>,
}

impl CloudDisks {
    /// Creates a cloud disk, once, whatever happens on the way: see [`Accepted`].
    ///
    /// The service answers nothing to it, so its id is always learned by looking its marker up in the list, at
    /// most until `context` ends; looks for many disks share their lists. Everything else is as with
    /// [`Instances::create`](crate::api::Instances::create). Whoever asked for it waits for status 2, and
    /// renames it, through [`Self::wait`] and [`Self::rename`].
    ///
    /// # Errors
    /// The service's refusal; a journal that cannot be written (nothing was sent then); [`Error::Unsettled`]
    /// when the disk was not seen yet, and [`Error::SeveralMatches`].
    ///
    /// ```no_run
    /// # async fn example(client: damodel::api::Client, context: damodel::api::Context) -> Result<(), Box<dyn std::error::Error>> {
    /// use damodel::api::{CreateCloudDisk, CreateOptions, Journal};
    ///
    /// let (disks, journal) = (client.cloud_disks(), Journal::new("pending"));
    /// let request = CreateCloudDisk { name: Some("data".to_owned()), ..CreateCloudDisk::new(100, 2) };
    /// let accepted = disks.create(request, "my-key", &journal, CreateOptions::default(), &context).await?;
    /// disks.wait(accepted.made.id, &context, |seen| seen.record().is_some_and(|disk| disk.status == Some(2))).await?;
    /// if let Some(name) = &accepted.rename_to {
    ///     disks.rename(accepted.made.id, name, &context).await?;
    /// }
    /// accepted.entry.handed_over()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create(
        &self,
        request: CreateCloudDisk,
        key: &str,
        journal: &Journal,
        options: CreateOptions,
        context: &Context,
    ) -> Result<Accepted<CreatedCloudDisk>, Error> {
        create(&self.client, request, key, journal, options, context).await
    }

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
            request = request.query("spec_types", comma_separated(&filter.spec_types));
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

    pub(super) async fn all(&self, freshness: Freshness, context: &Context) -> Result<Arc<Listing<CloudDisk>>, Error> {
        let flight = &self.client.snapshots().cloud_disks;
        shared(&self.client, context, flight, freshness, Endpoint::CloudDiskList, |client, context| async move {
            client.cloud_disks().list(&CloudDiskFilter::default(), &context).await
        })
        .await
    }

    /// Whether a cloud disk exists, proved: a list of all, and when that lacks it a search for `known` (its UID or
    /// else its name), or without one another list of all. Neither look uses a snapshot.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn look(
        &self,
        id: i64,
        known: Option<&str>,
        context: &Context,
    ) -> Result<Presence<CloudDisk, CloudDisk>, Error> {
        let listed_at = Instant::now();
        let listing = self.fresh(context).await?;
        match listing.find(&id) {
            Some(disk) if disk.is_released() => return Ok(Presence::Released(Box::new(disk.clone()))),
            Some(disk) => return Ok(Presence::Present(Box::new(disk.clone()))),
            None if !listing.complete => return Ok(Presence::Unproved { reason: "the list is not complete" }),
            None => {}
        }
        let filter = CloudDiskFilter { name_or_uid: known.map(str::to_owned), ..CloudDiskFilter::default() };
        let search = self.list(&filter, context).await?;
        Ok(judge_missing(&id, listed_at, &listing, &search))
    }

    /// Gives a cloud disk another name.
    ///
    /// # Errors
    /// Any of a change that may be repeated.
    pub async fn rename(&self, id: i64, name: &str, context: &Context) -> Result<(), Error> {
        let body = json!({ "id": id, "name": name });
        self.client.change(context, Request::new(Endpoint::CloudDiskRename).body(&body)).await.map(drop)
    }

    /// Begins to grow a cloud disk to this size in all, in GB. The caller waits for the size and the status.
    ///
    /// # Errors
    /// Any of a change that may be repeated; 100002 when it would shrink.
    pub async fn resize(&self, id: i64, size_gb: i64, context: &Context) -> Result<(), Error> {
        let body = json!({ "id": id, "size_gb": size_gb });
        self.client.change(context, Request::new(Endpoint::CloudDiskResize).body(&body)).await.map(drop)
    }

    /// Begins the release of a cloud disk: its data is deleted for good. The caller waits for status 7, or for a
    /// list without it.
    ///
    /// # Errors
    /// Any of a change that may be repeated; a mounted disk is refused.
    pub async fn release(&self, id: i64, context: &Context) -> Result<(), Error> {
        let body = json!({ "id": id });
        self.client.change(context, Request::new(Endpoint::CloudDiskRelease).body(&body)).await.map(drop)
    }

    /// Waits until `until` says yes to what was seen of a cloud disk, through the poller that all waits share.
    ///
    /// # Errors
    /// [`Error::WaitEnded`] with what was last seen when `context` ends, and a failure that waiting cannot mend.
    pub async fn wait(
        &self,
        id: i64,
        context: &Context,
        until: impl FnMut(&Sighting<CloudDisk>) -> bool + Send,
    ) -> Result<Sighting<CloudDisk>, Error> {
        self.client.poller().cloud_disk(&self.client, id, context, until).await
    }

    /// Living cloud disks of a list that are named `<name>-<8 hex>` and whose create nobody answers for: what a run
    /// may have left behind whose journal is lost, or that was in another folder. `key` is that of the create that asks.
    #[must_use]
    pub fn look_alikes<'a>(
        listing: &'a Listing<CloudDisk>,
        name: &str,
        journal: &Journal,
        key: &str,
    ) -> Vec<&'a CloudDisk> {
        let explained = journal.explained(Kind::CloudDisk, key);
        let is_unexplained = |disk: &&CloudDisk| {
            !disk.is_released()
                && disk
                    .name
                    .as_deref()
                    .is_some_and(|own| marker::marks(own, name) && !explained.iter().any(|known| known == own))
        };
        listing.records.iter().filter(is_unexplained).collect()
    }

    /// The cloud disk specifications that a filter selects; all of them come from a snapshot of at most 30 s.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn specs(
        &self,
        filter: &CloudDiskSpecFilter,
        context: &Context,
    ) -> Result<Arc<Listing<CloudDiskSpec>>, Error> {
        if *filter != CloudDiskSpecFilter::default() {
            return self.ask_specs(filter, context).await.map(Arc::new);
        }
        let flight = &self.client.snapshots().cloud_disk_specs;
        let endpoint = Endpoint::CloudDiskSpecList;
        shared(&self.client, context, flight, SNAPSHOT, endpoint, |client, context| async move {
            client.cloud_disks().ask_specs(&CloudDiskSpecFilter::default(), &context).await
        })
        .await
    }

    /// Without a page everything comes at once (service API, GET /api/storage/cloud_disk/spec); a service that
    /// keeps some back is asked for its pages.
    async fn ask_specs(
        &self,
        filter: &CloudDiskSpecFilter,
        context: &Context,
    ) -> Result<Listing<CloudDiskSpec>, Error> {
        let mut request = Request::new(Endpoint::CloudDiskSpecList);
        if let Some(name) = &filter.spec_alias {
            request = request.query("spec_alias", name);
        }
        if !filter.spec_types.is_empty() {
            request = request.query("spec_types", comma_separated(&filter.spec_types));
        }
        if let Some(allowed) = filter.support_ib_network {
            request = request.query("support_ib_network", i64::from(allowed));
        }
        let listing = whole(&self.client, context, &request).await?;
        if listing.complete {
            return Ok(listing);
        }
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }
}

fn comma_separated(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests;
