//! Addresses of objects, and patterns for them.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// The address of an object, an output, an action or a check, as Terraform and OpenTofu write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Address {
    #[serde(rename = "address")]
    text: String,
    /// The key of an object that a replacement left behind.
    deposed: Option<String>,
}

/// One step of an address: a name, and a key in brackets.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    name: &'a str,
    key: Option<&'a str>,
}

impl Address {
    /// The address of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), deposed: None }
    }

    /// The address of an object that a replacement left behind, with its key.
    pub(super) fn deposed(text: String, key: Option<String>) -> Self {
        Self { text, deposed: key }
    }

    /// The address without the key of a deposed object.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key of a deposed object.
    #[must_use]
    pub fn deposed_key(&self) -> Option<&str> {
        self.deposed.as_deref()
    }

    /// Writes the address without the key of a deposed object.
    #[expect(clippy::ref_option, reason = "serde passes the field")]
    pub(super) fn serialize_text<S: Serializer>(address: &Option<Self>, serializer: S) -> Result<S::Ok, S::Error> {
        address.as_ref().map(Self::as_str).serialize(serializer)
    }

    /// The names of its steps, without keys.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        steps(&self.text).into_iter().map(|step| step.name).collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)?;
        self.deposed.iter().try_for_each(|key| write!(formatter, " (deposed {key})"))
    }
}

/// The steps of an address. A key may have any characters.
fn steps(address: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let (mut begin, mut key_begins, mut depth, mut is_quoted, mut is_escaped) = (0, None, 0_usize, false, false);
    let step = |begin: usize, key: Option<usize>, end: usize| Step {
        name: address.get(begin..key.unwrap_or(end)).unwrap_or_default(),
        key: key.and_then(|key| address.get(key..end)),
    };
    for (place, c) in address.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '[' if !is_quoted => {
                key_begins = key_begins.or(Some(place));
                depth += 1;
            }
            ']' if !is_quoted => depth = depth.saturating_sub(1),
            '.' if !is_quoted && depth == 0 => {
                steps.push(step(begin, key_begins.take(), place));
                begin = place + 1;
            }
            _ => {}
        }
    }
    steps.push(step(begin, key_begins, address.len()));
    steps
}

/// What a step of a pattern without a key matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyless {
    /// Any key and none, as `-target` does.
    AnyKey,
    /// No key.
    NoKey,
}

/// A pattern for addresses: `**` is any number of steps with any keys, `*` any text of a name, `[*]` any key.
/// Everything else is literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    AnySteps,
    Step { name: String, key: Option<String> },
}

impl Pattern {
    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches objects of any name: its last step is `*` or `**`.
    pub(super) fn is_broad(&self) -> bool {
        match self.parts.last() {
            Some(Part::Step { name, .. }) => name == "*",
            Some(Part::AnySteps) | None => true,
        }
    }

    /// Whether the pattern matches an address.
    pub(super) fn matches(&self, address: &Address, keyless: Keyless) -> bool {
        let steps = steps(&address.text);
        // The number of steps that the parts so far may match. Each part is compared with each step once.
        let mut ends = vec![false; steps.len() + 1];
        ends.first_mut().into_iter().for_each(|none| *none = true);
        for part in &self.parts {
            let mut is_open = false;
            let mut before = false;
            for (index, end) in ends.iter_mut().enumerate() {
                let ended = *end;
                is_open |= ended;
                let step = index.checked_sub(1).and_then(|last| steps.get(last));
                *end = match part {
                    Part::AnySteps => is_open,
                    Part::Step { name, key } => {
                        before
                            && step
                                .is_some_and(|step| is_name(name, step.name) && is_key(key.as_deref(), step, keyless))
                    }
                };
                before = ended;
            }
        }
        ends.last() == Some(&true)
    }
}

fn is_key(pattern: Option<&str>, step: &Step<'_>, keyless: Keyless) -> bool {
    match (pattern, step.key) {
        (None, key) => keyless == Keyless::AnyKey || key.is_none(),
        (Some("[*]"), key) => key.is_some(),
        (Some(pattern), key) => key == Some(pattern),
    }
}

/// Whether a name has this form, in which `*` is any text.
fn is_name(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(end)
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = steps(text).into_iter().map(|step| match (step.name, step.key) {
            ("**", None) => Ok(Part::AnySteps),
            ("", _) => Err(format!("{text:?} has an empty step")),
            (name, _) if name.contains("**") => Err(format!("{text:?}: ** must be a whole step")),
            (_, Some(key)) if !is_written_key(key) => {
                Err(format!("{text:?}: a key must be a number, a text in quotes or *, as in [0], [\"a\"] and [*]"))
            }
            (name, key) => Ok(Part::Step { name: name.to_owned(), key: key.map(str::to_owned) }),
        });
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), parts })
    }
}

/// Whether this is one key in brackets.
fn is_written_key(key: &str) -> bool {
    let inner = key.strip_prefix('[').and_then(|key| key.strip_suffix(']')).unwrap_or_default();
    inner == "*" || serde_json::from_str::<u64>(inner).is_ok() || serde_json::from_str::<String>(inner).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_steps_names_or_keys() {
        // The pattern, the address, and whether it matches in a rule and in an exception.
        for (pattern, address, rule, exception) in [
            ("damodel_instance.db", "damodel_instance.db", true, true),
            ("damodel_instance.db", "damodel_instance.db[0]", true, false),
            ("damodel_instance.db[1]", "damodel_instance.db[0]", false, false),
            ("damodel_instance.db[*]", "damodel_instance.db[0]", true, true),
            ("damodel_instance.db[*]", "damodel_instance.db[\"a\"]", true, true),
            ("damodel_instance.db[*]", "damodel_instance.db", false, false),
            ("module.prod.**", "module.prod", true, true),
            ("module.prod.**", "module.prod[\"eu\"].module.x.damodel_instance.db", true, false),
            ("module.prod[*].**", "module.prod[\"eu\"].module.x[1].damodel_instance.db[0]", true, true),
            ("module.prod.**", "module.production.damodel_instance.db", false, false),
            ("module.prod*.**", "module.production.damodel_instance.db", true, true),
            ("module.prod.**", "damodel_instance.prod", false, false),
            ("**.damodel_instance.db", "damodel_instance.db", true, true),
            ("**.damodel_instance.*", "module.a[0].module.b.damodel_instance.x[\"*\"]", true, false),
            ("module.*.damodel_instance.db", "module.a.damodel_instance.db", true, true),
            ("module.*.damodel_instance.db", "module.a.module.b.damodel_instance.db", false, false),
            ("module.x[\"a.*\"].damodel_instance.db", "module.x[\"a.*\"].damodel_instance.db", true, true),
            ("module.x[\"a.*\"].damodel_instance.db", "module.x[\"a.b\"].damodel_instance.db", false, false),
            ("damodel_*.d?", "damodel_instance.db", false, false),
            ("*_instance.a*b*c", "damodel_instance.a-b-b-c", true, true),
            ("*_instance.a*b*c", "damodel_instance.a-c", false, false),
            ("damodel_instance.ab*ba", "damodel_instance.aba", false, false),
            ("*", "damodel_instance.db", false, false),
            ("**", "output.password", true, true),
            ("output.*", "output.password", true, true),
        ] {
            let (parsed, address) = (pattern.parse::<Pattern>().unwrap(), Address::new(address));
            let found = [Keyless::AnyKey, Keyless::NoKey].map(|keyless| parsed.matches(&address, keyless));
            assert_eq!(found, [rule, exception], "{pattern} {address}");
        }
        let deposed = Address::deposed("damodel_instance.db[0]".to_owned(), Some("1a2b".to_owned()));
        assert!("damodel_instance.db[0]".parse::<Pattern>().unwrap().matches(&deposed, Keyless::NoKey));
        for wrong in ["a..b", "", "a***.b", "a.b[x]", "a.b[0", "a.b[0]c", "a.b[\"x]"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
        assert!(["a.*", "a.**", "*"].iter().all(|text| text.parse::<Pattern>().unwrap().is_broad()));
        assert!(["a.b*", "a.b[*]"].iter().all(|text| !text.parse::<Pattern>().unwrap().is_broad()));
    }

    #[test]
    fn many_stars_take_no_longer() {
        let pattern: Pattern = format!("{}nothing", "**.".repeat(200)).parse().unwrap();
        assert!(!pattern.matches(&Address::new("module.a.".repeat(500)), Keyless::AnyKey));
        let pattern: Pattern = format!("{}b", "a*".repeat(5_000)).parse().unwrap();
        assert!(!pattern.matches(&Address::new("a".repeat(20_000)), Keyless::AnyKey));
    }
}
