use serde::{Deserialize, Serialize};

use crate::{
    api,
    framework::{Attr, timeouts::Timeouts, value::Number},
    provider::words::{image_status, time},
};

/// A struct with what the service reports of a private image, under the attribute names of the resource (service API, Private
/// image), and some of its own.
macro_rules! with_image {
    ($(#[$meta:meta])* $name:ident { $($own:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub(in crate::provider) struct $name {
            $(pub(super) $own: Attr<$ty>,)*
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

        impl $name {
            /// Takes over what the service reports.
            pub(super) fn take(&mut self, image: &api::PrivateImage) {
                self.image_id = image.image_id.into();
                self.image_uuid = image.image_uuid.clone().into();
                if let Some(name) = &image.image_name {
                    self.name = Attr::Known(name.clone());
                }
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
    };
}

pub(super) use with_image;

with_image!(
    /// A `damodel_private_image`, as configured, planned or stored. Its attributes are described in the schema.
    PrivateImage {
        id: String,
        instance_id: String,
        deletion_protection: bool,
        timeouts: Timeouts,
    }
);

with_image!(
    /// One image of a list.
    Record {}
);

impl PrivateImage {
    /// Takes over what the service reports, the id included.
    pub(super) fn take_whole(&mut self, image: &api::PrivateImage) {
        self.id = Attr::Known(image.image_id.to_string());
        self.take(image);
    }
}

impl Record {
    /// The record of an image.
    pub(super) fn of(image: &api::PrivateImage) -> Self {
        let mut record = Self::default();
        record.take(image);
        record
    }
}
