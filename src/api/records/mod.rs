//! The service's objects as typed records, read leniently: specifications, images, disks and (in a file of their own)
//! instances (service API, Instance specification, Public image, Private image and Cloud disk).

mod instance;

use std::fmt;

use bigdecimal::BigDecimal;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::lenient;

pub use self::instance::{DetailFields, Instance, InstanceDetail, InstanceStatus, InstanceUid};

/// A record of a list. Lists are ordered by its key.
pub trait Record: DeserializeOwned + Send + Sync + 'static {
    /// The type of the key.
    type Key: Ord + Clone + Send;

    /// The record's key.
    fn key(&self) -> Self::Key;
}

/// Reads one record; `None` if its key is missing.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

/// A value that may contain a secret, such as an address with a token. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Guarded<T>(T);

impl<T> Guarded<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value: remove secrets before it is shown or stored.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[GUARDED]")
    }
}

/// A specification of instances, with its current prices.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Spec {
    /// `spec_id`.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub spec_id: i64,
    /// `spec_type`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub spec_type: Option<String>,
    /// `capacity_type`: `ondemand` or `spot`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub capacity_type: Option<String>,
    /// `gpu_name`; a CPU identifier for CPU specifications.
    #[serde(default, deserialize_with = "lenient::text")]
    pub gpu_name: Option<String>,
    /// `gpu_mem` of one GPU, in MB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub gpu_mem: Option<i64>,
    /// `max_gpu_count`; 0 if no instance can be created.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub max_gpu_count: Option<i64>,
    /// `cpu_per_gpu`, in cores.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub cpu_per_gpu: Option<i64>,
    /// `mem_per_gpu`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub mem_per_gpu: Option<i64>,
    /// `sys_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub sys_disk_size: Option<i64>,
    /// `data_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub data_disk_size: Option<i64>,
    /// `data_disk_expand_quota`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub data_disk_expand_quota: Option<i64>,
    /// `highest_cuda`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub highest_cuda: Option<String>,
    /// `support_ib_network`.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub support_ib_network: Option<bool>,
    /// `hourly_price`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub hourly_price: Option<BigDecimal>,
    /// `daily_price`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub daily_price: Option<BigDecimal>,
    /// `monthly_price`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub monthly_price: Option<BigDecimal>,
    /// `hourly_data_disk_price`, per GB of expansion.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub hourly_data_disk_price: Option<BigDecimal>,
    /// `daily_data_disk_price`, per GB of expansion.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub daily_data_disk_price: Option<BigDecimal>,
    /// `monthly_data_disk_price`, per GB of expansion.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub monthly_data_disk_price: Option<BigDecimal>,
    /// `hourly_discount`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub hourly_discount: Option<BigDecimal>,
    /// `daily_discount`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub daily_discount: Option<BigDecimal>,
    /// `monthly_discount`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub monthly_discount: Option<BigDecimal>,
    /// `hourly_discount_status`, 0 to 5.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub hourly_discount_status: Option<i64>,
    /// `daily_discount_status`, 0 to 5.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub daily_discount_status: Option<i64>,
    /// `monthly_discount_status`, 0 to 5.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub monthly_discount_status: Option<i64>,
    /// `rush_sale_status`: 0 ordinary, 1 rush sale.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub rush_sale_status: Option<bool>,
}

impl Record for Spec {
    type Key = (i64, Option<String>, Option<String>);

    fn key(&self) -> Self::Key {
        (self.spec_id, self.capacity_type.clone(), self.spec_type.clone())
    }
}

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
#[non_exhaustive]
pub struct CloudDisk {
    /// `id`, used to rename, resize and release it.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub id: i64,
    /// `uid`, used to mount it in an instance.
    #[serde(default, deserialize_with = "lenient::text")]
    pub uid: Option<String>,
    /// `name`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub name: Option<String>,
    /// `size_gb`.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub size_gb: Option<i64>,
    /// `status`, 1 to 8 (service API, States, Cloud disk).
    #[serde(default, deserialize_with = "lenient::integer")]
    pub status: Option<i64>,
    /// `spec_id`.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub spec_id: Option<i64>,
    /// `spec_type`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub spec_type: Option<String>,
    /// `storage_class_type`: 1 RBD, 2 FS, 3 S3.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub storage_class_type: Option<i64>,
    /// `multiple_mounting`.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub multiple_mounting: Option<bool>,
    /// `mount_path`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub mount_path: Option<String>,
    /// `binding_instances`; the service API does not describe the elements.
    #[serde(default, deserialize_with = "lenient::values")]
    pub binding_instances: Vec<Value>,
    /// `binding_clusters`; the service API does not describe the elements.
    #[serde(default, deserialize_with = "lenient::values")]
    pub binding_clusters: Vec<Value>,
    /// `release_with_instance`.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub release_with_instance: Option<bool>,
    /// `release_with_cluster`.
    #[serde(default, deserialize_with = "lenient::boolean")]
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
        self.status == Some(7)
    }

    /// The name of its status (service API, States, Cloud disk), in lower case; `None` for an undocumented number.
    #[must_use]
    pub fn status_name(&self) -> Option<&'static str> {
        Some(match self.status? {
            1 => "starting",
            2 => "available",
            3 => "mounting",
            4 => "unmounting",
            5 => "releasing",
            6 => "mounted",
            7 => "released",
            8 => "in arrears",
            _ => return None,
        })
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
#[non_exhaustive]
pub struct CloudDiskSpec {
    /// `id`, a cloud disk's `spec_id`.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub id: i64,
    /// `spec_alias`, its display name.
    #[serde(default, deserialize_with = "lenient::text")]
    pub spec_alias: Option<String>,
    /// `multiple_mounting`.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub multiple_mounting: Option<bool>,
    /// `max_size_g`, of one disk, in GiB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub max_size_g: Option<i64>,
    /// `storage_class_type`: 1 RBD, 2 FS, 3 S3.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub storage_class_type: Option<i64>,
}

impl Record for CloudDiskSpec {
    type Key = i64;

    fn key(&self) -> i64 {
        self.id
    }
}
