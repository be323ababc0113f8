//! POST /api/instance/save_image_v2.
//!
//! Order of the checks: the request (100002), the instance (160003, 100002), the name (130001), other saves (130002,
//! 130003, 130008), the balance (100038).

use axum::http::Method;
use serde_json::{Value, json};

use super::{Context, Endpoint, Input, name_problem};
use crate::sandbox::{
    errors::{Code, Refusal},
    form::Uploading,
    ledger::{LifeKind, Thing},
    world::{Instance, PrivateImage, Push, uuid},
};

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "image_save", method: Method::POST, path: "/api/instance/save_image_v2", handle };

fn handle(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let uid = fields.required_string("instance_uid")?;
    let name = fields.required_string("image_name")?;
    if let Some(problem) = name_problem(&name) {
        return Err(fields.invalid("image_name", problem));
    }
    fields.finish()?;

    let instance = operable(context, &uid)?;
    if context.world.has_private_image(context.account, &name, None) {
        return Err(Refusal::new(Code::ImageNameExisted, format!("image_name: {name:?} exists")));
    }
    check_other_saves(context, &uid)?;
    context.require_balance()?;
    Ok(save(context, &instance, name))
}

/// The instance, which must run: the document wants it "operable", and names no code for one that is not.
fn operable(context: &mut Context<'_>, uid: &str) -> Result<Instance, Refusal> {
    match context.world.instance_mut(context.account, uid) {
        Some(instance) if instance.status == "Running" && !instance.is_releasing() => Ok(instance.clone()),
        Some(instance) if !instance.is_released() => {
            Err(Refusal::invalid(format!("instance_uid: instance {uid:?} is {}, not Running", instance.status)))
        }
        Some(_) | None => {
            Err(Refusal::new(Code::InstanceNotExistOrNoPrivilege, format!("there is no instance {uid:?}")))
        }
    }
}

fn check_other_saves(context: &Context<'_>, uid: &str) -> Result<(), Refusal> {
    let is_in_the_way = |image: &PrivateImage| match context.form.uploading {
        Uploading::PerAccount => image.account == context.account,
        Uploading::PerInstance => image.source == uid,
    };
    if context.world.private_images.iter().any(|image| image.is_being_created() && is_in_the_way(image)) {
        return Err(Refusal::new(Code::ImageUploading, "an image is being created"));
    }
    let (now_ms, tempo) = (context.now_ms, context.tempo);
    match context.asking() {
        Some(account) if account.saves.is_busy(now_ms, tempo.save_window_ms) => {
            Err(Refusal::new(Code::ImageSaveBusy, "save requests come too often"))
        }
        Some(account) if account.saves.today(now_ms) >= tempo.daily_saves => {
            Err(Refusal::new(Code::ImageSaveCountExceeded, "the saves of this day are used up"))
        }
        Some(_) | None => Ok(()),
    }
}

fn save(context: &mut Context<'_>, instance: &Instance, name: String) -> Value {
    let now_ms = context.now_ms;
    let id = context.world.next_id();
    let tag = format!("{}/user_private/{}/{}:v{id}", context.world.registry_host, context.account, repository(&name));
    let push = Push {
        from_ms: now_ms,
        until_ms: now_ms.saturating_add(context.tempo.image_push_ms),
        fails: context.wish.fail,
    };
    let image = PrivateImage {
        account: context.account.to_owned(),
        id,
        uuid: uuid(id),
        name,
        tag: tag.clone(),
        ready: false,
        push_progress: 0,
        push: (!context.wish.stick).then_some(push),
        source: instance.uid.clone(),
        visibility: context.visibility(),
        size: 0.0,
        original_image: instance.image.address.clone(),
        region: instance.spec.region.clone(),
        create_time: now_ms / 1000,
        updated_at: now_ms / 1000,
        upperdir_files: 0,
        upperdir_bytes: 0,
        cuda: context.world.cuda_of(&instance.image),
    };
    let id_text = id.to_string();
    context.world.record(now_ms, Thing::PrivateImage, LifeKind::Created, &id_text, &image.name, context.account);
    context.world.private_images.push(image);
    if let Some(account) = context.world.accounts.iter_mut().find(|account| account.name == context.account) {
        account.saves.count(now_ms);
    }
    context.created.push(id_text);
    context.changed = true;
    json!({ "image_id": id, "image_tag": tag })
}

/// The repository of an image of this name: never with `_`, so that it shows no other kind of image (service API, POST
/// /api/instance/create, rule 4).
fn repository(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}
