//! GET /api/instance/list and GET /api/instance/detail.

use axum::http::Method;
use serde_json::{Map, Value};

use super::{
    Context, Endpoint, Input,
    instance_record::{detail_record, displayed_status, list_record},
};
use crate::sandbox::{
    errors::{Code, Refusal},
    form::Released,
    query::Query,
    world::Instance,
};

pub(super) const LIST: Endpoint =
    Endpoint { name: "instance_list", method: Method::GET, path: "/api/instance/list", handle: list };

pub(super) const DETAIL: Endpoint =
    Endpoint { name: "instance_detail", method: Method::GET, path: "/api/instance/detail", handle: detail };

/// The statuses that the document names for filtering.
const STATUSES: [&str; 5] = ["Creating", "Running", "Stopped", "Released", "Failed"];

fn list(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    let mut query = input.query()?;
    let page = query.page()?;
    let search = query.string("query").unwrap_or_default();
    let status = status_filter(&mut query)?;
    query.finish()?;

    let (account, form, now_ms) = (context.account, context.form, context.now_ms);
    let records = context
        .world
        .instances
        .iter_mut()
        .filter(|instance| instance.account == account)
        .filter(|instance| !(instance.is_released() && form.released == Released::Forgotten))
        .filter(|instance| instance.uid.contains(&search) || instance.alias.contains(&search))
        .filter(|instance| status.as_deref().is_none_or(|status| displayed_status(instance, form) == status))
        .filter_map(|instance| instance.visibility.is_seen(now_ms).then(|| Value::Object(list_record(instance, form))))
        .collect();
    Ok(page.of(records, context.form, context.random))
}

fn status_filter(query: &mut Query) -> Result<Option<String>, Refusal> {
    match query.string("status") {
        Some(status) if !STATUSES.contains(&status.as_str()) => {
            Err(Refusal::invalid(format!("status: {status:?} is not one of {STATUSES:?}")))
        }
        status => Ok(status),
    }
}

fn detail(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    let mut query = input.query()?;
    let uid = query.required_string("instance_uid")?;
    query.finish()?;

    let now_ms = context.now_ms;
    let has_detail = |instance: &Instance| context.form.released == Released::Listed || !instance.is_released();
    let seen: Option<Instance> = context
        .world
        .instance_mut(context.account, &uid)
        .filter(|instance| has_detail(instance))
        .and_then(|instance| instance.visibility.is_seen(now_ms).then(|| instance.clone()));
    match seen {
        Some(instance) => {
            let record: Map<String, Value> = detail_record(&instance, &context.world.disks, context.form);
            Ok(Value::Object(record))
        }
        None => Err(Refusal::new(Code::InstanceNotExistOrNoPrivilege, format!("there is no instance {uid:?}"))),
    }
}
