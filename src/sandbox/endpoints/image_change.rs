//! PUT /api/image/update and DELETE /api/image/delete/{image_id}.

use axum::http::Method;
use serde_json::Value;

use super::{Context, Endpoint, Input, name_problem};
use crate::sandbox::{
    errors::{Code, Refusal},
    ledger::{LifeKind, Thing},
    world::ImageKind,
};

pub(super) const RENAME: Endpoint =
    Endpoint { name: "image_rename", method: Method::PUT, path: "/api/image/update", handle: rename };

pub(super) const DELETE: Endpoint =
    Endpoint { name: "image_delete", method: Method::DELETE, path: "/api/image/delete/{image_id}", handle: delete };

fn rename(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let id = fields.required_integer("image_id")?;
    let name = fields.required_string("image_name")?;
    if let Some(problem) = name_problem(&name) {
        return Err(fields.invalid("image_name", problem));
    }
    fields.finish()?;

    find(context, id)?;
    if context.world.has_private_image(context.account, &name, Some(id)) {
        return Err(Refusal::new(Code::ImageNameExisted, format!("image_name: {name:?} exists")));
    }
    let (account, now_ms) = (context.account, context.now_ms);
    if let Some(image) = context.world.private_image_mut(account, id) {
        image.name.clone_from(&name);
        image.updated_at = now_ms / 1000;
    }
    context.world.record(now_ms, Thing::PrivateImage, LifeKind::Renamed, &id.to_string(), &name, account);
    context.changed = true;
    Ok(Value::Null)
}

fn delete(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    input.no_query()?;
    input.no_body()?;
    let id = input.path_id("image_id")?;

    let index = find(context, id)?;
    let is_used = context.world.instances.iter().any(|instance| {
        instance.status == "Creating" && instance.image.kind == ImageKind::Private && instance.image.id == id
    });
    if is_used {
        return Err(Refusal::new(Code::ImageUsedByInstance, format!("an instance being created uses image {id}")));
    }
    context.world.drop_private_image(index, LifeKind::Released, context.now_ms);
    context.released.push(id.to_string());
    context.changed = true;
    Ok(Value::Null)
}

/// The index of the account's image. One of another account is unknown to this one (service API, Authentication, 4), or
/// forbidden by the chosen form.
fn find(context: &Context<'_>, id: i64) -> Result<usize, Refusal> {
    let no_privilege = || Refusal::new(Code::ImageNoPrivilege, format!("image {id} is not permitted to this account"));
    if !context.asking().is_some_and(|account| account.may_use_images) {
        return Err(no_privilege());
    }
    match context.world.private_images.iter().enumerate().find(|(_, image)| image.id == id) {
        Some((index, image)) if image.account == context.account => Ok(index),
        Some(_) if context.form.foreign_images_forbidden => Err(no_privilege()),
        Some(_) | None => Err(Refusal::new(Code::ImageNotFound, format!("there is no image {id}"))),
    }
}
