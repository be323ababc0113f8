//! Prices as quotes: the plan inside the apply must repeat the price of the first plan, and the create must not exceed
//! it.

use super::{
    candidates,
    checks::{disagreement, select},
    schema::Instance,
};
use crate::{
    api::{Context, Spec, WithJson},
    creation::Attempt,
    framework::{Attr, Diagnostic, Path, Private, value::Number},
    provider::{
        ProviderClient,
        errors::Failure,
        lifecycle::ManagedExt as _,
        pricing::{EstimatedCost, PriceTerms, estimate},
    },
};

/// The private entry with a plan's id in the account's budget.
const PLAN: &str = "budget";

/// Whether a specification is spot capacity, whose price changes.
pub(super) fn is_spot(spec: &WithJson<Spec>) -> bool {
    spec.capacity_type.as_deref() == Some("spot")
}

/// The current cost of an instance of a specification; `None` while an input is unknown.
pub(super) fn live(planned: &Instance, spec: &WithJson<Spec>) -> Option<EstimatedCost> {
    Some(estimate(spec, &order(planned)?))
}

/// Requests the price again before the purchase. It fails if the price exceeds the quote or a budget or is unknown
/// any more, or if the specification has another code than the configuration. The cost in the state is the quote; for
/// spot capacity, or without a quote, the live price.
pub(super) async fn confirm(
    planned: &Instance,
    attempt: &Attempt,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Instance, Diagnostic> {
    let quoted = planned.estimated_cost.known();
    let unpriced = || Instance { estimated_cost: quoted.cloned().into(), ..planned.clone() };
    let Some((order, region)) = order(planned).zip(planned.region.as_str()) else { return Ok(unpriced()) };
    let is_quoted = quoted.is_some_and(|quote| quote.unit_price.known().is_some());
    let must_know = is_quoted || !budgets(planned, client).is_empty();
    let specs = match client.api.specs().since(region, attempt.since, limits).await {
        Ok(specs) => specs,
        Err(error) if must_know => {
            let now = "Nothing was bought: without the live price, quote and budget cannot be checked.";
            let tried = format!("read the price of {}", planned.title());
            return Err(Failure { error: &error, tried, now: now.to_owned() }.whole());
        }
        Err(error) => {
            tracing::warn!(%error, "the price could not be read");
            return Ok(unpriced());
        }
    };
    let spec = select(&specs, planned);
    let live = spec.map(|spec| estimate(spec, &order)).unwrap_or_default();
    if let Some(quote) = quoted.filter(|quote| quote.unit_price.known().is_some() && !is_priced_like(&live, quote)) {
        return Err(Diagnostic::error(
            "The price is no longer known",
            format!(
                "The plan quoted {} for {}, and the service has no live price for it now. Nothing was bought. Plan \
                 again.",
                told(quote),
                planned.title()
            ),
        )
        .at(blame(planned, attempt.choice)));
    }
    hold_budgets(&live, planned, attempt.choice, client)?;
    let Some(spec) = spec else { return Ok(unpriced()) };
    if let Some(mut disagreement) = disagreement(planned, spec.spec_id, spec.spec_type.as_deref()) {
        disagreement.detail.push_str(" Nothing was bought.");
        return Err(disagreement);
    }
    if let Some(quote) = quoted.filter(|quote| is_above(&live, quote)) {
        return Err(Diagnostic::error(
            "The price has risen",
            format!(
                "The plan quoted {}, and the live price is {}. Nothing was bought. Plan again to see and accept the \
                 new price.",
                told(quote),
                told(&live)
            ),
        )
        .at(Path::to("estimated_cost")));
    }
    if let (Some(billed), Some(hourly)) =
        (client.billed_for_create(attempt.since, limits).await?, live.hourly_equivalent.known())
    {
        billed.reserve(&attempt.marker, &planned.title(), hourly).map_err(|mut over| {
            over.detail.push_str(" Nothing was bought.");
            over.at(blame(planned, attempt.choice))
        })?;
    }
    let price_ceiling = match &planned.price_ceiling {
        Attr::Unknown => live.hourly_equivalent.clone(),
        planned => planned.clone(),
    };
    let cost = if is_spot(spec) { None } else { quoted.cloned() }.unwrap_or(live);
    Ok(Instance { estimated_cost: Attr::Known(cost), price_ceiling, ..planned.clone() })
}

/// Whether a live price has the parts that a quote has.
fn is_priced_like(live: &EstimatedCost, quote: &EstimatedCost) -> bool {
    let has = |quote: &Attr<Number>, live: &Attr<Number>| quote.known().is_none() || live.known().is_some();
    has(&quote.unit_price, &live.unit_price) && has(&quote.period_total, &live.period_total)
}

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
            "{title} would cost {hourly} an hour, but the provider's max_hourly_price is {most}. Nothing was bought. \
             Choose a cheaper specification, or raise max_hourly_price."
        ));
    }
    if let Some(most) = client.max_prepaid_total.as_ref().filter(|most| planned.is_prepaid() && total > *most) {
        return over(format!(
            "{title} would cost {total} for its whole term, but the provider's max_prepaid_total is {most}. Nothing \
             was bought. Choose a cheaper specification or a shorter term, or raise max_prepaid_total."
        ));
    }
    Ok(())
}

/// The names of the budgets that hold for an instance.
fn budgets(planned: &Instance, client: &ProviderClient) -> Vec<&'static str> {
    let set = [
        ("max_hourly_price", client.max_hourly_price.is_some()),
        ("max_prepaid_total", client.max_prepaid_total.is_some() && planned.is_prepaid()),
        ("max_account_hourly_price", client.account_budget.is_some()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

/// The attribute that a diagnostic about a choice names: the candidate, or else what selects the specification.
pub(super) fn blame(planned: &Instance, place: usize) -> Path {
    if candidates::has_choice(planned) {
        return Path::to("candidates").index(place);
    }
    Path::to(if planned.spec_id.known().is_some() { "spec_id" } else { "spec_type" })
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

/// Whether a live price is above a quote.
pub(super) fn is_above(live: &EstimatedCost, quote: &EstimatedCost) -> bool {
    let above = |live: &Attr<_>, quote: &Attr<_>| match (live, quote) {
        (Attr::Known(live), Attr::Known(quote)) => live > quote,
        _ => false,
    };
    above(&live.period_total, &quote.period_total)
        || (quote.period_total.is_null() && above(&live.unit_price, &quote.unit_price))
}

fn order(planned: &Instance) -> Option<PriceTerms<'_>> {
    Some(PriceTerms {
        payment_type: planned.payment_type.as_str()?,
        purchase_duration: if planned.purchase_duration.is_unknown() {
            return None;
        } else {
            planned.purchase_duration.known().copied().unwrap_or(1)
        },
        gpu_num: *planned.gpu_num.known()?,
        data_disk_expand_size_gb: *planned.data_disk_expand_size_gb.known()?,
    })
}

/// The key of a quote: everything that the price depends on.
pub(super) fn key(planned: &Instance, client: &ProviderClient) -> String {
    let number = |number: &Attr<i64>| number.known().copied().unwrap_or_default();
    let spec = match planned.spec_id.known() {
        Some(id) => id.to_string(),
        None => planned.spec_type.known().cloned().unwrap_or_default(),
    };
    format!(
        "{}|{}|{}|{}|{}|{}|{}",
        client.base_url().unwrap_or_default(),
        planned.region.as_str().unwrap_or_default(),
        spec,
        planned.payment_type.as_str().unwrap_or_default(),
        number(&planned.purchase_duration),
        number(&planned.gpu_num),
        number(&planned.data_disk_expand_size_gb),
    )
}

/// A cost as text.
pub(super) fn told(cost: &EstimatedCost) -> String {
    match (cost.period_total.known(), cost.hourly_equivalent.known()) {
        (Some(total), Some(hourly)) if cost.payment_type.as_str() != Some("Hourly") => {
            format!("{total} in all ({hourly} an hour)")
        }
        (Some(total), _) => format!("{total} an hour"),
        _ => "no price".to_owned(),
    }
}
