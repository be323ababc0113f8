//! Reads typed models from values.

use std::{collections::btree_map, slice};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};

use super::ModelError;
use crate::framework::{
    attr::ATTR,
    diagnostics::PathStep,
    value::{NUMBER, Value, ValueKey},
};

/// Reads a model from a borrowed value.
pub(super) struct ValueDeserializer<'a>(pub(super) &'a Value);

macro_rules! whole_numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
            match self.0 {
                Value::Number(number) => match number.to_i64() {
                    Some(whole) => visitor.visit_i64(whole),
                    None => Err(ModelError::custom("must be a whole number of at most 64 bits")),
                },
                Value::Null | Value::Unknown => self.deserialize_any(visitor),
                _ => Err(ModelError::custom("must be a number")),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_> {
    type Error = ModelError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        match self.0 {
            Value::Null => Err(ModelError::custom("must not be null")),
            Value::Unknown => Err(ModelError::custom("must be known")),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Number(number) => match number.to_i64() {
                Some(whole) => visitor.visit_i64(whole),
                None => visitor.visit_f64(number.to_f64()),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::List(elements) => visitor.visit_seq(Elements { rest: elements.iter(), index: 0 }),
            Value::Map(elements) => {
                visitor.visit_map(Entries { rest: elements.iter(), current: None, step: |key| PathStep::Key(key) })
            }
            Value::Object(attributes) => visitor.visit_map(Entries {
                rest: attributes.iter(),
                current: None,
                step: |name| PathStep::Attribute(name),
            }),
            Value::Set(_) | Value::Tuple(_) | Value::Dynamic(_) => {
                Err(ModelError::custom("sets, tuples and dynamic values have no model"))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ModelError> {
        match self.0 {
            Value::Null if name == ATTR => visitor.visit_none(),
            Value::Unknown if name == ATTR => visitor.visit_unit(),
            Value::Number(number) if name == NUMBER => {
                visitor.visit_newtype_struct(number.to_string().into_deserializer())
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        visitor.visit_unit()
    }

    /// A float field accepts whole numbers: a price of 2 is 2.0.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        match self.0 {
            Value::Number(number) => visitor.visit_f64(number.to_f64()),
            Value::Null | Value::Unknown => self.deserialize_any(visitor),
            _ => Err(ModelError::custom("must be a number")),
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        enum identifier
    }
}

/// The elements of a list. An error in one of them names its index.
struct Elements<'a> {
    rest: slice::Iter<'a, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = ModelError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ModelError> {
        let Some(element) = self.rest.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(ValueDeserializer(element)).map(Some).map_err(|error| error.inside(PathStep::index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The entries of a map or the attributes of an object. An error in one of them names its key.
struct Entries<'a> {
    rest: btree_map::Iter<'a, ValueKey, Value>,
    current: Option<(&'a ValueKey, &'a Value)>,
    step: fn(String) -> PathStep,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ModelError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ModelError> {
        self.current = self.rest.next();
        self.current.map(|(name, _)| seed.deserialize((**name).into_deserializer())).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ModelError> {
        let (name, value) = self.current.take().ok_or_else(|| ModelError::custom("a value was read twice"))?;
        seed.deserialize(ValueDeserializer(value)).map_err(|error| error.inside((self.step)(name.to_string())))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}
