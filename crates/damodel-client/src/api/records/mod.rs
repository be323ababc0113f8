//! The service's objects as typed records, read leniently: specifications, images, disks and (in a file of their own)
//! instances (service API, Instance specification, Public image, Private image and Cloud disk).

pub mod disk_status;
mod instance;

use std::{fmt, ops::Deref};

use bigdecimal::BigDecimal;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use self::disk_status::DISK_STATUSES;
use super::lenient::{self, Lenient};

pub use self::instance::{DetailFields, Instance, InstanceDetail, InstanceStatus, InstanceUid};

/// A record of a list. Lists are ordered by its key.
pub trait Record: DeserializeOwned + Send + Sync + 'static {
    /// The type of the key.
    type Key: Ord + Clone + Send;

    /// The record's key.
    fn key(&self) -> Self::Key;
}

/// Reads one record; `None` if its key is missing, or if it is longer than a record can be.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    /// Fields are read as trees, which take many times the size of their text.
    const LARGEST: usize = 256 << 10;

    if json.len() > LARGEST { None } else { serde_json::from_slice(json).ok() }
}

/// A record of a catalogue: the fields that code decides by, and all that the service sent.
#[derive(Debug, Clone)]
pub struct WithJson<T> {
    record: T,
    /// The record as the service sent it.
    pub json: Value,
}

impl<T> Deref for WithJson<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.record
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithJson<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(from)?;
        Ok(Self { record: T::deserialize(&json).map_err(D::Error::custom)?, json })
    }
}

impl<T: Record> Record for WithJson<T> {
    type Key = T::Key;

    fn key(&self) -> T::Key {
        self.record.key()
    }
}

/// A value that may contain a secret, such as an address with a token. `Debug` does not print it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Guarded<T>(T);

impl<T> Guarded<T> {
    /// The value: remove secrets before it is shown or stored.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Lenient> Lenient for Guarded<T> {
    fn read(json: &Value) -> Option<Self> {
        T::read(json).map(Self)
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[GUARDED]")
    }
}

/// A specification of instances, with its current prices.
#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    /// `spec_id`.
    #[serde(deserialize_with = "lenient::key")]
    pub spec_id: i64,
    /// `spec_type`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub spec_type: Option<String>,
    /// `capacity_type`: `ondemand` or `spot`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub capacity_type: Option<String>,
    /// `gpu_name`; a CPU identifier for CPU specifications.
    #[serde(default, deserialize_with = "lenient::field")]
    pub gpu_name: Option<String>,
    /// `max_gpu_count`; 0 if no instance can be created.
    #[serde(default, deserialize_with = "lenient::field")]
    pub max_gpu_count: Option<i64>,
    /// `data_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::field")]
    pub data_disk_size: Option<i64>,
    /// `data_disk_expand_quota`, in GB.
    #[serde(default, deserialize_with = "lenient::field")]
    pub data_disk_expand_quota: Option<i64>,
    /// `highest_cuda`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub highest_cuda: Option<String>,
    /// `hourly_price`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub hourly_price: Option<BigDecimal>,
}

impl Record for Spec {
    type Key = (i64, Option<String>, Option<String>);

    fn key(&self) -> Self::Key {
        (self.spec_id, self.capacity_type.clone(), self.spec_type.clone())
    }
}

/// An image that the service offers.
#[derive(Debug, Clone, Deserialize)]
pub struct PublicImage {
    /// `id`, an instance's `image_id`.
    #[serde(deserialize_with = "lenient::key")]
    pub id: i64,
    /// `name`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub name: Option<String>,
    /// `image_url`, the full address.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_url: Option<String>,
    /// `softwares`.
    #[serde(default, deserialize_with = "lenient::list")]
    pub softwares: Vec<String>,
    /// `labels`.
    #[serde(default, deserialize_with = "lenient::list")]
    pub labels: Vec<String>,
}

impl Record for PublicImage {
    type Key = i64;

    fn key(&self) -> i64 {
        self.id
    }
}

/// An image that was saved from an instance of the account.
#[derive(Debug, Clone, Deserialize)]
pub struct PrivateImage {
    /// `image_id`.
    #[serde(deserialize_with = "lenient::key")]
    pub image_id: i64,
    /// `image_uuid`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_uuid: Option<String>,
    /// `image_name`, unique in the account.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_name: Option<String>,
    /// `image_tag`, the full address.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_tag: Option<String>,
    /// `image_status`: 0 creating, 1 ready.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_status: Option<i64>,
    /// `push_progress`, 0 to 100.
    #[serde(default, deserialize_with = "lenient::field")]
    pub push_progress: Option<i64>,
    /// `image_size`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_size: Option<BigDecimal>,
    /// `original_image`, which the source instance used.
    #[serde(default, deserialize_with = "lenient::field")]
    pub original_image: Option<String>,
    /// `region`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub region: Option<String>,
    /// `create_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub create_time: Option<i64>,
    /// `updated_at`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub updated_at: Option<i64>,
    /// `upperdir_files`, of the instance's writable layer.
    #[serde(default, deserialize_with = "lenient::field")]
    pub upperdir_files: Option<i64>,
    /// `upperdir_bytes`, of the instance's writable layer.
    #[serde(default, deserialize_with = "lenient::field")]
    pub upperdir_bytes: Option<i64>,
}

impl PrivateImage {
    /// Whether instances can be created from it (`image_status` 1).
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

/// A cloud disk; its list is also its detail.
#[derive(Debug, Clone, Deserialize)]
pub struct CloudDisk {
    /// `id`, used to rename, resize and release it.
    #[serde(deserialize_with = "lenient::key")]
    pub id: i64,
    /// `uid`, used to mount it in an instance.
    #[serde(default, deserialize_with = "lenient::field")]
    pub uid: Option<String>,
    /// `name`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub name: Option<String>,
    /// `size_gb`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub size_gb: Option<i64>,
    /// `status`, 1 to 8 (service API, States, Cloud disk).
    #[serde(default, deserialize_with = "lenient::field")]
    pub status: Option<i64>,
    /// `spec_id`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub spec_id: Option<i64>,
    /// `spec_type`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub spec_type: Option<String>,
    /// `storage_class_type`: 1 RBD, 2 FS, 3 S3.
    #[serde(default, deserialize_with = "lenient::field")]
    pub storage_class_type: Option<i64>,
    /// `multiple_mounting`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub multiple_mounting: Option<bool>,
    /// `mount_path`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub mount_path: Option<String>,
    /// `binding_instances`; the service API does not describe the elements.
    #[serde(default, deserialize_with = "lenient::list")]
    pub binding_instances: Vec<Value>,
    /// `binding_clusters`; the service API does not describe the elements.
    #[serde(default, deserialize_with = "lenient::list")]
    pub binding_clusters: Vec<Value>,
    /// `release_with_instance`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub release_with_instance: Option<bool>,
    /// `release_with_cluster`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub release_with_cluster: Option<bool>,
    /// `create_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub create_time: Option<i64>,
    /// `stop_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub stop_time: Option<i64>,
}

impl CloudDisk {
    /// Whether the service reports it as released (status 7).
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.status == Some(disk_status::RELEASED)
    }

    /// The word for its status; `None` for an undocumented number.
    #[must_use]
    pub fn status_name(&self) -> Option<&'static str> {
        DISK_STATUSES.iter().find(|(number, _)| Some(*number) == self.status).map(|(_, word)| *word)
    }
}

impl Record for CloudDisk {
    type Key = i64;

    fn key(&self) -> i64 {
        self.id
    }
}

/// A specification of cloud disks (service API, Cloud disk specification).
#[derive(Debug, Clone, Deserialize)]
pub struct CloudDiskSpec {
    /// `id`, a cloud disk's `spec_id`.
    #[serde(deserialize_with = "lenient::key")]
    pub id: i64,
    /// `max_size_g`, of one disk, in GiB.
    #[serde(default, deserialize_with = "lenient::field")]
    pub max_size_g: Option<i64>,
}

impl Record for CloudDiskSpec {
    type Key = i64;

    fn key(&self) -> i64 {
        self.id
    }
}
