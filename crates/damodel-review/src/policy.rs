//! Policies (TOML, version 1): the rules, limits for all or for some objects, and exceptions with an end date.

use std::fmt;

use clap::ValueEnum;
use jiff::civil::Date;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use toml::value::Datetime;

use super::{
    address::{Address, Keyless, Pattern},
    facts::Money,
    rules::nearest,
};

/// The supported version.
const VERSION: i64 = 1;

/// A rule; those that `--deny` accepts are its values on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Destroy an instance's disks, a cloud disk or an image.
    DestroyData,
    /// A limit of the policy for money.
    #[value(skip)]
    MaxMonthlyIncrease,
    /// Buy a prepaid instance.
    Prepaid,
    /// Create or enlarge a cloud disk, or create an image: they have no price.
    Unpriced,
    /// Create, replace, import or change an hourly instance without `max_age`.
    NoMaxAge,
    /// Store a value that is marked as sensitive.
    SecretsInState,
    /// A plan is errored, incomplete or unreadable in parts.
    #[value(skip)]
    Plan,
    /// An exception of the policy has expired or matches no object.
    #[value(skip)]
    Exception,
    /// A condition of the configuration failed.
    #[value(skip)]
    Check,
    /// A fact about the plan or the policy that no rule judges.
    #[value(skip)]
    Note,
}

impl Rule {
    /// All rules with their names and a description, the most important ones first.
    pub(super) const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::DestroyData, "destroy-data", "The plan destroys data."),
        (
            Self::MaxMonthlyIncrease,
            "max-monthly-increase",
            "The plan raises the monthly bill by more than the limit, or by an unknown sum.",
        ),
        (Self::Prepaid, "prepaid", "The plan buys a prepaid term."),
        (Self::Unpriced, "unpriced", "The plan creates or enlarges a disk or an image, which has no price."),
        (Self::NoMaxAge, "no-max-age", "The plan leaves an hourly instance without max_age."),
        (Self::SecretsInState, "secrets-in-state", "The plan stores values that are marked as sensitive."),
        (Self::Plan, "plan", "The plan is errored or incomplete, or parts cannot be read."),
        (Self::Exception, "exception", "An exception of the policy is out of date, or matches no object."),
        (Self::Check, "check", "A check, precondition or postcondition of the configuration does not hold."),
        (Self::Note, "note", "No rule judges this part of the plan or of the policy."),
    ];

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(rule, ..)| *rule == self).map_or("", |(_, name, _)| name)
    }

    /// Reads one of these rules.
    fn read<'de, D: Deserializer<'de>>(rules: &[Self], deserializer: D) -> Result<Vec<Self>, D::Error> {
        let named = Vec::<String>::deserialize(deserializer)?.into_iter().map(|word| {
            let known: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
            let unknown = || format!("unknown rule `{word}`, expected one of {}", known.join(", "));
            rules.iter().find(|rule| rule.as_str() == word).copied().ok_or_else(|| D::Error::custom(unknown()))
        });
        named.collect()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The rules for plans. Without limits, every plan passes that is read without faults.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whether it is a gate.
    pub is_gate: bool,
    /// The limits, each for a part of the objects.
    pub limits: Vec<Limits>,
    /// The exceptions from the limits.
    pub exceptions: Vec<Exception>,
    /// Files beside the plans that have the name of a policy and count for nothing, because they are not named.
    pub not_read: Vec<String>,
}

/// The limits for some objects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The objects; `None` for all.
    #[serde(rename = "match", deserialize_with = "some_patterns")]
    pub matching: Option<Vec<Pattern>>,
    /// The maximum increase of the monthly costs, in the service's currency.
    #[serde(deserialize_with = "money")]
    pub max_monthly_increase: Option<Money>,
    /// The denied actions.
    #[serde(deserialize_with = "denied")]
    pub deny: Vec<Rule>,
}

/// An exception from rules for some objects, until a date.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The objects.
    #[serde(rename = "match", deserialize_with = "patterns")]
    pub matching: Vec<Pattern>,
    /// The rules; empty for all rules about an object.
    #[serde(default, rename = "rule", deserialize_with = "excepted")]
    pub rules: Vec<Rule>,
    /// The responsible person or team.
    #[serde(deserialize_with = "text")]
    pub owner: String,
    /// The reason.
    #[serde(deserialize_with = "text")]
    pub reason: String,
    /// The last day of the exception.
    #[serde(deserialize_with = "day")]
    pub expires: Date,
    /// Whether that day has passed.
    #[serde(skip)]
    pub is_expired: bool,
}

/// A policy as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    rule: Vec<Limits>,
    #[serde(default, rename = "exception")]
    exceptions: Vec<Exception>,
}

/// The reason why a file is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPolicy {
    /// It is for another version of this program.
    #[error("its version is {0}, and this program reads version 1")]
    Version(i64),
    /// It is not TOML, or has an unknown or missing key or an invalid value.
    #[error("{error}{}", nearest.as_ref().map(|known| format!("\ndid you mean {known:?}?")).unwrap_or_default())]
    Wrong {
        /// The error with its place.
        error: String,
        /// The known word that is most similar to an unknown one.
        nearest: Option<String>,
    },
}

impl Policy {
    /// Reads a policy, with its exceptions judged on the day `today`.
    ///
    /// # Errors
    ///
    /// If it is not a policy, or has unknown keys or values.
    pub fn read(text: &str, today: Date) -> Result<Self, NotAPolicy> {
        let table: toml::Table = toml::from_str(text).map_err(wrong)?;
        // A newer version may have other keys.
        if let Some(version) = table.get("version").and_then(toml::Value::as_integer).filter(|found| *found != VERSION)
        {
            return Err(NotAPolicy::Version(version));
        }
        let File { limits, rule, mut exceptions, .. } = toml::from_str(text).map_err(wrong)?;
        let misplaced = match rule.iter().position(|limits| limits.matching.is_none()) {
            _ if limits.matching.is_some() => Some("[limits] has the unknown key \"match\": use [[rule]]".to_owned()),
            place => place.map(|index| format!("[[rule]] {} lacks \"match\"", index + 1)),
        };
        if let Some(error) = misplaced {
            return Err(NotAPolicy::Wrong { error, nearest: None });
        }
        exceptions.iter_mut().for_each(|exception| exception.is_expired = exception.expires < today);
        let limits = [limits].into_iter().chain(rule).collect();
        Ok(Self { is_gate: true, limits, exceptions, not_read: Vec::new() })
    }
}

impl Limits {
    /// Whether they hold for an object: one of its addresses suffices.
    pub(super) fn mean(&self, addresses: &[&Address]) -> bool {
        self.matching
            .as_ref()
            .is_none_or(|patterns| addresses.iter().any(|address| any(patterns, address, Keyless::AnyKey)))
    }
}

impl Exception {
    /// Whether it holds for an object: all its addresses must match.
    pub(super) fn means(&self, addresses: &[&Address]) -> bool {
        !addresses.is_empty() && addresses.iter().all(|address| any(&self.matching, address, Keyless::NoKey))
    }
}

/// Whether one of the patterns matches an address.
fn any(patterns: &[Pattern], address: &Address, keyless: Keyless) -> bool {
    patterns.iter().any(|pattern| pattern.matches(address, keyless))
}

/// The error of the reader, which names an unknown word and then the known ones, each in backticks.
fn wrong(error: toml::de::Error) -> NotAPolicy {
    let mut words = error.message().split('`').skip(1).step_by(2);
    let unknown = words.next().filter(|_| error.message().starts_with("unknown "));
    let nearest = unknown.and_then(|unknown| nearest(unknown, words)).map(str::to_owned);
    NotAPolicy::Wrong { error: error.to_string().trim_end().to_owned(), nearest }
}

fn denied<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    Rule::read(Rule::value_variants(), deserializer)
}

fn excepted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let rules = [&[Rule::MaxMonthlyIncrease], Rule::value_variants()].concat();
    match Rule::read(&rules, deserializer)? {
        rules if rules.is_empty() => Err(D::Error::custom("rule is empty: leave it out to except from all rules")),
        rules => Ok(rules),
    }
}

fn money<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        _ => return Err(D::Error::custom("it must be a number")),
    };
    text.parse().map(Some).map_err(|why| D::Error::custom(format!("it is {why}")))
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.is_empty() {
        return Err(D::Error::custom("match is empty"));
    }
    words.iter().map(|word| word.parse().map_err(D::Error::custom)).collect()
}

fn some_patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Pattern>>, D::Error> {
    patterns(deserializer).map(Some)
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() { Err(D::Error::custom("it must not be empty")) } else { Ok(text) }
}

fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    let wrong = || D::Error::custom("expires must be a date such as 2026-12-31, without quotes");
    let day = Datetime::deserialize(deserializer).map_err(|_| wrong())?;
    let date = day.date.filter(|_| day.time.is_none()).ok_or_else(wrong)?;
    let [month, day] = [date.month, date.day].map(i8::try_from);
    let date = i16::try_from(date.year).ok().zip(month.ok()).zip(day.ok());
    date.and_then(|((year, month), day)| Date::new(year, month, day).ok()).ok_or_else(wrong)
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
    deny = ["destroy-data", "no-max-age"]
    [[rule]]
    match = ["module.prod*.**"]
    max_monthly_increase = 0.5
    deny = ["prepaid"]
    [[exception]]
    match = ["damodel_instance.db[*]"]
    rule = ["destroy-data", "max-monthly-increase"]
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
        assert_eq!((&limits.matching, limits.deny.as_slice()), (&None, &[Rule::DestroyData, Rule::NoMaxAge][..]));
        assert_eq!(rule.max_monthly_increase.as_ref().unwrap().with_digits(1), "0.5");
        // The exception is valid on the day itself.
        assert_eq!(policy.exceptions.iter().map(|one| one.is_expired).collect::<Vec<_>>(), [false, true]);
        assert_eq!(policy.exceptions[0].rules, [Rule::DestroyData, Rule::MaxMonthlyIncrease]);
        assert!(policy.exceptions[1].rules.is_empty() && policy.is_gate && read("version = 1").unwrap().is_gate);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_most_like_it() {
        let exception =
            |line: &str| format!("version = 1\n[[exception]]\nmatch = [\"a\"]\nowner = \"o\"\nreason = \"r\"\n{line}");
        for (text, expected) in [
            ("", "missing field `version`"),
            ("verson = 1", "did you mean \"version\"?"),
            (&exception("expire = 2026-12-31"), "line 6, column 1"),
            (&exception("expire = 2026-12-31"), "did you mean \"expires\"?"),
            ("version = 2\nlimit = 1", "its version is 2, and"),
            ("version = 1\nlimit = {}", "did you mean \"limits\"?"),
            ("version = 1\nzzz = 1", "unknown field `zzz`"),
            ("version = 1\n[limits]\nmax_montly_increase = 1", "did you mean \"max_monthly_increase\"?"),
            ("version = 1\n[limits]\nmatch = [\"a\"]", "[limits] has the unknown key \"match\""),
            ("version = 1\n[limits]\ndeny = [\"destroy_data\"]", "did you mean \"destroy-data\"?"),
            (
                "version = 1\n[limits]\ndeny = [\"plan\"]",
                "unknown rule `plan`, expected one of `destroy-data`, `prepaid`",
            ),
            ("version = 1\n[limits]\nmax_monthly_increase = -1", "it is below 0"),
            ("version = 1\n[limits]\nmax_monthly_increase = nan", "it is not a number"),
            ("version = 1\n[limits]\nmax_monthly_increase = \"1\"", "it must be a number"),
            ("version = 1\n[[rule]]\ndeny = []", "[[rule]] 1 lacks \"match\""),
            ("version = 1\n[[rule]]\nmatch = []", "match is empty"),
            ("version = 1\n[[rule]]\nmatch = [\"a.b**\"]", "** must be a whole step"),
            ("version = 1\n[rule]\nmatch = [\"a\"]", "invalid type: map, expected a sequence"),
            (&exception(""), "missing field `expires`"),
            (&exception("expires = \"2026-12-31\""), "expires must be a date such as 2026-12-31"),
            (
                &exception("expires = 2026-12-31\nrule = [\"plan\"]"),
                "unknown rule `plan`, expected one of `max-monthly",
            ),
            (&exception("expires = 2026-12-31\nrule = []"), "rule is empty"),
            (&exception("expires = 2026-12-31\nmax_monthly_increase = 9"), "unknown field `max_monthly_increase`"),
            ("version = ", "TOML parse error"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
