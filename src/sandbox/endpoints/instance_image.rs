//! Which image an instance is made from (service API, POST /api/instance/create, rules 3 to 5).

use super::Context;
use crate::sandbox::{
    errors::{Code, Refusal},
    fields::Fields,
    world::{ImageKind, InstanceImage, PrivateImage, PublicImage},
};

/// How the request names its image.
#[derive(Debug)]
pub(super) enum ImageSelector {
    Address(String),
    Id(i64, ImageKind),
}

impl ImageSelector {
    /// Reads the three fields. A complete pair wins over an address; an id of 0 and an empty address are none.
    pub(super) fn read(fields: &mut Fields) -> Result<Self, Refusal> {
        let id = fields.integer("image_id")?.filter(|&id| id != 0);
        let kind = match fields.string("image_type")? {
            None => None,
            Some(text) => Some(ImageKind::parse(&text).ok_or_else(|| {
                fields.invalid("image_type", &format!("{text:?} is not one of \"1\", \"public\", \"2\", \"private\""))
            })?),
        };
        let address = fields.string("image")?.filter(|address| !address.is_empty());
        match (id, kind, address) {
            (Some(id), Some(kind), _) => Ok(Self::Id(id, kind)),
            (_, _, Some(address)) => Ok(Self::Address(address)),
            (Some(_), None, None) => Err(fields.invalid("image_type", "missing beside image_id")),
            (None, Some(_), None) => Err(fields.invalid("image_id", "missing beside image_type")),
            (None, None, None) => Err(fields.invalid("image", "neither image nor image_id with image_type is given")),
        }
    }

    /// The kind that an address shows by its keyword (rule 4). A wrong address is a wrong parameter.
    pub(super) fn kind(&self, registry_host: &str) -> Result<ImageKind, Refusal> {
        match self {
            Self::Id(_, kind) => Ok(*kind),
            Self::Address(address) => {
                let Some(path) = address.strip_prefix(registry_host).and_then(|rest| rest.strip_prefix('/')) else {
                    return Err(Refusal::invalid(format!("image: {address:?} is not an address of {registry_host}")));
                };
                match (path.contains("model_library"), path.contains("user_private")) {
                    (true, false) => Ok(ImageKind::Public),
                    (false, true) => Ok(ImageKind::Private),
                    (true, true) | (false, false) => {
                        Err(Refusal::invalid(format!("image: {address:?} shows neither a public nor a private image")))
                    }
                }
            }
        }
    }

    /// The image record, which must be usable, and the CUDA version it carries.
    pub(super) fn resolve(
        &self,
        kind: ImageKind,
        context: &Context<'_>,
    ) -> Result<(InstanceImage, Option<String>), Refusal> {
        let found = match kind {
            ImageKind::Public => context.world.public_images.iter().find(|image| self.is_public(image)).map(|image| {
                let image_of =
                    InstanceImage { id: image.id, name: image.name.clone(), kind, address: image.image_url.clone() };
                (image_of, image.cuda.clone())
            }),
            ImageKind::Private => {
                context.world.private_images.iter().find(|image| self.is_private(image, context.account)).map(|image| {
                    let image_of =
                        InstanceImage { id: image.id, name: image.name.clone(), kind, address: image.tag.clone() };
                    (image_of, image.cuda.clone())
                })
            }
        };
        found.ok_or_else(|| {
            Refusal::new(
                Code::FailedForInvalidImage,
                "the image does not exist, is disabled or not ready, or is not permitted",
            )
        })
    }

    fn is_public(&self, image: &PublicImage) -> bool {
        image.enabled
            && match self {
                Self::Address(address) => image.image_url == *address,
                Self::Id(id, _) => image.id == *id,
            }
    }

    fn is_private(&self, image: &PrivateImage, account: &str) -> bool {
        image.ready
            && image.account == account
            && match self {
                Self::Address(address) => image.tag == *address,
                Self::Id(id, _) => image.id == *id,
            }
    }
}
