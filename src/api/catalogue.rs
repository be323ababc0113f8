//! Lists that many readers share (the plan of a thousand objects requests each list a few times, not a thousand times),
//! and the calls on specifications and public images (service API, Specification queries and Public image list).

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::{Flight, Freshness},
    listing::{Listing, whole},
    records::{CloudDisk, CloudDiskSpec, Instance, PrivateImage, PublicImage, Spec, WithJson},
};

/// The time limit of a shared fetch. It belongs to no single operation, so no operation's deadline ends it.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

type SpecFlight = Flight<Listing<WithJson<Spec>>>;

/// One list per kind; for specifications, one per region.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) cloud_disks: Flight<Listing<CloudDisk>>,
    pub(super) cloud_disk_specs: Flight<Listing<WithJson<CloudDiskSpec>>>,
    pub(super) instances: Flight<Listing<Instance>>,
    pub(super) private_images: Flight<Listing<PrivateImage>>,
    pub(super) public_images: Flight<Listing<WithJson<PublicImage>>>,
    specs: Mutex<BTreeMap<String, Arc<SpecFlight>>>,
}

impl Snapshots {
    pub(super) fn specs(&self, region: &str) -> Arc<SpecFlight> {
        let mut specs = self.specs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(specs.entry(region.to_owned()).or_default())
    }
}

/// Reads through a snapshot. Cancel-safe.
///
/// # Errors
/// The error of the fetch, or the end of the caller's context.
pub(super) async fn shared<T, F>(
    client: &Client,
    context: &Context,
    flight: &Flight<T>,
    freshness: Freshness,
    endpoint: Endpoint,
    fetch: impl Fn(Client, Context) -> F,
) -> Result<Arc<T>, Error>
where
    T: Send + Sync + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let own = || Context::within(FETCH_LIMIT, &CancellationToken::new());
    let get = flight.get(freshness, || client.changes(), || fetch(client.clone(), own()));
    context.run(get).await.map_err(|ended| ended.error(endpoint))?
}

/// The calls on specifications; made by [`Client::specs`].
#[derive(Debug, Clone)]
pub struct Specs {
    client: Client,
}

impl Client {
    /// The calls on specifications.
    #[must_use]
    pub fn specs(&self) -> Specs {
        Specs { client: self.clone() }
    }
}

impl Specs {
    /// All specifications of a region, both capacity types, at most 30 s old and not older than this client's
    /// last change.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn snapshot(&self, region: &str, context: &Context) -> Result<Arc<Listing<WithJson<Spec>>>, Error> {
        self.all(region, Freshness::Snapshot, context).await
    }

    /// All specifications of a region, requested after this call: prices and stock before a purchase.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn fresh(&self, region: &str, context: &Context) -> Result<Arc<Listing<WithJson<Spec>>>, Error> {
        self.all(region, Freshness::Fresh, context).await
    }

    /// All specifications of a region, requested at this time or later.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn since(
        &self,
        region: &str,
        time: Instant,
        context: &Context,
    ) -> Result<Arc<Listing<WithJson<Spec>>>, Error> {
        self.all(region, Freshness::Since(time), context).await
    }

    async fn all(
        &self,
        region: &str,
        freshness: Freshness,
        context: &Context,
    ) -> Result<Arc<Listing<WithJson<Spec>>>, Error> {
        let flight = self.client.snapshots().specs(region);
        shared(&self.client, context, &flight, freshness, Endpoint::SpecList, |client, context| {
            let request = Request::new(Endpoint::SpecList).query("region", region);
            async move { whole(&client, &context, &request).await }
        })
        .await
    }
}

/// Filters of the public image list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicImageFilter {
    /// One label.
    pub label: Option<String>,
    /// A part of an image's name, or of a software's name or version.
    pub name: Option<String>,
}

impl Client {
    /// The public images that match a filter. An empty filter uses a snapshot of at most 30 s.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn public_images(
        &self,
        filter: &PublicImageFilter,
        context: &Context,
    ) -> Result<Arc<Listing<WithJson<PublicImage>>>, Error> {
        if *filter != PublicImageFilter::default() {
            return self.ask_public_images(filter, context).await.map(Arc::new);
        }
        let flight = &self.snapshots().public_images;
        let endpoint = Endpoint::PublicImageList;
        shared(self, context, flight, Freshness::Catalogue, endpoint, |client, context| async move {
            client.ask_public_images(&PublicImageFilter::default(), &context).await
        })
        .await
    }

    async fn ask_public_images(
        &self,
        filter: &PublicImageFilter,
        context: &Context,
    ) -> Result<Listing<WithJson<PublicImage>>, Error> {
        let mut request = Request::new(Endpoint::PublicImageList);
        if let Some(label) = &filter.label {
            request = request.query("label", label);
        }
        if let Some(name) = &filter.name {
            request = request.query("name", name);
        }
        whole(self, context, &request).await
    }
}
