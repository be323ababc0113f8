//! Public and private images.

use serde::{Deserialize, Serialize};

/// Which kind an image is; the numbers are the service's (service API, POST /api/instance/create: image_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::sandbox) enum ImageKind {
    /// 1.
    Public,
    /// 2.
    Private,
}

impl ImageKind {
    /// The documented spellings and no other.
    pub(in crate::sandbox) fn parse(text: &str) -> Option<Self> {
        match text {
            "1" | "public" => Some(Self::Public),
            "2" | "private" => Some(Self::Private),
            _ => None,
        }
    }

    /// The number in answers, as text.
    pub(in crate::sandbox) fn number(self) -> &'static str {
        match self {
            Self::Public => "1",
            Self::Private => "2",
        }
    }

    /// The word in answers.
    pub(in crate::sandbox) fn word(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

/// A public image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct PublicImage {
    pub(in crate::sandbox) id: i64,
    pub(in crate::sandbox) name: String,
    pub(in crate::sandbox) image_url: String,
    pub(in crate::sandbox) description: String,
    pub(in crate::sandbox) softwares: Vec<String>,
    pub(in crate::sandbox) labels: Vec<String>,
    pub(in crate::sandbox) size: String,
    pub(in crate::sandbox) document_url: String,
    pub(in crate::sandbox) icon: String,
    pub(in crate::sandbox) create_time: i64,
    pub(in crate::sandbox) update_time: i64,
    /// A disabled image is not listed and cannot be used.
    pub(in crate::sandbox) enabled: bool,
    /// The CUDA version it is labelled with.
    pub(in crate::sandbox) cuda: Option<String>,
}

/// A private image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct PrivateImage {
    pub(in crate::sandbox) account: String,
    pub(in crate::sandbox) id: i64,
    pub(in crate::sandbox) uuid: String,
    pub(in crate::sandbox) name: String,
    pub(in crate::sandbox) tag: String,
    pub(in crate::sandbox) ready: bool,
    pub(in crate::sandbox) push_progress: i64,
    pub(in crate::sandbox) size: f64,
    pub(in crate::sandbox) original_image: String,
    pub(in crate::sandbox) region: String,
    pub(in crate::sandbox) create_time: i64,
    pub(in crate::sandbox) updated_at: i64,
    pub(in crate::sandbox) upperdir_files: i64,
    pub(in crate::sandbox) upperdir_bytes: i64,
    /// The CUDA version of the image it was saved from.
    pub(in crate::sandbox) cuda: Option<String>,
}

/// A CUDA version as something that can be compared; no version is the lowest.
pub(in crate::sandbox) fn version_of(text: &str) -> Vec<u32> {
    text.split('.').filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_versions_are_compared_by_number() {
        assert!(version_of("12.10") > version_of("12.4"));
        assert!(version_of("11.8") < version_of("12.0"));
        assert!(version_of("") < version_of("11.8"));
    }
}
