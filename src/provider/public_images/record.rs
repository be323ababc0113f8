//! The attributes of a public image.

use serde::{Deserialize, Serialize};

use crate::{
    api::PublicImage,
    framework::{Attr, Type, schema::Attribute},
    provider::words::time,
};

/// A struct with the fields of a public image, under the attribute names of the data sources (service API, Public
/// image), and additional fields.
macro_rules! with_image {
    ($(#[$meta:meta])* $name:ident { $($own:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub(in crate::provider) struct $name {
            $(pub(super) $own: Attr<$ty>,)*
            pub(super) id: Attr<String>,
            pub(super) name: Attr<String>,
            pub(super) image_url: Attr<String>,
            pub(super) description: Attr<String>,
            pub(super) softwares: Attr<Vec<String>>,
            pub(super) labels: Attr<Vec<String>>,
            pub(super) size: Attr<String>,
            pub(super) document_url: Attr<String>,
            pub(super) icon: Attr<String>,
            pub(super) create_time: Attr<String>,
            pub(super) update_time: Attr<String>,
        }

        impl $name {
            /// Sets the attributes from an image.
            pub(super) fn take(&mut self, image: &PublicImage) {
                self.id = Attr::Known(image.id.to_string());
                self.name = image.name.clone().into();
                self.image_url = image.image_url.clone().into();
                self.description = image.description.clone().into();
                self.softwares = Attr::Known(image.softwares.clone());
                self.labels = Attr::Known(image.labels.clone());
                self.size = image.size.clone().into();
                self.document_url = image.document_url.clone().into();
                self.icon = image.icon.clone().into();
                self.create_time = time(image.create_time).into();
                self.update_time = time(image.update_time).into();
            }
        }
    };
}

pub(super) use with_image;

with_image!(
    /// One image.
    ImageRecord {}
);

impl ImageRecord {
    /// The record of an image.
    pub(super) fn of(image: &PublicImage) -> Self {
        let mut record = Self::default();
        record.take(image);
        record
    }
}

/// The attributes of a record, all computed.
pub(super) fn attributes() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    let texts =
        |name: &'static str, description: &str| Attribute::computed(name, Type::list(Type::String), description);
    vec![
        text("id", "The image's number, as text; an instance takes it as `image_id` with `image_type = \"public\"`."),
        text("name", "The display name."),
        text("image_url", "The full address; an instance takes it as `image`."),
        text("description", "The description."),
        texts("softwares", "The installed software."),
        texts("labels", "Its labels."),
        text("size", "The size, as the service shows it."),
        text("document_url", "The address of its documentation."),
        text("icon", "The address of its icon."),
        text("create_time", "When it was created (RFC 3339, UTC)."),
        text("update_time", "When it was last changed (RFC 3339, UTC)."),
    ]
}
