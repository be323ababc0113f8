//! The models of cloud disks: the resource's, and what the service reports of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    api,
    framework::{Attr, timeouts::Timeouts},
    provider::{
        rules::same_path,
        words::{disk_status, keep, storage_class, time},
    },
};

/// A `damodel_cloud_disk`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct CloudDisk {
    pub(super) purchase_duration: Attr<i64>,
    pub(super) deletion_protection: Attr<bool>,
    pub(super) timeouts: Attr<Timeouts>,
    pub(super) id: Attr<String>,
    pub(super) uid: Attr<String>,
    pub(super) name: Attr<String>,
    pub(super) size_gb: Attr<i64>,
    pub(super) status: Attr<String>,
    pub(super) spec_id: Attr<i64>,
    pub(super) spec_type: Attr<String>,
    pub(super) storage_class: Attr<String>,
    pub(super) multiple_mounting: Attr<bool>,
    pub(super) mount_path: Attr<String>,
    pub(super) binding_instances: Attr<Vec<String>>,
    pub(super) binding_clusters: Attr<Vec<String>>,
    pub(super) release_with_instance: Attr<bool>,
    pub(super) release_with_cluster: Attr<bool>,
    pub(super) create_time: Attr<String>,
    pub(super) stop_time: Attr<String>,
}

/// One disk of a list: what the service reports (service API, Cloud disk).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Record {
    pub(super) id: Attr<String>,
    pub(super) uid: Attr<String>,
    pub(super) name: Attr<String>,
    size_gb: Attr<i64>,
    status: Attr<String>,
    spec_id: Attr<i64>,
    spec_type: Attr<String>,
    storage_class: Attr<String>,
    multiple_mounting: Attr<bool>,
    mount_path: Attr<String>,
    binding_instances: Attr<Vec<String>>,
    binding_clusters: Attr<Vec<String>>,
    release_with_instance: Attr<bool>,
    release_with_cluster: Attr<bool>,
    create_time: Attr<String>,
    stop_time: Attr<String>,
}

impl CloudDisk {
    /// Takes over what the service reports. Arguments that it leaves out keep what they are.
    pub(super) fn take_disk(&mut self, disk: &api::CloudDisk) {
        self.id = Attr::Known(disk.id.to_string());
        self.uid = disk.uid.clone().into();
        keep(&mut self.name, disk.name.clone());
        keep(&mut self.size_gb, disk.size_gb);
        self.status = disk.status.map(disk_status).into();
        keep(&mut self.spec_id, disk.spec_id.filter(|id| *id != 0));
        self.spec_type = disk.spec_type.clone().into();
        self.storage_class = disk.storage_class_type.map(storage_class).into();
        self.multiple_mounting = disk.multiple_mounting.into();
        // The service may write the path of the configuration with a slash at its end.
        let is_same = |path: &String| self.mount_path.as_str().is_some_and(|own| same_path(own, path));
        let path = disk.mount_path.clone().filter(|path| !is_same(path));
        keep(&mut self.mount_path, path.map(|path| path.trim_end_matches('/').to_owned()));
        self.binding_instances = documents(&disk.binding_instances);
        self.binding_clusters = documents(&disk.binding_clusters);
        self.release_with_instance = disk.release_with_instance.into();
        self.release_with_cluster = disk.release_with_cluster.into();
        self.create_time = time(disk.create_time).into();
        self.stop_time = time(disk.stop_time).into();
    }
}

fn documents(values: &[Value]) -> Attr<Vec<String>> {
    Attr::Known(values.iter().map(Value::to_string).collect())
}
