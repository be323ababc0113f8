//! What an image save sends, and how what it makes is found (service API, POST /api/instance/save_image_v2).

use serde_json::{Value, json};

use crate::api::{
    client::Client,
    create::Creation,
    endpoint::Endpoint,
    pending::Record,
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

impl SaveImage {
    /// A save that compares no original image.
    #[must_use]
    pub fn new(instance_uid: InstanceUid, name: impl Into<String>) -> Self {
        Self { instance_uid, name: name.into(), original_images: Vec::new() }
    }
}

impl Creation for SaveImage {
    type Object = PrivateImage;

    const ENDPOINT: Endpoint = Endpoint::ImageSave;

    fn wanted_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// The name is unique in the account, so it is its own marker.
    fn marker(&self, _key: &str, _random: &Random) -> String {
        self.name.clone()
    }

    fn body(&self, marker: &str) -> Value {
        json!({ "instance_uid": self.instance_uid.as_str(), "image_name": marker })
    }

    /// By name, by date, and by the image that it was made of. One that says neither its date nor its origin may be
    /// anybody's.
    fn made(&self, image: &PrivateImage, sent: &Record, client: &Client) -> bool {
        let begun_at = client.service_time(sent.begun_at);
        let dated = image.create_time.map(|created| created >= begun_at - CLOCKS_DIFFER);
        let descended = image
            .original_image
            .as_deref()
            .filter(|_| !self.original_images.is_empty())
            .map(|origin| self.original_images.iter().any(|known| is_same_image(known, origin)));
        image.image_name.as_deref() == Some(&sent.marker)
            && dated.or(descended) == Some(true)
            && descended != Some(false)
    }
}

/// Whether two texts name one image: `original_image` may be a full address or the end of one.
fn is_same_image(left: &str, right: &str) -> bool {
    let ends = |whole: &str, part: &str| whole.strip_suffix(part).is_some_and(|rest| rest.ends_with('/'));
    left == right || ends(left, right) || ends(right, left)
}

#[cfg(test)]
mod tests;
