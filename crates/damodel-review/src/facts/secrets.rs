//! The secrets that a state has in clear after the apply.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::{
    address::Address,
    plan::{Change, ChangeAction, Output, Plan},
    values::written,
};

/// Secrets of one object.
#[derive(Clone, Debug, Serialize)]
pub struct Secrets {
    /// The object's address, or `output.<name>`.
    #[serde(flatten)]
    pub address: Address,
    /// The attributes that hold them.
    pub attributes: Vec<String>,
    /// Whether a data source read them in the plan, as it does each time.
    pub is_read_again: bool,
}

impl Secrets {
    /// All sensitive values that the state does not have yet, of all providers, because they share the state, and those
    /// that data sources read again.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let outputs = plan.outputs.iter().filter(|output| is_new(output));
        let read = plan.prior.iter().filter(|stated| !stated.managed).map(|stated| Self {
            address: stated.address.clone(),
            attributes: stated.values.secrets().iter().map(|path| written(path)).collect(),
            is_read_again: true,
        });
        let objects =
            of_objects(plan).into_iter().chain(outputs.map(|output| (&output.address, vec!["value".to_owned()])));
        let entering =
            objects.map(|(address, attributes)| Self { address: address.clone(), attributes, is_read_again: false });
        entering.chain(read).filter(|secrets| !secrets.attributes.is_empty()).collect()
    }
}

/// The secrets that enter with changes and with the refresh before them. Every apply stores refreshed values, even
/// without changes. They are then on both sides of the change, and new only in the drift.
fn of_objects(plan: &Plan) -> Vec<(&Address, Vec<String>)> {
    let mut refreshed: BTreeMap<&Address, Vec<String>> = BTreeMap::new();
    for drifted in &plan.drift {
        refreshed.entry(&drifted.address).or_default().extend(entering(drifted));
    }
    let mut all = Vec::new();
    for change in &plan.changes {
        let mut attributes = entering(change);
        let mut more = refreshed.remove(&change.address).unwrap_or_default();
        more.retain(|attribute| !attributes.contains(attribute));
        attributes.extend(more);
        all.push((&change.address, attributes));
    }
    // Drift of objects without a change. Cores write a change for every object, but this does not depend on it.
    all.extend(refreshed);
    all
}

fn entering(change: &Change) -> Vec<String> {
    let is_kept = !(change.action.makes() || change.action == ChangeAction::Unknown || change.importing.is_some());
    let is_same = |path: &Vec<_>| is_kept && change.after.is_same(&change.before, path);
    change.after.secrets().iter().filter(|path| !is_same(path)).map(|path| written(path)).collect()
}

fn is_new(output: &Output) -> bool {
    let writes = matches!(output.action, ChangeAction::Create | ChangeAction::Update);
    writes && !output.after.secrets().is_empty() && !output.after.is_same(&output.before, &[])
}
