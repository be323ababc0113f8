//! Secrets that a plan would put into the state, where they stand in clear.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    actions::Action,
    plan::{Change, Plan, Side},
    values::written,
};

/// Secrets of one object.
#[derive(Clone, Debug, Serialize)]
pub struct Secrets {
    /// The object's address, or `output.<name>`.
    pub address: String,
    /// The attributes that hold them.
    pub attributes: Vec<String>,
}

impl Secrets {
    /// Everything that is marked as sensitive and that the state does not hold yet; of all providers, since all share
    /// the state.
    ///
    /// What a data source read while planning is counted each time: every apply writes it anew.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let mut all = of_objects(plan);
        all.extend(plan.prior.iter().filter(|stated| !stated.managed).map(|read| Self {
            address: read.address.clone(),
            attributes: read.values.secrets().iter().map(|path| written(path)).collect(),
        }));
        all.extend(
            plan.outputs
                .iter()
                .filter(|(_, side)| is_new_secret(side))
                .map(|(name, _)| Self { address: format!("output.{name}"), attributes: vec!["value".to_owned()] }),
        );
        all.retain(|secrets| !secrets.attributes.is_empty());
        all
    }
}

/// What enters with the changes, and with the refresh before them: an apply writes that too, even one that changes
/// nothing. It is on both sides of the change then, and new in the drift alone.
fn of_objects(plan: &Plan) -> Vec<Secrets> {
    let mut refreshed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for drifted in &plan.drift {
        refreshed.entry(&drifted.address).or_default().extend(entering(drifted));
    }
    let mut all = Vec::new();
    for change in plan.changes.iter().filter(|change| change.deposed.is_none()) {
        let mut attributes = entering(change);
        let mut more = refreshed.remove(change.address.as_str()).unwrap_or_default();
        more.retain(|attribute| !attributes.contains(attribute));
        attributes.extend(more);
        all.push(Secrets { address: change.address.clone(), attributes });
    }
    // Every object has its change, but that is the core's to hold.
    all.extend(refreshed.into_iter().map(|(address, attributes)| Secrets { address: address.to_owned(), attributes }));
    all
}

fn entering(change: &Change) -> Vec<String> {
    let side = &change.side;
    let is_kept = !change.action.makes() && change.importing.is_none();
    let new = side.after.secrets().into_iter().filter(|path| !(is_kept && side.after.is_same(&side.before, path)));
    new.map(|path| written(&path)).collect()
}

fn is_new_secret(side: &Side) -> bool {
    let writes = matches!(side.action, Action::Create | Action::Update);
    writes && !side.after.secrets().is_empty() && !side.after.is_same(&side.before, &[])
}
