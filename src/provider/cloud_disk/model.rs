use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    api,
    framework::{Attr, timeouts::Timeouts},
    provider::words::{disk_status, storage_class, time},
};

/// A struct with what the service reports of a cloud disk, under the attribute names of the resource (service API, Cloud disk),
/// and some of its own.
macro_rules! with_disk {
    ($(#[$meta:meta])* $name:ident { $($own:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub(in crate::provider) struct $name {
            $(pub(super) $own: Attr<$ty>,)*
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

        impl $name {
            /// Takes over what the service reports. Arguments that it leaves out keep what they are.
            pub(super) fn take(&mut self, disk: &api::CloudDisk) {
                self.id = Attr::Known(disk.id.to_string());
                self.uid = disk.uid.clone().into();
                keep(&mut self.name, disk.name.clone());
                keep(&mut self.size_gb, disk.size_gb);
                self.status = disk.status.map(disk_status).into();
                keep(&mut self.spec_id, disk.spec_id);
                self.spec_type = disk.spec_type.clone().into();
                self.storage_class = disk.storage_class_type.map(storage_class).into();
                self.multiple_mounting = disk.multiple_mounting.into();
                keep(&mut self.mount_path, disk.mount_path.clone());
                self.binding_instances = documents(&disk.binding_instances);
                self.binding_clusters = documents(&disk.binding_clusters);
                self.release_with_instance = disk.release_with_instance.into();
                self.release_with_cluster = disk.release_with_cluster.into();
                self.create_time = time(disk.create_time).into();
                self.stop_time = time(disk.stop_time).into();
            }
        }
    };
}

with_disk!(
    /// A `damodel_cloud_disk`, as configured, planned or stored. Its attributes are described in the schema.
    CloudDisk {
        purchase_duration: i64,
        deletion_protection: bool,
        timeouts: Timeouts,
    }
);

with_disk!(
    /// One disk of a list.
    Record {}
);

impl Record {
    /// The record of a disk.
    pub(super) fn of(disk: &api::CloudDisk) -> Self {
        let mut record = Self::default();
        record.take(disk);
        record
    }
}

pub(super) fn keep<T>(attribute: &mut Attr<T>, reported: Option<T>) {
    if let Some(reported) = reported {
        *attribute = Attr::Known(reported);
    }
}

pub(super) fn documents(values: &[Value]) -> Attr<Vec<String>> {
    Attr::Known(values.iter().map(Value::to_string).collect())
}
