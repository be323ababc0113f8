//! Types of values.

use std::collections::BTreeMap;

/// The type of a value (plugin protocol, value encoding).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// A truth value.
    Bool,
    /// Any type: each value says its own.
    Dynamic,
    /// Elements of one type, in order.
    List(Box<Self>),
    /// Elements of one type, by key.
    Map(Box<Self>),
    /// A decimal number.
    Number,
    /// Attributes by name.
    Object(BTreeMap<String, Self>),
    /// Elements of one type, without order or repetition.
    Set(Box<Self>),
    /// Text.
    String,
    /// A fixed number of elements, each of its own type.
    Tuple(Vec<Self>),
}

impl Type {
    /// A list of `element`.
    pub fn list(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    /// A set of `element`.
    pub fn set(element: Self) -> Self {
        Self::Set(Box::new(element))
    }

    /// A map of `element`.
    pub fn map(element: Self) -> Self {
        Self::Map(Box::new(element))
    }

    /// An object with these attributes.
    pub fn object<N: Into<String>>(attributes: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self::Object(attributes.into_iter().map(|(name, ty)| (name.into(), ty)).collect())
    }
}
