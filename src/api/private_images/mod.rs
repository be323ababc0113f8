//! Private images: saved from instances, renamed, deleted (service API, Images).

use std::sync::Arc;

use serde_json::json;

use crate::api::{
    client::Client,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    flight::Flight,
    listing::Listing,
    object::{Object, Objects, bare},
    pending::Kind,
    presence::{Presence, look_in_lists},
    progress::Step,
    records::PrivateImage,
    request::Request,
    snapshots::Snapshots,
    watch::{Poller, Watch},
};

impl Client {
    /// Calls on private images. No marker is sent with a create and nothing is to be renamed: the name is unique in the
    /// account. After an unknown outcome the image is found by its name, its date and the image that the instance was
    /// made of.
    #[must_use]
    pub fn private_images(&self) -> Objects<PrivateImage> {
        self.objects()
    }
}

#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
impl Object for PrivateImage {
    type Shown = Self;

    const KIND: Kind = Kind::PrivateImage;
    const LIST: Endpoint = Endpoint::PrivateImageList;
    const SEARCH: &'static str = "image_name";

    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>> {
        &snapshots.private_images
    }

    fn poller(watch: &Watch) -> &Arc<Poller<Self>> {
        &watch.private_images
    }

    fn of_id(id: &str) -> Option<Self> {
        bare("image_id", &json!(id))
    }

    fn name(&self) -> Option<&str> {
        self.image_name.as_deref()
    }

    /// Never: deleting takes an image out of its list.
    fn is_released(&self) -> bool {
        false
    }

    fn status_text(&self) -> String {
        let status = self.step().phase;
        self.push_progress.map_or_else(|| status.clone(), |progress| format!("{status} with {progress} % pushed"))
    }

    fn step(&self) -> Step {
        let status = match self.image_status {
            Some(0) => "creating".to_owned(),
            Some(1) => "ready".to_owned(),
            Some(number) => format!("with status {number}"),
            None => "without a status".to_owned(),
        };
        let percent = self.push_progress.and_then(|percent| u8::try_from(percent).ok());
        Step { percent, ..Step::new(status) }
    }

    async fn look(
        objects: &Objects<Self>,
        id: &i64,
        hint: Option<&str>,
        context: &Context,
    ) -> Result<Presence<Self>, Error> {
        look_in_lists(objects, id, hint, context).await
    }

    fn rename_request(image_id: &i64, name: &str) -> Request {
        Request::new(Endpoint::ImageRename).body(&json!({ "image_id": image_id, "image_name": name }))
    }

    fn release_request(image_id: &i64) -> Request {
        Request::new(Endpoint::ImageDelete).id(*image_id)
    }
}

#[cfg(test)]
mod tests;
