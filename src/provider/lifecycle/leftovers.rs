//! The judgement of what earlier runs left under the name of a create, and of objects that have its name.

use super::managed::{Managed, ManagedExt as _, noun};
use crate::{
    api::{self, Object},
    creation::{Evidence, Leftover, LeftoverKind},
    framework::{Diagnostic, Diagnostics, Path},
    provider::{
        OnLeftover, ProviderClient,
        errors::Failure,
        words::{capitalized, indented, keep_or_delete, to_delete},
    },
};

/// The diagnostics about leftovers before a create: an error stops it.
pub(super) fn judge<M: Managed>(
    found: Result<Vec<Leftover>, api::Error>,
    planned: &M,
    client: &ProviderClient,
) -> Diagnostics {
    let mut found = match found {
        Ok(found) => found,
        Err(error) => return not_looked_for(planned, &error, client),
    };
    // The object of a state or of this run is no leftover: its name is being repaired.
    found.retain(|leftover| leftover.kind != LeftoverKind::Marked || !is_shown::<M>(leftover, client));
    let is_error = |leftover: &Leftover| leftover.kind == LeftoverKind::Named || client.on_leftover == OnLeftover::Fail;
    let (errors, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(is_error);
    let mut diagnostics = Diagnostics::new();
    for leftover in warnings.iter().filter(|leftover| is_named_here::<M>(leftover, client)) {
        let summary = summary::<M>(leftover);
        let detail = format!("Another {} is created now. {}", noun::<M>(), advice::<M>(leftover, client));
        diagnostics.push(Diagnostic::warning(summary, detail));
    }
    // The creates of a run name different objects first, so that each one's error has the import command for its own
    // address.
    let first = errors.iter().find(|leftover| is_named_here::<M>(leftover, client));
    if let Some(first) = first.or_else(|| errors.first()) {
        diagnostics.push(refusal::<M>(first, &errors, client));
    }
    diagnostics
}

/// The error of a plan whose name these objects have already.
pub(in crate::provider) fn taken<M: Managed>(holders: &[&M::Object], client: &ProviderClient) -> Option<Diagnostic> {
    let holders: Vec<_> = holders.iter().map(|object| Leftover::seen(LeftoverKind::Named, *object)).collect();
    Some(refusal::<M>(holders.first()?, &holders, client).at(Path::to("name")))
}

/// Handles a failed search for leftovers: nothing is created, unless `on_leftover` is "warn".
fn not_looked_for<M: Managed>(planned: &M, error: &api::Error, client: &ProviderClient) -> Diagnostics {
    let noun = noun::<M>();
    let tried = format!("look for leftovers of {}", planned.title());
    if client.on_leftover == OnLeftover::Warn && !client.unique_names {
        let now = format!("The {noun} is created, as on_leftover is \"warn\".");
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(Failure { error, tried, now }.of_a_check(client));
        return diagnostics;
    }
    let now = format!(
        "This {noun} was not created. Apply again. To create without this check, set the provider's argument \
         on_leftover to \"warn\" and leave unique_names out; a second object may then be billed."
    );
    Failure { error, tried, now }.whole().into()
}

/// The error for leftovers.
fn refusal<M: Managed>(first: &Leftover, found: &[Leftover], client: &ProviderClient) -> Diagnostic {
    let mut detail = format!("Another {} was not created. {}", noun::<M>(), advice::<M>(first, client));
    let others: Vec<String> = found
        .iter()
        .filter(|other| (&other.id, &other.name) != (&first.id, &first.name))
        .map(|other| {
            let id = other.id.as_deref().filter(|_| !is_shown::<M>(other, client));
            let commands = id.map(|id| indented(&keep_or_delete(M::Object::KIND, id))).unwrap_or_default();
            format!("- {}{commands}", summary::<M>(other))
        })
        .collect();
    if !others.is_empty() {
        detail = format!("{detail}\n\nFor other addresses:\n{}", others.join("\n"));
    }
    Diagnostic::error(summary::<M>(first), detail)
}

fn summary<M: Managed>(leftover: &Leftover) -> String {
    let noun = capitalized(noun::<M>());
    let what = match &leftover.id {
        Some(id) => format!("{noun} {id}"),
        None => format!("{noun} {:?}", leftover.name),
    };
    match leftover.kind {
        LeftoverKind::Finished => format!("{what} was created by an earlier run"),
        LeftoverKind::Marked => format!("{what} was left behind by an earlier run"),
        LeftoverKind::Named => format!("{what} has this name"),
        LeftoverKind::Unfinished if leftover.evidence == Evidence::Seen => {
            format!("{what} belongs to an interrupted create")
        }
        LeftoverKind::Unfinished => format!("{what} may exist: an earlier run did not finish creating it"),
    }
}

fn advice<M: Managed>(leftover: &Leftover, client: &ProviderClient) -> String {
    let (noun, name) = (noun::<M>(), &leftover.name);
    let commands = commands::<M>(leftover, client);
    let managed = "If another configuration, workspace or stage manages it, leave it and use another name here";
    match leftover.kind {
        LeftoverKind::Finished | LeftoverKind::Unfinished if leftover.evidence == Evidence::Lacking => {
            format!("{managed}. Otherwise apply again in a few minutes: the service may not show it yet.")
        }
        LeftoverKind::Unfinished => format!(
            "{managed}, or give each its own `stack`. Otherwise apply once more: another block may be resuming it in \
             this run. If the error comes back, an earlier run began to create the {noun} {name:?} with other \
             arguments. If no state has it:\n{commands}"
        ),
        LeftoverKind::Finished => format!(
            "{managed}, or give each its own `stack`. Otherwise run a whole plan once: it may be in a state that this \
             run does not read, as with -target. If Terraform could not store the state: terraform state push \
             errored.tfstate. If no state has it (if its address is taken, first release the new object):\n{commands}"
        ),
        LeftoverKind::Marked => format!(
            "{managed}, or give each its own `stack`. Its name {name:?} has the marker of this configuration, and it \
             has no pending record, for example because .terraform was deleted. If it is in the state, apply again: \
             its name is being repaired. If no state has it:\n{commands}"
        ),
        LeftoverKind::Named => format!(
            "With unique_names = true, no other {noun} may have the name {name:?}. {managed}. If no state has it:\n\
             {commands}"
        ),
    }
}

/// How to keep or delete a leftover. What a state or a create of this run has shown is not imported.
fn commands<M: Managed>(leftover: &Leftover, client: &ProviderClient) -> String {
    let commands = match leftover.id.as_deref() {
        Some(id) if is_shown::<M>(leftover, client) => to_delete(M::Object::KIND, id),
        Some(id) => keep_or_delete(M::Object::KIND, id),
        None => "To delete it, if no other stack uses it: release it in the console".to_owned(),
    };
    let after = |record| format!("\nAfter its release: terraform-provider-damodel pending --forget {record}");
    commands + &leftover.record.as_ref().map(after).unwrap_or_default()
}

fn is_shown<M: Managed>(leftover: &Leftover, client: &ProviderClient) -> bool {
    leftover.id.as_deref().is_some_and(|id| client.has_shown(M::Object::KIND, id))
}

/// Whether no other create of this run has named it.
fn is_named_here<M: Managed>(leftover: &Leftover, client: &ProviderClient) -> bool {
    client.names(M::Object::KIND, leftover.id.as_deref().unwrap_or(&leftover.name))
}
