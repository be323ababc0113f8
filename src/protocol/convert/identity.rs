//! Identities as messages.

use crate::{
    framework::{Diagnostics, IdentitySchema, Value},
    protocol::{
        codec::encode_type,
        tfplugin6::{ResourceIdentityData, ResourceIdentitySchema, resource_identity_schema::IdentityAttribute},
    },
};

/// The schema of an identity as a message.
pub(in crate::protocol) fn identity_schema(schema: &IdentitySchema) -> ResourceIdentitySchema {
    ResourceIdentitySchema {
        version: schema.version,
        identity_attributes: schema
            .attributes
            .iter()
            .map(|attribute| IdentityAttribute {
                name: attribute.name.clone(),
                r#type: encode_type(&attribute.ty),
                required_for_import: attribute.required,
                optional_for_import: !attribute.required,
                description: attribute.description.clone(),
            })
            .collect(),
    }
}

/// Writes an identity for the core, of a type that has one. Data for any other would crash the core
/// (plugin protocol, missing-field crashes).
pub(in crate::protocol) fn identity(
    schema: Option<&IdentitySchema>,
    identity: Option<&Value>,
    diagnostics: &mut Diagnostics,
) -> Option<ResourceIdentityData> {
    Some(ResourceIdentityData { identity_data: super::written(&schema?.ty(), identity?, diagnostics) })
}
