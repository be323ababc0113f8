//! The gate: what plans must not do, and what an earlier plan (the baseline) did already.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{
    cost::CostRow,
    findings::{Finding, Level, Observation, Rule, fingerprint, observe},
    money::Money,
    plan::{NotAPlan, Plan},
    policy_file::Pattern,
    report::{Report, Reviewed},
};

/// What is asked of plans. Without any limit every plan that can be read passes.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// What holds, each for a part of the plans.
    pub limits: Vec<Limits>,
    /// What is let through all the same.
    pub exceptions: Vec<Exception>,
}

/// What must not happen to some objects.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The plans, by their place; none for all of them.
    pub plans: Option<BTreeSet<usize>>,
    /// The objects; none for all of them.
    pub matching: Option<Vec<Pattern>>,
    /// By how much their bill of a month may rise, in the service's currency.
    pub max_monthly_increase: Option<Money>,
    /// What is not to happen.
    pub deny: Vec<Deny>,
}

/// Objects to which a rule does not apply for a while.
#[derive(Clone, Debug)]
pub struct Exception {
    /// The plans, by their place; none for all of them.
    pub plans: Option<BTreeSet<usize>>,
    /// The objects.
    pub matching: Vec<Pattern>,
    /// The rules; none for all that blame an object.
    pub rules: Option<Vec<Rule>>,
    /// Who answers for it.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// The last day on which it holds, as `2026-12-31`.
    pub expires: String,
    /// Whether that day is over.
    pub is_expired: bool,
}

/// Something that a plan must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deny {
    /// Destroy data.
    DestroyData,
    /// Buy a prepaid term.
    Prepaid,
    /// Put secrets into the state.
    SecretsInState,
}

/// What a policy says of plans.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Whether nothing was found.
    pub passed: bool,
    /// What was found.
    pub violations: Vec<Finding>,
}

impl Deny {
    /// The rule of that name.
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
    /// Whether anything is asked of the plans.
    #[must_use]
    pub fn asks(&self) -> bool {
        !self.exceptions.is_empty()
            || self.limits.iter().any(|limits| limits.max_monthly_increase.is_some() || !limits.deny.is_empty())
    }

    /// Everything that these plans do, with what closes the gate as errors.
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

    /// The exception that covers an object, which is in use by that.
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

    /// Whether the bill of the objects rises by more than is allowed.
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

    /// Exceptions that are over, which closes the gate, and those that no object needs.
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

/// What is known from an earlier plan.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    fingerprints: BTreeSet<String>,
    /// By how much each machine raised the bill of a month.
    increases: Vec<(String, Money)>,
}

/// What matters of a report in JSON; one of several plans has them inside.
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
    /// When it is neither.
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
            Ok(_) | Err(_) => Plan::read(document).map(|plan| Self::of(&Report::of(&plan))),
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

    /// By how much the bill of these objects rose already; a plan that lowered it allows for no more.
    pub(super) fn rise(&self, means: impl Fn(&str) -> bool) -> Money {
        let mut rise = Money::default();
        for (_, increase) in self.increases.iter().filter(|(address, _)| means(address)) {
            rise = rise + increase;
        }
        rise.max(Money::default())
    }
}
