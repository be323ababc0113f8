//! What an earlier plan did already: only what is new violates.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Number;

use super::{
    cost::CostRow,
    findings::{Observation, observe},
    money::Money,
    plan::{NotAPlan, Plan},
    report::Report,
};

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
