//! The request of an image save, and how its image is recognized (service API, POST /api/instance/save_image_v2).

use serde_json::{Value, json};

use crate::api::{
    client::Client,
    endpoint::Endpoint,
    object::{Creation, is_same_name},
    records::{InstanceUid, PrivateImage},
};

/// The largest assumed difference, in seconds, between the service's clock and this computer's in the date of an image.
/// The allowed difference is not documented; five minutes is what such services usually allow.
const CLOCKS_DIFFER: i64 = 300;

/// The configured private image: the saved system disk of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveImage {
    /// `instance_uid`.
    pub instance_uid: InstanceUid,
    /// `image_name`, unique in the account: it is sent without a marker.
    pub name: String,
    /// The known names of the instance's own image (address, name). Only used after an unknown outcome: an image with
    /// another `original_image` is not the created one. Empty: not compared.
    pub original_images: Vec<String>,
}

impl SaveImage {
    /// A save that does not compare original images.
    #[must_use]
    pub fn new(instance_uid: InstanceUid, name: impl Into<String>) -> Self {
        Self { instance_uid, name: name.into(), original_images: Vec::new() }
    }
}

impl Creation for SaveImage {
    type Object = PrivateImage;

    const ENDPOINT: Endpoint = Endpoint::ImageSave;
    const IS_MARKED: bool = false;

    fn wanted_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn body(&self, marker: &str) -> Value {
        json!({ "instance_uid": self.instance_uid.as_str(), "image_name": marker })
    }

    /// Compares the name, the date, and the original image. An image without date and origin may come from another
    /// save.
    fn made(&self, image: &PrivateImage, marker: &str, begun_at: i64, client: &Client) -> bool {
        let begun_at = client.service_time(begun_at);
        let dated = image.create_time.map(|created| created >= begun_at - CLOCKS_DIFFER);
        let descended = image
            .original_image
            .as_deref()
            .filter(|_| !self.original_images.is_empty())
            .map(|origin| self.original_images.iter().any(|known| is_same_image(known, origin)));
        image.image_name.as_deref().is_some_and(|name| is_same_name(name, marker))
            && dated.or(descended) == Some(true)
            && descended != Some(false)
    }
}

/// Whether two texts name one image: `original_image` may be a full address or the end of one.
fn is_same_image(left: &str, right: &str) -> bool {
    let ends = |whole: &str, part: &str| whole.strip_suffix(part).is_some_and(|rest| rest.ends_with('/'));
    left == right || ends(left, right) || ends(right, left)
}
