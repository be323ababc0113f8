//! Values and types in their wire forms (plugin protocol, value encoding). Decoding needs the schema's type: the bytes
//! alone do not distinguish a decimal from a text, or a set from a list.

mod decode;
mod encode;
mod json;
mod ty;

pub use decode::decode;
pub use encode::encode;
pub use json::{Unsaid, decode_json, from_json};
pub use ty::{InvalidType, decode_type, encode_type};

use crate::framework::{Path, PathStep};

/// The deepest nesting that is read, in types and in values: far above any schema, and far below a stack overflow.
const DEEPEST: usize = 128;

/// The maximum number of values in one message. One byte can encode a whole value, so the message limit alone would
/// allow a hostile sender to use gigabytes.
const MOST_VALUES: usize = 8 << 20;

/// Bytes that are not a value of the expected type. The error names the path and the expected form, and never the
/// bytes, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", location(.steps))]
pub struct DecodeError {
    /// From the innermost step outwards.
    steps: Vec<PathStep>,
    fault: &'static str,
}

/// A value that is not of its type: a fault of the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{expected} was meant", location(.steps))]
pub struct EncodeError {
    /// From the innermost step outwards.
    steps: Vec<PathStep>,
    expected: &'static str,
    partial: Vec<u8>,
}

impl DecodeError {
    fn new(fault: &'static str) -> Self {
        Self { steps: Vec::new(), fault }
    }

    /// The same error, with the step of the enclosing level added.
    fn inside(mut self, step: PathStep) -> Self {
        self.steps.push(step);
        self
    }

    /// The same error from outside a set. Sets have no steps, so the path ends here.
    fn inside_set(mut self) -> Self {
        self.steps.clear();
        self
    }

    /// The path of the fault.
    pub fn path(&self) -> Path {
        path(&self.steps)
    }
}

impl EncodeError {
    /// `steps` go from the outermost inwards.
    fn new(steps: impl DoubleEndedIterator<Item = PathStep>, expected: &'static str, partial: Vec<u8>) -> Self {
        Self { steps: steps.rev().collect(), expected, partial }
    }

    /// The encoded value with null for every part of the wrong type, so that an existing object is not lost because of
    /// one attribute.
    pub fn into_partial(self) -> Vec<u8> {
        self.partial
    }
}

fn path(steps: &[PathStep]) -> Path {
    steps.iter().rev().cloned().collect()
}

fn location(steps: &[PathStep]) -> String {
    if steps.is_empty() { String::new() } else { format!("{}: ", path(steps)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::{Type, Value};

    #[test]
    fn what_does_not_fit_is_refused() {
        let object = r#"["object",{"a":"string"}]"#;
        for (ty, bytes, message) in [
            ("\"string\"", "", "the message ends too early"),
            ("\"string\"", "a268", "the message ends too early"),
            ("\"string\"", "a26869c0", "bytes after the end of the value"),
            ("\"string\"", "01", "not a string"),
            ("\"string\"", "a1ff", "a string that is not UTF-8"),
            ("\"string\"", "c1", "a reserved msgpack marker"),
            ("\"number\"", "c3", "not a number"),
            ("\"number\"", "a178", "not a number, or too large"),
            ("\"number\"", "cb7ff0000000000000", "not a number, or too large"),
            ("\"bool\"", "00", "not a bool"),
            (object, "80", "an object with another number of attributes"),
            (object, "81a162c0", "an object with an attribute too many"),
            (object, "81a16101", "a: not a string"),
            (r#"["object",{"a":"bool","b":"bool"}]"#, "82a161c3a161c3", "a duplicate key"),
            (r#"["tuple",["bool"]]"#, "92c3c3", "a tuple of another length"),
            (r#"["list","bool"]"#, "92c300", "[1]: not a bool"),
            (r#"["list","bool"]"#, "ddffffffff", "[0]: the message ends too early"),
            (r#"["map","bool"]"#, "dfffffffff", "the message ends too early"),
            (r#"["map","bool"]"#, "81a16b00", "[\"k\"]: not a bool"),
            // A path ends at a set.
            (r#"["set",["object",{"a":"string"}]]"#, "9181a16101", "not a string"),
            ("\"dynamic\"", "91c0", "not a type and a value of it"),
            ("\"dynamic\"", "92a178c0", "not a type"),
            ("\"dynamic\"", "92c4092264796e616d696322c0", "not a type"),
            ("\"string\"", "c7030c81a1", "the message ends too early"),
        ] {
            let ty = decode_type(ty.as_bytes()).unwrap();
            let error = decode(&ty, &bytes_of(bytes)).unwrap_err();
            assert_eq!(error.to_string(), message, "{bytes}");
        }
    }

    #[test]
    fn a_number_that_came_as_a_float_goes_back_as_it_came() {
        // 1.98, which no float is exactly.
        let bytes = bytes_of("cb3fffae147ae147ae");
        let float = decode(&Type::Number, &bytes).unwrap();
        assert_eq!(float, Value::Number("1.98".parse().unwrap()));
        assert_eq!(encode(&Type::Number, &float), Ok(bytes));
        assert_eq!(encode(&Type::Number, &Value::Number("1.98".parse().unwrap())), Ok(bytes_of("a4312e3938")));
    }

    #[test]
    fn nesting_has_a_limit() {
        // A dynamic value in a dynamic value, each in a tuple of one.
        let mut bytes = Vec::new();
        for _ in 0..1000 {
            bytes.extend(bytes_of("92"));
            bytes.extend(bytes_of("b4"));
            bytes.extend(br#"["list"  ,"dynamic"]"#);
            bytes.extend(bytes_of("91"));
        }
        let error = decode(&Type::Dynamic, &bytes).unwrap_err();
        assert!(error.to_string().ends_with("nested too deeply"), "{error}");
    }

    #[test]
    fn a_value_of_another_type_keeps_what_fits() {
        let ty = decode_type(br#"["object",{"id":"string","size":["list","number"]}]"#).unwrap();
        let value = o([("id", s("disk-1")), ("size", Value::List(vec![1.into(), s("planted")]))]);
        let error = encode(&ty, &value).unwrap_err();
        assert_eq!(error.to_string(), "size[1]: a number was meant");
        let kept = decode(&ty, &error.into_partial()).unwrap();
        assert_eq!(kept, o([("id", s("disk-1")), ("size", Value::List(vec![1.into(), Value::Null]))]));
    }

    fn s(text: &str) -> Value {
        text.into()
    }

    fn o<const N: usize>(attributes: [(&'static str, Value); N]) -> Value {
        Value::object(attributes)
    }

    fn bytes_of(hex: &str) -> Vec<u8> {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }
}
