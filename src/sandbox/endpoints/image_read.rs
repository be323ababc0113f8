//! GET /api/image/publics_v2 and GET /api/image/privates.

use axum::http::Method;
use serde_json::{Value, json};

use super::{Context, Endpoint, Input};
use crate::sandbox::{
    errors::Refusal,
    query::unpaged,
    world::{PrivateImage, PublicImage},
};

pub(super) const PUBLIC_LIST: Endpoint =
    Endpoint { name: "public_image_list", method: Method::GET, path: "/api/image/publics_v2", handle: public_list };

pub(super) const PRIVATE_LIST: Endpoint =
    Endpoint { name: "private_image_list", method: Method::GET, path: "/api/image/privates", handle: private_list };

fn public_list(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
    let mut query = input.query()?;
    let label = query.string("label").filter(|label| !label.is_empty());
    let name = query.string("name").unwrap_or_default().to_lowercase();
    query.finish()?;
    if label.as_ref().is_some_and(|label| label.contains(',')) {
        return Err(Refusal::invalid("label: one label only"));
    }

    let is_named = |image: &PublicImage| {
        image.name.to_lowercase().contains(&name)
            || image.softwares.iter().any(|software| software.to_lowercase().contains(&name))
    };
    let records = context
        .world
        .public_images
        .iter()
        .filter(|image| image.enabled && is_named(image))
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

fn private_list(context: &mut Context<'_>, input: &Input<'_>) -> Result<Value, Refusal> {
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
