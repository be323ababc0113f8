//! The gate: the limits of a policy, its exceptions, and the findings of an earlier plan (the baseline).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{
    cost::CostRow,
    findings::{Finding, Level, Observation, Rule, fingerprint, observe},
    money::Money,
    plan::{NotAPlan, ReviewedPlan},
    policy_file::Pattern,
    report::{Report, Reviewed},
};

/// The rules for plans. Without limits, every plan passes that is read without faults.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The limits, each for a part of the plans.
    pub limits: Vec<Limits>,
    /// The exceptions from the limits.
    pub exceptions: Vec<Exception>,
}

/// The limits for some objects.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The plans by index; `None` for all.
    pub plans: Option<BTreeSet<usize>>,
    /// The objects; `None` for all.
    pub matching: Option<Vec<Pattern>>,
    /// The maximum increase of their monthly costs, in the service's currency.
    pub max_monthly_increase: Option<Money>,
    /// The denied actions.
    pub deny: Vec<Deny>,
}

/// An exception from rules for some objects, until a date.
#[derive(Clone, Debug)]
pub struct Exception {
    /// The plans by index; `None` for all.
    pub plans: Option<BTreeSet<usize>>,
    /// The objects.
    pub matching: Vec<Pattern>,
    /// The rules; `None` for all rules about an object.
    pub rules: Option<Vec<Rule>>,
    /// The responsible person or team.
    pub owner: String,
    /// The reason.
    pub reason: String,
    /// The last day of the exception, such as `2026-12-31`.
    pub expires: String,
    /// Whether that day has passed.
    pub is_expired: bool,
}

/// An action that a policy can deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deny {
    /// Destroy data.
    DestroyData,
    /// Buy a prepaid term.
    Prepaid,
    /// Put secrets into the state.
    SecretsInState,
}

/// The result of the gate.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Whether no violation was found.
    pub passed: bool,
    /// The violations.
    pub violations: Vec<Finding>,
}

impl Deny {
    /// The rule that checks it.
    #[must_use]
    pub fn rule(self) -> Rule {
        match self {
            Self::DestroyData => Rule::DestroyData,
            Self::Prepaid => Rule::Prepaid,
            Self::SecretsInState => Rule::SecretsInState,
        }
    }
}

impl Policy {
    /// Whether the policy has a limit.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.exceptions.is_empty()
            || self.limits.iter().any(|limits| limits.max_monthly_increase.is_some() || !limits.deny.is_empty())
    }

    /// The findings of these plans; those that close the gate have the level `error`.
    pub(super) fn judge(&self, plans: &[Reviewed], baseline: Option<&Baseline>) -> Vec<Finding> {
        let mut used = BTreeSet::new();
        let mut findings = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            findings.extend(plan.observations.iter().map(|observation| {
                let mut finding = finding(plan, observation);
                let excepted = self.exception(observation.rule, index, observation.address.as_deref(), &mut used);
                if observation.is_blind || self.closes(index, observation) {
                    let is_known = observation.rule != Rule::Plan
                        && baseline.is_some_and(|baseline| baseline.has(&observation.fingerprint()));
                    match excepted {
                        Some(exception) => {
                            finding.level = Level::Note;
                            finding.message = format!("{} (excepted until {})", finding.message, exception.expires);
                            finding.details.extend([exception.owner.clone(), exception.reason.clone()]);
                        }
                        None if is_known => {
                            finding.level = Level::Note;
                            finding.message.push_str(" (known from the baseline)");
                        }
                        None => finding.level = Level::Error,
                    }
                }
                finding
            }));
        }
        findings.extend(self.limits.iter().filter_map(|limits| self.rise(limits, plans, baseline, &mut used)));
        findings.extend(self.stale_exceptions(&used));
        findings
    }

    fn closes(&self, plan: usize, observation: &Observation) -> bool {
        let is_meant = |limits: &&Limits| {
            limits.hold_for(plan) && observation.address.as_deref().is_none_or(|address| limits.mean(address))
        };
        let mut limits = self.limits.iter().filter(is_meant);
        match observation.rule {
            Rule::Plan => self.asks(),
            Rule::MaxMonthlyIncrease => limits.any(|limits| limits.max_monthly_increase.is_some()),
            Rule::DestroyData | Rule::Prepaid | Rule::SecretsInState => {
                limits.any(|limits| limits.deny.iter().any(|deny| deny.rule() == observation.rule))
            }
            Rule::Check | Rule::Exception => false,
        }
    }

    /// The first valid exception that covers an object. All covering ones are marked as used.
    fn exception(
        &self,
        rule: Rule,
        plan: usize,
        address: Option<&str>,
        used: &mut BTreeSet<usize>,
    ) -> Option<&Exception> {
        let address = address?;
        let mut covering = None;
        for (index, exception) in self.exceptions.iter().enumerate() {
            if exception.covers(rule, plan, address) {
                used.insert(index);
                covering = covering.or_else(|| Some(exception).filter(|exception| !exception.is_expired));
            }
        }
        covering
    }

    /// The finding if the monthly costs of the objects rise by more than is allowed.
    fn rise(
        &self,
        limits: &Limits,
        plans: &[Reviewed],
        baseline: Option<&Baseline>,
        used: &mut BTreeSet<usize>,
    ) -> Option<Finding> {
        let most = limits.max_monthly_increase.as_ref()?;
        let mut is_let_through = |plan: usize, row: &CostRow| {
            self.exception(Rule::MaxMonthlyIncrease, plan, Some(&row.address), used).is_some()
        };
        let mut rise = Money::default();
        for (index, plan) in plans.iter().enumerate().filter(|(index, _)| limits.hold_for(*index)) {
            for row in plan.report.cost.resources.iter().filter(|row| limits.mean(&row.address)) {
                if !is_let_through(index, row) {
                    rise = rise + &row.increase().unwrap_or_default();
                }
            }
        }
        let known = baseline.map(|baseline| baseline.rise(|address| limits.mean(address))).unwrap_or_default();
        let new = rise.minus(&known);
        if new <= *most {
            return None;
        }
        let (new, most) = (new.with_digits(2), most.with_digits(2));
        let beyond = if baseline.is_some() { " beyond the baseline" } else { "" };
        let details: Vec<String> =
            limits.matching.iter().flatten().map(|pattern| pattern.as_str().to_owned()).collect();
        Some(Finding {
            rule: Rule::MaxMonthlyIncrease,
            level: Level::Error,
            plan: None,
            address: None,
            message: format!("the bill rises by {new} a month{beyond}, and {most} is allowed"),
            fingerprint: fingerprint(Rule::MaxMonthlyIncrease, "", &details.join("\0")),
            details,
            location: None,
        })
    }

    /// Findings for expired exceptions, which close the gate, and for exceptions that match no object.
    fn stale_exceptions(&self, used: &BTreeSet<usize>) -> Vec<Finding> {
        let mut stale = Vec::new();
        for (index, exception) in self.exceptions.iter().enumerate() {
            let patterns: Vec<&str> = exception.matching.iter().map(Pattern::as_str).collect();
            let key = format!("{}\0{}", patterns.join("\0"), exception.expires);
            let (level, message) = if exception.is_expired {
                (Level::Error, format!("an exception of the policy expired on {}", exception.expires))
            } else if used.contains(&index) {
                continue;
            } else {
                (Level::Note, "an exception of the policy matches no object".to_owned())
            };
            stale.push(Finding {
                rule: Rule::Exception,
                level,
                plan: None,
                address: None,
                message,
                details: vec![patterns.join(", "), exception.owner.clone(), exception.reason.clone()],
                fingerprint: fingerprint(Rule::Exception, "", &key),
                location: None,
            });
        }
        stale
    }
}

impl Limits {
    fn hold_for(&self, plan: usize) -> bool {
        self.plans.as_ref().is_none_or(|plans| plans.contains(&plan))
    }

    fn mean(&self, address: &str) -> bool {
        self.matching.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(address)))
    }
}

impl Exception {
    fn covers(&self, rule: Rule, plan: usize, address: &str) -> bool {
        self.plans.as_ref().is_none_or(|plans| plans.contains(&plan))
            && self.rules.as_ref().is_none_or(|rules| rules.contains(&rule))
            && self.matching.iter().any(|pattern| pattern.matches(address))
    }
}

fn finding(plan: &Reviewed, observation: &Observation) -> Finding {
    let level = match observation.rule {
        Rule::DestroyData | Rule::Exception | Rule::MaxMonthlyIncrease | Rule::Plan | Rule::Prepaid => Level::Warning,
        Rule::Check | Rule::SecretsInState => Level::Note,
    };
    Finding {
        rule: observation.rule,
        level,
        plan: plan.name.clone(),
        address: observation.address.clone(),
        message: observation.message.clone(),
        details: observation.details.clone(),
        fingerprint: observation.fingerprint(),
        location: None,
    }
}

/// The findings and costs of an earlier plan.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    fingerprints: BTreeSet<String>,
    /// The increase of the monthly costs by each instance.
    increases: Vec<(String, Money)>,
}

/// The parts of a JSON report that a baseline needs; a report of several plans has one for each in `plans`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Saved {
    findings: Option<Vec<SavedFinding>>,
    cost: SavedCost,
    plans: Vec<Self>,
}

#[derive(Deserialize)]
struct SavedFinding {
    fingerprint: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SavedCost {
    resources: Vec<SavedRow>,
}

#[derive(Deserialize)]
struct SavedRow {
    address: String,
    monthly_change: Option<Number>,
}

impl Baseline {
    /// Reads a plan, or a report of this program in JSON.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn read(document: &[u8]) -> Result<Self, NotAPlan> {
        match serde_json::from_slice::<Saved>(document) {
            Ok(Saved { findings: Some(findings), cost, plans }) => {
                let rows = cost.resources.into_iter().chain(plans.into_iter().flat_map(|plan| plan.cost.resources));
                let increase = |row: SavedRow| Some((row.address, Money::of(&row.monthly_change?)?));
                Ok(Self {
                    fingerprints: findings.into_iter().map(|finding| finding.fingerprint).collect(),
                    increases: rows.filter_map(increase).collect(),
                })
            }
            Ok(_) | Err(_) => ReviewedPlan::read(document).map(|plan| Self::of(&Report::of(&plan))),
        }
    }

    fn of(report: &Report) -> Self {
        let increase = |row: &CostRow| Some((row.address.clone(), row.increase().ok()?));
        Self {
            fingerprints: observe(report).iter().map(Observation::fingerprint).collect(),
            increases: report.cost.resources.iter().filter_map(increase).collect(),
        }
    }

    pub(super) fn has(&self, fingerprint: &str) -> bool {
        self.fingerprints.contains(fingerprint)
    }

    /// The increase of these objects' monthly costs in the baseline; a decrease counts as 0.
    pub(super) fn rise(&self, means: impl Fn(&str) -> bool) -> Money {
        let mut rise = Money::default();
        for (_, increase) in self.increases.iter().filter(|(address, _)| means(address)) {
            rise = rise + increase;
        }
        rise.max(Money::default())
    }
}
