//! The models of private images: the resource's, and what the service reports of one.

use serde::{Deserialize, Serialize};

use crate::{
    api,
    framework::{Attr, timeouts::Timeouts, value::Number},
    provider::words::{image_status, keep, time},
};

/// A `damodel_private_image`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct PrivateImage {
    pub(super) id: Attr<String>,
    pub(super) instance_id: Attr<String>,
    pub(super) deletion_protection: Attr<bool>,
    pub(super) timeouts: Attr<Timeouts>,
    pub(super) image_id: Attr<i64>,
    pub(super) image_uuid: Attr<String>,
    pub(super) name: Attr<String>,
    pub(super) image_tag: Attr<String>,
    pub(super) status: Attr<String>,
    pub(super) push_progress: Attr<i64>,
    pub(super) image_size: Attr<Number>,
    pub(super) original_image: Attr<String>,
    pub(super) region: Attr<String>,
    pub(super) create_time: Attr<String>,
    pub(super) updated_at: Attr<String>,
    pub(super) upperdir_files: Attr<i64>,
    pub(super) upperdir_bytes: Attr<i64>,
}

/// One image of a list: what the service reports (service API, Private image).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Record {
    image_id: Attr<i64>,
    image_uuid: Attr<String>,
    name: Attr<String>,
    image_tag: Attr<String>,
    status: Attr<String>,
    push_progress: Attr<i64>,
    image_size: Attr<Number>,
    original_image: Attr<String>,
    region: Attr<String>,
    create_time: Attr<String>,
    updated_at: Attr<String>,
    upperdir_files: Attr<i64>,
    upperdir_bytes: Attr<i64>,
}

impl PrivateImage {
    /// Takes over what the service reports.
    pub(super) fn take_image(&mut self, image: &api::PrivateImage) {
        self.id = Attr::Known(image.image_id.to_string());
        self.image_id = image.image_id.into();
        self.image_uuid = image.image_uuid.clone().into();
        keep(&mut self.name, image.image_name.clone());
        self.image_tag = image.image_tag.clone().into();
        self.status = image.image_status.map(image_status).into();
        self.push_progress = image.push_progress.into();
        self.image_size = image.image_size.clone().map(Number::from).into();
        self.original_image = image.original_image.clone().into();
        self.region = image.region.clone().into();
        self.create_time = time(image.create_time).into();
        self.updated_at = time(image.updated_at).into();
        self.upperdir_files = image.upperdir_files.into();
        self.upperdir_bytes = image.upperdir_bytes.into();
    }
}
