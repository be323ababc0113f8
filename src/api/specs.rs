//! The specification list (service API, Specification queries).

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::Freshness,
    listing::{Listing, whole},
    records::Spec,
    snapshots::{SNAPSHOT, shared},
};

/// Calls on specifications; made by [`Client::specs`].
#[derive(Debug, Clone)]
pub struct Specs {
    client: Client,
}

impl Client {
    /// Calls on specifications.
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
    /// Any of a read.
    pub async fn snapshot(&self, region: &str, context: &Context) -> Result<Arc<Listing<Spec>>, Error> {
        self.all(region, SNAPSHOT, context).await
    }

    /// All specifications of a region, asked for after this call: prices and stock before something is bought.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn fresh(&self, region: &str, context: &Context) -> Result<Arc<Listing<Spec>>, Error> {
        self.all(region, Freshness::Fresh, context).await
    }

    /// All specifications of a region, asked for at this time or later.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn since(&self, region: &str, time: Instant, context: &Context) -> Result<Arc<Listing<Spec>>, Error> {
        self.all(region, Freshness::Since(time), context).await
    }

    async fn all(&self, region: &str, freshness: Freshness, context: &Context) -> Result<Arc<Listing<Spec>>, Error> {
        let flight = self.client.snapshots().specs(region);
        shared(&self.client, context, &flight, freshness, Endpoint::SpecList, |client, context| {
            let request = Request::new(Endpoint::SpecList).query("region", region);
            async move { whole(&client, &context, &request).await }
        })
        .await
    }
}
