//! POST /api/storage/cloud_disk/create.
//!
//! Order of the checks: the permission (100042), the request (100002), the balance (100038), what is left of the
//! specification (180009).

use axum::http::Method;
use serde_json::Value;

use super::{Context, Endpoint, Input, name_problem};
use crate::sandbox::{
    errors::{Code, Refusal},
    fields::Fields,
    world::{DiskNext, DiskSpec, DiskStep, NewDisk, World, disk_path_problem},
};

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "cloud_disk_create", method: Method::POST, path: "/api/storage/cloud_disk/create", handle };

#[derive(Debug)]
struct Request {
    size_gb: i64,
    spec: DiskSpec,
    name: String,
    mount_path: String,
}

fn handle(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    context.require_disk_permission()?;
    input.no_query()?;
    let request = Request::read(input.fields()?, context.world)?;
    context.require_balance()?;
    if request.spec.sold_out {
        return Err(Refusal::new(Code::CreateCloudDiskError, "no more disk of this specification can be created"));
    }
    let (account, visibility, now_ms) = (context.account, context.visibility(), context.now_ms);
    let new = NewDisk {
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
    context.changed = true;
    Ok(Value::Null)
}

/// What becomes of the new disk, and when; nothing for one that is stuck. No status says that a creation failed: such a
/// disk is Released.
fn creation_step(context: &Context<'_>) -> Option<DiskStep> {
    let to = if context.wish.fail { DiskNext::Released } else { DiskNext::Available };
    let at_ms = context.now_ms.saturating_add(context.tempo.disk_change_ms);
    (!context.wish.stick).then_some(DiskStep { at_ms, to })
}

impl Request {
    fn read(mut fields: Fields, world: &World) -> Result<Self, Refusal> {
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
