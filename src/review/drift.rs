//! What the refresh of a plan found to be different from the state.

use serde::Serialize;

use super::{
    actions::Action,
    plan::{Change, Plan},
    replacements::Forced,
    values::{Step, told},
};

/// An object that is not as the state says.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    /// Its address.
    pub address: String,
    /// What became of it.
    pub what: Drifted,
}

/// What became of an object outside of plans.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Drifted {
    /// These attributes changed.
    Changed {
        /// The attributes, with their values.
        attributes: Vec<Forced>,
    },
    /// It is gone.
    Gone,
}

impl Drift {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        plan.drift.iter().filter_map(|change| Some(Self { address: change.title(), what: what(change)? })).collect()
    }
}

fn what(change: &Change) -> Option<Drifted> {
    if change.action == Action::Destroy {
        return Some(Drifted::Gone);
    }
    let (before, after) = (&change.side.before, &change.side.after);
    let mut names: Vec<&String> = before.names().chain(after.names()).collect();
    names.sort();
    names.dedup();
    let differs = |name: &&String| !after.is_same(before, &[Step::Key((*name).clone())]);
    let attributes: Vec<Forced> = names
        .into_iter()
        .filter(differs)
        .map(|name| Forced { argument: name.clone(), before: told(before.at(&[name])), after: told(after.at(&[name])) })
        .collect();
    // What was moved only is no drift.
    (!attributes.is_empty()).then_some(Drifted::Changed { attributes })
}
