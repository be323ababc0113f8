//! Findings: actions of a plan that may be unwanted. The policy decides which of them close the gate.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    cost::TermKind,
    report::{Report, visible},
};

/// The number of bytes of a digest in a fingerprint.
const FINGERPRINT: usize = 16;

/// An action or a condition of a plan that may be unwanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The level: `error` if and only if it closes the gate.
    pub level: Level,
    /// The plan, if there are several.
    pub plan: Option<String>,
    /// The object.
    pub address: Option<String>,
    /// The finding, without texts of the plan.
    pub message: String,
    /// Texts of the plan or the policy about its parts.
    pub details: Vec<String>,
    /// An id that is equal for the same finding of another plan, wherever the object is configured.
    pub fingerprint: String,
    /// The place where the object is configured.
    pub location: Option<Location>,
}

/// A place in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file, with `/` between its folders.
    pub file: String,
    /// The line, from 1 on.
    pub line: usize,
}

/// The effect of a finding on the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It closes the gate.
    Error,
    /// A reviewer should check it.
    Warning,
    /// It is only reported.
    Note,
}

/// The name of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A condition of the configuration failed.
    Check,
    /// `--deny destroy-data`.
    DestroyData,
    /// An exception of the policy has expired or matches no object.
    Exception,
    /// `--max-monthly-increase`.
    MaxMonthlyIncrease,
    /// A plan is incomplete or unreadable in parts.
    Plan,
    /// `--deny prepaid`.
    Prepaid,
    /// `--deny secrets-in-state`.
    SecretsInState,
}

impl Rule {
    /// All rules, in the order of their names.
    pub const ALL: [Self; 7] = [
        Self::Check,
        Self::DestroyData,
        Self::Exception,
        Self::MaxMonthlyIncrease,
        Self::Plan,
        Self::Prepaid,
        Self::SecretsInState,
    ];

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::DestroyData => "destroy-data",
            Self::Exception => "exception",
            Self::MaxMonthlyIncrease => "max-monthly-increase",
            Self::Plan => "plan",
            Self::Prepaid => "prepaid",
            Self::SecretsInState => "secrets-in-state",
        }
    }

    /// A description in one sentence.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Check => "A check, precondition or postcondition of the configuration does not hold.",
            Self::DestroyData => "The plan destroys data, or an object whose data cannot be judged.",
            Self::Exception => "An exception of the policy is out of date, or matches no object.",
            Self::MaxMonthlyIncrease => {
                "The plan raises the monthly bill by more than the limit, or by an unknown sum."
            }
            Self::Plan => "The plan is errored, incomplete or unreadable in parts.",
            Self::Prepaid => "The plan buys a prepaid term.",
            Self::SecretsInState => "The plan stores values that are marked as sensitive.",
        }
    }
}

/// A finding before the policy is applied.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) rule: Rule,
    pub(super) address: Option<String>,
    pub(super) message: String,
    pub(super) details: Vec<String>,
    /// A key that distinguishes it from others of the same rule and object.
    pub(super) key: String,
    /// Whether it closes the gate even without a policy.
    pub(super) is_blind: bool,
}

/// All observations of a plan, independent of the policy.
pub(super) fn observe(report: &Report) -> Vec<Observation> {
    let all = [
        not_whole(report),
        unknown_prices(report),
        destroyed_data(report),
        bought(report),
        secrets(report),
        checks(report),
    ];
    all.concat()
}

impl Observation {
    fn new(rule: Rule, address: &str, message: impl Into<String>, details: Vec<String>) -> Self {
        let key = details.join("\0");
        Self { rule, address: Some(address.to_owned()), message: message.into(), details, key, is_blind: false }
    }

    fn of_plan(message: impl Into<String>, key: &str) -> Self {
        Self { address: None, key: key.to_owned(), ..Self::new(Rule::Plan, "", message, Vec::new()) }
    }

    /// An id that is equal for the same observation of another plan.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(self.rule, self.address.as_deref().unwrap_or_default(), &self.key)
    }
}

/// The digest of a finding's rule, object and key, without its location.
pub(super) fn fingerprint(rule: Rule, address: &str, key: &str) -> String {
    let mut digest = Sha256::new();
    for part in [rule.as_str(), address, key] {
        digest.update(part);
        digest.update([0]);
    }
    digest.finalize().iter().take(FINGERPRINT).map(|byte| format!("{byte:02x}")).collect()
}

/// The parts of a plan that cannot be judged.
fn not_whole(report: &Report) -> Vec<Observation> {
    let errored =
        report.errored.then(|| Observation::of_plan("the plan is errored: it stopped before its end", "errored"));
    let incomplete = report.incomplete.map(|why| Observation {
        details: report.deferred.iter().map(|deferred| deferred.address.clone()).collect(),
        ..Observation::of_plan(format!("the plan is incomplete: {why}"), "incomplete")
    });
    let unreadable = (!report.unreadable.is_empty()).then(|| Observation {
        details: report.unreadable.clone(),
        is_blind: true,
        ..Observation::of_plan("the plan is unreadable in parts", "unreadable")
    });
    [errored, incomplete, unreadable].into_iter().flatten().collect()
}

fn unknown_prices(report: &Report) -> Vec<Observation> {
    let unknown = report.cost.unknown_increases.iter();
    unknown
        .map(|machine| Observation {
            key: String::new(),
            ..Observation::new(
                Rule::MaxMonthlyIncrease,
                &machine.address,
                format!("the price is unknown: {}", machine.why),
                Vec::new(),
            )
        })
        .collect()
}

fn destroyed_data(report: &Report) -> Vec<Observation> {
    let lossy = report.destroyed.iter().filter(|loss| !(loss.known && loss.data.is_empty()));
    lossy
        .map(|loss| {
            let mut words: Vec<&str> = loss.data.iter().map(|item| item.kind.word()).collect();
            words.dedup();
            let message = if loss.known {
                format!("data is destroyed: {}", words.join(", "))
            } else {
                "it is destroyed, and belongs to another provider: data loss not assessed".to_owned()
            };
            Observation {
                key: words.join(","),
                ..Observation::new(Rule::DestroyData, &loss.address, message, Vec::new())
            }
        })
        .collect()
}

fn bought(report: &Report) -> Vec<Observation> {
    let bought = report.prepaid.iter().filter(|term| term.kind == TermKind::Bought);
    bought
        .map(|term| {
            let message = match &term.payment_type {
                Some(_) => "it is prepaid",
                None => "whether it is prepaid is not known",
            };
            let details = term.payment_type.iter().cloned().collect();
            Observation::new(Rule::Prepaid, &term.address, message, details)
        })
        .collect()
}

fn secrets(report: &Report) -> Vec<Observation> {
    let found = report.secrets.iter();
    found
        .map(|secrets| {
            let message = "secrets would enter the state";
            Observation::new(Rule::SecretsInState, &secrets.address, message, secrets.attributes.clone())
        })
        .collect()
}

fn checks(report: &Report) -> Vec<Observation> {
    let failed = report.failed_checks.iter();
    failed
        .map(|check| {
            Observation::new(Rule::Check, &check.address, "the condition does not hold", check.problems.clone())
        })
        .collect()
}

impl Finding {
    /// The message with its details, in one line of at most `most` characters.
    #[must_use]
    pub fn sentence(&self, most: usize) -> String {
        let details = visible(&self.details.join(", "), most);
        if details.is_empty() { self.message.clone() } else { format!("{}: {details}", self.message) }
    }
}

impl fmt::Display for Finding {
    /// The form for a terminal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.rule)?;
        if let Some(plan) = &self.plan {
            write!(formatter, "{}: ", visible(plan, 200))?;
        }
        if let Some(address) = &self.address {
            write!(formatter, "{}: ", visible(address, 200))?;
        }
        formatter.write_str(&self.sentence(400))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
