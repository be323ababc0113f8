//! Rules for configured values. An unknown value satisfies every rule, because it may become valid.

use std::ops::RangeInclusive;

use regex::Regex;

use crate::framework::value::{Number, Value};

/// A rule for the known, non-null value of an attribute, or for each element of a collection of them.
#[derive(Clone, Debug)]
pub enum Validator {
    /// See [`one_of`].
    OneOf(&'static [&'static str]),
    /// See [`between`].
    Between(RangeInclusive<i64>),
    /// See [`positive`].
    Positive,
    /// See [`text`].
    Text {
        /// The rule.
        rule: &'static str,
        /// Whether a text satisfies it.
        accepts: fn(&str) -> bool,
    },
}

impl Validator {
    /// The rule as a phrase for the docs and the error, to follow "must be".
    pub fn rule(&self) -> String {
        match self {
            Self::OneOf(words) => {
                format!("one of {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", "))
            }
            Self::Between(range) => match (*range.start(), *range.end()) {
                (i64::MIN, i64::MAX) => "a whole number".to_owned(),
                (least, i64::MAX) => format!("a whole number, at least {least}"),
                (least, most) => format!("a whole number from {least} to {most}"),
            },
            Self::Positive => "a number above zero".to_owned(),
            Self::Text { rule, .. } => (*rule).to_owned(),
        }
    }

    /// Whether the value satisfies the rule.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::OneOf(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Between(range), Value::Number(number)) => {
                number.to_i64().is_some_and(|number| range.contains(&number))
            }
            (Self::Positive, Value::Number(number)) => *number > Number::from(0_i64),
            (Self::Text { accepts, .. }, Value::String(text)) => accepts(text),
            _ => true,
        }
    }
}

/// The text must be one of these words.
pub fn one_of(words: &'static [&'static str]) -> Validator {
    Validator::OneOf(words)
}

/// The number must be whole and lie in this range; an end of `i64::MAX` means no upper limit.
pub fn between(range: RangeInclusive<i64>) -> Validator {
    Validator::Between(range)
}

/// The number must be whole.
pub fn whole() -> Validator {
    between(i64::MIN..=i64::MAX)
}

/// The number must be above zero.
pub fn positive() -> Validator {
    Validator::Positive
}

/// The text must satisfy a predicate; `rule` completes "must be …".
pub fn text(rule: &'static str, accepts: fn(&str) -> bool) -> Validator {
    Validator::Text { rule, accepts }
}

/// The text must be a regular expression.
pub fn regular_expression() -> Validator {
    text("a regular expression", |pattern| Regex::new(pattern).is_ok())
}

/// The rule of [`duration`].
pub const DURATION: &str = "a duration such as \"90s\", \"30m\" or \"1h30m\"";

/// The text must be a positive duration that `parse_duration` accepts.
pub fn duration() -> Validator {
    text(DURATION, |value| crate::framework::timeouts::parse_duration(value).is_some())
}
