//! The value of an attribute in a typed model: known, null or unknown.

use std::{fmt, marker::PhantomData};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

/// Names by which the model's (de)serializer recognises an attribute and an unknown one.
pub(super) const ATTR: &str = "$attr";
pub(super) const UNKNOWN: &str = "$unknown";

/// The value of one attribute in a typed model: null and unknown are part of the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attr<T> {
    /// No value.
    #[default]
    Null,
    /// A value that is known only after an apply.
    Unknown,
    /// A value.
    Known(T),
}

impl<T> Attr<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Null | Self::Unknown => None,
        }
    }

    /// The value, if it is known.
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Null | Self::Unknown => None,
        }
    }

    /// Whether there is a value, and it is known.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether the value is still unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl<T> Attr<Vec<Attr<T>>> {
    /// The known elements, each with its index; empty if the list itself is null or unknown.
    pub fn elements(&self) -> impl Iterator<Item = (usize, &T)> {
        let elements = self.known().into_iter().flatten().enumerate();
        elements.filter_map(|(index, element)| Some((index, element.known()?)))
    }

    /// The same, mutable.
    pub fn elements_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let elements = if let Self::Known(elements) = self { elements.as_mut_slice() } else { &mut [] };
        elements.iter_mut().enumerate().filter_map(|(index, element)| match element {
            Attr::Known(element) => Some((index, element)),
            Attr::Null | Attr::Unknown => None,
        })
    }
}

impl<T: AsRef<str>> Attr<T> {
    /// The text, if it is known.
    pub fn as_str(&self) -> Option<&str> {
        self.known().map(AsRef::as_ref)
    }
}

impl<T> From<T> for Attr<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T> From<Option<T>> for Attr<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::Known)
    }
}

impl From<&str> for Attr<String> {
    fn from(text: &str) -> Self {
        Self::Known(text.to_owned())
    }
}

impl<T: Serialize> Serialize for Attr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Unknown => serializer.serialize_unit_struct(UNKNOWN),
            Self::Known(value) => serializer.serialize_some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Attr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AttrVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for AttrVisitor<T> {
            type Value = Attr<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an attribute")
            }

            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(Attr::Null)
            }

            /// Only the model's deserializer calls this, for unknown.
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Attr::Unknown)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                Option::<T>::deserialize(deserializer).map(Attr::from)
            }
        }

        deserializer.deserialize_newtype_struct(ATTR, AttrVisitor(PhantomData))
    }
}

/// Text that is never printed: `Debug` and `Display` hide it, and it is wiped from memory when dropped.
///
/// Serializing it yields the text. Only the model's serializer does so, for the answer to the core.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text without what files and secret stores add around it: white space, and a byte order mark.
    #[must_use]
    pub fn trimmed(&self) -> SecretString {
        SecretString::from(self.0.expose_secret().trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}'))
    }

    /// The inner type, for a library that takes it.
    pub fn into_inner(self) -> SecretString {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl From<SecretString> for Secret {
    fn from(secret: SecretString) -> Self {
        Self(secret)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}
