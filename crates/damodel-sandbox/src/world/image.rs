//! Public and private images.

use serde::{Deserialize, Serialize};

use super::{InstanceImage, Visibility, World};
use crate::ledger::{LedgerObject, LifeKind};

/// The kind of an image; the numbers are the service's (service API, POST /api/instance/create: image_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImageKind {
    /// 1.
    Public,
    /// 2.
    Private,
}

impl ImageKind {
    /// The documented spellings and no other.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "1" | "public" => Some(Self::Public),
            "2" | "private" => Some(Self::Private),
            _ => None,
        }
    }

    /// The number in answers, as text.
    pub(crate) fn number(self) -> &'static str {
        match self {
            Self::Public => "1",
            Self::Private => "2",
        }
    }

    /// The word in answers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

/// A public image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublicImage {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) image_url: String,
    pub(crate) description: String,
    pub(crate) softwares: Vec<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) size: String,
    pub(crate) document_url: String,
    pub(crate) icon: String,
    pub(crate) create_time: i64,
    pub(crate) update_time: i64,
    /// Whether it is listed and can be used.
    pub(crate) enabled: bool,
    /// The CUDA version in its labels.
    pub(crate) cuda: Option<String>,
}

/// The push of a private image into the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Push {
    pub(crate) from_ms: i64,
    pub(crate) until_ms: i64,
    /// Whether the image is removed at the end instead of becoming ready.
    pub(crate) fails: bool,
}

/// A private image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrivateImage {
    pub(crate) account: String,
    pub(crate) id: i64,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) tag: String,
    pub(crate) ready: bool,
    /// 0 … 100 while no push is running.
    pub(crate) push_progress: i64,
    pub(crate) push: Option<Push>,
    /// The uid of the instance from which it is or was saved; "" for an image of the seed.
    pub(crate) source: String,
    pub(crate) visibility: Visibility,
    pub(crate) size: f64,
    pub(crate) original_image: String,
    pub(crate) region: String,
    pub(crate) create_time: i64,
    pub(crate) updated_at: i64,
    pub(crate) upperdir_files: i64,
    pub(crate) upperdir_bytes: i64,
    /// The CUDA version of the image it was saved from.
    pub(crate) cuda: Option<String>,
}

impl PrivateImage {
    /// The progress of its push; 100 means ready.
    pub(crate) fn progress(&self, now_ms: i64) -> i64 {
        match self.push {
            Some(push) => {
                let whole = push.until_ms.saturating_sub(push.from_ms).max(1);
                (now_ms.saturating_sub(push.from_ms).saturating_mul(100) / whole).clamp(0, 99)
            }
            None => self.push_progress,
        }
    }

    /// Whether it was saved from an instance and is not ready yet. Half pushed images of the seed do not count.
    pub(crate) fn is_being_created(&self) -> bool {
        !self.ready && !self.source.is_empty()
    }

    /// Ends the push: the image gets its size, and the instance's layer is counted.
    pub(crate) fn become_ready(&mut self, at_ms: i64) {
        let more = u32::try_from(self.id.rem_euclid(1000)).unwrap_or(0);
        self.push = None;
        self.ready = true;
        self.push_progress = 100;
        self.size = 4.25 + f64::from(more) / 100.0;
        self.updated_at = at_ms / 1000;
        self.upperdir_files = 200 + i64::from(more);
        self.upperdir_bytes = 1_073_741_824 + i64::from(more);
    }
}

impl World {
    /// The account's private image of this id, ready or not.
    pub(crate) fn private_image_mut(&mut self, account: &str, id: i64) -> Option<&mut PrivateImage> {
        self.private_images.iter_mut().find(|image| image.id == id && image.account == account)
    }

    /// Whether another private image of the account than this one has the name.
    pub(crate) fn has_private_image(&self, account: &str, name: &str, but: Option<i64>) -> bool {
        self.private_images.iter().any(|image| image.account == account && image.name == name && Some(image.id) != but)
    }

    /// Removes a private image, with an event of this kind in the ledger.
    pub(crate) fn drop_private_image(&mut self, index: usize, kind: LifeKind, at_ms: i64) {
        if index < self.private_images.len() {
            let image = self.private_images.remove(index);
            self.record(at_ms, LedgerObject::PrivateImage, kind, &image.id.to_string(), &image.name, &image.account);
        }
    }

    /// The CUDA version of an instance's image; `None` if the image has no version or was deleted.
    pub(crate) fn cuda_of(&self, image: &InstanceImage) -> Option<String> {
        match image.kind {
            ImageKind::Public => {
                self.public_images.iter().find(|public| public.id == image.id).and_then(|public| public.cuda.clone())
            }
            ImageKind::Private => self
                .private_images
                .iter()
                .find(|private| private.id == image.id)
                .and_then(|private| private.cuda.clone()),
        }
    }
}

/// The image_uuid that belongs to an id.
pub(crate) fn uuid(id: i64) -> String {
    format!("6f1d2c3b-0000-4000-8000-{id:012}")
}

/// A CUDA version in a form that can be compared; no version is the lowest.
pub(crate) fn version_of(text: &str) -> Vec<u32> {
    text.split('.').filter_map(|part| part.parse().ok()).collect()
}
