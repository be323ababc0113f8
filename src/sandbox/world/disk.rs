//! Cloud disks and their specifications.

use serde::{Deserialize, Serialize};

/// A status of a cloud disk; the numbers are the service's (service API, States, Cloud disk).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::sandbox) enum DiskStatus {
    Starting = 1,
    Available = 2,
    Mounting = 3,
    Unmounting = 4,
    Releasing = 5,
    Mounted = 6,
    Released = 7,
    InArrears = 8,
}

impl DiskStatus {
    /// The service's number.
    pub(in crate::sandbox) fn number(self) -> i64 {
        self as i64
    }
}

/// A mount of a disk on an ordinary instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Binding {
    pub(in crate::sandbox) instance_uid: String,
    pub(in crate::sandbox) mount_path: String,
}

/// A cloud disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Disk {
    pub(in crate::sandbox) account: String,
    pub(in crate::sandbox) id: i64,
    pub(in crate::sandbox) uid: String,
    pub(in crate::sandbox) name: String,
    pub(in crate::sandbox) size_gb: i64,
    pub(in crate::sandbox) status: DiskStatus,
    pub(in crate::sandbox) spec_id: i64,
    pub(in crate::sandbox) spec_type: String,
    pub(in crate::sandbox) storage_class: i64,
    pub(in crate::sandbox) multiple_mounting: bool,
    pub(in crate::sandbox) mount_path: String,
    pub(in crate::sandbox) bindings: Vec<Binding>,
    /// Names of the clusters that mount it.
    pub(in crate::sandbox) clusters: Vec<String>,
    pub(in crate::sandbox) release_with_instance: bool,
    pub(in crate::sandbox) release_with_cluster: bool,
    pub(in crate::sandbox) create_ms: i64,
    pub(in crate::sandbox) stop_ms: i64,
}

impl Disk {
    /// Whether one more instance can mount it.
    pub(in crate::sandbox) fn can_be_mounted(&self) -> bool {
        match self.status {
            DiskStatus::Available => true,
            DiskStatus::Mounted | DiskStatus::Mounting => self.multiple_mounting,
            DiskStatus::Starting
            | DiskStatus::Unmounting
            | DiskStatus::Releasing
            | DiskStatus::Released
            | DiskStatus::InArrears => false,
        }
    }
}

/// A cloud disk specification.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct DiskSpec {
    pub(in crate::sandbox) id: i64,
    pub(in crate::sandbox) spec_alias: String,
    pub(in crate::sandbox) multiple_mounting: bool,
    pub(in crate::sandbox) max_size_g: i64,
    pub(in crate::sandbox) storage_class: i64,
    /// Only for machines with an IB network.
    pub(in crate::sandbox) ib_only: bool,
}
