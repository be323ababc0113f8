//! The image that an instance was made of: it tells an image that a save made from another of the same name.

use crate::{
    api::{self, InstanceUid},
    provider::{Client, images, words::image_type},
};

/// What the instance's own image may be called, its address and its name: it tells an image that this save made from
/// one of the same name. Without the address nothing is compared: a display name alone is no proof that an address is
/// another image's.
pub(super) async fn original_images(uid: &InstanceUid, client: &Client, limits: &api::Context) -> Vec<String> {
    match original_address(uid, client, limits).await {
        Ok(Some((address, name))) => [address].into_iter().chain(name).collect(),
        Ok(None) => Vec::new(),
        Err(error) => {
            tracing::debug!(%error, "the instance's image is not known");
            Vec::new()
        }
    }
}

/// The address of the image that an instance was made of, and its display name.
async fn original_address(
    uid: &InstanceUid,
    client: &Client,
    limits: &api::Context,
) -> Result<Option<(String, Option<String>)>, api::Error> {
    let instance = client.api.instances().detail(uid, limits).await?.instance;
    let (Some(id), Some(kind)) = (instance.image_id, instance.image_type.as_deref().map(image_type)) else {
        return Ok(None);
    };
    let address = images::address(id, &kind, client, limits).await?;
    Ok(address.map(|address| (address, instance.image_name)))
}
