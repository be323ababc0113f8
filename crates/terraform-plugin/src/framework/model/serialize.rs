//! Writes typed models as values.

use std::collections::BTreeMap;

use serde::{
    Serialize, Serializer,
    ser::{Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct},
};

use super::ModelError;
use crate::framework::{
    attr::UNKNOWN,
    value::{NUMBER, Number, Value, ValueKey},
};

/// Writes a model as a value.
pub(super) struct ValueSerializer;

macro_rules! whole_numbers {
    ($($method:ident $number:ty;)*) => {
        $(fn $method(self, number: $number) -> Result<Value, ModelError> {
            Ok(Value::Number(i64::from(number).into()))
        })*
    };
}

/// The error for a type that models do not use.
fn refused<T>() -> Result<T, ModelError> {
    Err(ModelError::custom("bytes, tuples and variants with data have no form as a value"))
}

impl Serializer for ValueSerializer {
    type Ok = Value;
    type Error = ModelError;
    type SerializeSeq = Elements;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeTuple = Impossible<Value, ModelError>;
    type SerializeTupleStruct = Impossible<Value, ModelError>;
    type SerializeTupleVariant = Impossible<Value, ModelError>;
    type SerializeStructVariant = Impossible<Value, ModelError>;

    fn serialize_bool(self, truth: bool) -> Result<Value, ModelError> {
        Ok(Value::Bool(truth))
    }

    whole_numbers! {
        serialize_i8 i8; serialize_i16 i16; serialize_i32 i32; serialize_i64 i64;
        serialize_u8 u8; serialize_u16 u16; serialize_u32 u32;
    }

    fn serialize_u64(self, number: u64) -> Result<Value, ModelError> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_f32(self, number: f32) -> Result<Value, ModelError> {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<Value, ModelError> {
        Number::try_from(number).map(Value::Number).map_err(ModelError::custom)
    }

    fn serialize_char(self, character: char) -> Result<Value, ModelError> {
        Ok(Value::String(character.to_string()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, ModelError> {
        Ok(Value::String(text.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Value, ModelError> {
        refused()
    }

    fn serialize_none(self) -> Result<Value, ModelError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, ModelError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, ModelError> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Value, ModelError> {
        Ok(if name == UNKNOWN { Value::Unknown } else { Value::Null })
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, ModelError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, ModelError> {
        match value.serialize(self)? {
            Value::String(text) if name == NUMBER => text.parse().map(Value::Number).map_err(ModelError::custom),
            value => Ok(value),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Value, ModelError> {
        refused()
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements, ModelError> {
        Ok(Elements(Vec::with_capacity(length.unwrap_or(0))))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, ModelError> {
        Ok(Entries { entries: BTreeMap::new(), key: ValueKey::default(), whole: Value::Map })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, ModelError> {
        Ok(Entries { entries: BTreeMap::new(), key: ValueKey::default(), whole: Value::Object })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, ModelError> {
        refused()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, ModelError> {
        refused()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, ModelError> {
        refused()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, ModelError> {
        refused()
    }
}

/// The elements of a sequence while they are written.
pub(super) struct Elements(Vec<Value>);

impl SerializeSeq for Elements {
    type Ok = Value;
    type Error = ModelError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ModelError> {
        self.0.push(value.serialize(ValueSerializer)?);
        Ok(())
    }

    fn end(self) -> Result<Value, ModelError> {
        Ok(Value::List(self.0))
    }
}

/// The entries of a map or the fields of a struct while they are written.
pub(super) struct Entries {
    entries: BTreeMap<ValueKey, Value>,
    key: ValueKey,
    whole: fn(BTreeMap<ValueKey, Value>) -> Value,
}

impl SerializeMap for Entries {
    type Ok = Value;
    type Error = ModelError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ModelError> {
        match key.serialize(ValueSerializer)? {
            Value::String(key) => self.key = key.into(),
            _ => return Err(ModelError::custom("the keys of a map are text")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ModelError> {
        self.entries.insert(std::mem::take(&mut self.key), value.serialize(ValueSerializer)?);
        Ok(())
    }

    fn end(self) -> Result<Value, ModelError> {
        Ok((self.whole)(self.entries))
    }
}

impl SerializeStruct for Entries {
    type Ok = Value;
    type Error = ModelError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), ModelError> {
        self.entries.insert(name.into(), value.serialize(ValueSerializer)?);
        Ok(())
    }

    fn end(self) -> Result<Value, ModelError> {
        Ok((self.whole)(self.entries))
    }
}
