//! Secrets that a plan would put into the state, where they stand in clear.

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
    /// Everything that is marked as sensitive and that the state does not hold yet; of all providers, since all share the state.
    ///
    /// What a data source read while planning is counted each time: every apply writes it anew.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let changes = plan.changes.iter().filter(|change| change.deposed.is_none());
        let mut all: Vec<Self> =
            changes.map(|change| Self { address: change.address.clone(), attributes: entering(change) }).collect();
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

fn entering(change: &Change) -> Vec<String> {
    let side = &change.side;
    let is_kept = !change.action.makes() && !change.importing;
    let new = side.after.secrets().into_iter().filter(|path| !(is_kept && side.after.is_same(&side.before, path)));
    new.map(|path| written(&path)).collect()
}

fn is_new_secret(side: &Side) -> bool {
    let writes = matches!(side.action, Action::Create | Action::Update);
    writes && !side.after.secrets().is_empty() && !side.after.is_same(&side.before, &[])
}
