use std::{fmt, str::FromStr};

use bigdecimal::{BigDecimal, ToPrimitive};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Longest decimal text that is read: 512 bits of precision need 155 digits, and f64's range 309 more.
const LONGEST_TEXT: usize = 1024;
/// Largest power of ten that is read, so that a short text cannot stand for a number of a billion digits.
const LARGEST_EXPONENT: i64 = 4096;

/// A decimal number of any size, equal and ordered by value: `1.0` is `1`.
///
/// The core computes with 512-bit numbers; through an f64 prices and large ids would change on the way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(BigDecimal);

/// A text or float that is no finite decimal number of a sensible size.
#[derive(Debug, thiserror::Error)]
#[error("not a finite decimal number of at most {LONGEST_TEXT} digits")]
pub struct InvalidNumber;

impl Number {
    /// The number as an i64, if it is whole and fits.
    pub fn to_i64(&self) -> Option<i64> {
        if self.0.is_integer() { self.0.to_i64() } else { None }
    }

    /// The nearest f64.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64().unwrap_or(f64::NAN)
    }

    /// The f64 that is exactly this number, if there is one.
    pub fn to_exact_f64(&self) -> Option<f64> {
        let nearest = self.0.to_f64()?;
        let exact = BigDecimal::try_from(nearest).ok()?;
        (exact == self.0).then_some(nearest)
    }

    /// Whether there is nothing behind the decimal point.
    pub fn is_whole(&self) -> bool {
        self.0.is_integer()
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

impl From<BigDecimal> for Number {
    fn from(number: BigDecimal) -> Self {
        Self(number.normalized())
    }
}

impl From<Number> for BigDecimal {
    fn from(number: Number) -> Self {
        number.0
    }
}

/// Reads an f64 by its shortest decimal text, as the core does: the float nearest to 0.1 is 0.1.
impl TryFrom<f64> for Number {
    type Error = InvalidNumber;

    fn try_from(number: f64) -> Result<Self, InvalidNumber> {
        if number.is_finite() { format!("{number:e}").parse() } else { Err(InvalidNumber) }
    }
}

impl FromStr for Number {
    type Err = InvalidNumber;

    fn from_str(text: &str) -> Result<Self, InvalidNumber> {
        if text.len() > LONGEST_TEXT {
            return Err(InvalidNumber);
        }
        let exponent = text.find(['e', 'E']).map_or(Ok(0), |at| text.get(at + 1..).unwrap_or_default().parse::<i64>());
        if exponent.map_err(|_| InvalidNumber)?.abs() > LARGEST_EXPONENT {
            return Err(InvalidNumber);
        }
        BigDecimal::from_str(text).map(|number| Self(number.normalized())).map_err(|_| InvalidNumber)
    }
}

/// The decimal text, without an exponent: the form that the wire knows (plugin protocol, value encoding).
impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.normalized().to_plain_string())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The name under which the model's (de)serializer recognises a number in its decimal text.
pub(in crate::framework) const NUMBER: &str = "$number";

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NUMBER, &self.to_string())
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "$number")]
        struct Text(String);

        Text::deserialize(deserializer)?.0.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_are_compared_by_value() {
        assert_eq!(number("1.0"), Number::from(1_i64));
        assert_eq!(number("1e3"), Number::from(1000_i64));
        assert!(number("9007199254740993") > number("9007199254740992"));
        assert_eq!(Number::try_from(0.1).unwrap(), number("0.1"));
    }

    #[test]
    fn text_has_no_exponent() {
        assert_eq!(number("1e-7").to_string(), "0.0000001");
        assert_eq!(number("1.5e300").to_string().len(), 301);
        assert_eq!(number("1000").to_string(), "1000");
    }

    #[test]
    fn only_exact_floats_are_exact() {
        assert_eq!(number("0.5").to_exact_f64(), Some(0.5));
        assert_eq!(number("0.1").to_exact_f64(), None);
        assert_eq!(number("0.5").to_i64(), None);
        assert_eq!(number("9223372036854775808").to_i64(), None);
    }

    #[test]
    fn nonsense_and_giants_are_refused() {
        for text in ["", "x", "1e999999999", "NaN", "inf", "1e", &"9".repeat(2000)] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
        assert!(Number::try_from(f64::INFINITY).is_err());
    }
}
