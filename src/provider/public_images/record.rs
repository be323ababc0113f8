use serde::{Deserialize, Serialize};

use crate::{
    api::PublicImage,
    framework::{Attr, Type, schema::Attribute},
    provider::words::time,
};

/// One image, under the attribute names of the data sources (service API, Public image).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    id: Attr<String>,
    name: Attr<String>,
    image_url: Attr<String>,
    description: Attr<String>,
    softwares: Attr<Vec<String>>,
    labels: Attr<Vec<String>>,
    size: Attr<String>,
    document_url: Attr<String>,
    icon: Attr<String>,
    create_time: Attr<String>,
    update_time: Attr<String>,
}

impl ImageRecord {
    pub(super) fn of(image: &PublicImage) -> Self {
        Self {
            id: Attr::Known(image.id.to_string()),
            name: image.name.clone().into(),
            image_url: image.image_url.clone().into(),
            description: image.description.clone().into(),
            softwares: Attr::Known(image.softwares.clone()),
            labels: Attr::Known(image.labels.clone()),
            size: image.size.clone().into(),
            document_url: image.document_url.clone().into(),
            icon: image.icon.clone().into(),
            create_time: time(image.create_time).into(),
            update_time: time(image.update_time).into(),
        }
    }
}

/// The attributes of a record, all computed.
pub(super) fn attributes() -> Vec<Attribute> {
    let text = |name: &str, description: &str| Attribute::computed(name, Type::String, description);
    let texts = |name: &str, description: &str| Attribute::computed(name, Type::list(Type::String), description);
    vec![
        text("id", "The image's number, as text; an instance takes it as `image_id` with `image_type = \"public\"`."),
        text("name", "The display name."),
        text("image_url", "The full address; an instance takes it as `image`."),
        text("description", "What it is."),
        texts("softwares", "The software that is installed in it."),
        texts("labels", "Its labels."),
        text("size", "Its size, as the service displays it."),
        text("document_url", "Where its documentation is."),
        text("icon", "Where its icon is."),
        text("create_time", "When it was made (RFC 3339, UTC)."),
        text("update_time", "When it was last changed (RFC 3339, UTC)."),
    ]
}
