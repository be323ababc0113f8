//! What is replaced, and which argument forces it.

use serde::Serialize;

use super::{
    actions::Action,
    plan::{Change, Plan},
    values::{told, written},
};

/// An object that a plan replaces.
#[derive(Clone, Debug, Serialize)]
pub struct Replacement {
    /// Its address.
    pub address: String,
    /// In which order.
    pub action: Action,
    /// Why, in the core's word.
    pub reason: Option<String>,
    /// The arguments that force it.
    pub forced_by: Vec<Forced>,
}

/// An argument that forces a replacement.
#[derive(Clone, Debug, Serialize)]
pub struct Forced {
    /// The argument, as one writes it.
    pub argument: String,
    /// Its value before, as JSON, or why it is not shown.
    pub before: String,
    /// Its value after.
    pub after: String,
}

impl Replacement {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        plan.changes.iter().filter(|change| change.managed && change.action.replaces()).map(Self::of).collect()
    }

    fn of(change: &Change) -> Self {
        let forced = |path: &Vec<_>| Forced {
            argument: written(path),
            before: told(change.side.before.at_steps(path)),
            after: told(change.side.after.at_steps(path)),
        };
        Self {
            address: change.title(),
            action: change.action,
            reason: change.reason.clone(),
            forced_by: change.replace_paths.iter().map(forced).collect(),
        }
    }
}
