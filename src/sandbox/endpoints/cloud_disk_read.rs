//! GET /api/storage/cloud_disk/list and GET /api/storage/cloud_disk/spec.

use axum::http::Method;
use serde_json::{Value, json};

use super::{
    Context, Endpoint, Input,
    cloud_disk_record::{displayed_status, record},
};
use crate::sandbox::{
    errors::Refusal,
    form::ReleasedDisks,
    world::{Disk, DiskStatus},
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
    context.require_disk_permission()?;
    let mut query = input.query()?;
    let page = query.page()?;
    let search = query.string("name_or_uid").unwrap_or_default();
    let status = query.one_of("status", &[1, 2, 3, 4, 5, 6, 7, 8])?;
    let classes = query.storage_classes("spec_types")?;
    let cluster = query.integer("cluster_id")?.map(|id| format!("cluster-{id}"));
    // Reserved: accepted, without effect.
    query.one_of("support_ib_network", &[0, 1])?;
    query.finish()?;

    let (account, form, now_ms) = (context.account, context.form, context.now_ms);
    let forgotten_ms = context.tempo.release_ms;
    let is_forgotten = |disk: &Disk| {
        disk.status == DiskStatus::Released
            && match form.released_disks {
                ReleasedDisks::Forgotten => true,
                ReleasedDisks::Listed => false,
                ReleasedDisks::Lingering => now_ms >= disk.stop_ms.saturating_add(forgotten_ms),
            }
    };
    let records = context
        .world
        .disks
        .iter_mut()
        .filter(|disk| disk.account == account && !is_forgotten(disk))
        .filter(|disk| disk.name.contains(&search) || disk.uid.contains(&search))
        .filter(|disk| status.is_none_or(|status| displayed_status(disk, form) == status))
        .filter(|disk| classes.as_ref().is_none_or(|classes| classes.contains(&disk.storage_class)))
        .filter(|disk| cluster.as_ref().is_none_or(|cluster| disk.clusters.contains(cluster)))
        .filter_map(|disk| disk.visibility.is_seen(now_ms).then(|| record(disk, form)))
        .collect();
    Ok(page.of(records, context.form, context.random))
}

fn spec_list(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    context.require_disk_permission()?;
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
