//! The common part of all plans, and the update in place: first the name, then the kind's own attributes.

use super::{
    absence,
    managed::{Managed, ManagedExt as _},
    read::look,
};
use crate::{
    api::{Context, Object, Presence},
    framework::{CreatePlan, DestroyPlan, Diagnostic, Diagnostics, Outcome, Path, Result, Update, UpdatePlan, Walk},
    provider::{
        PlanContext, ProviderClient, StepContext,
        client::{limits, planning_limits},
        errors::Failure,
        protection,
    },
};

/// What only an apply warns of.
pub(in crate::provider) const UNKNOWN_QUOTE: &str = "The price that the plan showed is not certain here";

pub(super) async fn create<M: Managed>(plan: &mut CreatePlan<M>, context: &PlanContext<'_>) {
    protection::check_create(plan);
    let said = std::mem::take(&mut plan.diagnostics);
    M::plan_create(plan, context).await;
    if let Some(client) = context.client
        && is_resumed(plan, client, &planning_limits(context)).await
    {
        plan.diagnostics = softened(std::mem::take(&mut plan.diagnostics));
        M::plan_adoption(plan);
    }
    plan.diagnostics.advise_destroy();
    let checked = std::mem::replace(&mut plan.diagnostics, said);
    // The plan that is applied had the same warnings. Beside an error, they may be its reasons.
    let is_said = plan.walk == Walk::Apply && !checked.has_errors();
    let is_new = |said: &Diagnostic| !is_said || said.summary == UNKNOWN_QUOTE;
    plan.diagnostics.extend(checked.into_iter().filter(is_new).collect());
}

pub(super) async fn change<M: Managed>(plan: &mut UpdatePlan<M>, context: &PlanContext<'_>) {
    remember(&plan.prior, context);
    M::decide_changes(plan);
    M::plan_update(plan, context).await;
    plan.diagnostics.advise_destroy();
    protection::check_update(plan);
    if let (Some(client), Some(id), true) = (context.client, plan.prior.id(), plan.prior.name() == plan.planned.name())
    {
        client.keeps_name(M::Object::KIND, id);
    }
}

pub(super) async fn destroy<M: Managed>(plan: &mut DestroyPlan<M>, context: &PlanContext<'_>) {
    remember(&plan.prior, context);
    // Terraform 1.11 refreshes an orphan only after this plan, which it drops if the object is gone.
    if let Some(client) = context.client.filter(|client| client.preflight)
        && let Ok(Presence::Released) = look(&plan.prior, client, &planning_limits(context)).await
    {
        return;
    }
    if plan.prior.is_protected() {
        plan.diagnostics.push(protection::refusal(&plan.prior));
    }
    M::plan_destroy(plan, context).await;
}

/// Records what the state says of an object, for the other plans of the run.
fn remember<M: Managed>(prior: &M, context: &PlanContext<'_>) {
    if let (Some(client), Some(id)) = (context.client, prior.id()) {
        client.planned_with_state(M::Object::KIND, id, prior.uid());
    }
}

/// Whether the create of this plan would adopt what an earlier run created: the stock, name or budget that it uses is
/// no obstacle then. A record of another token counts if this one shows its object.
async fn is_resumed<M: Managed>(plan: &CreatePlan<M>, client: &ProviderClient, limits: &Context) -> bool {
    let choices = M::choices(&plan.config, &plan.planned, &plan.private, client);
    let requests: Option<Vec<M::Request>> =
        choices.iter().map(|choice| choice.object.planned_request(client)).collect();
    let left = client.resumable(&requests.unwrap_or_default());
    if left.is_empty() {
        return false;
    }
    if let Ok(account) = client.api.account(limits).await
        && left.iter().any(|record| account.is_like(&record.account))
    {
        return true;
    }
    let Ok(listing) = client.api.objects::<M::Object>().snapshot(limits).await else { return false };
    listing
        .records
        .iter()
        .any(|object| left.iter().any(|record| record.names(object, &record.base_url) || record.sent_name_of(object)))
}

/// Turns errors of live checks into warnings: the apply adopts the existing object, and checks again before it buys
/// anything.
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

/// Renames the object, then changes the rest. The state has the result of each completed step.
pub(super) async fn update<M: Managed>(mut change: Update<M>, context: &StepContext) -> Result<Outcome<M>> {
    if let Some(another) = absence::is_another(&change.prior, &context.client, &limits(context)).await {
        return Err(another.into());
    }
    let name = change.planned.common().name.clone();
    if let (Some(wanted), Some(key)) =
        (name.as_str().filter(|name| change.prior.name() != Some(name)), change.prior.key())
    {
        tracing::info!(id = %key, name = wanted, "renaming");
        if let Err(error) = context.client.api.objects::<M::Object>().rename(&key, wanted, &limits(context)).await {
            let failure = Failure {
                error: &error,
                tried: format!("rename {} to {wanted:?}", change.prior.title()),
                now: "The state keeps the old name; nothing else was changed.".to_owned(),
            };
            return Err(failure.whole().at(Path::to("name")).into());
        }
        *change.prior.name_mut() = name;
    }
    M::update(change, context).await
}
