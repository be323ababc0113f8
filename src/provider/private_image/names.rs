//! Who has the name of an image, and how to get on.

use super::model::PrivateImage;
use crate::{
    api::{self, Kind},
    provider::{Client, lifecycle::Managed as _},
};

/// Names the image that has the name that another is to have.
pub(super) fn taken(holder: &api::PrivateImage, client: &Client) -> String {
    let (id, name) = (holder.image_id, holder.image_name.as_deref().unwrap_or_default());
    let entries = client.journal.list().map(|report| report.entries).unwrap_or_default();
    let is_left = entries.iter().any(|listed| {
        let record = &listed.record;
        record.kind == Kind::PrivateImage
            && (record.marker == name || record.ids.as_ref().is_some_and(|ids| ids.id == id.to_string()))
    });
    let origin = if is_left {
        " An earlier run created it, perhaps from an instance that was replaced since, and its pending record is \
         still there."
    } else {
        ""
    };
    format!(
        "Private image {id} has it.{origin} To manage that image: terraform import {}.<name> {id}. Otherwise delete \
         it in the console, or choose another name.",
        PrivateImage::TYPE_NAME
    )
}
