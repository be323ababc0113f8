//! Values in the core's sense, and their types: null and unknown are values of every type.

mod number;

use std::{borrow::Cow, collections::BTreeMap, fmt};

pub(in crate::framework) use number::NUMBER;
pub use number::{InvalidNumber, Number};

/// One value, or a tree of them.
///
/// The shape (a map or an object, a list or a set) is part of the value, so that equality is structural: sets are kept
/// sorted, numbers are compared by value. `Debug` shows the shape and never the text, because any string may be a
/// secret.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// A value that is known only after an apply. Refinements that the core sends with it are dropped, which is allowed
    /// (plugin protocol, value encoding).
    Unknown,
    /// A truth value.
    Bool(bool),
    /// A decimal number of any size.
    Number(Number),
    /// Text, normalised to NFC by the codec.
    String(String),
    /// Elements of one type, in order.
    List(Vec<Self>),
    /// Elements of one type, sorted; made by [`Value::set`].
    Set(Vec<Self>),
    /// Elements of one type, by key.
    Map(BTreeMap<ValueKey, Self>),
    /// Elements of different types, in order.
    Tuple(Vec<Self>),
    /// Attributes by name, with all attributes of the type.
    Object(BTreeMap<ValueKey, Self>),
    /// A value in a place whose type is [`Type::Dynamic`], with the type that it has here.
    Dynamic(Box<Dynamic>),
}

/// The name of an attribute, or the key of an element. The names in schemas and models are constants, so that a copy of
/// an object copies no names.
pub type ValueKey = Cow<'static, str>;

/// A value with its type, for an attribute whose type the schema leaves open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dynamic {
    /// The type the value has; never [`Type::Dynamic`] itself.
    pub ty: Type,
    /// The value, of that type.
    pub value: Value,
}

impl Value {
    /// Makes a set: sorts, and drops duplicates of known elements. Unknown ones may differ, so each is kept.
    pub fn set(mut elements: Vec<Self>) -> Self {
        elements.sort();
        elements.dedup_by(|a, b| a == b && a.is_wholly_known());
        Self::Set(elements)
    }

    /// Makes an object from names and values.
    pub fn object<N: Into<ValueKey>>(attributes: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self::Object(attributes.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether this itself is unknown; parts of a known value may still be.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// Whether neither this nor any part of it is unknown.
    pub fn is_wholly_known(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::List(elements) | Self::Set(elements) | Self::Tuple(elements) => {
                elements.iter().all(Self::is_wholly_known)
            }
            Self::Map(elements) | Self::Object(elements) => elements.values().all(Self::is_wholly_known),
            Self::Dynamic(dynamic) => dynamic.value.is_wholly_known(),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => true,
        }
    }

    /// The same value with null for every unknown part, for the state after an apply that did not learn them.
    #[must_use]
    pub fn unknown_as_null(mut self) -> Self {
        self.forget_unknown();
        self
    }

    fn forget_unknown(&mut self) {
        match self {
            Self::Unknown => *self = Self::Null,
            Self::List(elements) | Self::Tuple(elements) => elements.iter_mut().for_each(Self::forget_unknown),
            Self::Set(elements) => {
                elements.iter_mut().for_each(Self::forget_unknown);
                *self = Self::set(std::mem::take(elements));
            }
            Self::Map(elements) | Self::Object(elements) => elements.values_mut().for_each(Self::forget_unknown),
            Self::Dynamic(dynamic) => dynamic.value.forget_unknown(),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => {}
        }
    }

    /// The named attribute of an object: unknown if the object is, and null if this is not an object or does not have
    /// it.
    pub fn attribute(&self, name: &str) -> &Self {
        match self {
            Self::Object(attributes) => attributes.get(name).unwrap_or(&Self::Null),
            Self::Unknown => &Self::Unknown,
            _ => &Self::Null,
        }
    }

    /// Sets an attribute of an object; other values are left unchanged.
    pub fn set_attribute(&mut self, name: &str, value: Self) {
        if let Self::Object(attributes) = self {
            match attributes.get_mut(name) {
                Some(attribute) => *attribute = value,
                None => drop(attributes.insert(name.to_owned().into(), value)),
            }
        }
    }

    /// The text, of a known string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Unknown => formatter.write_str("unknown"),
            Self::Bool(_) => formatter.write_str("bool"),
            Self::Number(_) => formatter.write_str("number"),
            Self::String(_) => formatter.write_str("string"),
            Self::List(elements) => formatter.debug_list().entries(elements).finish(),
            Self::Set(elements) => formatter.debug_set().entries(elements).finish(),
            Self::Tuple(elements) => formatter.debug_tuple("tuple").field(elements).finish(),
            Self::Map(elements) | Self::Object(elements) => formatter.debug_map().entries(elements).finish(),
            Self::Dynamic(dynamic) => formatter.debug_tuple("dynamic").field(&dynamic.value).finish(),
        }
    }
}

/// The type of a value (plugin protocol, value encoding).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// A truth value.
    Bool,
    /// Any type: each value carries its own.
    Dynamic,
    /// Elements of one type, in order.
    List(Box<Self>),
    /// Elements of one type, by key.
    Map(Box<Self>),
    /// A decimal number.
    Number,
    /// Attributes by name.
    Object(BTreeMap<ValueKey, Self>),
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
    pub fn object<N: Into<ValueKey>>(attributes: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self::Object(attributes.into_iter().map(|(name, ty)| (name.into(), ty)).collect())
    }
}
