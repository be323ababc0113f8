//! The endpoints of cloud disks (service API, Cloud disks).
//!
//! Order of the checks of a create: the permission (100042), the request (100002), the balance (100038), the stock of
//! the specification (180009).
//!
//! The document leaves open which statuses permit a change. Here a disk can be renamed until it is released, grows when
//! it is Available or Mounted, and is released when it is Available or In arrears and not mounted. Any other status is
//! refused with the downstream service's business error.

use axum::http::Method;
use serde_json::{Value, json};

use super::call::{CallContext, Endpoint, EndpointInput, name_problem, required_name};
use crate::{
    form::{DiskRefusal, Form, ReleasedDisks, Resize},
    ledger::{LedgerObject, LifeKind},
    query::Fields,
    refusal::{Code, ServiceRefusal},
    world::{Disk, DiskNext, DiskOrder, DiskSpec, DiskStatus, DiskStep, World, disk_path_problem},
};

pub(super) const LIST: Endpoint =
    Endpoint { name: "cloud_disk_list", method: Method::GET, path: "/api/storage/cloud_disk/list", handle: list };

pub(super) const SPEC_LIST: Endpoint = Endpoint {
    name: "cloud_disk_spec_list",
    method: Method::GET,
    path: "/api/storage/cloud_disk/spec",
    handle: spec_list,
};

fn list(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
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
    let records = context
        .world
        .disks
        .iter_mut()
        .filter(|disk| disk.account == account)
        .filter(|disk| match form.released_disks {
            _ if disk.status != DiskStatus::Released => true,
            ReleasedDisks::Forgotten => false,
            ReleasedDisks::Listed => true,
            ReleasedDisks::Lingering => now_ms < disk.stop_ms.saturating_add(forgotten_ms),
        })
        .filter(|disk| disk.name.contains(&search) || disk.uid.contains(&search))
        .filter(|disk| status.is_none_or(|status| displayed_status(disk, form) == status))
        .filter(|disk| classes.as_ref().is_none_or(|classes| classes.contains(&disk.storage_class)))
        .filter(|disk| cluster.as_ref().is_none_or(|cluster| disk.clusters.contains(cluster)))
        .filter_map(|disk| disk.visibility.is_seen(now_ms).then(|| record(disk, form)))
        .collect();
    Ok(page.of(records, context.form, context.random))
}

fn spec_list(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
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

/// A number that the document does not name.
const UNDOCUMENTED: i64 = 9;

/// The status in answers.
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
        "name": form.name(&disk.name),
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

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "cloud_disk_create", method: Method::POST, path: "/api/storage/cloud_disk/create", handle };

#[derive(Debug)]
struct Request {
    size_gb: i64,
    spec: DiskSpec,
    name: String,
    mount_path: String,
}

fn handle(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    context.require_disk_permission()?;
    input.no_query()?;
    let request = Request::read(input.fields()?, context.world)?;
    context.require_balance()?;
    if request.spec.sold_out {
        return Err(ServiceRefusal::new(
            Code::CreateCloudDiskError,
            "no more disk of this specification can be created",
        ));
    }
    let (account, visibility, now_ms) = (context.account, context.visibility(), context.now_ms);
    let new = DiskOrder {
        account,
        name: request.name,
        size_gb: request.size_gb,
        spec: request.spec,
        mount_path: request.mount_path,
        release_with_instance: false,
        next: creation_step(context),
        visibility,
    };
    let (_, uid) = context.world.add_disk(new, now_ms);
    context.created.push(uid);
    Ok(Value::Null)
}

/// The first change of a new disk and its time; `None` for one that is stuck. No status means a failed creation: such a
/// disk is Released.
fn creation_step(context: &CallContext<'_>) -> Option<DiskStep> {
    let to = if context.wish.fail { DiskNext::Released } else { DiskNext::Available };
    let at_ms = context.now_ms.saturating_add(context.tempo.disk_change_ms);
    (!context.wish.stick).then_some(DiskStep { at_ms, to })
}

impl Request {
    fn read(mut fields: Fields, world: &World) -> Result<Self, ServiceRefusal> {
        let size_gb = fields.required_integer("size_gb")?;
        let spec_id = fields.required_integer("spec_id")?;
        let name = fields.string("disk_name")?.unwrap_or_default();
        let mount_path = fields.string("mount_path")?.unwrap_or_default();
        let duration = fields.integer("purchase_duration")?.unwrap_or(1);
        let Some(spec) = world.disk_spec(spec_id).cloned() else {
            return Err(fields.invalid("spec_id", &format!("{spec_id} is no cloud disk specification")));
        };
        if let Some(problem) = spec.size_problem(size_gb) {
            return Err(fields.invalid("size_gb", &problem));
        }
        for (field, text, problem) in
            [("disk_name", &name, name_problem(&name)), ("mount_path", &mount_path, disk_path_problem(&mount_path))]
        {
            if let Some(problem) = problem.filter(|_| !text.is_empty()) {
                return Err(fields.invalid(field, problem));
            }
        }
        if duration != 1 {
            return Err(fields.invalid("purchase_duration", &format!("{duration} is not 1")));
        }
        fields.finish()?;
        Ok(Self { size_gb, spec, name, mount_path })
    }
}

pub(super) const RENAME: Endpoint = Endpoint {
    name: "cloud_disk_rename",
    method: Method::POST,
    path: "/api/storage/cloud_disk/rename",
    handle: rename,
};

pub(super) const RESIZE: Endpoint = Endpoint {
    name: "cloud_disk_resize",
    method: Method::POST,
    path: "/api/storage/cloud_disk/resize",
    handle: resize,
};

pub(super) const RELEASE: Endpoint = Endpoint {
    name: "cloud_disk_release",
    method: Method::POST,
    path: "/api/storage/cloud_disk/release",
    handle: release,
};

fn rename(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let (id, mut fields) = addressed(context, input)?;
    let name = required_name(&mut fields, "name")?;
    fields.finish()?;

    let disk = disk(context, id)?;
    disk.name.clone_from(&name);
    let uid = disk.uid.clone();
    context.world.record(context.now_ms, LedgerObject::CloudDisk, LifeKind::Renamed, &uid, &name, context.account);
    Ok(Value::Null)
}

fn resize(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let (id, mut fields) = addressed(context, input)?;
    let size_gb = fields.required_integer("size_gb")?;
    fields.finish()?;

    let (form, at_ms) = (context.form, context.now_ms.saturating_add(context.tempo.disk_change_ms));
    let (spec_id, present_gb) = disk(context, id).map(|disk| (disk.spec_id, disk.size_gb))?;
    if size_gb <= present_gb {
        return Err(ServiceRefusal::invalid(format!("size_gb: {size_gb} is not more than {present_gb}")));
    }
    if let Some(problem) = context.world.disk_spec(spec_id).and_then(|spec| spec.size_problem(size_gb)) {
        return Err(ServiceRefusal::invalid(format!("size_gb: {problem}")));
    }
    let disk = disk(context, id)?;
    if disk.next.is_some() || !matches!(disk.status, DiskStatus::Available | DiskStatus::Mounted) {
        return Err(forbidden(disk, form, "its status forbids resizing"));
    }
    disk.next = Some(DiskStep { at_ms, to: DiskNext::Grown { size_gb } });
    Ok(Value::Null)
}

fn release(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let (id, fields) = addressed(context, input)?;
    fields.finish()?;

    let (form, at_ms) = (context.form, context.now_ms.saturating_add(context.tempo.release_ms));
    let disk = disk(context, id)?;
    if !(disk.bindings.is_empty() && disk.clusters.is_empty()) {
        return Err(forbidden(disk, form, "it is mounted"));
    }
    if disk.next.is_some() || !matches!(disk.status, DiskStatus::Available | DiskStatus::InArrears) {
        return Err(forbidden(disk, form, "its status forbids release"));
    }
    disk.status = DiskStatus::Releasing;
    disk.next = Some(DiskStep { at_ms, to: DiskNext::Released });
    let uid = disk.uid.clone();
    context.released.push(uid);
    Ok(Value::Null)
}

/// The id in the request, and the remaining fields.
fn addressed(context: &CallContext<'_>, input: &EndpointInput<'_>) -> Result<(i64, Fields), ServiceRefusal> {
    context.require_disk_permission()?;
    input.no_query()?;
    let mut fields = input.fields()?;
    let id = fields.required_integer("id")?;
    Ok((id, fields))
}

fn disk<'a>(context: &'a mut CallContext<'_>, id: i64) -> Result<&'a mut Disk, ServiceRefusal> {
    context
        .world
        .disk_mut(context.account, id)
        .ok_or_else(|| ServiceRefusal::invalid(format!("id: cloud disk {id} does not exist")))
}

/// A status forbids the operation.
fn forbidden(disk: &Disk, form: &Form, obstacle: &str) -> ServiceRefusal {
    let code = match form.disk_refusal {
        DiskRefusal::InternalError => Code::InternalError,
        DiskRefusal::InvalidParameter => Code::InvalidParameter,
    };
    ServiceRefusal::new(code, format!("cloud disk {}: {obstacle}", disk.id))
}
