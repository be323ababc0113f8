//! What an image save sends, and how what it makes is found (service API, POST /api/instance/save_image_v2).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{
    client::Client,
    context::Context,
    create::{Creation, Sought, VISIBILITY_WINDOW},
    endpoint::Endpoint,
    error::Error,
    flight::Freshness,
    images::PrivateImageFilter,
    lenient::{read_integer, read_text},
    listing::Listing,
    pending::{Ids, Kind, Record},
    presence::Presence,
    records::{InstanceUid, PrivateImage},
    settings::Random,
};

/// How far the service's clock may be from ours when it dates an image, in seconds. The allowed difference is not
/// documented; five minutes is what such services usually allow.
const CLOCKS_DIFFER: i64 = 300;

/// The wanted private image: the system disk of an instance, saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveImage {
    /// `instance_uid`.
    pub instance_uid: InstanceUid,
    /// `image_name`, unique in the account: it is sent as it is, without a marker.
    pub name: String,
    /// What the instance's own image may be called (address, name), as far as known. Only used after an unknown
    /// outcome: what names another `original_image` is not ours. Empty: not compared.
    pub original_images: Vec<String>,
}

/// What the service tells of an accepted image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedImage {
    /// `image_id`.
    pub image_id: i64,
    /// `image_tag`, the full address; unknown when an earlier run made it, and when the service did not tell yet.
    pub image_tag: Option<String>,
}

impl SaveImage {
    /// A save that compares no original image.
    #[must_use]
    pub fn new(instance_uid: InstanceUid, name: impl Into<String>) -> Self {
        Self { instance_uid, name: name.into(), original_images: Vec::new() }
    }

    /// What is asked for, as JSON: the same for the same wanted thing, so that a key can be made of it.
    #[must_use]
    pub fn wanted(&self) -> Value {
        Creation::body(self, &self.name)
    }

    /// Images of a list that this save made: by name, by date, and by the image that they were made of. One that
    /// says neither its date nor its origin may be anybody's.
    fn ours(&self, listing: &Listing<PrivateImage>, begun_at: i64) -> Sought<SavedImage> {
        let is_ours = |image: &&PrivateImage| {
            let dated = image.create_time.map(|created| created >= begun_at - CLOCKS_DIFFER);
            let descended = image
                .original_image
                .as_deref()
                .filter(|_| !self.original_images.is_empty())
                .map(|origin| self.original_images.iter().any(|known| is_same_image(known, origin)));
            image.image_name.as_deref() == Some(&self.name)
                && dated.or(descended) == Some(true)
                && descended != Some(false)
        };
        let found = listing
            .records
            .iter()
            .filter(is_ours)
            .map(|image| SavedImage { image_id: image.image_id, image_tag: image.image_tag.clone() })
            .collect();
        Sought { found, complete: listing.complete }
    }
}

impl Creation for SaveImage {
    type Made = SavedImage;

    const ENDPOINT: Endpoint = Endpoint::ImageSave;
    const KIND: Kind = Kind::PrivateImage;

    fn wanted_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// The name is unique in the account, so it is its own marker.
    fn marker(&self, _random: &Random) -> String {
        self.name.clone()
    }

    fn body(&self, marker: &str) -> Value {
        json!({ "instance_uid": self.instance_uid.as_str(), "image_name": marker })
    }

    fn read(&self, result: &Value) -> Option<SavedImage> {
        Some(SavedImage {
            image_id: result.get("image_id").and_then(read_integer)?,
            image_tag: result.get("image_tag").and_then(read_text),
        })
    }

    async fn find(
        &self,
        client: &Client,
        sent: &Record,
        since: Instant,
        context: &Context,
    ) -> Result<Sought<SavedImage>, Error> {
        let listing = client.images().all_private(Freshness::Since(since), context).await?;
        Ok(self.ours(&listing, client.service_time(sent.begun_at)))
    }

    async fn search(&self, client: &Client, sent: &Record, context: &Context) -> Result<Sought<SavedImage>, Error> {
        let filter = PrivateImageFilter { name: Some(self.name.clone()), ..PrivateImageFilter::default() };
        let listing = client.images().list_private(&filter, context).await?;
        Ok(self.ours(&listing, client.service_time(sent.begun_at)))
    }

    async fn is_gone(&self, client: &Client, ids: &Ids, age: Duration, context: &Context) -> bool {
        let Some(made) = self.recall(ids) else {
            return false;
        };
        match client.images().look(made.image_id, Some(&self.name), context).await {
            // A young one may not be visible yet.
            Ok(Presence::Absent { .. }) => age > VISIBILITY_WINDOW,
            Ok(_) | Err(_) => false,
        }
    }

    fn ids(made: &SavedImage) -> Ids {
        Ids { id: made.image_id.to_string(), database_id: Some(made.image_id) }
    }

    fn recall(&self, ids: &Ids) -> Option<SavedImage> {
        Some(SavedImage { image_id: ids.database_id?, image_tag: None })
    }
}

/// Whether two texts name one image: `original_image` may be a full address or the end of one.
fn is_same_image(left: &str, right: &str) -> bool {
    let ends = |whole: &str, part: &str| whole.strip_suffix(part).is_some_and(|rest| rest.ends_with('/'));
    left == right || ends(left, right) || ends(right, left)
}

#[cfg(test)]
mod tests;
