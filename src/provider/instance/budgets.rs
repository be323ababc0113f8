//! The budgets of an instance: of its price, and of the account's.

use super::{candidates::blame, schema::Instance};
use crate::{
    framework::{Diagnostic, Private},
    provider::{ProviderClient, lifecycle::ManagedExt as _, pricing::EstimatedCost, words::capitalized},
};

/// The private entry with a plan's id in the account's budget.
const PLAN: &str = "budget";

/// Checks the budgets of each instance (`max_hourly_price` and `max_prepaid_total`), and that a price is known for all
/// budgets.
pub(super) fn hold_budgets(
    live: &EstimatedCost,
    planned: &Instance,
    place: usize,
    client: &ProviderClient,
) -> Result<(), Diagnostic> {
    let (title, set) = (planned.title(), budgets(planned, client));
    let (Some(hourly), Some(total)) = (live.hourly_equivalent.known(), live.period_total.known()) else {
        let Some(budget) = set.first() else { return Ok(()) };
        return Err(Diagnostic::error(
            "The price is unknown",
            format!(
                "The service has no price for {title} with this specification and payment type, so the provider's \
                 {budget} cannot be enforced. Choose another payment_type, or use a provider configuration without \
                 this budget (alias)."
            ),
        )
        .at(blame(planned, place)));
    };
    let over = |what: String| Err(Diagnostic::error("Above the budget", what).at(blame(planned, place)));
    if let Some(most) = client.max_hourly_price.as_ref().filter(|most| hourly > *most) {
        return over(format!(
            "{} would cost {hourly} an hour, but the provider's max_hourly_price is {most}. This instance was not \
             bought. Choose a cheaper specification, or raise max_hourly_price.",
            capitalized(&title)
        ));
    }
    if let Some(most) = client.max_prepaid_total.as_ref().filter(|most| planned.is_prepaid() && total > *most) {
        return over(format!(
            "{} would cost {total} for its whole term, but the provider's max_prepaid_total is {most}. This instance \
             was not bought. Choose a cheaper specification or a shorter term, or raise max_prepaid_total.",
            capitalized(&title)
        ));
    }
    Ok(())
}

/// The names of the budgets that hold for an instance.
pub(super) fn budgets(planned: &Instance, client: &ProviderClient) -> Vec<&'static str> {
    let set = [
        ("max_hourly_price", client.max_hourly_price.is_some()),
        ("max_prepaid_total", client.max_prepaid_total.is_some() && planned.is_prepaid()),
        ("max_account_hourly_price", client.account_budget.is_some()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

/// The id of a plan in the account's budget, the same for all plans of one change.
pub(super) fn plan_id(private: &mut Private, client: &ProviderClient) -> String {
    if let Some(known) = private.entry(PLAN) {
        return known;
    }
    let id = format!("{:016x}", client.api.settings().random.next());
    private.insert(PLAN, &id);
    id
}

/// Removes a plan from the account's budget.
pub(super) fn end_plan(private: &mut Private, client: &ProviderClient) {
    if let (Some(id), Some(budget)) = (private.entry::<String>(PLAN), &client.account_budget) {
        budget.forget_plan(&id);
    }
    private.remove(PLAN);
}
