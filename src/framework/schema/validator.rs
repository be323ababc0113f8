//! Rules for configured values. An unknown value satisfies every rule, because it may become valid.

use std::{fmt, ops::RangeInclusive};

use regex::Regex;

use crate::framework::value::{Number, Value};

/// A rule for the known, non-null value of an attribute, or for each element of a collection of them.
pub trait Validator: fmt::Debug + Send + Sync {
    /// The rule as a phrase for the docs and the error, to follow "must be".
    fn rule(&self) -> String;

    /// Whether the value satisfies the rule.
    fn accepts(&self, value: &Value) -> bool;
}

/// The text must be one of these words.
pub fn one_of(words: &'static [&'static str]) -> impl Validator {
    OneOf(words)
}

/// The number must be whole and lie in this range; an end of `i64::MAX` means no upper limit.
pub fn between(range: RangeInclusive<i64>) -> impl Validator {
    Between(range)
}

/// The number must be whole.
pub fn whole() -> impl Validator {
    between(i64::MIN..=i64::MAX)
}

/// The number must be above zero.
pub fn positive() -> impl Validator {
    Positive
}

/// The text must satisfy a predicate; `rule` completes "must be …".
pub fn text(rule: &'static str, accepts: fn(&str) -> bool) -> impl Validator {
    Text { rule, accepts }
}

/// The text must be a regular expression.
pub fn regular_expression() -> impl Validator {
    text("a regular expression", |pattern| Regex::new(pattern).is_ok())
}

/// The text must be a positive duration such as `30s`, `10m` or `1h30m`, of ten years at most.
pub fn duration() -> impl Validator {
    text("a duration above zero such as \"90s\", \"30m\" or \"1h30m\", at most ten years (\"87600h\")", |value| {
        crate::framework::timeouts::parse_duration(value).is_some()
    })
}

#[derive(Debug)]
struct OneOf(&'static [&'static str]);

impl Validator for OneOf {
    fn rule(&self) -> String {
        format!("one of {}", self.0.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", "))
    }

    fn accepts(&self, value: &Value) -> bool {
        value.as_str().is_none_or(|text| self.0.contains(&text))
    }
}

#[derive(Debug)]
struct Between(RangeInclusive<i64>);

impl Validator for Between {
    fn rule(&self) -> String {
        match (*self.0.start(), *self.0.end()) {
            (i64::MIN, i64::MAX) => "a whole number".to_owned(),
            (least, i64::MAX) => format!("a whole number, at least {least}"),
            (least, most) => format!("a whole number from {least} to {most}"),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => number.to_i64().is_some_and(|number| self.0.contains(&number)),
            _ => true,
        }
    }
}

#[derive(Debug)]
struct Positive;

impl Validator for Positive {
    fn rule(&self) -> String {
        "a number above zero".to_owned()
    }

    fn accepts(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => *number > Number::from(0_i64),
            _ => true,
        }
    }
}

struct Text {
    rule: &'static str,
    accepts: fn(&str) -> bool,
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Text").field(&self.rule).finish()
    }
}

impl Validator for Text {
    fn rule(&self) -> String {
        self.rule.to_owned()
    }

    fn accepts(&self, value: &Value) -> bool {
        value.as_str().is_none_or(|text| (self.accepts)(text))
    }
}
