//! What the refresh of a plan found to be different from the state.

use serde::Serialize;

use super::{
    actions::Action,
    plan::{Change, Plan},
    replacements::Forced,
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
    let attributes = Forced::differences(&change.side);
    // What was moved only is no drift.
    (!attributes.is_empty()).then_some(Drifted::Changed { attributes })
}
