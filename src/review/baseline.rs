//! The findings and costs of an earlier plan, which a later one is compared with.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{
    cost::{Amount, CostRow},
    findings::{FindingFacts, Observation, observe},
    money::Money,
    plan::{NotAPlan, OwnId, ReviewedPlan},
    policy_file::plain,
    report::{FORMAT, Report},
};

/// The name of a plan; `None` for the only one.
type PlanName = Option<String>;

/// The findings and costs of an earlier plan.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    plans: BTreeSet<PlanName>,
    findings: Vec<(String, FindingFacts)>,
    /// The costs by plan and address.
    rows: BTreeMap<(PlanName, String), Row>,
}

/// The parts of a JSON report that a baseline needs; a report of several plans has one for each in `plans`.
#[derive(Deserialize)]
struct Saved {
    #[serde(default)]
    name: PlanName,
    findings: Option<Vec<SavedFinding>>,
    #[serde(default)]
    cost: SavedCost,
    plans: Option<Vec<SavedPlan>>,
}

#[derive(Deserialize)]
struct SavedPlan {
    name: PlanName,
    cost: SavedCost,
}

#[derive(Deserialize)]
struct SavedFinding {
    fingerprint: String,
    #[serde(default)]
    facts: Option<FindingFacts>,
}

#[derive(Default, Deserialize)]
struct SavedCost {
    #[serde(default)]
    resources: Vec<SavedRow>,
}

#[derive(Deserialize)]
struct SavedRow {
    address: String,
    #[serde(flatten)]
    row: Row,
}

/// What the baseline's plan does to one instance.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    own_id: OwnId,
    accepted: Option<Amount>,
    forgotten: bool,
}

impl Baseline {
    /// Reads a plan, or a report of this program in JSON.
    ///
    /// # Errors
    ///
    /// If it is neither, or a report in another format.
    pub fn read(document: &[u8]) -> Result<Self, NotAPlan> {
        let root: serde_json::Value = serde_json::from_slice(document).unwrap_or_default();
        if root.get("findings").is_none() {
            return ReviewedPlan::read(document).map(|plan| Self::of(&plan));
        }
        let version = root["format_version"].as_str().unwrap_or_default();
        if version != FORMAT {
            return Err(NotAPlan::Report(version.to_owned()));
        }
        let saved = Saved::deserialize(root).map_err(|error| NotAPlan::Syntax(error.to_string()))?;
        let own = SavedPlan { name: saved.name, cost: saved.cost };
        let mut baseline = Self::default();
        for plan in saved.plans.unwrap_or_else(|| vec![own]) {
            baseline.take_rows(&plan.name, plan.cost.resources.into_iter().map(|saved| (saved.address, saved.row)));
        }
        let findings = saved.findings.into_iter().flatten();
        baseline.findings = findings.filter_map(|finding| Some((finding.fingerprint, finding.facts?))).collect();
        Ok(baseline)
    }

    fn of(plan: &ReviewedPlan) -> Self {
        let report = Report::of(None, plan);
        let mut baseline = Self::default();
        let rows = report.cost.resources.iter().map(|row| {
            let CostRow { own_id, accepted, forgotten, .. } = row;
            (row.address.clone(), Row { own_id: own_id.clone(), accepted: accepted.clone(), forgotten: *forgotten })
        });
        baseline.take_rows(&None, rows);
        let observations = observe(plan, &report);
        let found = observations.iter().filter_map(|one| Some((one.fingerprints(None).next()?, one.facts.clone()?)));
        baseline.findings = found.collect();
        baseline
    }

    fn take_rows(&mut self, plan: &PlanName, rows: impl Iterator<Item = (String, Row)>) {
        self.plans.insert(plan.clone());
        let own = rows.filter(|(_, row)| row.accepted.is_some());
        self.rows.extend(own.map(|(address, row)| ((plan.clone(), address), row)));
    }

    /// Whether this finding is known. It is then used: each covers one.
    pub(super) fn take(&mut self, plan: Option<&str>, observation: &Observation) -> bool {
        let Some(facts) = &observation.facts else { return false };
        for fingerprint in observation.fingerprints(plan) {
            let found = self.findings.iter().position(|(known, had)| *known == fingerprint && had == facts);
            if let Some(index) = found {
                self.findings.swap_remove(index);
                return true;
            }
        }
        false
    }

    /// The monthly costs that each instance of a plan had after the baseline's plan; `None` if it is not in it, or not
    /// provably the same. Each address is the reference of one instance: of the one that moved away from it, if there
    /// is one.
    pub(super) fn references(&self, plan: Option<&str>, rows: &[CostRow]) -> Vec<Option<Money>> {
        let of = |address: &str| self.rows.get(&(plan.map(str::to_owned), address.to_owned()));
        let same = |row: &CostRow, address: &str| {
            let saved = of(address).filter(|saved| saved.own_id.is_same(&row.own_id))?;
            let monthly = match saved.accepted.as_ref()? {
                Amount::Unknown { .. } => return None,
                amount => amount.monthly(),
            };
            // What both plans forget is billed beside either of them.
            Some(if saved.forgotten && row.forgotten { monthly + &row.now.monthly() } else { monthly })
        };
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let mut found = vec![None; rows.len()];
        let is_deposed = |row: &CostRow| plain(&row.address) != row.address;
        for (row, reference) in rows.iter().zip(&mut found).filter(|(row, _)| !is_deposed(row)) {
            let Some(previous) = &row.previous_address else { continue };
            *reference = same(row, &row.address);
            taken.insert(if reference.is_some() { &row.address } else { previous });
            *reference = reference.take().or_else(|| same(row, previous));
        }
        for (row, reference) in rows.iter().zip(&mut found) {
            if row.previous_address.is_none() && !is_deposed(row) && taken.insert(&row.address) {
                *reference = same(row, &row.address);
            }
        }
        found
    }

    /// The names of plans that only one of both has, as a sentence.
    pub(super) fn unmatched(&self, plans: &BTreeSet<PlanName>) -> Option<String> {
        let written = |names: &BTreeSet<PlanName>, other: &BTreeSet<PlanName>| {
            let only = names.difference(other);
            only.map(|name| {
                name.as_ref().map_or_else(|| "a plan without a name".to_owned(), |name| format!("{name:?}"))
            })
            .collect::<Vec<_>>()
            .join(", ")
        };
        let (here, there) = (written(plans, &self.plans), written(&self.plans, plans));
        let or_none = |names: String| if names.is_empty() { "no other plan".to_owned() } else { names };
        (plans != &self.plans)
            .then(|| format!("not compared: here {}, in the baseline {}", or_none(here), or_none(there)))
    }
}
