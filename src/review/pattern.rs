//! Addresses as steps, and the patterns of a policy that match them.

use std::str::FromStr;

/// A pattern for addresses: `**` is any number of steps, `*` one step, everything else literal. A step without a key
/// matches every key, as it does in `-target`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    steps: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Any,
    Literal { name: String, key: Option<String> },
    One,
}

impl Pattern {
    /// Whether an address is among those that are meant.
    #[must_use]
    pub fn matches(&self, address: &str) -> bool {
        let steps = steps(plain(address));
        matches(&self.steps, &steps)
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |step: &str| match step {
            "**" => Ok(Part::Any),
            "*" => Ok(Part::One),
            step => {
                let (name, key) = named(step);
                if name.is_empty() {
                    Err(format!("{text:?} has an empty step"))
                } else if name.contains('*') {
                    Err(format!("{text:?}: * stands for a whole step, and cannot be a part of one"))
                } else {
                    Ok(Part::Literal { name: name.to_owned(), key: key.map(str::to_owned) })
                }
            }
        };
        let steps = steps(text).into_iter().map(part).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), steps })
    }
}

fn matches(parts: &[Part], steps: &[&str]) -> bool {
    // The steps that the parts so far may have ended before; no pattern makes it look twice at the same.
    let mut ends = vec![false; steps.len() + 1];
    if let Some(first) = ends.first_mut() {
        *first = true;
    }
    for part in parts {
        let mut next = vec![false; steps.len() + 1];
        let mut is_open = false;
        for (index, target) in next.iter_mut().enumerate() {
            let before = index.checked_sub(1);
            let ended = |index: usize| ends.get(index).copied().unwrap_or(false);
            is_open |= ended(index);
            *target = match part {
                Part::Any => is_open,
                Part::Literal { .. } | Part::One => {
                    before.is_some_and(|before| ended(before) && steps.get(before).is_some_and(|step| part.is(step)))
                }
            };
        }
        ends = next;
    }
    ends.last().copied().unwrap_or(false)
}

impl Part {
    fn is(&self, step: &str) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Literal { name, key } => {
                let (its_name, its_key) = named(step);
                its_name == name && key.as_deref().is_none_or(|key| its_key == Some(key))
            }
        }
    }
}

/// The name and the key of a step: `db["a.b"]`.
fn named(step: &str) -> (&str, Option<&str>) {
    step.find('[').map_or((step, None), |begin| (step.get(..begin).unwrap_or_default(), step.get(begin..)))
}

/// An address without what a report says of a deposed object.
fn plain(address: &str) -> &str {
    match address.rfind(" (deposed ") {
        Some(end) if address.ends_with(')') => address.get(..end).unwrap_or(address),
        _ => address,
    }
}

/// The names of an address, without keys.
pub fn names(address: &str) -> Vec<&str> {
    steps(plain(address)).into_iter().map(|step| named(step).0).collect()
}

/// The steps of an address: names with their keys, whatever stands in a key.
fn steps(address: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    let (mut begin, mut depth, mut is_quoted, mut is_escaped) = (0, 0_usize, false, false);
    for (place, c) in address.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '[' if !is_quoted => depth += 1,
            ']' if !is_quoted => depth = depth.saturating_sub(1),
            '.' if !is_quoted && depth == 0 => {
                steps.extend(address.get(begin..place));
                begin = place + 1;
            }
            _ => {}
        }
    }
    steps.extend(address.get(begin..));
    steps
}

/// The module that an object is in, with its keys; "" for the root module.
pub(super) fn module_of(address: &str) -> &str {
    let mut end: usize = 0;
    let mut steps = steps(address).into_iter();
    while steps.next() == Some("module") {
        let Some(name) = steps.next() else { break };
        end += usize::from(end > 0) + "module.".len() + name.len();
    }
    address.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_steps_and_keys_are_literal() {
        for (pattern, address, expected) in [
            ("damodel_instance.db", "damodel_instance.db", true),
            ("damodel_instance.db", "damodel_instance.db[0]", true),
            ("damodel_instance.db[1]", "damodel_instance.db[0]", false),
            ("damodel_instance.db[0]", "damodel_instance.db[0] (deposed 1a2b3c4d)", true),
            ("module.prod.**", "module.prod[\"eu\"].module.x.damodel_instance.db", true),
            ("module.prod.**", "module.production.damodel_instance.db", false),
            ("module.prod.**", "damodel_instance.prod", false),
            ("**.damodel_instance.db", "damodel_instance.db", true),
            ("**.damodel_instance.*", "module.a.module.b.damodel_instance.x[\"*\"]", true),
            ("module.*.damodel_instance.db", "module.a.damodel_instance.db", true),
            ("module.*.damodel_instance.db", "module.a.module.b.damodel_instance.db", false),
            ("module.x[\"a.*\"].damodel_instance.db", "module.x[\"a.*\"].damodel_instance.db", true),
            ("module.x[\"a.*\"].damodel_instance.db", "module.x[\"a.b\"].damodel_instance.db", false),
            ("**", "output.password", true),
            ("output.*", "output.password", true),
        ] {
            assert_eq!(pattern.parse::<Pattern>().unwrap().matches(address), expected, "{pattern} {address}");
        }
        assert!("module.prod-*.**".parse::<Pattern>().is_err() && "a..b".parse::<Pattern>().is_err());
    }

    #[test]
    fn many_stars_take_no_longer() {
        let pattern: Pattern = format!("{}nothing", "**.".repeat(200)).parse().unwrap();
        assert!(!pattern.matches(&"module.a.".repeat(500)));
    }

    #[test]
    fn a_module_is_the_steps_before_the_object() {
        for (address, module) in [
            ("damodel_instance.a", ""),
            ("module.a.damodel_instance.b", "module.a"),
            ("module.a[\"x.y\"].module.b[0].damodel_instance.c[1]", "module.a[\"x.y\"].module.b[0]"),
            ("data.damodel_instance.module", ""),
        ] {
            assert_eq!(module_of(address), module);
        }
    }
}
