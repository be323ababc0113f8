//! What a plan must not do.

use std::fmt;

use serde::Serialize;

use super::{money::Money, prepaid::TermKind, report::Report, text::visible};

/// What is asked of a plan. Without any rule every plan passes.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// By how much the bill of a month may rise, in the service's currency.
    pub max_monthly_increase: Option<Money>,
    /// What is not to happen.
    pub deny: Vec<Deny>,
}

/// Something that a plan must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deny {
    /// Destroy data.
    DestroyData,
    /// Buy ahead.
    Prepaid,
    /// Put secrets into the state.
    SecretsInState,
}

/// What a policy says of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Whether nothing was found.
    pub passed: bool,
    /// What was found.
    pub violations: Vec<Violation>,
}

/// Why a plan does not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The object to blame.
    pub address: Option<String>,
    /// What it does, in this program's own words.
    pub message: String,
    /// What the plan calls the parts of it.
    pub details: Vec<String>,
}

/// The name of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// `--deny destroy-data`.
    DestroyData,
    /// `--max-monthly-increase`.
    MaxMonthlyIncrease,
    /// A plan has to be whole to be judged.
    Plan,
    /// `--deny prepaid`.
    Prepaid,
    /// `--deny secrets-in-state`.
    SecretsInState,
}

impl Policy {
    /// Judges a plan; none when nothing is asked of it.
    #[must_use]
    pub fn judge(&self, report: &Report) -> Option<Verdict> {
        if self.max_monthly_increase.is_none() && self.deny.is_empty() {
            return None;
        }
        let mut violations = not_whole(report);
        if let Some(most) = &self.max_monthly_increase {
            violations.extend(increase(report, most));
        }
        for deny in &self.deny {
            violations.extend(match deny {
                Deny::DestroyData => destroy_data(report),
                Deny::Prepaid => prepaid(report),
                Deny::SecretsInState => secrets(report),
            });
        }
        Some(Verdict { passed: violations.is_empty(), violations })
    }
}

/// What nobody could judge does not pass.
fn not_whole(report: &Report) -> Vec<Violation> {
    let of_plan = |message: String| Violation { rule: Rule::Plan, address: None, message, details: Vec::new() };
    let errored = report.errored.then(|| of_plan("the plan is errored: it stopped before its end".to_owned()));
    let incomplete = report.incomplete.map(|why| of_plan(format!("the plan is incomplete: {why}")));
    let unreadable = (!report.unreadable.is_empty()).then(|| Violation {
        details: report.unreadable.clone(),
        ..of_plan("the plan is unreadable in parts".to_owned())
    });
    [errored, incomplete, unreadable].into_iter().flatten().collect()
}

fn increase(report: &Report, most: &Money) -> Vec<Violation> {
    let violation = |address: Option<&String>, message| Violation {
        rule: Rule::MaxMonthlyIncrease,
        address: address.cloned(),
        message,
        details: Vec::new(),
    };
    let cost = &report.cost;
    let unknown = cost.unknown_increases.iter();
    let mut violations: Vec<Violation> = unknown
        .map(|machine| violation(Some(&machine.address), format!("the price is unknown: {}", machine.why)))
        .collect();
    if cost.monthly_change > *most {
        let (rise, most) = (cost.monthly_change.with_digits(2), most.with_digits(2));
        violations.push(violation(None, format!("the bill rises by {rise} a month, and {most} is allowed")));
    }
    violations
}

fn destroy_data(report: &Report) -> Vec<Violation> {
    let with_data = report.destroyed.iter().filter(|loss| !loss.data.is_empty());
    with_data
        .map(|loss| {
            let mut words: Vec<&str> = loss.data.iter().map(|item| item.kind.word()).collect();
            words.dedup();
            Violation {
                rule: Rule::DestroyData,
                address: Some(loss.address.clone()),
                message: format!("data is destroyed: {}", words.join(", ")),
                details: Vec::new(),
            }
        })
        .collect()
}

fn prepaid(report: &Report) -> Vec<Violation> {
    let bought = report.prepaid.iter().filter(|term| term.kind == TermKind::Bought);
    bought
        .map(|term| Violation {
            rule: Rule::Prepaid,
            address: Some(term.address.clone()),
            message: match &term.payment_type {
                Some(_) => "it is paid ahead".to_owned(),
                None => "whether it is paid ahead is not known".to_owned(),
            },
            details: term.payment_type.iter().cloned().collect(),
        })
        .collect()
}

fn secrets(report: &Report) -> Vec<Violation> {
    let found = report.secrets.iter();
    found
        .map(|secrets| Violation {
            rule: Rule::SecretsInState,
            address: Some(secrets.address.clone()),
            message: "secrets would enter the state".to_owned(),
            details: secrets.attributes.clone(),
        })
        .collect()
}

impl fmt::Display for Violation {
    /// For a terminal.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.rule)?;
        if let Some(address) = &self.address {
            write!(formatter, "{}: ", visible(address, 200))?;
        }
        formatter.write_str(&self.message)?;
        if !self.details.is_empty() {
            write!(formatter, ": {}", visible(&self.details.join(", "), 400))?;
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::DestroyData => "destroy-data",
            Self::MaxMonthlyIncrease => "max-monthly-increase",
            Self::Plan => "plan",
            Self::Prepaid => "prepaid",
            Self::SecretsInState => "secrets-in-state",
        })
    }
}
