use std::{cell::RefCell, collections::BTreeMap};

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::ModelError;
use crate::framework::value::{NUMBER, Type};

/// The type that a model would have in a schema, found out by letting it read itself from a value that has every field.
///
/// A test compares it with the schema of every registered thing, so that the two cannot drift apart unnoticed.
pub fn shape<M: DeserializeOwned>() -> Result<Type, ModelError> {
    let found = RefCell::new(None);
    M::deserialize(Probe(&found))?;
    found.into_inner().ok_or_else(|| ModelError::custom("the model reads nothing"))
}

/// A deserializer that answers every question with some value, and notes what was asked for.
struct Probe<'a>(&'a RefCell<Option<Type>>);

impl Probe<'_> {
    fn note(&self, ty: Type) {
        *self.0.borrow_mut() = Some(ty);
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

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ModelError;

    scalars! {
        deserialize_bool visit_bool false, Type::Bool;
        deserialize_i8 visit_i64 0, Type::Number;
        deserialize_i16 visit_i64 0, Type::Number;
        deserialize_i32 visit_i64 0, Type::Number;
        deserialize_i64 visit_i64 0, Type::Number;
        deserialize_u8 visit_u64 0, Type::Number;
        deserialize_u16 visit_u64 0, Type::Number;
        deserialize_u32 visit_u64 0, Type::Number;
        deserialize_u64 visit_u64 0, Type::Number;
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
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        let element = RefCell::new(None);
        let value = visitor.visit_seq(Once { slot: &element, done: false })?;
        self.note(Type::list(element.into_inner().unwrap_or(Type::Dynamic)));
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        let element = RefCell::new(None);
        let value = visitor.visit_map(Once { slot: &element, done: false })?;
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
        let value = visitor.visit_map(Fields { names: fields.iter(), current: "", found: &found })?;
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
    done: bool,
}

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = ModelError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ModelError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        seed.deserialize(Probe(self.slot)).map(Some)
    }
}

impl<'de> MapAccess<'de> for Once<'_> {
    type Error = ModelError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ModelError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        seed.deserialize(Probe(&RefCell::new(None))).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ModelError> {
        seed.deserialize(Probe(self.slot))
    }
}

/// Every field of a struct, in turn.
struct Fields<'a> {
    names: std::slice::Iter<'static, &'static str>,
    current: &'static str,
    found: &'a RefCell<BTreeMap<String, Type>>,
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
        let value = seed.deserialize(Probe(&slot))?;
        let ty = slot.into_inner().ok_or_else(|| ModelError::custom("a field reads nothing"))?;
        self.found.borrow_mut().insert(self.current.to_owned(), ty);
        Ok(value)
    }
}
