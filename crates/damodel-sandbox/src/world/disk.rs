//! Cloud disks, their specifications and their mount paths.

use serde::{Deserialize, Serialize};

use super::{Visibility, World};
use crate::ledger::{LedgerObject, LifeKind};

/// The smallest cloud disk in GB (service API, Limits).
const SMALLEST_GB: i64 = 20;

/// A status of a cloud disk; the numbers are the service's (service API, States, Cloud disk).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiskStatus {
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
    /// The status with this number.
    pub(crate) fn parse(number: i64) -> Option<Self> {
        [
            Self::Starting,
            Self::Available,
            Self::Mounting,
            Self::Unmounting,
            Self::Releasing,
            Self::Mounted,
            Self::Released,
            Self::InArrears,
        ]
        .into_iter()
        .find(|status| status.number() == number)
    }

    /// The service's number.
    pub(crate) fn number(self) -> i64 {
        self as i64
    }
}

/// A mount of a disk on an ordinary instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Binding {
    pub(crate) instance_uid: String,
    pub(crate) mount_path: String,
}

/// The next change of a cloud disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum DiskNext {
    /// Its creation ends.
    Available,
    /// Its growth ends with this capacity.
    Grown { size_gb: i64 },
    /// Its release ends, or its creation failed.
    Released,
}

/// A scheduled change of a cloud disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiskStep {
    pub(crate) at_ms: i64,
    pub(crate) to: DiskNext,
}

/// A cloud disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disk {
    pub(crate) account: String,
    pub(crate) id: i64,
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) size_gb: i64,
    pub(crate) status: DiskStatus,
    /// Its scheduled change; `None` while it waits for its instance.
    pub(crate) next: Option<DiskStep>,
    pub(crate) visibility: Visibility,
    pub(crate) spec_id: i64,
    pub(crate) spec_type: String,
    pub(crate) storage_class: i64,
    pub(crate) multiple_mounting: bool,
    pub(crate) mount_path: String,
    pub(crate) bindings: Vec<Binding>,
    /// Names of the clusters that mount it.
    pub(crate) clusters: Vec<String>,
    pub(crate) release_with_instance: bool,
    pub(crate) release_with_cluster: bool,
    pub(crate) create_ms: i64,
    pub(crate) stop_ms: i64,
}

impl Disk {
    /// Whether another instance can mount it.
    pub(crate) fn can_be_mounted(&self) -> bool {
        match self.status {
            DiskStatus::Available => self.growth().is_none(),
            DiskStatus::Mounted | DiskStatus::Mounting => self.multiple_mounting && self.growth().is_none(),
            DiskStatus::Starting
            | DiskStatus::Unmounting
            | DiskStatus::Releasing
            | DiskStatus::Released
            | DiskStatus::InArrears => false,
        }
    }

    /// The capacity it grows to; `None` if it is not growing.
    pub(crate) fn growth(&self) -> Option<i64> {
        match self.next {
            Some(DiskStep { to: DiskNext::Grown { size_gb }, .. }) => Some(size_gb),
            Some(_) | None => None,
        }
    }
}

/// The properties of a new cloud disk.
#[derive(Debug)]
pub(crate) struct DiskOrder<'a> {
    pub(crate) account: &'a str,
    /// "" for its uid.
    pub(crate) name: String,
    pub(crate) size_gb: i64,
    pub(crate) spec: DiskSpec,
    /// "" for the default.
    pub(crate) mount_path: String,
    pub(crate) release_with_instance: bool,
    pub(crate) next: Option<DiskStep>,
    pub(crate) visibility: Visibility,
}

impl World {
    /// Creates a cloud disk that is Starting, and returns its id and uid. The document names no default for the mount
    /// path: here it is `/data/` and the uid.
    pub(crate) fn add_disk(&mut self, new: DiskOrder<'_>, now_ms: i64) -> (i64, String) {
        let id = self.next_id();
        let uid = format!("disk-{}", self.draw().text(12));
        let name = if new.name.is_empty() { uid.clone() } else { new.name };
        self.record(now_ms, LedgerObject::CloudDisk, LifeKind::Created, &uid, &name, new.account);
        self.disks.push(Disk {
            account: new.account.to_owned(),
            id,
            mount_path: if new.mount_path.is_empty() { format!("/data/{uid}") } else { new.mount_path },
            uid: uid.clone(),
            name,
            size_gb: new.size_gb,
            status: DiskStatus::Starting,
            next: new.next,
            visibility: new.visibility,
            spec_id: new.spec.id,
            spec_type: new.spec.spec_alias,
            storage_class: new.spec.storage_class,
            multiple_mounting: new.spec.multiple_mounting,
            bindings: Vec::new(),
            clusters: Vec::new(),
            release_with_instance: new.release_with_instance,
            release_with_cluster: false,
            create_ms: now_ms,
            stop_ms: 0,
        });
        (id, uid)
    }

    /// The account's cloud disk of this id, unless it is released; reads may not show it yet.
    pub(crate) fn disk_mut(&mut self, account: &str, id: i64) -> Option<&mut Disk> {
        self.disks
            .iter_mut()
            .find(|disk| disk.id == id && disk.account == account && disk.status != DiskStatus::Released)
    }

    pub(crate) fn disk_spec(&self, id: i64) -> Option<&DiskSpec> {
        self.disk_specs.iter().find(|spec| spec.id == id)
    }

    /// Makes a cloud disk Released now, and unmounts it from all instances.
    pub(crate) fn end_disk(&mut self, index: usize, at_ms: i64) {
        let Some(disk) = self.disks.get_mut(index).filter(|disk| disk.status != DiskStatus::Released) else {
            return;
        };
        disk.status = DiskStatus::Released;
        disk.next = None;
        disk.stop_ms = at_ms;
        disk.bindings.clear();
        disk.clusters.clear();
        let (id, uid, name, account) = (disk.id, disk.uid.clone(), disk.name.clone(), disk.account.clone());
        for instance in &mut self.instances {
            instance.mounts.retain(|mount| mount.disk_id != id);
        }
        self.record(at_ms, LedgerObject::CloudDisk, LifeKind::Released, &uid, &name, &account);
    }
}

/// A cloud disk specification.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiskSpec {
    pub(crate) id: i64,
    pub(crate) spec_alias: String,
    pub(crate) multiple_mounting: bool,
    pub(crate) max_size_g: i64,
    pub(crate) storage_class: i64,
    /// Only for computers with an IB network.
    pub(crate) ib_only: bool,
    /// Whether creates of it are refused, though it is listed.
    pub(crate) sold_out: bool,
}

impl DiskSpec {
    /// The problem with a capacity, if any (service API, Limits).
    pub(crate) fn size_problem(&self, size_gb: i64) -> Option<String> {
        let most = self.max_size_g;
        (!(SMALLEST_GB..=most).contains(&size_gb)).then(|| format!("{size_gb} is not within {SMALLEST_GB} and {most}"))
    }
}

/// The problem with an absolute path, if any (service API, POST /api/instance/create: "valid absolute path").
pub(crate) fn path_problem(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        Some("must be an absolute path")
    } else if path.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("must not hold white space")
    } else if path.split('/').any(|part| part == "." || part == "..") || path.contains("//") {
        Some("must be a plain path without . and ..")
    } else {
        None
    }
}

/// The problem with the mount path of a cloud disk, if any (service API, POST /api/storage/cloud_disk/create: forbidden
/// paths).
pub(crate) fn disk_path_problem(path: &str) -> Option<&'static str> {
    const ALONE: [&str; 4] = ["", "/root", "/mnt", "/var"];
    const WITH_SUB_PATHS: [&str; 7] = ["/tmp", "/dev", "/proc", "/sys", "/etc", "/usr", "/boot"];

    let plain = path.trim_end_matches('/');
    let is_below = |root: &&str| plain.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path_problem(path).or_else(|| {
        (ALONE.contains(&plain) || WITH_SUB_PATHS.iter().any(is_below)).then_some("is one of the forbidden mount paths")
    })
}
