//! Reads values from msgpack, with a cursor.

use std::collections::BTreeMap;

use rmp::Marker;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::{DEEPEST, DecodeError, MOST_VALUES, ty::decode_type};
use crate::framework::{
    PathStep, Type, Value,
    value::{Dynamic, Number, ValueKey},
};

/// Reads a msgpack value of the given type (plugin protocol, msgpack rules).
///
/// # Errors
///
/// If the bytes are truncated, of another type, nested too deeply, or followed by others.
pub fn decode(ty: &Type, bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut decoder = Decoder { reader: Reader::new(bytes), depth: 0 };
    let value = decoder.value(ty)?;
    if decoder.reader.rest.is_empty() { Ok(value) } else { Err(DecodeError::new("bytes after the end of the value")) }
}

/// The text in Unicode normal form C, like all texts of the core.
pub(super) fn normalized(text: &str) -> String {
    if is_nfc(text) { text.to_owned() } else { text.nfc().collect() }
}

struct Decoder<'a> {
    reader: Reader<'a>,
    depth: usize,
}

impl Decoder<'_> {
    fn value(&mut self, ty: &Type) -> Result<Value, DecodeError> {
        if self.depth == DEEPEST {
            return Err(DecodeError::new("nested too deeply"));
        }
        self.depth += 1;
        let value = match self.reader.head()? {
            Head::Nil => Value::Null,
            // What more is known of it is dropped unread (plugin protocol, msgpack rules).
            Head::Ext => Value::Unknown,
            head => self.known(ty, head)?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn known(&mut self, ty: &Type, head: Head<'_>) -> Result<Value, DecodeError> {
        match ty {
            Type::Bool => match head {
                Head::Bool(truth) => Ok(Value::Bool(truth)),
                _ => Err(DecodeError::new("not a bool")),
            },
            Type::Number => number(&head).map(Value::Number),
            Type::String => text(&head).map(Value::String),
            Type::List(element) => self.elements(element, &head).map(Value::List),
            Type::Set(element) => self.elements(element, &head).map(Value::set).map_err(DecodeError::inside_set),
            Type::Tuple(types) => self.tuple(types, &head),
            Type::Map(element) => self.map(element, &head),
            Type::Object(types) => self.object(types, &head),
            Type::Dynamic => self.dynamic(&head),
        }
    }

    fn elements(&mut self, ty: &Type, head: &Head<'_>) -> Result<Vec<Value>, DecodeError> {
        let Head::Array(length) = *head else {
            return Err(DecodeError::new("not an array"));
        };
        let mut elements = Vec::new();
        for index in 0..length {
            elements.push(self.element(ty, index)?);
        }
        Ok(elements)
    }

    fn tuple(&mut self, types: &[Type], head: &Head<'_>) -> Result<Value, DecodeError> {
        let Head::Array(length) = *head else {
            return Err(DecodeError::new("not an array"));
        };
        if length != types.len() {
            return Err(DecodeError::new("a tuple of another length"));
        }
        let mut elements = Vec::new();
        for (index, ty) in types.iter().enumerate() {
            elements.push(self.element(ty, index)?);
        }
        Ok(Value::Tuple(elements))
    }

    fn element(&mut self, ty: &Type, index: usize) -> Result<Value, DecodeError> {
        self.value(ty).map_err(|error| error.inside(PathStep::index(index)))
    }

    fn map(&mut self, ty: &Type, head: &Head<'_>) -> Result<Value, DecodeError> {
        let Head::Map(length) = *head else {
            return Err(DecodeError::new("not a map"));
        };
        let mut elements = Vec::new();
        for _ in 0..length {
            let key = self.key()?;
            let value = self.value(ty).map_err(|error| error.inside(PathStep::Key(key.clone())))?;
            elements.push((key.into(), value));
        }
        entries(elements).map(Value::Map)
    }

    fn object(&mut self, types: &BTreeMap<ValueKey, Type>, head: &Head<'_>) -> Result<Value, DecodeError> {
        let Head::Map(length) = *head else {
            return Err(DecodeError::new("not an object"));
        };
        if length != types.len() {
            return Err(DecodeError::new("an object with another number of attributes"));
        }
        let mut attributes = Vec::with_capacity(length);
        // The core sends them in this order.
        let mut in_order = types.iter();
        for _ in 0..length {
            // Names are compared unchanged: the core normalises only values.
            let name = verbatim(&self.reader.head()?)?;
            let next = in_order.next().filter(|(next, _)| *next == name);
            let (name, ty) = next
                .or_else(|| types.get_key_value(name))
                .ok_or_else(|| DecodeError::new("an object with an attribute too many"))?;
            let value = self.value(ty).map_err(|error| error.inside(PathStep::Attribute(name.to_string())))?;
            attributes.push((name.clone(), value));
        }
        entries(attributes).map(Value::Object)
    }

    fn dynamic(&mut self, head: &Head<'_>) -> Result<Value, DecodeError> {
        let Head::Array(2) = head else {
            return Err(DecodeError::new("not a type and a value of it"));
        };
        let (Head::Bin(bytes) | Head::Str(bytes)) = self.reader.head()? else {
            return Err(DecodeError::new("a type that is not text"));
        };
        let ty =
            decode_type(bytes).ok().filter(|ty| *ty != Type::Dynamic).ok_or_else(|| DecodeError::new("not a type"))?;
        let value = self.value(&ty)?;
        Ok(Value::Dynamic(Box::new(Dynamic { ty, value })))
    }

    fn key(&mut self) -> Result<String, DecodeError> {
        text(&self.reader.head()?)
    }
}

fn entries(entries: Vec<(ValueKey, Value)>) -> Result<BTreeMap<ValueKey, Value>, DecodeError> {
    let length = entries.len();
    let map = BTreeMap::from_iter(entries);
    if map.len() == length { Ok(map) } else { Err(DecodeError::new("a duplicate key")) }
}

fn text(head: &Head<'_>) -> Result<String, DecodeError> {
    verbatim(head).map(normalized)
}

fn verbatim<'a>(head: &Head<'a>) -> Result<&'a str, DecodeError> {
    let (Head::Str(bytes) | Head::Bin(bytes)) = head else {
        return Err(DecodeError::new("not a string"));
    };
    std::str::from_utf8(bytes).map_err(|_| DecodeError::new("a string that is not UTF-8"))
}

/// Reads a number: whole ones have any width, decimals are floats or, if no float is exact, text.
fn number(head: &Head<'_>) -> Result<Number, DecodeError> {
    let number = match head {
        Head::Signed(number) => Ok(Number::from(*number)),
        Head::Unsigned(number) => Ok(Number::from(*number)),
        Head::Float(number) => Number::of_float(*number),
        Head::Str(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.parse(),
            Err(_) => return Err(DecodeError::new("a number that is not UTF-8")),
        },
        _ => return Err(DecodeError::new("not a number")),
    };
    number.map_err(|_| DecodeError::new("not a number, or too large"))
}

/// A cursor over msgpack bytes. It allocates no memory for lengths that the bytes claim.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    values: usize,
}

/// The head of one msgpack value. A text includes its bytes; the elements of arrays and maps follow.
pub(super) enum Head<'a> {
    Array(usize),
    Bin(&'a [u8]),
    Bool(bool),
    Ext,
    Float(f64),
    Map(usize),
    Nil,
    Signed(i64),
    Str(&'a [u8]),
    Unsigned(u64),
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, values: 0 }
    }

    pub(super) fn head(&mut self) -> Result<Head<'a>, DecodeError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(DecodeError::new("too many values in one message"));
        }
        let [marker] = self.array()?;
        Ok(match Marker::from_u8(marker) {
            Marker::Null => Head::Nil,
            Marker::True => Head::Bool(true),
            Marker::False => Head::Bool(false),
            Marker::FixPos(number) => Head::Unsigned(number.into()),
            Marker::FixNeg(number) => Head::Signed(number.into()),
            Marker::U8 => Head::Unsigned(u8::from_be_bytes(self.array()?).into()),
            Marker::U16 => Head::Unsigned(u16::from_be_bytes(self.array()?).into()),
            Marker::U32 => Head::Unsigned(u32::from_be_bytes(self.array()?).into()),
            Marker::U64 => Head::Unsigned(u64::from_be_bytes(self.array()?)),
            Marker::I8 => Head::Signed(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Head::Signed(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Head::Signed(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Head::Signed(i64::from_be_bytes(self.array()?)),
            Marker::F32 => Head::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Head::Float(f64::from_be_bytes(self.array()?)),
            Marker::FixStr(length) => Head::Str(self.take(length.into())?),
            Marker::Str8 => Head::Str(self.counted::<1>()?),
            Marker::Str16 => Head::Str(self.counted::<2>()?),
            Marker::Str32 => Head::Str(self.counted::<4>()?),
            Marker::Bin8 => Head::Bin(self.counted::<1>()?),
            Marker::Bin16 => Head::Bin(self.counted::<2>()?),
            Marker::Bin32 => Head::Bin(self.counted::<4>()?),
            Marker::FixArray(length) => Head::Array(length.into()),
            Marker::Array16 => Head::Array(self.length::<2>()?),
            Marker::Array32 => Head::Array(self.length::<4>()?),
            Marker::FixMap(length) => Head::Map(length.into()),
            Marker::Map16 => Head::Map(self.length::<2>()?),
            Marker::Map32 => Head::Map(self.length::<4>()?),
            Marker::FixExt1 => self.ext(1)?,
            Marker::FixExt2 => self.ext(2)?,
            Marker::FixExt4 => self.ext(4)?,
            Marker::FixExt8 => self.ext(8)?,
            Marker::FixExt16 => self.ext(16)?,
            Marker::Ext8 => {
                let length = self.length::<1>()?;
                self.ext(length)?
            }
            Marker::Ext16 => {
                let length = self.length::<2>()?;
                self.ext(length)?
            }
            Marker::Ext32 => {
                let length = self.length::<4>()?;
                self.ext(length)?
            }
            Marker::Reserved => return Err(DecodeError::new("a reserved msgpack marker")),
        })
    }

    fn ext(&mut self, length: usize) -> Result<Head<'a>, DecodeError> {
        let [_kind] = self.array()?;
        self.take(length)?;
        Ok(Head::Ext)
    }

    fn counted<const N: usize>(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length::<N>()?;
        self.take(length)
    }

    fn length<const N: usize>(&mut self) -> Result<usize, DecodeError> {
        let bytes: [u8; N] = self.array()?;
        Ok(bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn truncated() -> DecodeError {
    DecodeError::new("the message ends too early")
}
