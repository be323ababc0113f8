//! The endpoints of images (service API, Images).
//!
//! Order of the checks of a save: the request (100002), the instance (160003, 100002), the name (130001), other saves
//! (130002, 130003, 130008), the balance (100038).

use axum::http::Method;
use serde_json::{Value, json};

use super::call::{CallContext, Endpoint, EndpointInput, required_name};
use crate::{
    form::Uploading,
    ledger::{LedgerObject, LifeKind},
    query::unpaged,
    refusal::{Code, ServiceRefusal},
    world::{ImageKind, Instance, PrivateImage, Push, uuid},
};

pub(super) const PUBLIC_LIST: Endpoint =
    Endpoint { name: "public_image_list", method: Method::GET, path: "/api/image/publics_v2", handle: public_list };

pub(super) const PRIVATE_LIST: Endpoint =
    Endpoint { name: "private_image_list", method: Method::GET, path: "/api/image/privates", handle: private_list };

fn public_list(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let mut query = input.query()?;
    let label = query.string("label").filter(|label| !label.is_empty());
    let name = query.string("name").unwrap_or_default().to_lowercase();
    query.finish()?;
    if label.as_ref().is_some_and(|label| label.contains(',')) {
        return Err(ServiceRefusal::invalid("label: one label only"));
    }

    let records = context
        .world
        .public_images
        .iter()
        .filter(|image| image.enabled)
        .filter(|image| {
            let mut texts = [&image.name].into_iter().chain(&image.softwares);
            texts.any(|text| text.to_lowercase().contains(&name))
        })
        .filter(|image| label.as_ref().is_none_or(|label| image.labels.contains(label)))
        .map(|image| {
            json!({
                "id": image.id,
                "name": image.name,
                "image_url": image.image_url,
                "description": image.description,
                "softwares": image.softwares,
                "labels": image.labels,
                "size": image.size,
                "document_url": image.document_url,
                "icon": image.icon,
                "create_time": image.create_time,
                "update_time": image.update_time,
            })
        })
        .collect();
    Ok(unpaged(records, context.form, context.random))
}

fn private_list(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let mut query = input.query()?;
    let page = query.page()?;
    let name = query.string("image_name").unwrap_or_default();
    let status = query.one_of("image_status", &[0, 1])?;
    query.finish()?;

    let (account, now_ms) = (context.account, context.now_ms);
    let records = context
        .world
        .private_images
        .iter_mut()
        .filter(|image| image.account == account && image.name.contains(&name))
        .filter(|image| status.is_none_or(|status| i64::from(image.ready) == status))
        .filter_map(|image| image.visibility.is_seen(now_ms).then(|| private_record(image, now_ms)))
        .collect();
    Ok(page.of(records, context.form, context.random))
}

fn private_record(image: &PrivateImage, now_ms: i64) -> Value {
    json!({
        "image_id": image.id,
        "image_uuid": image.uuid,
        "image_name": image.name,
        "image_tag": image.tag,
        "image_status": i64::from(image.ready),
        "push_progress": image.progress(now_ms),
        "image_size": image.size,
        "original_image": image.original_image,
        "region": image.region,
        "create_time": image.create_time,
        "updated_at": image.updated_at,
        "upperdir_files": image.upperdir_files,
        "upperdir_bytes": image.upperdir_bytes,
    })
}

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "image_save", method: Method::POST, path: "/api/instance/save_image_v2", handle };

fn handle(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let uid = fields.required_string("instance_uid")?;
    let name = required_name(&mut fields, "image_name")?;
    fields.finish()?;

    let instance = operable(context, &uid)?;
    if context.world.has_private_image(context.account, &name, None) {
        return Err(ServiceRefusal::new(Code::ImageNameExisted, format!("image_name: {name:?} exists")));
    }
    check_other_saves(context, &uid)?;
    context.require_balance()?;
    Ok(save(context, &instance, name))
}

/// The instance, which must be Running: the document requires it to be "operable", and names no code for any other.
fn operable(context: &mut CallContext<'_>, uid: &str) -> Result<Instance, ServiceRefusal> {
    match context.world.instance_mut(context.account, uid) {
        Some(instance) if instance.status == "Running" && !instance.is_releasing() => Ok(instance.clone()),
        Some(instance) if !instance.is_released() => {
            Err(ServiceRefusal::invalid(format!("instance_uid: instance {uid:?} is {}, not Running", instance.status)))
        }
        Some(_) | None => Err(ServiceRefusal::no_instance(uid)),
    }
}

fn check_other_saves(context: &CallContext<'_>, uid: &str) -> Result<(), ServiceRefusal> {
    let mut being_created = context.world.private_images.iter().filter(|image| image.is_being_created());
    if being_created.any(|image| match context.form.uploading {
        Uploading::PerAccount => image.account == context.account,
        Uploading::PerInstance => image.source == uid,
    }) {
        return Err(ServiceRefusal::new(Code::ImageUploading, "an image is being created"));
    }
    let (now_ms, tempo) = (context.now_ms, context.tempo);
    match context.asking() {
        Some(account) if account.saves.is_busy(now_ms, tempo.save_window_ms) => {
            Err(ServiceRefusal::new(Code::ImageSaveBusy, "save requests come too often"))
        }
        Some(account) if account.saves.today(now_ms) >= tempo.daily_saves => {
            Err(ServiceRefusal::new(Code::ImageSaveCountExceeded, "the saves of this day are used up"))
        }
        Some(_) | None => Ok(()),
    }
}

fn save(context: &mut CallContext<'_>, instance: &Instance, name: String) -> Value {
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
    context.world.record(now_ms, LedgerObject::PrivateImage, LifeKind::Created, &id_text, &image.name, context.account);
    context.world.private_images.push(image);
    if let Some(account) = context.world.accounts.iter_mut().find(|account| account.name == context.account) {
        account.saves.count(now_ms);
    }
    context.created.push(id_text);
    json!({ "image_id": id, "image_tag": tag })
}

/// The repository of an image of this name. It has no `_`, so that its address shows no other kind of image (service
/// API, POST /api/instance/create, rule 4).
fn repository(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

pub(super) const RENAME: Endpoint =
    Endpoint { name: "image_rename", method: Method::PUT, path: "/api/image/update", handle: rename };

pub(super) const DELETE: Endpoint =
    Endpoint { name: "image_delete", method: Method::DELETE, path: "/api/image/delete/{image_id}", handle: delete };

fn rename(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    input.no_query()?;
    let mut fields = input.fields()?;
    let id = fields.required_integer("image_id")?;
    let name = required_name(&mut fields, "image_name")?;
    fields.finish()?;

    find(context, id)?;
    if context.world.has_private_image(context.account, &name, Some(id)) {
        return Err(ServiceRefusal::new(Code::ImageNameExisted, format!("image_name: {name:?} exists")));
    }
    let (account, now_ms) = (context.account, context.now_ms);
    if let Some(image) = context.world.private_image_mut(account, id) {
        image.name.clone_from(&name);
        image.updated_at = now_ms / 1000;
    }
    context.world.record(now_ms, LedgerObject::PrivateImage, LifeKind::Renamed, &id.to_string(), &name, account);
    Ok(Value::Null)
}

fn delete(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    input.no_query()?;
    input.no_body()?;
    let id = input.path_id("image_id")?;

    let index = find(context, id)?;
    let is_used = context.world.instances.iter().any(|instance| {
        instance.status == "Creating" && instance.image.kind == ImageKind::Private && instance.image.id == id
    });
    if is_used {
        return Err(ServiceRefusal::new(
            Code::ImageUsedByInstance,
            format!("an instance being created uses image {id}"),
        ));
    }
    context.world.drop_private_image(index, LifeKind::Released, context.now_ms);
    context.released.push(id.to_string());
    Ok(Value::Null)
}

/// The index of the account's image. Another account's image is unknown (service API, Authentication, 4), or forbidden
/// in the chosen form.
fn find(context: &CallContext<'_>, id: i64) -> Result<usize, ServiceRefusal> {
    let no_privilege =
        || ServiceRefusal::new(Code::ImageNoPrivilege, format!("image {id} is not permitted to this account"));
    if !context.asking().is_some_and(|account| account.may_use_images) {
        return Err(no_privilege());
    }
    match context.world.private_images.iter().enumerate().find(|(_, image)| image.id == id) {
        Some((index, image)) if image.account == context.account => Ok(index),
        Some(_) if context.form.foreign_images_forbidden => Err(no_privilege()),
        Some(_) | None => Err(ServiceRefusal::new(Code::ImageNotFound, format!("image {id} does not exist"))),
    }
}
