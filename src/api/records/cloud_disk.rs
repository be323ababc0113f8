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

impl Record for CloudDisk {
    type Key = i64;

    fn key(&self) -> i64 {
        self.id
    }
}
