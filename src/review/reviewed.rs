//! One or several plans, reviewed together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    cost::Sums,
    findings::{Finding, Level, Location, Observation, fingerprint, observe},
    gate::{Baseline, Policy, Verdict},
    plan::Plan,
    report::{Counts, Report},
};

/// A plan that was read.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// What it is called, where there are several.
    pub name: Option<String>,
    /// What it does.
    pub report: Report,
    pub(super) observations: Vec<Observation>,
}

/// What there is to say of all plans.
#[derive(Clone, Debug)]
pub struct Review {
    /// The plans.
    pub plans: Vec<Reviewed>,
    /// What they do that somebody may not want; with those that close the gate.
    pub findings: Vec<Finding>,
    /// What the gate says, where one was asked for, or a plan cannot be read.
    pub gate: Option<Verdict>,
}

impl Reviewed {
    /// Says what a plan does.
    #[must_use]
    pub fn new(name: Option<String>, plan: &Plan) -> Self {
        let report = Report::of(plan);
        Self { name, observations: observe(&report), report }
    }
}

impl Review {
    /// Judges plans. `locate` says where an object of a plan is configured.
    #[must_use]
    pub fn new(
        plans: Vec<Reviewed>,
        policy: &Policy,
        baseline: Option<&Baseline>,
        locate: impl Fn(&Finding) -> Option<Location>,
    ) -> Self {
        let mut findings = policy.judge(&plans, baseline);
        number(&mut findings);
        for finding in &mut findings {
            finding.location = locate(finding);
        }
        let violations: Vec<Finding> =
            findings.iter().filter(|finding| finding.level == Level::Error).cloned().collect();
        let is_asked = policy.asks() || !violations.is_empty();
        let gate = is_asked.then_some(Verdict { passed: violations.is_empty(), violations });
        Self { plans, findings, gate }
    }

    /// What all machines cost.
    #[must_use]
    pub fn sums(&self) -> Sums {
        Sums::of(self.plans.iter().flat_map(|plan| &plan.report.cost.resources))
    }

    /// How many objects there are in all.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.plans.iter().fold(Counts::default(), |counts, plan| counts.and(&plan.report.counts))
    }

    /// What the machines of each module cost; the root module is "".
    #[must_use]
    pub fn modules(&self) -> BTreeMap<&str, Sums> {
        let mut modules = BTreeMap::<&str, Sums>::new();
        for (module, sums) in self.plans.iter().flat_map(|plan| &plan.report.cost.modules) {
            modules.entry(module).or_default().add(sums);
        }
        modules
    }

    /// Whether there is more than one plan.
    #[must_use]
    pub fn is_of_several(&self) -> bool {
        self.plans.len() > 1
    }
}

/// Gives every finding a fingerprint of its own: the same object may be in several plans.
fn number(findings: &mut [Finding]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for finding in findings {
        let count = seen.entry(finding.fingerprint.clone()).or_default();
        if *count > 0 {
            finding.fingerprint = fingerprint(finding.rule, &finding.fingerprint, &count.to_string());
        }
        *count += 1;
    }
}

/// The form for programs of one plan.
#[derive(Serialize)]
struct OfOne<'a> {
    #[serde(flatten)]
    report: &'a Report,
    findings: &'a [Finding],
    gate: &'a Option<Verdict>,
}

/// The form for programs of several plans.
#[derive(Serialize)]
struct OfSeveral<'a> {
    format_version: &'static str,
    counts: Counts,
    cost: Sums,
    modules: BTreeMap<&'a str, Sums>,
    plans: Vec<Named<'a>>,
    findings: &'a [Finding],
    gate: &'a Option<Verdict>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: Option<&'a str>,
    #[serde(flatten)]
    report: &'a Report,
}

impl Review {
    /// As data.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        let Self { plans, findings, gate } = self;
        match plans.as_slice() {
            [Reviewed { report, .. }] => serde_json::to_string_pretty(&OfOne { report, findings, gate }),
            plans => serde_json::to_string_pretty(&OfSeveral {
                format_version: super::report::FORMAT,
                counts: self.counts(),
                cost: self.sums(),
                modules: self.modules(),
                plans: plans
                    .iter()
                    .map(|Reviewed { name, report, .. }| Named { name: name.as_deref(), report })
                    .collect(),
                findings,
                gate,
            }),
        }
    }
}
