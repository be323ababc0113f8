//! A model that takes the value of any schema made by `random`, so that one resource type serves them all.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap as _, SerializeStruct as _},
};
use terraform_plugin::framework::{
    Value,
    value::{Number, ValueKey},
};

use super::random::attribute_name;

/// Any value. The names in objects distinguish them from maps.
#[derive(Clone, Debug)]
pub(crate) struct Any(pub(crate) Value);

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Null => serializer.serialize_none(),
            Value::Unknown => serializer.serialize_unit_struct("$unknown"),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::Number(number) => match number.to_i64() {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(number.to_f64()),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::List(elements) => serializer.collect_seq(elements.iter().cloned().map(Any)),
            Value::Map(elements) => {
                let mut map = serializer.serialize_map(Some(elements.len()))?;
                for (key, value) in elements {
                    map.serialize_entry(key, &Self(value.clone()))?;
                }
                map.end()
            }
            Value::Object(attributes) => {
                let mut object = serializer.serialize_struct("Any", attributes.len())?;
                for (name, value) in attributes {
                    let name = attribute_name(name).unwrap();
                    object.serialize_field(name, &Self(value.clone()))?;
                }
                object.end()
            }
            Value::Dynamic(_) | Value::Set(_) | Value::Tuple(_) => panic!("no schema has these"),
        }
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct("$attr", AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_none<E>(self) -> Result<Any, E> {
        Ok(Any(Value::Null))
    }

    fn visit_unit<E>(self) -> Result<Any, E> {
        Ok(Any(Value::Unknown))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Any, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Any, E> {
        Ok(Any(truth.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Any, E> {
        Ok(Any(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Any, E> {
        Number::try_from(number).map(|number| Any(Value::Number(number))).map_err(E::custom)
    }

    fn visit_str<E>(self, text: &str) -> Result<Any, E> {
        Ok(Any(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any, A::Error> {
        let mut elements = Vec::new();
        while let Some(Any(element)) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Any(Value::List(elements)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any, A::Error> {
        let mut elements = BTreeMap::<ValueKey, Value>::new();
        while let Some((key, Any(value))) = map.next_entry::<String, Any>()? {
            elements.insert(key.into(), value);
        }
        let named = elements.keys().filter(|key| attribute_name(key).is_some()).count();
        match named {
            0 => Ok(Any(Value::Map(elements))),
            named if named == elements.len() => Ok(Any(Value::Object(elements))),
            _ => Err(A::Error::custom("neither a map nor an object")),
        }
    }
}
