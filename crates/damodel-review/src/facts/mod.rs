//! What a plan does: for each object, for each instance's bill, and for the state.

mod changes;
mod cost;
mod losses;
mod money;
mod secrets;

use std::collections::BTreeSet;

use serde::Serialize;

pub use self::{
    changes::{Argument, Arguments, Drift, Invoked, Object, Unpriced},
    cost::{Amount, Candidates, Cost, CostRow, Sums, Term, Total},
    losses::{Item, ItemKind, Loss, deleted_with},
    money::Money,
    secrets::Secrets,
};
use super::{
    address::Address,
    plan::{CLOUD_DISK, ChangeAction, Check, Deferred, Head, Plan, is_own},
    values::Values,
};

/// What one plan does.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// The name of the plan: its path below the named folder, or as it was named beside others.
    pub name: Option<String>,
    /// The plan itself.
    #[serde(flatten)]
    pub head: Head,
    /// The source addresses of this provider other than those of the public registries.
    pub mirrors: BTreeSet<String>,
    /// The number of objects of all providers.
    pub counts: Counts,
    /// The number of those of other providers.
    #[serde(skip)]
    pub(super) of_others: Counts,
    /// The costs of the instances.
    pub cost: Cost,
    /// The managed objects among the changes and the drift.
    pub changes: Vec<Object>,
    /// The actions that the apply invokes.
    pub actions: Vec<Invoked>,
    /// What is deferred to a later plan.
    pub deferred: Vec<Deferred>,
    /// The prepaid terms.
    pub prepaid: Vec<Term>,
    /// The secrets that the state would have in clear.
    pub secrets: Vec<Secrets>,
    /// Failed conditions.
    pub failed_checks: Vec<Check>,
    /// The addresses of everything that a pattern may match, before and after the plan.
    #[serde(skip)]
    pub(super) addresses: Vec<Address>,
    /// The addresses, old and new, of what the plan changes, moves or imports.
    #[serde(skip)]
    pub(super) touched: Vec<Address>,
    /// The id of each cloud disk with an address of it, hidden ids too: to compare, never to show.
    #[serde(skip)]
    pub(super) disks: Vec<(String, Address)>,
}

/// The number of objects by action.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// Created.
    pub create: usize,
    /// Changed in place.
    pub update: usize,
    /// Replaced.
    pub replace: usize,
    /// Destroyed without a replacement.
    pub destroy: usize,
    /// Removed from the state.
    pub forget: usize,
    /// Imported into the state.
    pub import: usize,
    /// Moved to another address.
    pub moved: usize,
    /// Changes of objects of other providers.
    pub other_providers: usize,
    /// Outputs of the root module that change.
    pub outputs: usize,
    /// Actions that the apply invokes.
    pub actions: usize,
    /// Objects that changed outside of plans.
    pub drifted: usize,
}

impl Facts {
    /// Finds out what a plan does.
    #[must_use]
    pub fn of(name: Option<String>, plan: &Plan, arguments: &Arguments) -> Self {
        let changes = Object::all(plan, arguments);
        let providers =
            plan.changes.iter().filter(|change| is_own(&change.kind)).filter_map(|change| change.provider.as_ref());
        let changed_outputs =
            || plan.outputs.iter().filter(|output| output.action.changes()).map(|output| &output.address);
        let touched = changes.iter().filter(|object| object.is_touched());
        let touched = touched.flat_map(|object| [&object.address].into_iter().chain(&object.previous_address));
        let everything = plan.changes.iter().flat_map(|change| change.addresses());
        let everything = everything
            .chain(plan.prior.iter().map(|stated| &stated.address))
            .chain(plan.outputs.iter().map(|output| &output.address))
            .chain(plan.invocations.iter().map(|invocation| &invocation.address));
        Self {
            name,
            head: plan.head.clone(),
            mirrors: providers.filter(|address| !address.ends_with("/damodel/damodel")).cloned().collect(),
            counts: Counts::of(&changes.iter().collect::<Vec<_>>(), changed_outputs().count(), plan.invocations.len()),
            of_others: Counts::of(&changes.iter().filter(|object| !is_own(&object.kind)).collect::<Vec<_>>(), 0, 0),
            cost: Cost::of(plan),
            actions: plan.invocations.iter().map(Invoked::of).collect(),
            deferred: plan.deferred.clone(),
            prepaid: Term::all(plan),
            secrets: Secrets::all(plan),
            failed_checks: plan.failed_checks.clone(),
            addresses: everything.cloned().collect(),
            touched: touched.chain(changed_outputs()).cloned().collect(),
            disks: disks(plan),
            changes,
        }
    }
}

/// The id of each cloud disk with each address that the plan has for it.
fn disks(plan: &Plan) -> Vec<(String, Address)> {
    let id = |values: &Values| Some(values.raw(&["id"])?.as_str()?.to_owned());
    let mut disks = Vec::new();
    for change in plan.changes.iter().filter(|change| change.kind == CLOUD_DISK) {
        for id in [&change.before, &change.after].into_iter().filter_map(id) {
            disks.extend(change.addresses().map(|address| (id.clone(), address.clone())));
        }
    }
    let stated = plan.prior.iter().filter(|stated| stated.kind == CLOUD_DISK);
    disks.extend(stated.filter_map(|stated| Some((id(&stated.values)?, stated.address.clone()))));
    disks
}

impl Counts {
    fn of(objects: &[&Object], outputs: usize, actions: usize) -> Self {
        let number = |is: fn(&Object) -> bool| objects.iter().filter(|object| is(object)).count();
        Self {
            create: number(|object| object.action == ChangeAction::Create),
            update: number(|object| matches!(object.action, ChangeAction::Unknown | ChangeAction::Update)),
            replace: number(|object| object.action.replaces()),
            destroy: number(|object| object.action == ChangeAction::Destroy),
            forget: number(|object| object.action == ChangeAction::Forget),
            import: number(|object| object.import.is_some()),
            moved: number(|object| object.previous_address.is_some()),
            other_providers: number(|object| object.action.changes() && !is_own(&object.kind)),
            outputs,
            actions,
            drifted: number(|object| object.drift.is_some()),
        }
    }
}
