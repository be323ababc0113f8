//! Finds out what a model can read, to compare it with its schema.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::ModelError;
use crate::framework::{
    attr::ATTR,
    path::Path,
    value::{NUMBER, Type},
};

/// What a model can read. In its paths the first element stands for all elements of a list, set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::framework) struct Shape {
    /// The type that the model would have in a schema.
    pub(in crate::framework) ty: Type,
    /// The elements that may be neither null nor unknown, since no [`crate::framework::Attr`] reads them.
    pub(in crate::framework) bare: BTreeSet<Path>,
    /// The numbers that must be whole.
    pub(in crate::framework) whole: BTreeSet<Path>,
}

/// What a model can read, found out by letting it read itself from a value that has every field.
///
/// A test compares it with the schema of every registered thing, so that the two cannot drift apart unnoticed.
pub(in crate::framework) fn shape<M: DeserializeOwned>() -> Result<Shape, ModelError> {
    let (found, seen) = (RefCell::new(None), RefCell::default());
    M::deserialize(Probe { found: &found, seen: &seen, path: Path::root() })?;
    let ty = found.into_inner().ok_or_else(|| ModelError::custom("the model reads nothing"))?;
    let Seen { bare, whole } = seen.into_inner();
    Ok(Shape { ty, bare, whole })
}

/// What a probe notes of all places.
#[derive(Default)]
struct Seen {
    bare: BTreeSet<Path>,
    whole: BTreeSet<Path>,
}

/// A deserializer that answers every question with some value, and notes what was asked for.
struct Probe<'a> {
    found: &'a RefCell<Option<Type>>,
    seen: &'a RefCell<Seen>,
    path: Path,
}

impl<'a> Probe<'a> {
    fn note(&self, ty: Type) {
        *self.found.borrow_mut() = Some(ty);
    }

    fn note_whole(&self) {
        self.seen.borrow_mut().whole.insert(self.path.clone());
        self.note(Type::Number);
    }

    /// A probe for an element, which counts as bare until an attribute reads it.
    fn once<'b>(&self, slot: &'b RefCell<Option<Type>>) -> Once<'b>
    where
        'a: 'b,
    {
        let path = self.path.index(0);
        self.seen.borrow_mut().bare.insert(path.clone());
        Once { slot, seen: self.seen, path, done: false }
    }
}

macro_rules! scalars {
    ($($method:ident $visit:ident $value:expr, $ty:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
            self.note($ty);
            visitor.$visit($value)
        })*
    };
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
            self.note_whole();
            visitor.visit_u64(0)
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ModelError;

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    scalars! {
        deserialize_bool visit_bool false, Type::Bool;
        deserialize_f32 visit_f64 0.0, Type::Number;
        deserialize_f64 visit_f64 0.0, Type::Number;
        deserialize_str visit_str "", Type::String;
        deserialize_string visit_str "", Type::String;
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ModelError> {
        if name == NUMBER {
            self.note(Type::Number);
            return visitor.visit_newtype_struct(serde::de::value::StrDeserializer::new("0"));
        }
        if name == ATTR {
            self.seen.borrow_mut().bare.remove(&self.path);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        let element = RefCell::new(None);
        let value = visitor.visit_seq(self.once(&element))?;
        self.note(Type::list(element.into_inner().unwrap_or(Type::Dynamic)));
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        let element = RefCell::new(None);
        let value = visitor.visit_map(self.once(&element))?;
        self.note(Type::map(element.into_inner().unwrap_or(Type::Dynamic)));
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ModelError> {
        let found = RefCell::new(BTreeMap::new());
        let value = visitor.visit_map(Fields {
            names: fields.iter(),
            current: "",
            found: &found,
            seen: self.seen,
            parent: &self.path,
        })?;
        self.note(Type::Object(found.into_inner()));
        Ok(value)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        visitor.visit_str("")
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ModelError> {
        Err(ModelError::custom("a model has no field of any type"))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct enum ignored_any
    }
}

/// A sequence of one element, or a map of one entry.
struct Once<'a> {
    slot: &'a RefCell<Option<Type>>,
    seen: &'a RefCell<Seen>,
    path: Path,
    done: bool,
}

impl<'a> Once<'a> {
    fn probe(&self) -> Probe<'a> {
        Probe { found: self.slot, seen: self.seen, path: self.path.clone() }
    }
}

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = ModelError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ModelError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        seed.deserialize(self.probe()).map(Some)
    }
}

impl<'de> MapAccess<'de> for Once<'_> {
    type Error = ModelError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ModelError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        seed.deserialize(serde::de::value::StrDeserializer::new("")).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ModelError> {
        seed.deserialize(self.probe())
    }
}

/// Every field of a struct, in turn.
struct Fields<'a> {
    names: std::slice::Iter<'static, &'static str>,
    current: &'static str,
    found: &'a RefCell<BTreeMap<String, Type>>,
    seen: &'a RefCell<Seen>,
    parent: &'a Path,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = ModelError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ModelError> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        self.current = name;
        seed.deserialize(serde::de::value::StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ModelError> {
        let slot = RefCell::new(None);
        let path = self.parent.attribute(self.current);
        let value = seed.deserialize(Probe { found: &slot, seen: self.seen, path })?;
        let ty = slot.into_inner().ok_or_else(|| ModelError::custom("a field reads nothing"))?;
        self.found.borrow_mut().insert(self.current.to_owned(), ty);
        Ok(value)
    }
}
