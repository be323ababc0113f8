//! Typed models: one Rust struct a resource, read from and written to [`Value`]s.

mod deserialize;
mod serialize;
mod shape;

use serde::{Serialize, de::DeserializeOwned};

pub use shape::{Shape, shape};

use super::value::Value;

/// A struct whose fields are the attributes of a schema, each an [`super::Attr`].
pub trait Model: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> Model for T {}

/// A model and a value that do not fit each other: a fault of the provider, kept from happening by the comparison of
/// every model with its schema.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(String);

impl serde::ser::Error for ModelError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for ModelError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Reads a model from a value.
pub fn from_value<M: DeserializeOwned>(value: &Value) -> Result<M, ModelError> {
    M::deserialize(deserialize::ValueDeserializer(value))
}

/// Writes a model as a value: structs become objects, maps maps, sequences lists.
pub fn to_value<M: Serialize>(model: &M) -> Result<Value, ModelError> {
    model.serialize(serialize::ValueSerializer)
}

/// Writes a model as another one, which has some or all of its attributes.
pub fn project<M: Serialize, N: DeserializeOwned>(model: &M) -> Result<N, ModelError> {
    from_value(&to_value(model)?)
}

/// Whether an attribute of a model is set: it is known or unknown, but not null. In a configuration that is whether the operator
/// wrote a value for it. Dots lead into objects: `ssh.host`.
pub fn is_set<M: Serialize>(model: &M, name: &str) -> bool {
    to_value(model).is_ok_and(|value| !name.split('.').fold(&value, Value::attribute).is_null())
}

#[cfg(test)]
mod tests;
