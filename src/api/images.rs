//! The image lists (service API, Images).

use std::sync::Arc;

use crate::api::{
    client::Client,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    flight::Freshness,
    listing::{Listing, paged, whole},
    records::{PrivateImage, PublicImage},
    request::Request,
    retry::Retry,
    snapshots::{SNAPSHOT, shared},
};

/// Calls on images; made by [`Client::images`].
#[derive(Debug, Clone)]
pub struct Images {
    client: Client,
}

impl Client {
    /// Calls on images.
    #[must_use]
    pub fn images(&self) -> Images {
        Images { client: self.clone() }
    }
}

/// Which public images a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicImageFilter {
    /// One label.
    pub label: Option<String>,
    /// A part of an image's name, or of a software's name or version.
    pub name: Option<String>,
}

/// Which private images a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateImageFilter {
    /// `image_name`.
    pub name: Option<String>,
    /// `image_status`: 0 creating, 1 ready.
    pub status: Option<i64>,
}

impl Images {
    /// The public images that a filter selects; all of them come from a snapshot of at most 30 s.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn public(
        &self,
        filter: &PublicImageFilter,
        context: &Context,
    ) -> Result<Arc<Listing<PublicImage>>, Error> {
        if *filter != PublicImageFilter::default() {
            return self.ask_public(filter, context).await.map(Arc::new);
        }
        let flight = &self.client.snapshots().public_images;
        let endpoint = Endpoint::PublicImageList;
        shared(&self.client, context, flight, SNAPSHOT, endpoint, |client, context| async move {
            client.images().ask_public(&PublicImageFilter::default(), &context).await
        })
        .await
    }

    async fn ask_public(&self, filter: &PublicImageFilter, context: &Context) -> Result<Listing<PublicImage>, Error> {
        let mut request = Request::new(Endpoint::PublicImageList);
        if let Some(label) = &filter.label {
            request = request.query("label", label);
        }
        if let Some(name) = &filter.name {
            request = request.query("name", name);
        }
        whole(&self.client, context, &request).await
    }

    /// The private images that a filter selects, asked for now.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn list_private(
        &self,
        filter: &PrivateImageFilter,
        context: &Context,
    ) -> Result<Listing<PrivateImage>, Error> {
        let mut request = Request::new(Endpoint::PrivateImageList);
        if let Some(name) = &filter.name {
            request = request.query("image_name", name);
        }
        if let Some(status) = filter.status {
            request = request.query("image_status", status);
        }
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// All private images, at most 30 s old and not older than this client's last change.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn private_snapshot(&self, context: &Context) -> Result<Arc<Listing<PrivateImage>>, Error> {
        self.all_private(SNAPSHOT, context).await
    }

    /// All private images, asked for after this call; callers at the same time share the request.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn private_fresh(&self, context: &Context) -> Result<Arc<Listing<PrivateImage>>, Error> {
        self.all_private(Freshness::Fresh, context).await
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) async fn all_private(
        &self,
        freshness: Freshness,
        context: &Context,
    ) -> Result<Arc<Listing<PrivateImage>>, Error> {
        let flight = &self.client.snapshots().private_images;
        let endpoint = Endpoint::PrivateImageList;
        shared(&self.client, context, flight, freshness, endpoint, |client, context| async move {
            client.images().list_private(&PrivateImageFilter::default(), &context).await
        })
        .await
    }
}
