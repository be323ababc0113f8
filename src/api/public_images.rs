//! The list of public images (service API, Public image list).

use std::sync::Arc;

use super::{
    client::Client,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    listing::{Listing, whole},
    records::PublicImage,
    snapshots::{SNAPSHOT, shared},
};

/// Which public images a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicImageFilter {
    /// One label.
    pub label: Option<String>,
    /// A part of an image's name, or of a software's name or version.
    pub name: Option<String>,
}

impl Client {
    /// The public images that a filter selects; all of them come from a snapshot of at most 30 s.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn public_images(
        &self,
        filter: &PublicImageFilter,
        context: &Context,
    ) -> Result<Arc<Listing<PublicImage>>, Error> {
        if *filter != PublicImageFilter::default() {
            return self.ask_public_images(filter, context).await.map(Arc::new);
        }
        let flight = &self.snapshots().public_images;
        let endpoint = Endpoint::PublicImageList;
        shared(self, context, flight, SNAPSHOT, endpoint, |client, context| async move {
            client.ask_public_images(&PublicImageFilter::default(), &context).await
        })
        .await
    }

    async fn ask_public_images(
        &self,
        filter: &PublicImageFilter,
        context: &Context,
    ) -> Result<Listing<PublicImage>, Error> {
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
