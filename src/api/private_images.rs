//! Private images: saved from instances, renamed, deleted (service API, Images).

use serde_json::json;
use tokio::time::Instant;

use crate::api::{
    code::Code,
    context::Context,
    create::{Accepted, CreateOptions, create},
    endpoint::Endpoint,
    error::Error,
    images::{Images, PrivateImageFilter},
    pending::Journal,
    presence::{Presence, judge_missing},
    records::PrivateImage,
    request::Request,
    retry,
    save_image::{SaveImage, SavedImage},
    watch::Sighting,
};

impl Images {
    /// Saves an instance's system disk as a private image, once, whatever happens on the way: see [`Accepted`].
    ///
    /// No marker is sent and nothing is to be renamed: the name is unique in the account. After an unknown outcome
    /// the image is found by its exact name, its date and the image that the instance was made of. Everything
    /// else is as with [`Instances::create`](crate::api::Instances::create).
    ///
    /// # Errors
    /// The service's refusal: 130001 when the name exists, 130002 and 130003 while it is busy (waited out until
    /// `context` ends with [`CreateOptions::waiting_while_busy`]), 130008 when the day's saves are used up; a
    /// journal that cannot be written (nothing was sent then); [`Error::Unsettled`] when it is unknown what became
    /// of the request.
    ///
    /// ```no_run
    /// # async fn example(client: damodel::api::Client, uid: damodel::api::InstanceUid, context: damodel::api::Context) -> Result<(), Box<dyn std::error::Error>> {
    /// use damodel::api::{CreateOptions, Journal, PrivateImage, SaveImage};
    ///
    /// let (images, journal) = (client.images(), Journal::new("pending"));
    /// let options = CreateOptions::waiting_while_busy();
    /// let saved = images.save(SaveImage::new(uid, "trained"), "my-key", &journal, options, &context).await?;
    /// images.wait(saved.made.image_id, &context, |seen| seen.record().is_some_and(PrivateImage::is_ready)).await?;
    /// saved.entry.handed_over()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save(
        &self,
        request: SaveImage,
        key: &str,
        journal: &Journal,
        options: CreateOptions,
        context: &Context,
    ) -> Result<Accepted<SavedImage>, Error> {
        create(self.client(), request, key, journal, options, context).await
    }

    /// Whether a private image exists, proved: a list of all, and when that lacks it a search for its name, or
    /// without one another list of all. Neither look uses a snapshot. Never [`Presence::Released`].
    ///
    /// # Errors
    /// Any of a read.
    pub async fn look(
        &self,
        image_id: i64,
        name: Option<&str>,
        context: &Context,
    ) -> Result<Presence<PrivateImage, PrivateImage>, Error> {
        let listed_at = Instant::now();
        let listing = self.private_fresh(context).await?;
        match listing.find(&image_id) {
            Some(image) => return Ok(Presence::Present(Box::new(image.clone()))),
            None if !listing.complete => return Ok(Presence::Unproved { reason: "the list is not complete" }),
            None => {}
        }
        let filter = PrivateImageFilter { name: name.map(str::to_owned), ..PrivateImageFilter::default() };
        let search = self.list_private(&filter, context).await?;
        Ok(judge_missing(&image_id, listed_at, &listing, &search))
    }

    /// Gives a private image another name.
    ///
    /// # Errors
    /// Any of a change that may be repeated; 130001 when the name exists, 130006 when there is no such image.
    pub async fn rename(&self, image_id: i64, name: &str, context: &Context) -> Result<(), Error> {
        let body = json!({ "image_id": image_id, "image_name": name });
        self.client().change(context, Request::new(Endpoint::ImageRename).body(&body)).await.map(drop)
    }

    /// Deletes a private image for good. An instance that is being created of it (130005) is waited for, until
    /// `context` ends. Cancel-safe between requests; one that was sent is not taken back.
    ///
    /// # Errors
    /// Any of a change that may be repeated; 130005 when the wait was too short, 130006 when it is gone already.
    pub async fn delete(&self, image_id: i64, context: &Context) -> Result<(), Error> {
        let mut waits = retry::busy(self.client().random());
        loop {
            let request = Request::new(Endpoint::ImageDelete).id(image_id);
            let error = match self.client().change(context, request).await {
                Ok(_) => return Ok(()),
                Err(error) if error.code() != Some(Code::ImageUsedByInstance) => return Err(error),
                Err(error) => error,
            };
            let wait = waits.next().unwrap_or_default().max(error.retry_after().unwrap_or_default());
            if wait >= context.remaining() {
                return Err(error);
            }
            tracing::debug!(image_id, wait_ms = wait.as_millis(), "an instance is made of the image: waiting for it");
            if context.sleep(wait).await.is_err() {
                return Err(error);
            }
        }
    }

    /// Waits until `until` says yes to what was seen of a private image, through the poller that all waits share.
    ///
    /// # Errors
    /// [`Error::WaitEnded`] with what was last seen when `context` ends, and a failure that waiting cannot mend.
    pub async fn wait(
        &self,
        image_id: i64,
        context: &Context,
        until: impl FnMut(&Sighting<PrivateImage>) -> bool + Send,
    ) -> Result<Sighting<PrivateImage>, Error> {
        self.client().poller().private_image(self.client(), image_id, context, until).await
    }
}

#[cfg(test)]
mod tests;
