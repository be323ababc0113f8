//! GET /api/storage/cloud_disk/list and GET /api/storage/cloud_disk/spec.

use axum::http::Method;
use serde_json::{Value, json};

use super::{Context, Endpoint, Input};
use crate::sandbox::{
    errors::{Code, Refusal},
    world::Disk,
};

pub(super) const LIST: Endpoint =
    Endpoint { name: "cloud_disk_list", method: Method::GET, path: "/api/storage/cloud_disk/list", handle: list };

pub(super) const SPEC_LIST: Endpoint = Endpoint {
    name: "cloud_disk_spec_list",
    method: Method::GET,
    path: "/api/storage/cloud_disk/spec",
    handle: spec_list,
};

fn list(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    require_permission(context)?;
    let mut query = input.query()?;
    let page = query.page()?;
    let search = query.string("name_or_uid").unwrap_or_default();
    let status = query.one_of("status", &[1, 2, 3, 4, 5, 6, 7, 8])?;
    let classes = query.storage_classes("spec_types")?;
    let cluster = query.integer("cluster_id")?.map(|id| format!("cluster-{id}"));
    // Reserved: accepted, without effect.
    query.one_of("support_ib_network", &[0, 1])?;
    query.finish()?;

    let records = context
        .world
        .disks_of(context.account)
        .filter(|disk| disk.name.contains(&search) || disk.uid.contains(&search))
        .filter(|disk| status.is_none_or(|status| disk.status.number() == status))
        .filter(|disk| classes.as_ref().is_none_or(|classes| classes.contains(&disk.storage_class)))
        .filter(|disk| cluster.as_ref().is_none_or(|cluster| disk.clusters.contains(cluster)))
        .map(record)
        .collect();
    Ok(page.of(records, context.form, context.random))
}

fn record(disk: &Disk) -> Value {
    let instances: Vec<Value> = disk
        .bindings
        .iter()
        .map(|binding| json!({ "instance_uid": binding.instance_uid, "mount_path": binding.mount_path }))
        .collect();
    let clusters: Vec<Value> = disk.clusters.iter().map(|cluster| json!({ "cluster_uid": cluster })).collect();
    json!({
        "id": disk.id,
        "uid": disk.uid,
        "name": disk.name,
        "size_gb": disk.size_gb,
        "status": disk.status.number(),
        "spec_id": disk.spec_id,
        "spec_type": disk.spec_type,
        "storage_class_type": disk.storage_class,
        "multiple_mounting": disk.multiple_mounting,
        "mount_path": disk.mount_path,
        "binding_instances": instances,
        "binding_clusters": clusters,
        "release_with_instance": disk.release_with_instance,
        "release_with_cluster": disk.release_with_cluster,
        "create_time": disk.create_ms / 1000,
        "stop_time": disk.stop_ms / 1000,
    })
}

fn spec_list(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    require_permission(context)?;
    let mut query = input.query()?;
    let page = query.optional_page()?;
    let alias = query.string("spec_alias").unwrap_or_default();
    let classes = query.storage_classes("spec_types")?;
    let with_ib = query.one_of("support_ib_network", &[0, 1])? != Some(0);
    query.finish()?;

    let records = context
        .world
        .disk_specs
        .iter()
        .filter(|spec| spec.spec_alias.contains(&alias) && (with_ib || !spec.ib_only))
        .filter(|spec| classes.as_ref().is_none_or(|classes| classes.contains(&spec.storage_class)))
        .map(|spec| {
            json!({
                "id": spec.id,
                "spec_alias": spec.spec_alias,
                "multiple_mounting": spec.multiple_mounting,
                "max_size_g": spec.max_size_g,
                "storage_class_type": spec.storage_class,
            })
        })
        .collect();
    Ok(page.of(records, context.form, context.random))
}

/// Cloud disk operations and storage specification queries need a permission (service API, Authentication).
fn require_permission(context: &Context<'_>) -> Result<(), Refusal> {
    let is_permitted =
        context.world.accounts.iter().any(|account| account.name == context.account && account.may_use_disks);
    if is_permitted {
        Ok(())
    } else {
        Err(Refusal::new(Code::PermissionDenied, "cloud disks are not permitted to this account"))
    }
}
