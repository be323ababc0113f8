//! Numbers of any size and precision, like those of the core.

use std::{cmp::Ordering, fmt, str::FromStr};

use bigdecimal::{BigDecimal, ToPrimitive};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The maximum digits of a number as decimal text without an exponent, which is the wire's form. The core's numbers
/// have 512 bits and any exponent; the limit keeps a short text such as `1e999999999` from filling the memory.
const MOST_DIGITS: u64 = 8192;

/// A decimal number of any size, equal and ordered by value: `1.0` is `1`.
///
/// The core computes with 512-bit numbers; an f64 would change prices and large ids.
#[derive(Clone)]
pub struct Number {
    value: BigDecimal,
    /// Whether it came as a float, and so goes back as one. Equality does not see it.
    came_as_float: bool,
}

/// A text or float that is not a finite decimal number of at most `MOST_DIGITS` digits.
#[derive(Debug, thiserror::Error)]
#[error("not a finite decimal number of at most {MOST_DIGITS} digits")]
pub struct InvalidNumber;

impl Number {
    /// The number as an i64, if it is whole and fits.
    pub fn to_i64(&self) -> Option<i64> {
        if self.value.is_integer() { self.value.to_i64() } else { None }
    }

    /// The nearest f64.
    pub fn to_f64(&self) -> f64 {
        self.value.to_f64().unwrap_or(f64::NAN)
    }

    /// The f64 that is exactly this number, if there is one.
    pub fn to_exact_f64(&self) -> Option<f64> {
        let nearest = self.value.to_f64()?;
        let exact = BigDecimal::try_from(nearest).ok()?;
        (exact == self.value).then_some(nearest)
    }

    /// Reads a float of the wire, which is written again as this float.
    pub fn of_float(float: f64) -> Result<Self, InvalidNumber> {
        Ok(Self { came_as_float: true, ..Self::try_from(float)? })
    }

    /// The float that the number came as.
    pub fn to_float(&self) -> Option<f64> {
        self.came_as_float.then(|| self.to_f64())
    }

    /// Whether the number has no fraction.
    pub fn is_whole(&self) -> bool {
        self.value.is_integer()
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self { value: number.into(), came_as_float: false }
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self { value: number.into(), came_as_float: false }
    }
}

impl From<BigDecimal> for Number {
    fn from(number: BigDecimal) -> Self {
        Self { value: number.normalized(), came_as_float: false }
    }
}

impl From<Number> for BigDecimal {
    fn from(number: Number) -> Self {
        number.value
    }
}

/// Reads an f64 so that it equals the core's number: a whole one is exact, and any other one is its shortest decimal
/// text. The float nearest to 0.1 is 0.1.
impl TryFrom<f64> for Number {
    type Error = InvalidNumber;

    fn try_from(number: f64) -> Result<Self, InvalidNumber> {
        if number.fract() == 0.0 {
            BigDecimal::try_from(number).map(Self::from).map_err(|_| InvalidNumber)
        } else {
            format!("{number:e}").parse()
        }
    }
}

impl FromStr for Number {
    type Err = InvalidNumber;

    fn from_str(text: &str) -> Result<Self, InvalidNumber> {
        // Point and sign count as digits, so that every number that is written can be read. The library accepts
        // underscores between digits; the wire's form does not have them.
        if u64::try_from(text.len()).is_ok_and(|length| length > MOST_DIGITS + 3) || text.contains('_') {
            return Err(InvalidNumber);
        }
        let number = BigDecimal::from_str(text).map_err(|_| InvalidNumber)?;
        let scale = number.fractional_digit_count();
        let behind_the_digits = if scale < 0 { scale.unsigned_abs() } else { 0 };
        let digits = number.digits().max(scale.try_into().unwrap_or(0)).saturating_add(behind_the_digits);
        if digits > MOST_DIGITS { Err(InvalidNumber) } else { Ok(number.into()) }
    }
}

/// The decimal text without an exponent, which is the wire's form (plugin protocol, value encoding).
impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.value.normalized().to_plain_string())
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
    fn what_is_read_is_written_in_a_form_that_is_read() {
        for text in
            ["1e1100", "-1e8191", "1e-8190", "1.5e-1100", &"9".repeat(8192), &format!("-0.{}", "7".repeat(8192))]
        {
            assert_eq!(number(&number(text).to_string()), number(text), "{text}");
        }
    }

    #[test]
    fn nonsense_and_giants_are_refused() {
        for text in ["", "x", "1e999999999", "1e-999999999", "1e8192", "NaN", "inf", "1e", "1_000", &"9".repeat(8193)] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
        assert!(Number::try_from(f64::INFINITY).is_err());
    }
}
