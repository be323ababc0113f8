//! Cloud disks (service API, Cloud disk).

use serde::Deserialize;
use serde_json::Value;

use crate::api::{lenient, records::Record};

/// A cloud disk; its list is also its detail.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct CloudDisk {
    /// `id`, by which it is renamed, resized and released.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub id: i64,
    /// `uid`, needed where an instance mounts it.
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
    /// `binding_instances`; elements are not described.
    #[serde(default, deserialize_with = "lenient::values")]
    pub binding_instances: Vec<Value>,
    /// `binding_clusters`; elements are not described.
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
    /// Whether the service says that it is gone (status 7).
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.status == Some(7)
    }

    /// What its status is called (service API, States, Cloud disk), in lower case; none for a number that the
    /// table does not hold.
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

/// What a cloud disk can be made of (service API, Cloud disk specification).
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct CloudDiskSpec {
    /// `id`, a cloud disk's `spec_id`.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub id: i64,
    /// `spec_alias`, its name for people.
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
