//! What every plan begins with, and what a plan knows of the run's own pending records.

use super::{Managed, ManagedExt as _, create_key, noun};
use crate::{
    api::{Object, PendingRecord, Phase},
    framework::{Diagnostic, Diagnostics, Plan, PlanContext, PlanKind},
    provider::{Client, protection, words::capitalized},
};

pub(super) async fn plan<M: Managed>(plan: &mut Plan<M>, context: &PlanContext<'_, Client>) {
    let client = context.client.map(AsRef::as_ref);
    if let (Some(prior), Some(client)) = (&plan.prior, client)
        && let Some(id) = prior.id()
    {
        client.planned_with_state(M::Object::KIND, id);
        client.keep_marked_name(M::Object::KIND, id, prior.name());
    }
    protection::check(plan);
    let said = std::mem::take(&mut plan.diagnostics);
    M::plan(plan, context).await;
    if let (Some(client), PlanKind::Create) = (client, plan.kind)
        && let Some(record) = plan.planned.as_ref().and_then(|planned| resumable(planned, client))
    {
        plan.diagnostics = softened(std::mem::take(&mut plan.diagnostics));
        plan.diagnostics.push(announced::<M>(&record));
    }
    let checked = std::mem::replace(&mut plan.diagnostics, said);
    plan.diagnostics.extend(checked);
}

/// The pending record that the create of this plan would adopt. What a killed create took (stock, a name, a budget) is no obstacle
/// to adopting it.
pub(in crate::provider) fn resumable<M: Managed>(planned: &M, client: &Client) -> Option<PendingRecord> {
    let request = planned.planned_request(client)?;
    client.resumable(M::Object::KIND, &create_key::<M>(&request, client))
}

/// Errors of live checks become warnings: the apply adopts what exists, and checks again before it buys anything.
fn softened(said: Diagnostics) -> Diagnostics {
    let mut softened = Diagnostics::new();
    for mut diagnostic in said.iter().cloned() {
        if diagnostic.is_error() {
            diagnostic = Diagnostic { severity: crate::framework::Severity::Warning, ..diagnostic };
        }
        softened.push(diagnostic);
    }
    softened
}

fn announced<M: Managed>(record: &PendingRecord) -> Diagnostic {
    let noun = capitalized(noun::<M>());
    let (summary, what) = match (&record.ids, record.phase) {
        (Some(ids), Phase::Accepted) => {
            (format!("{noun} {} was created by an earlier run", ids.id), "It is not in the state yet.")
        }
        _ => (
            format!("{noun} {:?} may have been created by an earlier run", record.marker),
            "That run ended before the service answered.",
        ),
    };
    Diagnostic::warning(
        summary,
        format!("{what} An apply of this configuration adopts it instead of creating another."),
    )
}
