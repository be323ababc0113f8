//! Rules for configured values. An unknown value satisfies every rule, because it may become valid.

use std::{borrow::Cow, fmt, ops::RangeInclusive, sync::Arc};

use regex::Regex;

use crate::framework::{
    diagnostics::{Diagnostics, Path, PathStep},
    timeouts::parse_duration,
    value::{Number, Value},
};

/// A rule for the known, non-null value of an attribute, or for each element of a collection of them.
#[derive(Clone)]
pub struct Validator {
    rule: Cow<'static, str>,
    accepts: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
    /// Whether the rule is for the collection, and not for its elements.
    pub(in crate::framework) is_of_collection: bool,
}

impl Validator {
    /// The number must be whole and lie in this range; an end of `i64::MAX` means no upper limit.
    pub fn between(range: RangeInclusive<i64>) -> Self {
        let rule = match (*range.start(), *range.end()) {
            (i64::MIN, i64::MAX) => "a whole number".to_owned(),
            (least, i64::MAX) => format!("a whole number, at least {least}"),
            (least, most) => format!("a whole number from {least} to {most}"),
        };
        Self::new(rule, move |value| match value {
            Value::Number(number) => number.to_i64().is_some_and(|number| range.contains(&number)),
            _ => true,
        })
    }

    /// The text must be a positive duration that `parse_duration` accepts.
    pub fn duration() -> Self {
        Self::text(Self::DURATION, |value| parse_duration(value).is_some())
    }

    /// The rule of [`Self::duration`].
    pub const DURATION: &'static str = "a duration such as \"90s\", \"30m\" or \"1h30m\", above zero";

    /// The text must be one of these words.
    pub fn one_of(words: &'static [&'static str]) -> Self {
        let quoted = words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
        Self::text(format!("one of {quoted}"), |text| words.contains(&text))
    }

    /// The number must be above zero.
    pub fn positive() -> Self {
        Self::new("a number above zero", |value| match value {
            Value::Number(number) => *number > Number::from(0_i64),
            _ => true,
        })
    }

    /// The text must be a regular expression.
    pub fn regular_expression() -> Self {
        Self::text("a regular expression", |pattern| Regex::new(pattern).is_ok())
    }

    /// The list or map must have this many elements; an end of `usize::MAX` means no upper limit.
    pub fn size(range: RangeInclusive<usize>) -> Self {
        let rule = match (*range.start(), *range.end()) {
            (least, usize::MAX) => format!("a collection of at least {least} elements"),
            (least, most) => format!("a collection of {least} to {most} elements"),
        };
        let sized = Self::new(rule, move |value| match value {
            Value::List(elements) => range.contains(&elements.len()),
            Value::Map(elements) => range.contains(&elements.len()),
            _ => true,
        });
        Self { is_of_collection: true, ..sized }
    }

    /// The text must satisfy a predicate; `rule` completes "must be …".
    pub fn text(rule: impl Into<Cow<'static, str>>, accepts: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::new(rule, move |value| match value {
            Value::String(text) => accepts(text),
            _ => true,
        })
    }

    /// The number must be whole.
    pub fn whole() -> Self {
        Self::between(i64::MIN..=i64::MAX)
    }

    fn new(rule: impl Into<Cow<'static, str>>, accepts: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self { rule: rule.into(), accepts: Arc::new(accepts), is_of_collection: false }
    }

    /// The rule as a phrase for the docs and the error, to follow "must be".
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The right form of a wrong value, as a sentence to follow the error; empty if it is not known. People write a
    /// duration in days, which has no single length.
    pub(in crate::framework) fn advice(&self, value: &Value) -> String {
        let days =
            value.as_str().filter(|_| self.rule == Self::DURATION).and_then(|text| text.trim().strip_suffix('d'));
        let hours = days.and_then(|days| days.trim().parse::<u32>().ok()?.checked_mul(24));
        hours.map(|hours| format!(" Write \"{hours}h\".")).unwrap_or_default()
    }

    /// Whether the value satisfies the rule.
    pub fn accepts(&self, value: &Value) -> bool {
        (self.accepts)(value)
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Validator").field(&self.rule).finish()
    }
}

/// A rule about which of several arguments are set.
#[derive(Clone, Debug)]
pub struct Selection {
    paths: Vec<Path>,
    needs_one: bool,
    permits_several: bool,
}

impl Selection {
    /// One of the arguments must be set.
    pub fn at_least_one_of(paths: impl Into<Vec<Path>>) -> Self {
        Self { paths: paths.into(), needs_one: true, permits_several: true }
    }

    /// At most one of the arguments may be set.
    pub fn conflicts_with(path: Path, other: Path) -> Self {
        Self { paths: vec![path, other], needs_one: false, permits_several: false }
    }

    /// One of the arguments must be set, and no other one.
    pub fn exactly_one_of(paths: impl Into<Vec<Path>>) -> Self {
        Self { paths: paths.into(), needs_one: true, permits_several: false }
    }

    /// Checks a configuration. The error is at the first argument.
    pub fn check(&self, config: &Value, diagnostics: &mut Diagnostics) {
        let values: Vec<&Value> = self.paths.iter().map(|path| at(config, path)).collect();
        let set = values.iter().filter(|value| !value.is_null()).count();
        let is_open = values.iter().any(|value| value.is_unknown());
        let Some((last, others)) = self.paths.split_last() else { return };
        let path = others.first().unwrap_or(last);
        let others = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let list = if others.is_empty() { last.to_string() } else { format!("{others} or {last}") };
        if set == 0 && self.needs_one {
            diagnostics.error_at(path.clone(), "Missing required argument", format!("Set {list}."));
        } else if set > 1 && !self.permits_several && !is_open {
            diagnostics.error_at(path.clone(), "Conflicting arguments", format!("Set only one of {list}."));
        }
    }
}

/// The value at a path; unknown inside of what is unknown.
fn at<'a>(config: &'a Value, path: &Path) -> &'a Value {
    path.steps().iter().fold(config, |value, step| match (value, step) {
        (Value::Unknown, _) => &Value::Unknown,
        (value, PathStep::Attribute(name)) => value.attribute(name),
        (Value::List(elements), PathStep::Index(index)) => {
            usize::try_from(*index).ok().and_then(|index| elements.get(index)).unwrap_or(&Value::Null)
        }
        (Value::Map(elements), PathStep::Key(key)) => elements.get(key.as_str()).unwrap_or(&Value::Null),
        _ => &Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_rule_for_the_collection() {
        let rule = Validator::size(1..=2);
        assert_eq!(rule.rule(), "a collection of 1 to 2 elements");
        let list = |length| Value::List(vec![Value::Unknown; length]);
        assert_eq!([0, 1, 2, 3].map(|length| rule.accepts(&list(length))), [false, true, true, false]);
        assert_eq!(Validator::size(3..=usize::MAX).rule(), "a collection of at least 3 elements");
    }

    #[test]
    fn a_duration_in_days_is_answered_in_hours() {
        let rule = Validator::duration();
        let advice = |text: &str| (rule.accepts(&text.into()), rule.advice(&text.into()));
        assert_eq!(advice("7d"), (false, " Write \"168h\".".to_owned()));
        for text in ["soon", "1d2h", "-1d", "d"] {
            assert_eq!(advice(text), (false, String::new()), "{text}");
        }
        assert_eq!(Validator::whole().advice(&"7d".into()), "");
    }

    #[test]
    fn arguments_are_selected_by_what_is_set() {
        let config = |a: Value, b: Value| Value::object([("a", a), ("b", Value::object([("c", b)]))]);
        let paths = || [Path::to("a"), Path::to("b").attribute("c")];
        let said = |selection: &Selection, a: &Value, b: &Value| {
            let mut diagnostics = Diagnostics::new();
            selection.check(&config(a.clone(), b.clone()), &mut diagnostics);
            diagnostics.into_iter().next().map(|said| said.detail)
        };
        let (null, set, unknown) = (Value::Null, Value::from("x"), Value::Unknown);
        let (missing, several) = (Some("Set a or b.c.".to_owned()), Some("Set only one of a or b.c.".to_owned()));
        let [first, second] = paths();
        for (selection, of_none, of_both) in [
            (Selection::at_least_one_of(paths()), &missing, &None),
            (Selection::conflicts_with(first, second), &None, &several),
            (Selection::exactly_one_of(paths()), &missing, &several),
        ] {
            assert_eq!(said(&selection, &null, &null), *of_none);
            assert_eq!(said(&selection, &set, &set), *of_both);
            for (a, b) in [(&set, &null), (&null, &set), (&unknown, &null), (&unknown, &set)] {
                assert_eq!(said(&selection, a, b), None);
            }
        }
    }
}
