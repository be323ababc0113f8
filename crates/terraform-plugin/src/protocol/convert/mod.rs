//! The framework's types as messages: values and identities here, diagnostics and schemas in their own files.

mod diagnostics;
mod schema;

pub(super) use diagnostics::{diagnostics, paths};
pub(super) use schema::{IDENTITY_VERSION, function, identity_schema, schema};

use crate::{
    framework::{Diagnostic, Diagnostics, IdentitySchema, Type, Value},
    protocol::{
        codec::{DecodeError, Unsaid, decode, decode_json, encode, from_json},
        tfplugin6::{DynamicValue, ResourceIdentityData},
    },
};

/// Reads a value that the core sent. A missing or empty one is null. If both forms are present, msgpack is used (plugin
/// protocol, field notes).
pub(super) fn read(ty: &Type, value: Option<&DynamicValue>, name: &str) -> Result<Value, Diagnostics> {
    decoded(ty, value).map_err(|error| unreadable(name, &error))
}

/// The same for a function's argument, whose errors are texts.
pub(super) fn argument(ty: &Type, value: &DynamicValue) -> Result<Value, String> {
    decoded(ty, Some(value)).map_err(|error| format!("cannot be read: {error}"))
}

fn decoded(ty: &Type, value: Option<&DynamicValue>) -> Result<Value, DecodeError> {
    match value {
        Some(value) if !value.msgpack.is_empty() => decode(ty, &value.msgpack),
        Some(value) if !value.json.is_empty() => decode_json(ty, &value.json, Unsaid::Refused),
        _ => Ok(Value::Null),
    }
}

/// Reads the JSON of a stored value, which may be older than its schema.
pub(super) fn read_stored(ty: &Type, json: &serde_json::Value, name: &str) -> Result<Value, Diagnostics> {
    from_json(ty, json, Unsaid::Dropped).map_err(|error| unreadable(name, &error))
}

/// Writes a value for the core. A part of the wrong type becomes null with an error, and the rest is written, so that
/// an existing object is not lost because of one attribute.
pub(super) fn written(ty: &Type, value: &Value, diagnostics: &mut Diagnostics) -> Option<DynamicValue> {
    let msgpack = encode(ty, value).unwrap_or_else(|error| {
        diagnostics.error(
            "The provider made a value of the wrong type",
            format!("This is a bug in the provider, please report it: {error}."),
        );
        error.into_partial()
    });
    Some(DynamicValue { msgpack, json: Vec::new() })
}

/// Writes an identity for the core, if its type has one. Data for any other type would crash the core (plugin protocol,
/// missing-field crashes).
pub(super) fn identity(
    schema: Option<&IdentitySchema>,
    identity: Option<&Value>,
    diagnostics: &mut Diagnostics,
) -> Option<ResourceIdentityData> {
    Some(ResourceIdentityData { identity_data: written(&schema?.ty(), identity?, diagnostics) })
}

fn unreadable(name: &str, error: &DecodeError) -> Diagnostics {
    Diagnostic::error(
        format!("The {name} cannot be read"),
        format!(
            "The values that Terraform sent do not match the provider's schema: {error}. Nothing was changed. If the \
             provider was just replaced by another version, run init again."
        ),
    )
    .at(error.path())
    .into()
}
