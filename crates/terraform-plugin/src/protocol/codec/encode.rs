//! Writes values as msgpack.

use std::collections::BTreeMap;

use rmp::encode::{self, ByteBuf};

use super::{EncodeError, ty::encode_type};
use crate::framework::{
    PathStep, Type, Value,
    value::{Number, ValueKey},
};

/// The form of every unknown value that is written.
const UNKNOWN: [u8; 3] = [0xd4, 0x00, 0x00];

/// Writes a value of the given type as msgpack, byte for byte as the core does (plugin protocol, msgpack rules).
///
/// # Errors
///
/// If a part of the value is not of its type. The error has the encoded rest.
pub fn encode(ty: &Type, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder { out: ByteBuf::new(), steps: Vec::new(), misfit: None };
    encoder.value(ty, value);
    let bytes = encoder.out.into_vec();
    match encoder.misfit {
        None => Ok(bytes),
        Some((steps, expected)) => Err(EncodeError::new(steps.into_iter(), expected, bytes)),
    }
}

struct Encoder<'a> {
    out: ByteBuf,
    /// The location of the current value.
    steps: Vec<Location<'a>>,
    /// The first part that is not of its type.
    misfit: Option<(Vec<PathStep>, &'static str)>,
}

enum Location<'a> {
    Attribute(&'a str),
    Element,
    Index(usize),
    Key(&'a str),
}

impl<'a> Encoder<'a> {
    fn value(&mut self, ty: &Type, value: &'a Value) {
        match (ty, value) {
            (_, Value::Null) => self.nil(),
            (_, Value::Unknown) => self.out.as_mut_vec().extend_from_slice(&UNKNOWN),
            (Type::Bool, Value::Bool(truth)) => {
                done(encode::write_bool(&mut self.out, *truth));
            }
            (Type::Number, Value::Number(number)) => self.number(number),
            (Type::String, Value::String(text)) => self.text(text),
            (Type::List(element), Value::List(elements)) => {
                self.elements(elements.iter().map(|value| (&**element, value)), Location::Index);
            }
            (Type::Set(element), Value::Set(elements)) => {
                let element = elements.iter().map(|value| (&**element, value));
                self.elements(element, |_| Location::Element);
            }
            (Type::Tuple(types), Value::Tuple(elements)) if types.len() == elements.len() => {
                self.elements(types.iter().zip(elements), Location::Index);
            }
            (Type::Map(element), Value::Map(elements)) => self.map(element, elements),
            (Type::Object(types), Value::Object(attributes)) => self.object(types, attributes),
            (Type::Dynamic, Value::Dynamic(dynamic)) => {
                self.array(2);
                done(encode::write_bin(&mut self.out, &encode_type(&dynamic.ty)));
                self.value(&dynamic.ty, &dynamic.value);
            }
            (ty, _) => {
                self.misfit(expected(ty));
                self.nil();
            }
        }
    }

    fn number(&mut self, number: &Number) {
        if let Some(whole) = number.to_i64() {
            done(encode::write_sint(&mut self.out, whole).map(drop));
        } else if let Some(float) = number.to_float().or_else(|| number.to_exact_f64()).filter(|_| !number.is_whole()) {
            done(encode::write_f64(&mut self.out, float));
        } else {
            self.text(&number.to_string());
        }
    }

    fn elements<'t>(
        &mut self,
        elements: impl ExactSizeIterator<Item = (&'t Type, &'a Value)>,
        place: fn(usize) -> Location<'a>,
    ) {
        self.array(elements.len());
        for (index, (ty, value)) in elements.enumerate() {
            self.at(place(index), ty, value);
        }
    }

    fn map(&mut self, element: &Type, elements: &'a BTreeMap<ValueKey, Value>) {
        done(encode::write_map_len(&mut self.out, length(elements.len())).map(drop));
        for (key, value) in elements {
            self.text(key);
            self.at(Location::Key(key), element, value);
        }
    }

    fn object(&mut self, types: &BTreeMap<ValueKey, Type>, attributes: &'a BTreeMap<ValueKey, Value>) {
        let fits = types.keys().eq(attributes.keys());
        if !fits {
            self.misfit("an object with exactly the attributes of its type");
        }
        done(encode::write_map_len(&mut self.out, length(types.len())).map(drop));
        let mut in_order = attributes.iter();
        for (name, ty) in types {
            self.text(name);
            match if fits { in_order.next() } else { attributes.get_key_value(name) } {
                Some((name, value)) => self.at(Location::Attribute(name), ty, value),
                None => self.nil(),
            }
        }
    }

    fn at(&mut self, place: Location<'a>, ty: &Type, value: &'a Value) {
        self.steps.push(place);
        self.value(ty, value);
        self.steps.pop();
    }

    fn misfit(&mut self, expected: &'static str) {
        if self.misfit.is_none() {
            let steps = self.steps.iter().map_while(Location::step).collect();
            self.misfit = Some((steps, expected));
        }
    }

    fn text(&mut self, text: &str) {
        done(encode::write_str(&mut self.out, text));
    }

    fn array(&mut self, elements: usize) {
        done(encode::write_array_len(&mut self.out, length(elements)).map(drop));
    }

    fn nil(&mut self) {
        done(encode::write_nil(&mut self.out));
    }
}

impl Location<'_> {
    /// The last step of the location; `None` into a set, where paths end.
    fn step(&self) -> Option<PathStep> {
        match *self {
            Self::Attribute(name) => Some(PathStep::Attribute(name.to_owned())),
            Self::Element => None,
            Self::Index(index) => Some(PathStep::index(index)),
            Self::Key(key) => Some(PathStep::Key(key.to_owned())),
        }
    }
}

fn expected(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "a bool",
        Type::Dynamic => "a value that names its type",
        Type::List(_) => "a list",
        Type::Map(_) => "a map",
        Type::Number => "a number",
        Type::Object(_) => "an object",
        Type::Set(_) => "a set",
        Type::String => "a string",
        Type::Tuple(_) => "a tuple of another length",
    }
}

/// msgpack has 32-bit lengths; more elements would far exceed the message limit.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Writing to memory cannot fail.
fn done<E>(result: Result<(), E>) {
    drop(result);
}
