//! POST /api/instance/rename.

use axum::http::Method;
use serde_json::Value;

use super::{Context, Endpoint, Input, name_problem};
use crate::sandbox::{
    errors::{Code, Refusal},
    ledger::{LifeKind, Thing},
};

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "instance_rename", method: Method::POST, path: "/api/instance/rename", handle };

fn handle(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let uid = fields.required_string("instance_uid")?;
    let name = fields.required_string("name")?;
    if let Some(problem) = name_problem(&name) {
        return Err(fields.invalid("name", problem));
    }
    fields.finish()?;

    match context.world.instance_mut(context.account, &uid) {
        Some(instance) if !instance.is_released() => instance.alias.clone_from(&name),
        Some(_) | None => {
            return Err(Refusal::new(Code::InstanceNotExistOrNoPrivilege, format!("there is no instance {uid:?}")));
        }
    }
    context.changed = true;
    context.world.record(context.now_ms, Thing::Instance, LifeKind::Renamed, &uid, &name, context.account);
    Ok(Value::Null)
}
