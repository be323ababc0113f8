//! What is replaced and which argument forces it, and what is changed in place.

use serde::Serialize;

use super::{
    actions::Action,
    plan::{Change, Plan, Side},
    values::{Seen, Step, Values, told, written},
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
    /// What else is known to change.
    pub changes: Vec<Forced>,
}

/// An object that a plan changes in place.
#[derive(Clone, Debug, Serialize)]
pub struct Updated {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What changes in it.
    pub attributes: Vec<Forced>,
}

/// An argument with its value before and after.
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
        let mut others = change.side.after.differences(&change.side.before);
        let forces = |path: &Vec<Step>| {
            change.replace_paths.iter().any(|forced| forced.starts_with(path) || path.starts_with(forced))
        };
        others.retain(|path| change.side.after.at_steps(path) != Seen::Unknown && !forces(path));
        Self {
            address: change.title(),
            action: change.action,
            reason: change.reason.clone(),
            forced_by: change.replace_paths.iter().map(|path| Forced::at(&change.side, path)).collect(),
            changes: others.iter().map(|path| Forced::at(&change.side, path)).collect(),
        }
    }
}

impl Updated {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let updated = plan.changes.iter().filter(|change| change.managed && change.action == Action::Update);
        let updated = updated.map(|change| Self {
            address: change.title(),
            kind: change.kind.clone(),
            attributes: Forced::differences(&change.side),
        });
        updated.collect()
    }
}

impl Forced {
    /// Everything that differs between the sides of a change.
    pub(super) fn differences(side: &Side) -> Vec<Self> {
        side.after.differences(&side.before).iter().map(|path| Self::at(side, path)).collect()
    }

    fn at(side: &Side, path: &[Step]) -> Self {
        let told = |values: &Values| told(values.at_steps(path));
        Self { argument: written(path), before: told(&side.before), after: told(&side.after) }
    }
}
