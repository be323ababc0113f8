//! Typed models: one Rust struct for each resource, read from and written to [`Value`]s.

mod deserialize;
mod serialize;

use serde::{
    Serialize,
    de::{DeserializeOwned, Expected, Unexpected},
};

use super::{
    diagnostics::{Diagnostic, Diagnostics, Path, PathStep},
    value::Value,
};

/// The typed form of the values of a schema: a struct whose fields are the attributes, each an [`super::Attr`], or a
/// [`Value`] as it is.
pub trait Model: FromValue + ToValue + Clone + Send + Sync + 'static {}

impl<T: FromValue + ToValue + Clone + Send + Sync + 'static> Model for T {}

/// A type that is read from values.
pub trait FromValue: Sized {
    /// Reads a value.
    ///
    /// # Errors
    /// A value that does not fit the type.
    fn from_value(value: &Value) -> Result<Self, ModelError>;
}

impl<T: DeserializeOwned> FromValue for T {
    fn from_value(value: &Value) -> Result<Self, ModelError> {
        T::deserialize(deserialize::ValueDeserializer(value))
    }
}

impl FromValue for Value {
    fn from_value(value: &Value) -> Result<Self, ModelError> {
        Ok(value.clone())
    }
}

/// A type that is written as values.
pub trait ToValue {
    /// Writes itself as a value.
    ///
    /// # Errors
    /// A type without a form as a value.
    fn to_value(&self) -> Result<Value, ModelError>;
}

/// Structs become objects, maps become maps, sequences become lists.
impl<T: Serialize> ToValue for T {
    fn to_value(&self) -> Result<Value, ModelError> {
        self.serialize(serialize::ValueSerializer)
    }
}

impl ToValue for Value {
    fn to_value(&self) -> Result<Value, ModelError> {
        Ok(self.clone())
    }
}

/// A value does not fit its model. This is a fault of the provider, and a test compares every model with its schema.
/// Only the arguments of a function have no schema that excludes it.
#[derive(Debug, thiserror::Error)]
#[error("{}{fault}", location(.steps))]
pub struct ModelError {
    /// From the innermost step outwards.
    steps: Vec<PathStep>,
    /// The fault. It never repeats a value, which may be a secret.
    fault: String,
}

impl ModelError {
    fn new(fault: impl std::fmt::Display) -> Self {
        Self { steps: Vec::new(), fault: fault.to_string() }
    }

    /// The same error, with the step of the enclosing level added.
    fn inside(mut self, step: PathStep) -> Self {
        self.steps.push(step);
        self
    }

    /// The top-level attribute of the fault, and the fault with its path inside that attribute.
    pub(super) fn by_attribute(mut self) -> (Option<String>, String) {
        let outermost = self.steps.pop();
        let text = self.to_string();
        if let Some(PathStep::Attribute(name)) = outermost { (Some(name), text) } else { (None, text) }
    }
}

/// A mismatch between the core's value and the provider's schema, which only a bug in the provider can cause.
impl From<ModelError> for Diagnostics {
    fn from(error: ModelError) -> Self {
        let detail = format!("This is a bug in the provider, please report it: {error}.");
        Diagnostic::error("The provider could not read a value", detail).into()
    }
}

fn location(steps: &[PathStep]) -> String {
    if steps.is_empty() { String::new() } else { format!("{}: ", steps.iter().rev().cloned().collect::<Path>()) }
}

impl serde::ser::Error for ModelError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message)
    }
}

impl serde::de::Error for ModelError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message)
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format_args!("must be {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format_args!("is out of the range of {expected}"))
    }
}

/// Reads a model from a value.
pub fn from_value<M: FromValue>(value: &Value) -> Result<M, ModelError> {
    M::from_value(value)
}

/// Writes a model as a value.
pub fn to_value<M: ToValue>(model: &M) -> Result<Value, ModelError> {
    model.to_value()
}

/// Whether an attribute of a model is set: it is known or unknown, but not null. In a configuration this means that the
/// operator wrote a value for it. Dots lead into objects: `ssh.host`.
pub fn is_set<M: ToValue>(model: &M, name: &str) -> bool {
    to_value(model).is_ok_and(|value| !name.split('.').fold(&value, Value::attribute).is_null())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use secrecy::ExposeSecret as _;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::framework::{Attr, Secret, value::Number};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Disk {
        size_gb: Attr<i64>,
        path: Attr<String>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Machine {
        name: Attr<String>,
        price: Attr<f64>,
        exact: Attr<Number>,
        running: Attr<bool>,
        password: Attr<Secret>,
        disks: Attr<Vec<Disk>>,
        tags: Attr<BTreeMap<String, String>>,
    }

    fn machine() -> Machine {
        Machine {
            name: "a".into(),
            price: Attr::Known(2.0),
            exact: Attr::Known("0.1234567890123456789".parse().unwrap()),
            running: Attr::Unknown,
            password: Attr::Known(Secret::new("planted")),
            disks: Attr::Known(vec![Disk { size_gb: Attr::Known(20), path: Attr::Null }]),
            tags: Attr::Known(BTreeMap::from([("k".to_owned(), "v".to_owned())])),
        }
    }

    #[test]
    fn a_model_survives_the_way_through_a_value() {
        let value = to_value(&machine()).unwrap();
        assert!(value.attribute("running").is_unknown());
        assert_eq!(from_value::<Machine>(&value).unwrap(), machine());
    }

    #[test]
    fn debug_shows_no_secret() {
        let value = to_value(&machine()).unwrap();
        assert!(!format!("{value:?}").contains("planted"));
        assert!(!format!("{:?}", machine()).contains("planted"));
    }

    /// What files and secret stores add.
    #[test]
    fn a_secret_is_used_without_blanks_and_a_byte_order_mark() {
        assert_eq!(Secret::new("\u{feff} a b\r\n").trimmed().expose_secret(), "a b");
    }

    #[test]
    fn a_missing_attribute_is_an_error() {
        assert!(from_value::<Disk>(&Value::object([("size_gb", Value::from(20))])).is_err());
    }

    #[test]
    fn an_attribute_is_set_when_it_is_not_null() {
        #[derive(Serialize)]
        struct Login {
            ssh: Attr<Disk>,
            name: Attr<String>,
        }
        let disk = Disk { size_gb: Attr::Unknown, path: Attr::Null };
        let login = Login { ssh: Attr::Known(disk), name: Attr::Null };
        let set: Vec<bool> =
            ["ssh", "ssh.size_gb", "ssh.path", "name", "other"].iter().map(|name| is_set(&login, name)).collect();
        assert_eq!(set, [true, true, false, false, false]);
    }
}
