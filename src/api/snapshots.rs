//! Lists that many readers share (a plan of a thousand objects asks for each list a few times, not a thousand).

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::api::{
    client::Client,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    flight::{Flight, Freshness},
    listing::Listing,
    records::{CloudDisk, CloudDiskSpec, Instance, PrivateImage, PublicImage, Spec},
};

/// How long a list may serve.
const AGE_LIMIT: Duration = Duration::from_secs(30);

/// How long a shared fetch may take: it belongs to no single operation, so no operation's deadline ends it.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// A list for refresh and plans: at most 30 s old, and asked for after this client's last change.
pub(super) const SNAPSHOT: Freshness = Freshness::Within(AGE_LIMIT);

/// One list a kind; specifications by region.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) cloud_disks: Flight<Listing<CloudDisk>>,
    pub(super) cloud_disk_specs: Flight<Listing<CloudDiskSpec>>,
    pub(super) instances: Flight<Listing<Instance>>,
    pub(super) private_images: Flight<Listing<PrivateImage>>,
    pub(super) public_images: Flight<Listing<PublicImage>>,
    specs: Mutex<BTreeMap<String, Arc<Flight<Listing<Spec>>>>>,
}

impl Snapshots {
    pub(super) fn specs(&self, region: &str) -> Arc<Flight<Listing<Spec>>> {
        let mut specs = self.specs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(specs.entry(region.to_owned()).or_default())
    }
}

/// Reads through a snapshot. Cancel-safe.
///
/// # Errors
/// What the fetch failed with, or the end of the caller's context.
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
