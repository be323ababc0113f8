//! The calls on specifications and public images (service API, Specification queries and Public image list).

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::Freshness,
    listing::Listing,
    pages::whole,
    records::{PublicImage, Spec, WithJson},
};

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
        self.client
            .shared(context, &flight, freshness, Endpoint::SpecList, |client, context| {
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
        self.shared(context, flight, Freshness::Catalogue, Endpoint::PublicImageList, |client, context| async move {
            client.ask_public_images(&PublicImageFilter::default(), &context).await
        })
        .await
    }

    async fn ask_public_images(
        &self,
        filter: &PublicImageFilter,
        context: &Context,
    ) -> Result<Listing<WithJson<PublicImage>>, Error> {
        let request = Request::new(Endpoint::PublicImageList)
            .query_if("label", filter.label.as_ref())
            .query_if("name", filter.name.as_ref());
        whole(self, context, &request).await
    }
}
