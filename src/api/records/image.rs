//! Public and private images (service API, Public image and Private image).

use bigdecimal::BigDecimal;
use serde::Deserialize;

use crate::api::{lenient, records::Record};

/// An image that the service offers.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PublicImage {
    /// `id`, an instance's `image_id`.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub id: i64,
    /// `name`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub name: Option<String>,
    /// `image_url`, the full address.
    #[serde(default, deserialize_with = "lenient::text")]
    pub image_url: Option<String>,
    /// `description`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub description: Option<String>,
    /// `softwares`.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub softwares: Vec<String>,
    /// `labels`.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub labels: Vec<String>,
    /// `size`, for display.
    #[serde(default, deserialize_with = "lenient::text")]
    pub size: Option<String>,
    /// `document_url`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub document_url: Option<String>,
    /// `icon`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub icon: Option<String>,
    /// `create_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub create_time: Option<i64>,
    /// `update_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub update_time: Option<i64>,
}

impl Record for PublicImage {
    type Key = i64;

    fn key(&self) -> i64 {
        self.id
    }
}

/// An image that was saved from an instance of the account.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PrivateImage {
    /// `image_id`.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub image_id: i64,
    /// `image_uuid`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub image_uuid: Option<String>,
    /// `image_name`, unique in the account.
    #[serde(default, deserialize_with = "lenient::text")]
    pub image_name: Option<String>,
    /// `image_tag`, the full address.
    #[serde(default, deserialize_with = "lenient::text")]
    pub image_tag: Option<String>,
    /// `image_status`: 0 creating, 1 ready.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub image_status: Option<i64>,
    /// `push_progress`, 0 to 100.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub push_progress: Option<i64>,
    /// `image_size`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub image_size: Option<BigDecimal>,
    /// `original_image`, which the source instance used.
    #[serde(default, deserialize_with = "lenient::text")]
    pub original_image: Option<String>,
    /// `region`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub region: Option<String>,
    /// `create_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub create_time: Option<i64>,
    /// `updated_at`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub updated_at: Option<i64>,
    /// `upperdir_files`, of the instance's writable layer.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub upperdir_files: Option<i64>,
    /// `upperdir_bytes`, of the instance's writable layer.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub upperdir_bytes: Option<i64>,
}

impl PrivateImage {
    /// Whether instances can be made of it (`image_status` 1).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.image_status == Some(1)
    }
}

impl Record for PrivateImage {
    type Key = i64;

    fn key(&self) -> i64 {
        self.image_id
    }
}
