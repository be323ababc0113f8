//! Findings: actions of a plan that may be unwanted. The policy decides which of them close the gate.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    changes::ChangeAction,
    cost::{CLOUD_DISK, INSTANCE, PRIVATE_IMAGE, TermKind},
    plan::{ResourceChange, ReviewedPlan, is_own},
    policy_file::{names, plain},
    report::{Report, visible},
    values::ChangeSide,
};

/// The number of bytes of a digest in a fingerprint.
const FINGERPRINT: usize = 16;

/// An action or a condition of a plan that may be unwanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Its kind within the rule.
    pub kind: &'static str,
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
    /// The digest of rule, plan, address and kind, equal for the same finding of a later plan, wherever the object is
    /// configured.
    pub fingerprint: String,
    /// Whether an exception lets it through.
    pub accepted: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// A fact about the plan or the policy that no rule judges.
    Note,
    /// A plan is incomplete or unreadable in parts.
    Plan,
    /// `--deny prepaid`.
    Prepaid,
    /// `--deny secrets-in-state`.
    SecretsInState,
    /// `--deny unpriced`.
    Unpriced,
}

impl Rule {
    /// All rules, in the order of their names.
    pub const ALL: [Self; 9] = [
        Self::Check,
        Self::DestroyData,
        Self::Exception,
        Self::MaxMonthlyIncrease,
        Self::Note,
        Self::Plan,
        Self::Prepaid,
        Self::SecretsInState,
        Self::Unpriced,
    ];

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::DestroyData => "destroy-data",
            Self::Exception => "exception",
            Self::MaxMonthlyIncrease => "max-monthly-increase",
            Self::Note => "note",
            Self::Plan => "plan",
            Self::Prepaid => "prepaid",
            Self::SecretsInState => "secrets-in-state",
            Self::Unpriced => "unpriced",
        }
    }

    /// A description in one sentence.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Check => "A check, precondition or postcondition of the configuration does not hold.",
            Self::DestroyData => "The plan destroys data.",
            Self::Exception => "An exception of the policy is out of date, or matches no object.",
            Self::MaxMonthlyIncrease => {
                "The plan raises the monthly bill by more than the limit, or by an unknown sum."
            }
            Self::Note => "No rule judges this part of the plan or of the policy.",
            Self::Plan => "The plan is errored, incomplete or unreadable in parts.",
            Self::Prepaid => "The plan buys a prepaid term.",
            Self::SecretsInState => "The plan stores values that are marked as sensitive.",
            Self::Unpriced => "The plan creates or enlarges a disk or an image, which has no price.",
        }
    }
}

/// A finding before the policy is applied.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) rule: Rule,
    pub(super) kind: &'static str,
    /// The object, with the key of a deposed one.
    pub(super) address: Option<String>,
    /// The object's address and the one that it had before.
    pub(super) addresses: Vec<String>,
    /// The ids of the cloud disks that go with it.
    pub(super) disks: Vec<String>,
    pub(super) message: String,
    pub(super) details: Vec<String>,
    /// Whether it closes the gate even without a policy.
    pub(super) is_blind: bool,
}

/// All observations of a plan, independent of the policy.
pub(super) fn observe(plan: &ReviewedPlan, report: &Report) -> Vec<Observation> {
    let observer = Observer { plan, by_title: plan.changes.iter().map(|change| (change.title(), change)).collect() };
    let all = [
        not_whole(report),
        observer.unknown_prices(report),
        observer.destroyed(report),
        observer.bought(report),
        observer.unpriced(),
        observer.secrets(report),
        checks(report),
        observer.provisioners(),
    ];
    all.concat()
}

impl Observation {
    fn new(rule: Rule, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            rule,
            kind,
            address: None,
            addresses: Vec::new(),
            disks: Vec::new(),
            message: message.into(),
            details: Vec::new(),
            is_blind: false,
        }
    }

    fn at(self, address: &str) -> Self {
        Self { address: Some(address.to_owned()), addresses: vec![plain(address).to_owned()], ..self }
    }

    fn of(self, change: &ResourceChange) -> Self {
        Self { addresses: change.addresses(), ..self.at(&change.title()) }
    }
}

/// The digest of what identifies a finding.
pub(super) fn fingerprint(rule: Rule, plan: Option<&str>, address: &str, kind: &str) -> String {
    let mut digest = Sha256::new();
    // A plan without a name differs from one with an empty name.
    let plan = plan.map_or_else(String::new, |plan| format!("={plan}"));
    for part in [rule.as_str(), &plan, address, kind] {
        digest.update(part);
        digest.update([0]);
    }
    digest.finalize().get(..FINGERPRINT).map(hex::encode).unwrap_or_default()
}

/// The parts of a plan that cannot be judged.
fn not_whole(report: &Report) -> Vec<Observation> {
    let errored = report
        .errored
        .then(|| Observation::new(Rule::Plan, "errored", "the plan is errored: it stopped before its end"));
    let deferred = || report.changes.iter().filter(|change| change.action == ChangeAction::Defer);
    let incomplete = report.incomplete.map(|why| Observation {
        details: deferred().map(|change| change.address.clone()).collect(),
        ..Observation::new(Rule::Plan, "incomplete", format!("the plan is incomplete: {why}"))
    });
    let unreadable = (!report.unreadable.is_empty()).then(|| Observation {
        details: report.unreadable.clone(),
        is_blind: true,
        ..Observation::new(Rule::Plan, "unreadable", "the plan is unreadable in parts")
    });
    [errored, incomplete, unreadable].into_iter().flatten().collect()
}

fn checks(report: &Report) -> Vec<Observation> {
    let failed = report.failed_checks.iter();
    failed
        .map(|check| Observation {
            details: check.problems.clone(),
            ..Observation::new(Rule::Check, "check", "the condition does not hold").at(&check.address)
        })
        .collect()
}

/// A plan, with its changes by the address in reports.
struct Observer<'a> {
    plan: &'a ReviewedPlan,
    by_title: BTreeMap<String, &'a ResourceChange>,
}

impl Observer<'_> {
    /// An observation about the object of this address.
    fn about(&self, address: &str, observation: Observation) -> Observation {
        match self.by_title.get(address) {
            Some(change) => observation.of(change),
            None => observation.at(address),
        }
    }

    fn unknown_prices(&self, report: &Report) -> Vec<Observation> {
        let unknown = report.cost.unknown_increases.iter();
        let observed = unknown.map(|machine| {
            let message = format!("the price is unknown: {}", machine.why);
            self.about(&machine.address, Observation::new(Rule::MaxMonthlyIncrease, "unknown-price", message))
        });
        observed.collect()
    }

    /// Destroyed data. What another provider destroys or invokes is only noted.
    fn destroyed(&self, report: &Report) -> Vec<Observation> {
        let mut found = Vec::new();
        for change in &report.changes {
            let of = |rule: Rule, kind: &'static str, message: &str| {
                self.about(&change.address, Observation::new(rule, kind, message))
            };
            match &change.loss {
                Some(loss) if !loss.known => {
                    let message = "it is destroyed, and belongs to another provider: data loss not assessed";
                    found.push(of(Rule::Note, "destroy", message));
                }
                Some(loss) if !loss.data.is_empty() => {
                    let mut words: Vec<&str> = loss.data.iter().map(|item| item.kind.word()).collect();
                    words.dedup();
                    let message = format!("data is destroyed: {}", words.join(", "));
                    let observation = of(Rule::DestroyData, "destroy", &message);
                    found.push(Observation { disks: loss.disks.clone(), ..observation });
                }
                None if change.action == ChangeAction::Invoke && !is_own(&change.kind) => {
                    let message = "it is an action of another provider: data loss not assessed";
                    found.push(of(Rule::Note, "action", message));
                }
                Some(_) | None => {}
            }
        }
        found
    }

    fn bought(&self, report: &Report) -> Vec<Observation> {
        let bought = report.prepaid.iter().filter(|term| term.kind == TermKind::Bought);
        let observed = bought.map(|term| {
            let (message, details) = match &term.payment_type {
                Some(payment) => ("it is prepaid", Some(payment.clone())),
                None => ("whether it is prepaid is unknown", None),
            };
            let observation = self.about(&term.address, Observation::new(Rule::Prepaid, "term", message));
            Observation { details: details.into_iter().collect(), ..observation }
        });
        observed.collect()
    }

    /// Disks and images that are created or grow: the service has no prices for them.
    fn unpriced(&self) -> Vec<Observation> {
        let mut found = Vec::new();
        for change in self.plan.changes.iter().filter(|change| change.managed) {
            let (after, makes) = (&change.side.after, change.action.makes());
            let (kind, message) = match change.kind.as_str() {
                CLOUD_DISK if makes => ("create", format!("a cloud disk is created: {}", size(after))),
                CLOUD_DISK if grows(change) => {
                    ("grow", format!("a cloud disk grows: {} → {}", size(&change.side.before), size(after)))
                }
                PRIVATE_IMAGE if makes => ("create", "a private image is created".to_owned()),
                INSTANCE if makes && !after.is_empty_list("new_disks") => {
                    let sizes: Vec<String> = after.elements("new_disks").iter().map(size).collect();
                    ("new-disks", format!("cloud disks are created with it: {}", sizes.join(", ")))
                }
                _ => continue,
            };
            found.push(Observation::new(Rule::Unpriced, kind, message).of(change));
        }
        found
    }

    fn secrets(&self, report: &Report) -> Vec<Observation> {
        let found = report.secrets.iter().map(|secrets| {
            let observation = Observation::new(Rule::SecretsInState, "secrets", "secrets would enter the state");
            Observation { details: secrets.attributes.clone(), ..self.about(&secrets.address, observation) }
        });
        found.collect()
    }

    /// Commands that the apply runs: the gate does not judge them.
    fn provisioners(&self) -> Vec<Observation> {
        let runs = |change: &&ResourceChange| change.managed && (change.action.makes() || change.action.destroys());
        let found = self.plan.changes.iter().filter(runs).filter_map(|change| {
            let provisioners = self.plan.provisioners.get(&names(&change.address).join("."))?;
            let message = "its provisioners are not assessed";
            let observation = Observation::new(Rule::Note, "provisioners", message).of(change);
            Some(Observation { details: provisioners.clone(), ..observation })
        });
        found.collect()
    }
}

/// The size of a disk, in words.
fn size(disk: &ChangeSide) -> String {
    disk.number(&["size_gb"]).map_or_else(|| "unknown size".to_owned(), |size| format!("{size} GB"))
}

/// Whether a cloud disk grows or may grow. Hidden sizes are compared too.
fn grows(change: &ResourceChange) -> bool {
    let size = |side: &ChangeSide| side.raw(&["size_gb"]).and_then(Value::as_f64);
    let (before, after) = (size(&change.side.before), size(&change.side.after));
    change.action == ChangeAction::Update && !matches!((before, after), (Some(before), Some(after)) if after <= before)
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
