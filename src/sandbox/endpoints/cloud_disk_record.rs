//! A cloud disk as the list shows it (service API, Resources and fields, Cloud disk).

use serde_json::{Value, json};

use crate::sandbox::{
    form::{Form, Resize},
    world::{Disk, DiskStatus},
};

/// A number that the document does not name.
const UNDOCUMENTED: i64 = 9;

/// The status that a reader is shown.
pub(super) fn displayed_status(disk: &Disk, form: &Form) -> i64 {
    let is_growing = disk.growth().is_some() && form.resize != Resize::Unchanged;
    if !is_growing && disk.status != DiskStatus::Starting {
        disk.status.number()
    } else if form.undocumented_statuses {
        UNDOCUMENTED
    } else {
        DiskStatus::Starting.number()
    }
}

/// The record of the list.
pub(super) fn record(disk: &Disk, form: &Form) -> Value {
    let size_gb = if form.resize == Resize::SizeFirst { disk.growth() } else { None };
    let instances: Vec<Value> = disk
        .bindings
        .iter()
        .map(|binding| json!({ "instance_uid": binding.instance_uid, "mount_path": form.path(&binding.mount_path) }))
        .collect();
    let clusters: Vec<Value> = disk.clusters.iter().map(|cluster| json!({ "cluster_uid": cluster })).collect();
    json!({
        "id": disk.id,
        "uid": disk.uid,
        "name": disk.name,
        "size_gb": size_gb.unwrap_or(disk.size_gb),
        "status": displayed_status(disk, form),
        "spec_id": disk.spec_id,
        "spec_type": disk.spec_type,
        "storage_class_type": disk.storage_class,
        "multiple_mounting": disk.multiple_mounting,
        "mount_path": form.path(&disk.mount_path),
        "binding_instances": instances,
        "binding_clusters": clusters,
        "release_with_instance": disk.release_with_instance,
        "release_with_cluster": disk.release_with_cluster,
        "create_time": disk.create_ms / 1000,
        "stop_time": disk.stop_ms / 1000,
    })
}
