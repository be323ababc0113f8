//! Lenient field readers. Depends on nothing else in the crate.
//!
//! A field may be missing, null, empty, a float or a string instead of an integer, or a number instead of text. A value
//! that makes no sense is read as absent: one odd field must not hide a billed instance.

use bigdecimal::BigDecimal;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

pub(super) fn integer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(read_integer(&Value::deserialize(from)?))
}

/// A key. A record without it is rejected.
pub(super) fn required_integer<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    integer(from)?.ok_or_else(|| D::Error::custom("an id is missing"))
}

/// Unix seconds; 0 means no time (service API, Instance).
pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(integer(from)?.filter(|seconds| *seconds > 0))
}

pub(super) fn decimal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BigDecimal>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => number.to_string().parse().ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(read_text(&Value::deserialize(from)?))
}

/// A key. A record without it is rejected.
pub(super) fn required_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from)?.ok_or_else(|| D::Error::custom("an id is missing"))
}

pub(super) fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
    Ok(text(from)?.map(SecretString::from))
}

pub(super) fn boolean<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Bool(flag) => Some(flag),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" => Some(false),
            _ => None,
        },
        number @ Value::Number(_) => read_integer(&number).map(|number| number != 0),
        _ => None,
    })
}

pub(super) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(values(from)?.iter().filter_map(read_text).collect())
}

/// A list with undescribed elements; a single object counts as a list of one.
pub(super) fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => Vec::new(),
        Value::Array(values) => values,
        Value::String(text) if text.is_empty() => Vec::new(),
        single => vec![single],
    })
}

/// An undescribed value, unchanged; null and "" are absent.
pub(super) fn value<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        value => Some(value),
    })
}

pub(super) fn read_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| whole(text.parse().ok()?))
        }
        Value::Bool(flag) => Some(i64::from(*flag)),
        _ => None,
    }
}

/// The integer that a float represents; `None` for fractions and numbers that a float cannot represent exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked: whole and within 2^53")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

pub(super) fn read_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
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
        assert_eq!(integer(sent).unwrap(), read);
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
        assert_eq!(boolean(sent).unwrap(), read);
    }

    #[rstest]
    #[case(json!("0.1"), Some("0.1"))]
    #[case(json!(0), Some("0"))]
    #[case(json!("much"), None)]
    fn decimals_keep_their_digits(#[case] sent: Value, #[case] read: Option<&str>) {
        assert_eq!(decimal(sent).unwrap(), read.map(|text| text.parse().unwrap()));
    }

    #[test]
    fn a_price_in_json_text_keeps_its_digits() {
        let sent: Value = serde_json::from_str("12345678901234567890.10").unwrap();
        assert_eq!(decimal(sent).unwrap(), Some("12345678901234567890.10".parse().unwrap()));
    }

    #[test]
    fn zero_is_no_time() {
        assert_eq!(time(json!(0)).unwrap(), None);
        assert_eq!(time(json!("1700000000")).unwrap(), Some(1_700_000_000));
    }

    #[test]
    fn lists_take_null_and_single_things() {
        assert!(values(json!(null)).unwrap().is_empty());
        assert_eq!(values(json!({"a": 1})).unwrap(), [json!({"a": 1})]);
        assert_eq!(texts(json!(["a", 1, null])).unwrap(), ["a", "1"]);
    }
}
