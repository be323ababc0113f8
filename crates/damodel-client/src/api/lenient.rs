//! Lenient readers of JSON.
//!
//! A field may be missing, null, empty, a float or a string instead of an integer, or a number instead of text. A value
//! that makes no sense is read as absent: one odd field must not hide a billed instance.

use std::{collections::BTreeMap, fmt};

use bigdecimal::BigDecimal;
use secrecy::SecretString;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// A type that is read leniently.
pub trait Lenient: Sized {
    /// Reads a value; `None` if it is absent or makes no sense.
    fn read(json: &Value) -> Option<Self>;
}

/// A field that may be absent.
pub(super) fn field<'de, D: Deserializer<'de>, T: Lenient>(from: D) -> Result<Option<T>, D::Error> {
    Ok(T::read(&Value::deserialize(from)?))
}

/// The members of an object that have these names, with spaces between, unread. All others are skipped, whatever
/// their size.
pub(super) fn members<'a>(
    object: &'a str,
    names: &'static str,
) -> serde_json::Result<BTreeMap<&'static str, &'a RawValue>> {
    struct Named(&'static str);
    impl<'de> Visitor<'de> for Named {
        type Value = BTreeMap<&'static str, &'de RawValue>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some(name) = map.next_key::<String>()? {
                match self.0.split(' ').find(|known| *known == name) {
                    Some(known) => drop(found.insert(known, map.next_value()?)),
                    None => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(found)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(object);
    let found = reader.deserialize_map(Named(names))?;
    reader.end()?;
    Ok(found)
}

/// The elements of a list, unread; null is an empty list.
pub(super) struct Elements<'a>(pub(super) Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        /// More than any account has: a list of empty records would take many times its size.
        const MOST: usize = 100_000;

        struct Listed;
        impl<'de> Visitor<'de> for Listed {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a list of at most {MOST} elements")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    if elements.len() == MOST {
                        return Err(A::Error::invalid_length(MOST + 1, &self));
                    }
                    elements.push(element);
                }
                Ok(elements)
            }
        }
        from.deserialize_any(Listed).map(Elements)
    }
}

/// A key. A record without it is rejected.
pub(super) fn key<'de, D: Deserializer<'de>, T: Lenient>(from: D) -> Result<T, D::Error> {
    field(from)?.ok_or_else(|| D::Error::custom("an id is missing"))
}

/// A list, which may be absent.
pub(super) fn list<'de, D: Deserializer<'de>, T: Lenient + Default>(from: D) -> Result<T, D::Error> {
    Ok(field(from)?.unwrap_or_default())
}

/// Unix seconds; 0 means no time (service API, Instance).
pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(field(from)?.filter(|seconds| *seconds > 0))
}

impl Lenient for i64 {
    fn read(json: &Value) -> Option<Self> {
        match json {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| whole(text.parse().ok()?))
            }
            Value::Bool(flag) => Some(Self::from(*flag)),
            _ => None,
        }
    }
}

/// The integer that a float represents; `None` for fractions and numbers that a float cannot represent exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked: whole and within 2^53")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

impl Lenient for BigDecimal {
    fn read(json: &Value) -> Option<Self> {
        match json {
            Value::Number(number) => number.to_string().parse().ok(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

impl Lenient for String {
    fn read(json: &Value) -> Option<Self> {
        match json {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }
}

impl Lenient for SecretString {
    fn read(json: &Value) -> Option<Self> {
        String::read(json).map(Self::from)
    }
}

impl Lenient for bool {
    fn read(json: &Value) -> Option<Self> {
        match json {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => Some(true),
                "false" | "0" | "no" => Some(false),
                _ => None,
            },
            Value::Number(_) => i64::read(json).map(|number| number != 0),
            _ => None,
        }
    }
}

/// An undescribed value, unchanged; null and "" are absent.
impl Lenient for Value {
    fn read(json: &Value) -> Option<Self> {
        Some(json).filter(|json| !json.is_null() && json.as_str() != Some("")).cloned()
    }
}

/// A list with undescribed elements; a single value counts as a list of one.
impl Lenient for Vec<Value> {
    fn read(json: &Value) -> Option<Self> {
        match Value::read(json)? {
            Value::Array(values) => Some(values),
            single => Some(vec![single]),
        }
    }
}

impl Lenient for Vec<String> {
    fn read(json: &Value) -> Option<Self> {
        Vec::<Value>::read(json).map(|values| values.iter().filter_map(String::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(3), Some(3))]
    #[case(json!(3.0), Some(3))]
    #[case(json!("3"), Some(3))]
    #[case(json!(" 3.0 "), Some(3))]
    #[case(json!(9_007_199_254_740_993_i64), Some(9_007_199_254_740_993))]
    #[case(json!("9007199254740993"), Some(9_007_199_254_740_993))]
    #[case(json!(true), Some(1))]
    #[case(json!(3.5), None)]
    #[case(json!("three"), None)]
    #[case(json!(""), None)]
    #[case(json!(null), None)]
    #[case(json!([3]), None)]
    fn integers(#[case] sent: Value, #[case] read: Option<i64>) {
        assert_eq!(i64::read(&sent), read);
    }

    #[rstest]
    #[case(json!(true), Some(true))]
    #[case(json!(0), Some(false))]
    #[case(json!(1.0), Some(true))]
    #[case(json!("1"), Some(true))]
    #[case(json!("False"), Some(false))]
    #[case(json!("perhaps"), None)]
    #[case(json!(null), None)]
    fn booleans(#[case] sent: Value, #[case] read: Option<bool>) {
        assert_eq!(bool::read(&sent), read);
    }

    #[rstest]
    #[case(json!("0.1"), Some("0.1"))]
    #[case(json!(0), Some("0"))]
    #[case(json!("much"), None)]
    fn decimals_keep_their_digits(#[case] sent: Value, #[case] read: Option<&str>) {
        assert_eq!(BigDecimal::read(&sent), read.map(|text| text.parse().unwrap()));
    }

    #[test]
    fn a_price_in_json_text_keeps_its_digits() {
        let sent: Value = serde_json::from_str("12345678901234567890.10").unwrap();
        assert_eq!(BigDecimal::read(&sent), Some("12345678901234567890.10".parse().unwrap()));
    }

    #[test]
    fn zero_is_no_time() {
        assert_eq!(time(json!(0)).unwrap(), None);
        assert_eq!(time(json!("1700000000")).unwrap(), Some(1_700_000_000));
    }

    #[test]
    fn lists_take_null_and_single_things() {
        assert!(list::<_, Vec<Value>>(json!(null)).unwrap().is_empty());
        assert_eq!(list::<_, Vec<Value>>(json!({"a": 1})).unwrap(), [json!({"a": 1})]);
        assert_eq!(list::<_, Vec<String>>(json!(["a", 1, null])).unwrap(), ["a", "1"]);
    }
}
