//! Policy files (TOML): limits for all or for some plans, exceptions with an end date, and patterns for addresses.

use std::str::FromStr;

use jiff::civil::Date;
use toml::{Table, Value};

use super::{
    findings::Rule,
    gate::{Deny, Exception, Limits, Policy},
    money::Money,
};
use crate::provider::words::nearest;

/// The supported version.
const VERSION: i64 = 1;

const DENY: [Deny; 4] = [Deny::DestroyData, Deny::Prepaid, Deny::Unpriced, Deny::SecretsInState];

/// The rules about an object, from which exceptions are possible.
const EXCEPTABLE: [Rule; 5] =
    [Rule::DestroyData, Rule::MaxMonthlyIncrease, Rule::Prepaid, Rule::SecretsInState, Rule::Unpriced];

/// The reason why a file is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAPolicy {
    /// A key is missing.
    #[error("{place} lacks {key:?}")]
    Lacks {
        /// The table.
        place: String,
        /// The key.
        key: &'static str,
    },
    /// It is not TOML.
    #[error("it is not TOML: {0}")]
    Syntax(String),
    /// A key is unknown. Usual cause: its name is misspelled.
    #[error("{place} has the unknown key \
             {key:?}{}", nearest.as_ref().map(|known| format!(": did you mean {known:?}?")).unwrap_or_default())]
    Unknown {
        /// The table.
        place: String,
        /// The key.
        key: String,
        /// The most similar known key.
        nearest: Option<String>,
    },
    /// A value is invalid.
    #[error("{place}: {key} {why}")]
    Value {
        /// The table.
        place: String,
        /// The key.
        key: &'static str,
        /// The fault.
        why: String,
    },
    /// It is for another version of this program.
    #[error("its version is {0}, and this program reads version 1")]
    Version(i64),
}

impl Policy {
    /// Reads a policy, with its exceptions judged on the day `today`.
    ///
    /// # Errors
    ///
    /// If it is not a policy, or has unknown keys or values.
    pub fn read(text: &str, today: Date) -> Result<Self, NotAPolicy> {
        let root: Table =
            toml::from_str(text).map_err(|error| NotAPolicy::Syntax(error.to_string().trim_end().to_owned()))?;
        // The version is checked first, because a newer one may have other keys.
        let file = Section { place: "the policy".to_owned(), table: &root };
        let knows = || file.knows(&["version", "limits", "rule", "exception"]);
        match root.get("version") {
            Some(Value::Integer(VERSION)) => knows()?,
            Some(Value::Integer(other)) => return Err(NotAPolicy::Version(*other)),
            Some(_) => return Err(file.wrong("version", "must be 1".to_owned())),
            // It may be misspelled.
            None => knows().and_then(|()| file.required("version").map(drop))?,
        }
        let mut limits = Vec::new();
        if let Some(table) = root.get("limits") {
            let section = Section { place: "[limits]".to_owned(), table: table_of(table, "limits")? };
            section.knows(&["max_monthly_increase", "deny"])?;
            limits.push(section.limits(None)?);
        }
        for section in file.sections("rule")? {
            section.knows(&["match", "max_monthly_increase", "deny"])?;
            limits.push(section.limits(Some(section.patterns()?))?);
        }
        let exceptions = file.sections("exception")?;
        let exceptions = exceptions.iter().map(|section| section.exception(today)).collect::<Result<_, _>>()?;
        Ok(Self { limits, exceptions, not_read: Vec::new() })
    }
}

/// A table of the file.
struct Section<'a> {
    /// Its name in errors.
    place: String,
    table: &'a Table,
}

impl<'a> Section<'a> {
    /// The tables of a list of tables.
    fn sections(&self, key: &'static str) -> Result<Vec<Self>, NotAPolicy> {
        let Some(list) = self.table.get(key) else { return Ok(Vec::new()) };
        let list = list.as_array().ok_or_else(|| self.wrong(key, format!("must be written as [[{key}]]")))?;
        let section = |(index, table): (usize, &'a Value)| {
            Ok(Self { place: format!("[[{key}]] {}", index + 1), table: table_of(table, key)? })
        };
        list.iter().enumerate().map(section).collect()
    }

    fn knows(&self, known: &[&str]) -> Result<(), NotAPolicy> {
        match self.table.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(NotAPolicy::Unknown {
                place: self.place.clone(),
                key: key.clone(),
                nearest: nearest(key, known.iter().copied()).map(str::to_owned),
            }),
        }
    }

    fn limits(&self, matching: Option<Vec<Pattern>>) -> Result<Limits, NotAPolicy> {
        let mut deny = Vec::new();
        for word in self.words("deny")?.unwrap_or_default() {
            let found = DENY.into_iter().find(|deny| deny.rule().as_str() == word);
            let known = DENY.map(|deny| deny.rule().as_str());
            deny.push(found.ok_or_else(|| self.unknown_word("deny", word, &known))?);
        }
        let key = "max_monthly_increase";
        let max_monthly_increase = self.table.get(key).map(|value| self.money(key, value)).transpose()?;
        Ok(Limits { matching, max_monthly_increase, deny })
    }

    fn money(&self, key: &'static str, value: &Value) -> Result<Money, NotAPolicy> {
        let number = match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => return Err(self.wrong(key, "must be a number".to_owned())),
        };
        number.parse().map_err(|why: String| self.wrong(key, format!("is {why}")))
    }

    fn exception(&self, today: Date) -> Result<Exception, NotAPolicy> {
        self.knows(&["match", "rule", "owner", "reason", "expires"])?;
        let rules = match self.words("rule")? {
            None => None,
            Some(words) => Some(words.into_iter().map(|word| self.rule(word)).collect::<Result<_, _>>()?),
        };
        let expires = match self.required("expires")? {
            Value::Datetime(expires) => expires.date.filter(|_| expires.time.is_none()),
            _ => None,
        };
        let day = expires.and_then(|date| {
            Date::new(date.year.try_into().ok()?, date.month.try_into().ok()?, date.day.try_into().ok()?).ok()
        });
        let day =
            day.ok_or_else(|| self.wrong("expires", "must be a date such as 2026-12-31, without quotes".to_owned()))?;
        Ok(Exception {
            matching: self.patterns()?,
            rules,
            owner: self.text("owner")?,
            reason: self.text("reason")?,
            expires: day.to_string(),
            is_expired: day < today,
        })
    }

    fn rule(&self, word: &str) -> Result<Rule, NotAPolicy> {
        let found = EXCEPTABLE.into_iter().find(|rule| rule.as_str() == word);
        found.ok_or_else(|| self.unknown_word("rule", word, &EXCEPTABLE.map(Rule::as_str)))
    }

    fn patterns(&self) -> Result<Vec<Pattern>, NotAPolicy> {
        let words =
            self.words("match")?.ok_or_else(|| NotAPolicy::Lacks { place: self.place.clone(), key: "match" })?;
        if words.is_empty() {
            return Err(self.wrong("match", "is empty".to_owned()));
        }
        words.into_iter().map(|word| word.parse().map_err(|why| self.wrong("match", why))).collect()
    }

    fn words(&self, key: &'static str) -> Result<Option<Vec<&'a str>>, NotAPolicy> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let words: Option<Vec<&str>> = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        words.map(Some).ok_or_else(|| self.wrong(key, "must be a list of strings".to_owned()))
    }

    fn text(&self, key: &'static str) -> Result<String, NotAPolicy> {
        let text = self.required(key)?.as_str().filter(|text| !text.trim().is_empty());
        text.map(str::to_owned).ok_or_else(|| self.wrong(key, "must be a text".to_owned()))
    }

    fn required(&self, key: &'static str) -> Result<&'a Value, NotAPolicy> {
        self.table.get(key).ok_or_else(|| NotAPolicy::Lacks { place: self.place.clone(), key })
    }

    fn wrong(&self, key: &'static str, why: String) -> NotAPolicy {
        NotAPolicy::Value { place: self.place.clone(), key, why }
    }

    fn unknown_word(&self, key: &'static str, word: &str, known: &[&str]) -> NotAPolicy {
        let guess =
            nearest(word, known.iter().copied()).map(|known| format!(" (did you mean {known:?}?)")).unwrap_or_default();
        self.wrong(key, format!("does not accept {word:?}{guess}; it accepts {}", known.join(", ")))
    }
}

fn table_of<'a>(value: &'a Value, key: &'static str) -> Result<&'a Table, NotAPolicy> {
    let wrong = || NotAPolicy::Value { place: "the policy".to_owned(), key, why: "must be a table".to_owned() };
    value.as_table().ok_or_else(wrong)
}

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
    /// Whether the pattern matches an address.
    #[must_use]
    pub fn matches(&self, address: &str) -> bool {
        let steps = steps(plain(address));
        matches(&self.steps, &steps)
    }

    /// The pattern as written.
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
                    Err(format!("{text:?}: * must be a whole step, not a part of one"))
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
    // The steps at which the parts so far may end. Each part is compared with each step once, so matching is never
    // exponential.
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

/// An address without the suffix of a deposed object in reports.
pub(super) fn plain(address: &str) -> &str {
    match address.rfind(" (deposed ") {
        Some(end) if address.ends_with(')') => address.get(..end).unwrap_or(address),
        _ => address,
    }
}

/// The names of an address, without keys.
pub fn names(address: &str) -> Vec<&str> {
    steps(plain(address)).into_iter().map(|step| named(step).0).collect()
}

/// The steps of an address: names with their keys, which may have any characters.
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

/// The module of an object, with its keys; "" for the root module.
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
    use jiff::civil::date;

    use super::*;

    fn read(text: &str) -> Result<Policy, String> {
        Policy::read(text, date(2026, 11, 22)).map_err(|error| error.to_string())
    }

    const WHOLE: &str = r#"
    version = 1
    [limits]
    max_monthly_increase = 2000
    deny = ["destroy-data"]
    [[rule]]
    match = ["module.prod.**"]
    max_monthly_increase = 0.5
    deny = ["prepaid"]
    [[exception]]
    match = ["damodel_instance.db"]
    rule = ["destroy-data"]
    owner = "storage"
    reason = "moved on Friday"
    expires = 2026-11-22
    [[exception]]
    match = ["**"]
    owner = "x"
    reason = "y"
    expires = 2026-11-21
    "#;

    #[test]
    fn everything_is_read() {
        let policy = read(WHOLE).unwrap();
        let [limits, rule] = policy.limits.as_slice() else { panic!("{policy:?}") };
        assert_eq!((&limits.matching, limits.deny.as_slice()), (&None, &[Deny::DestroyData][..]));
        assert_eq!(rule.max_monthly_increase.as_ref().unwrap().with_digits(1), "0.5");
        // The exception is valid on the day itself.
        assert_eq!(policy.exceptions.iter().map(|one| one.is_expired).collect::<Vec<_>>(), [false, true]);
        assert_eq!(
            (policy.exceptions[0].rules.as_deref(), &policy.exceptions[1].rules),
            (Some(&[Rule::DestroyData][..]), &None)
        );
    }

    #[test]
    fn what_is_unknown_is_told_with_what_is_most_like_it() {
        let exception =
            |line: &str| format!("version = 1\n[[exception]]\nmatch = [\"a\"]\nowner = \"o\"\nreason = \"r\"\n{line}");
        for (text, expected) in [
            ("", "the policy lacks \"version\""),
            ("verson = 1", "the policy has the unknown key \"verson\": did you mean \"version\"?"),
            (
                &exception("expire = 2026-12-31"),
                "[[exception]] 1 has the unknown key \"expire\": did you mean \"expires\"?",
            ),
            ("version = 2\nlimit = 1", "its version is 2, and"),
            ("version = 1\nlimit = {}", "the policy has the unknown key \"limit\": did you mean \"limits\"?"),
            ("version = 1\nzzz = 1", "the policy has the unknown key \"zzz\""),
            (
                "version = 1\n[limits]\nmax_montly_increase = 1",
                "[limits] has the unknown key \"max_montly_increase\": did you mean \"max_monthly_increase\"?",
            ),
            (
                "version = 1\n[limits]\ndeny = [\"destroy_data\"]",
                "[limits]: deny does not accept \"destroy_data\" (did you mean \"destroy-data\"?)",
            ),
            ("version = 1\n[limits]\nmax_monthly_increase = -1", "[limits]: max_monthly_increase is below 0"),
            ("version = 1\n[limits]\nmax_monthly_increase = nan", "[limits]: max_monthly_increase is not a number"),
            ("version = 1\n[limits]\nmax_monthly_increase = \"1\"", "[limits]: max_monthly_increase must be a number"),
            ("version = 1\n[[rule]]\ndeny = []", "[[rule]] 1 lacks \"match\""),
            ("version = 1\n[[rule]]\nmatch = []", "[[rule]] 1: match is empty"),
            ("version = 1\n[[rule]]\nmatch = [\"a-*\"]", "[[rule]] 1: match \"a-*\": * must be a whole step"),
            ("version = 1\n[rule]\nmatch = [\"a\"]", "the policy: rule must be written as [[rule]]"),
            (&exception(""), "[[exception]] 1 lacks \"expires\""),
            (&exception("expires = \"2026-12-31\""), "[[exception]] 1: expires must be a date such as 2026-12-31"),
            (&exception("expires = 2026-12-31\nrule = [\"plan\"]"), "[[exception]] 1: rule does not accept \"plan\""),
            ("version = ", "it is not TOML: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

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
