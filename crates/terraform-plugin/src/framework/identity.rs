//! Identities of resources.

use super::value::{Type, Value};

/// The attributes that identify one object of a type, for imports and lists (plugin protocol, identity). They never
/// change while the object exists.
#[derive(Clone, Debug)]
pub struct IdentitySchema {
    /// The attributes, in the order in which the docs list them.
    pub attributes: Vec<IdentityAttribute>,
}

/// One attribute of an identity: the copy of an attribute of the state.
#[derive(Clone, Debug)]
pub struct IdentityAttribute {
    /// The name.
    pub name: String,
    /// A bool, number or string, or a list of one of them.
    pub ty: Type,
    /// The attribute of the state that it is a copy of, with dots into objects: `ssh.host`.
    pub of: String,
    /// Whether an import by identity must set it, or only may.
    pub required: bool,
    /// The description, in Markdown.
    pub description: String,
}

impl IdentityAttribute {
    /// A copy of the state's attribute `of` that every import by identity must set.
    pub fn required(name: &str, of: &str, ty: Type, description: impl Into<String>) -> Self {
        Self { name: name.to_owned(), ty, of: of.to_owned(), required: true, description: description.into() }
    }

    /// A copy of the state's attribute `of` that an import by identity may set.
    pub fn optional(name: &str, of: &str, ty: Type, description: impl Into<String>) -> Self {
        Self { required: false, ..Self::required(name, of, ty, description) }
    }

    fn copied<'a>(&self, state: &'a Value) -> &'a Value {
        self.of.split('.').fold(state, Value::attribute)
    }
}

impl IdentitySchema {
    /// A schema of these attributes.
    pub fn new(attributes: Vec<IdentityAttribute>) -> Self {
        Self { attributes }
    }

    /// The type of an identity.
    pub fn ty(&self) -> Type {
        Type::object(self.attributes.iter().map(|attribute| (attribute.name.clone(), attribute.ty.clone())))
    }

    /// The identity of a state; `None` without a state, or if a required attribute has no known value yet.
    pub(super) fn of(&self, state: &Value) -> Option<Value> {
        let whole = !state.is_null() && self.is_complete(|attribute| !attribute.copied(state).is_null());
        whole.then(|| {
            Value::object(
                self.attributes.iter().map(|attribute| (attribute.name.clone(), attribute.copied(state).clone())),
            )
        })
    }

    /// The first required attribute that this identity does not set.
    pub(super) fn missing(&self, identity: &Value) -> Option<&IdentityAttribute> {
        self.attributes.iter().find(|attribute| {
            attribute.required && matches!(identity.attribute(&attribute.name), Value::Null | Value::Unknown)
        })
    }

    fn is_complete(&self, has: impl Fn(&IdentityAttribute) -> bool) -> bool {
        self.attributes.iter().filter(|attribute| attribute.required).all(&has) && self.attributes.iter().any(has)
    }
}

/// An identity that an import names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(pub(super) Value);

impl Identity {
    /// An attribute as text: a string as it is, a number in decimal, a bool as `true` or `false`; `None` if it is not
    /// set.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.attribute(name) {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            _ => None,
        }
    }

    /// The texts of all attributes that are set, in the order of their names.
    pub(super) fn texts(&self) -> Vec<String> {
        let Value::Object(attributes) = &self.0 else { return Vec::new() };
        attributes.keys().filter_map(|name| self.text(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> IdentitySchema {
        IdentitySchema::new(vec![
            IdentityAttribute::required("number", "id", Type::Number, "Its number."),
            IdentityAttribute::optional("host", "host", Type::String, "Where."),
        ])
    }

    #[test]
    fn a_state_has_its_identity_as_soon_as_it_can_be_imported() {
        let state = |id: Value| Value::object([("id", id), ("host", Value::Null), ("more", "x".into())]);
        let expected = Value::object([("number", 7.into()), ("host", Value::Null)]);
        assert_eq!(identity().of(&state(7.into())), Some(expected));
        assert_eq!(identity().of(&state(Value::Null)), None);
        assert_eq!(identity().of(&Value::Null), None);
        assert!(identity().of(&state(Value::Unknown)).is_some_and(|identity| !identity.is_wholly_known()));
    }

    #[test]
    fn an_attribute_within_an_object_is_copied_and_unknown_with_it() {
        let attributes = vec![IdentityAttribute::optional("host", "ssh.host", Type::String, "Where.")];
        let identity = |ssh: Value| IdentitySchema::new(attributes.clone()).of(&Value::object([("ssh", ssh)]));
        let there = || Value::object([("host", "there".into())]);
        assert_eq!(identity(there()), Some(there()));
        assert_eq!(identity(Value::Unknown), Some(Value::object([("host", Value::Unknown)])));
        assert_eq!(identity(Value::Null), None);
    }
}
