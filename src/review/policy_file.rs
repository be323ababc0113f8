//! A policy as a file (TOML): limits for all or for a part of the plans, and exceptions that end.

use jiff::civil::Date;
use toml::{Table, Value};

use super::{
    findings::Rule,
    gate::{Deny, Exception, Limits, Policy},
    money::Money,
    pattern::Pattern,
};

/// The version that is read.
const VERSION: i64 = 1;

/// From this likeness on a word is taken for a slip of another one (0 to 1).
const LIKE: f64 = 0.7;

const DENY: [(&str, Deny); 3] =
    [("destroy-data", Deny::DestroyData), ("prepaid", Deny::Prepaid), ("secrets-in-state", Deny::SecretsInState)];

/// The rules that blame an object, which an exception may let through.
const EXCEPTABLE: [Rule; 4] = [Rule::DestroyData, Rule::MaxMonthlyIncrease, Rule::Prepaid, Rule::SecretsInState];

/// Why something is not a policy.
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
    /// It is no TOML.
    #[error("it is not TOML: {0}")]
    Syntax(String),
    /// A key that no policy has. Usual cause: a slip in its name.
    #[error("{place} has the unknown key \
             {key:?}{}", nearest.as_ref().map(|known| format!(": did you mean {known:?}?")).unwrap_or_default())]
    Unknown {
        /// The table.
        place: String,
        /// The key.
        key: String,
        /// The known one that is most like it.
        nearest: Option<String>,
    },
    /// A value is of no use.
    #[error("{place}: {key} {why}")]
    Value {
        /// The table.
        place: String,
        /// The key.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
    /// It is for another version of this program.
    #[error("its version is {0}, and this program reads version 1")]
    Version(i64),
}

impl Policy {
    /// Reads a policy, as it holds on a day.
    ///
    /// # Errors
    ///
    /// When it is none, or names what this program does not know.
    pub fn read(text: &str, today: Date) -> Result<Self, NotAPolicy> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root: Table =
            toml::from_str(text).map_err(|error| NotAPolicy::Syntax(error.to_string().trim_end().to_owned()))?;
        // A newer version may have other keys: it is told first.
        let file = Section { place: "the policy".to_owned(), table: &root };
        match file.required("version")? {
            Value::Integer(VERSION) => {}
            Value::Integer(other) => return Err(NotAPolicy::Version(*other)),
            _ => return Err(file.wrong("version", "is to be 1".to_owned())),
        }
        file.knows(&["version", "limits", "rule", "exception"])?;
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
        Ok(Self { limits, exceptions })
    }
}

/// A table of the file.
struct Section<'a> {
    /// What it is called.
    place: String,
    table: &'a Table,
}

impl<'a> Section<'a> {
    /// The tables of a list of such.
    fn sections(&self, key: &'static str) -> Result<Vec<Self>, NotAPolicy> {
        let Some(list) = self.table.get(key) else { return Ok(Vec::new()) };
        let list = list.as_array().ok_or_else(|| self.wrong(key, format!("is to be written as [[{key}]]")))?;
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
                nearest: nearest(key, known).map(str::to_owned),
            }),
        }
    }

    fn limits(&self, matching: Option<Vec<Pattern>>) -> Result<Limits, NotAPolicy> {
        let max_monthly_increase = match self.table.get("max_monthly_increase") {
            None => None,
            Some(value) => Some(self.money("max_monthly_increase", value)?),
        };
        let mut deny = Vec::new();
        for word in self.words("deny")?.unwrap_or_default() {
            let known = DENY.iter().find(|(name, _)| *name == word);
            let (_, found) = known.ok_or_else(|| self.unknown_word("deny", word, &DENY.map(|(name, _)| name)))?;
            deny.push(*found);
        }
        Ok(Limits { plans: None, matching, max_monthly_increase, deny })
    }

    fn money(&self, key: &'static str, value: &Value) -> Result<Money, NotAPolicy> {
        let number = match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => return Err(self.wrong(key, "is to be a number".to_owned())),
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
            day.ok_or_else(|| self.wrong("expires", "is to be a date such as 2026-12-31, without quotes".to_owned()))?;
        Ok(Exception {
            plans: None,
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
        words.map(Some).ok_or_else(|| self.wrong(key, "is to be a list of strings".to_owned()))
    }

    fn text(&self, key: &'static str) -> Result<String, NotAPolicy> {
        let text = self.required(key)?.as_str().filter(|text| !text.trim().is_empty());
        text.map(str::to_owned).ok_or_else(|| self.wrong(key, "is to be a text".to_owned()))
    }

    fn required(&self, key: &'static str) -> Result<&'a Value, NotAPolicy> {
        self.table.get(key).ok_or_else(|| NotAPolicy::Lacks { place: self.place.clone(), key })
    }

    fn wrong(&self, key: &'static str, why: String) -> NotAPolicy {
        NotAPolicy::Value { place: self.place.clone(), key, why }
    }

    fn unknown_word(&self, key: &'static str, word: &str, known: &[&str]) -> NotAPolicy {
        let guess = nearest(word, known).map(|known| format!(" (did you mean {known:?}?)")).unwrap_or_default();
        self.wrong(key, format!("has no word {word:?}{guess}; there are {}", known.join(", ")))
    }
}

fn table_of<'a>(value: &'a Value, key: &'static str) -> Result<&'a Table, NotAPolicy> {
    let wrong = || NotAPolicy::Value { place: "the policy".to_owned(), key, why: "is to be a table".to_owned() };
    value.as_table().ok_or_else(wrong)
}

/// The known word that is most like another, if it is like it at all.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |known: &&'a str| (strsim::jaro_winkler(word, known), *known);
    let best = known.iter().map(likeness).max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness >= LIKE).map(|(_, known)| known)
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
        // The day itself is the last one.
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
            ("version = 2\nlimit = 1", "its version is 2, and"),
            ("version = 1\nlimit = {}", "the policy has the unknown key \"limit\": did you mean \"limits\"?"),
            ("version = 1\nzzz = 1", "the policy has the unknown key \"zzz\""),
            (
                "version = 1\n[limits]\nmax_montly_increase = 1",
                "[limits] has the unknown key \"max_montly_increase\": did you mean \"max_monthly_increase\"?",
            ),
            (
                "version = 1\n[limits]\ndeny = [\"destroy_data\"]",
                "[limits]: deny has no word \"destroy_data\" (did you mean \"destroy-data\"?)",
            ),
            ("version = 1\n[limits]\nmax_monthly_increase = -1", "[limits]: max_monthly_increase is below 0"),
            ("version = 1\n[limits]\nmax_monthly_increase = nan", "[limits]: max_monthly_increase is not a number"),
            ("version = 1\n[limits]\nmax_monthly_increase = \"1\"", "[limits]: max_monthly_increase is to be a number"),
            ("version = 1\n[[rule]]\ndeny = []", "[[rule]] 1 lacks \"match\""),
            ("version = 1\n[[rule]]\nmatch = []", "[[rule]] 1: match is empty"),
            ("version = 1\n[[rule]]\nmatch = [\"a-*\"]", "[[rule]] 1: match \"a-*\": * stands for a whole step"),
            ("version = 1\n[rule]\nmatch = [\"a\"]", "the policy: rule is to be written as [[rule]]"),
            (&exception(""), "[[exception]] 1 lacks \"expires\""),
            (&exception("expires = \"2026-12-31\""), "[[exception]] 1: expires is to be a date such as 2026-12-31"),
            (&exception("expires = 2026-12-31\nrule = [\"plan\"]"), "[[exception]] 1: rule has no word \"plan\""),
            ("version = ", "it is not TOML: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
