//! POST /api/storage/cloud_disk/rename, …/resize and …/release.
//!
//! The document leaves open which statuses permit them. Here a disk can be renamed until it is released, grows when it
//! is Available or Mounted, and is released when it is Available or In arrears and nothing mounts it. What forbids it
//! otherwise is the downstream service's business error.

use axum::http::Method;
use serde_json::Value;

use super::{Context, Endpoint, Input, name_problem};
use crate::sandbox::{
    errors::{Code, Refusal},
    fields::Fields,
    form::{DiskRefusal, Form},
    ledger::{LifeKind, Thing},
    world::{Disk, DiskNext, DiskStatus, DiskStep},
};

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

fn rename(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    let (id, mut fields) = addressed(context, input)?;
    let name = fields.required_string("name")?;
    if let Some(problem) = name_problem(&name) {
        return Err(fields.invalid("name", problem));
    }
    fields.finish()?;

    let disk = disk(context, id)?;
    disk.name.clone_from(&name);
    let uid = disk.uid.clone();
    context.world.record(context.now_ms, Thing::CloudDisk, LifeKind::Renamed, &uid, &name, context.account);
    context.changed = true;
    Ok(Value::Null)
}

fn resize(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    let (id, mut fields) = addressed(context, input)?;
    let size_gb = fields.required_integer("size_gb")?;
    fields.finish()?;

    let (form, at_ms) = (context.form, context.now_ms.saturating_add(context.tempo.disk_change_ms));
    let (spec_id, present_gb) = disk(context, id).map(|disk| (disk.spec_id, disk.size_gb))?;
    if size_gb <= present_gb {
        return Err(Refusal::invalid(format!("size_gb: {size_gb} is not more than {present_gb}")));
    }
    if let Some(problem) = context.world.disk_spec(spec_id).and_then(|spec| spec.size_problem(size_gb)) {
        return Err(Refusal::invalid(format!("size_gb: {problem}")));
    }
    let disk = disk(context, id)?;
    if disk.next.is_some() || !matches!(disk.status, DiskStatus::Available | DiskStatus::Mounted) {
        return Err(forbidden(disk, form, "its status forbids resizing"));
    }
    disk.next = Some(DiskStep { at_ms, to: DiskNext::Grown { size_gb } });
    context.changed = true;
    Ok(Value::Null)
}

fn release(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
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
    context.changed = true;
    Ok(Value::Null)
}

/// The id in the request, and the fields that are left.
fn addressed(context: &Context<'_>, input: &Input<'_>) -> Result<(i64, Fields), Refusal> {
    context.require_disk_permission()?;
    input.no_query()?;
    let mut fields = input.fields()?;
    let id = fields.required_integer("id")?;
    Ok((id, fields))
}

fn disk<'a>(context: &'a mut Context<'_>, id: i64) -> Result<&'a mut Disk, Refusal> {
    context
        .world
        .disk_mut(context.account, id)
        .ok_or_else(|| Refusal::invalid(format!("id: there is no cloud disk {id}")))
}

/// A status forbids the operation.
fn forbidden(disk: &Disk, form: &Form, obstacle: &str) -> Refusal {
    let code = match form.disk_refusal {
        DiskRefusal::InternalError => Code::InternalError,
        DiskRefusal::InvalidParameter => Code::InvalidParameter,
    };
    Refusal::new(code, format!("cloud disk {}: {obstacle}", disk.id))
}
