use serde::{
    Deserializer,
    de::{
        Error as _, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

use super::ModelError;
use crate::framework::{
    attr::ATTR,
    value::{NUMBER, Value},
};

/// Reads a model from a borrowed value.
pub(super) struct ValueDeserializer<'a>(pub(super) &'a Value);

impl<'de> Deserializer<'de> for ValueDeserializer<'_> {
    type Error = ModelError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        match self.0 {
            Value::Null => Err(ModelError::custom("null outside an attribute")),
            Value::Unknown => Err(ModelError::custom("unknown outside an attribute")),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Number(number) => match number.to_i64() {
                Some(whole) => visitor.visit_i64(whole),
                None => visitor.visit_f64(number.to_f64()),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::List(elements) | Value::Set(elements) | Value::Tuple(elements) => {
                visitor.visit_seq(SeqDeserializer::new(elements.iter().map(ValueDeserializer)))
            }
            Value::Map(elements) | Value::Object(elements) => visitor.visit_map(MapDeserializer::new(
                elements.iter().map(|(name, value)| (name.as_str(), ValueDeserializer(value))),
            )),
            Value::Dynamic(dynamic) => ValueDeserializer(&dynamic.value).deserialize_any(visitor),
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

    /// A float field takes whole numbers too: a price of 2 is 2.0.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ModelError> {
        match self.0 {
            Value::Number(number) => visitor.visit_f64(number.to_f64()),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct enum identifier
    }
}

impl<'de> IntoDeserializer<'de, ModelError> for ValueDeserializer<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
