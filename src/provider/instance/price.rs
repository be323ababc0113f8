//! The live price, in the plan and before the purchase.

use super::{
    budgets::{budgets, hold_budgets},
    candidates::blame,
    checks::{disagreement, select},
    schema::Instance,
};
use crate::{
    api::{Context, Spec, WithJson},
    creation::Attempt,
    framework::{Attr, Diagnostic, Path, Private},
    provider::{
        ProviderClient,
        errors::Failure,
        lifecycle::ManagedExt as _,
        pricing::{EstimatedCost, PriceTerms, estimate},
    },
};

/// The private entry with the price that an instance was bought at, if it is below its quote.
const BOUGHT: &str = "bought";

/// Whether a specification is spot capacity, whose price changes.
pub(super) fn is_spot(spec: &WithJson<Spec>) -> bool {
    spec.capacity_type.as_deref() == Some("spot")
}

/// The current cost of an instance of a specification; `None` while an input is unknown.
pub(super) fn live(planned: &Instance, spec: &WithJson<Spec>) -> Option<EstimatedCost> {
    Some(estimate(spec, &order(planned)?))
}

/// Requests the price again before the purchase. It fails if the price exceeds the quote or a budget or is unknown
/// any more, or if the specification has another code than the configuration. The result has the live price.
pub(super) async fn confirm(
    planned: &Instance,
    attempt: &Attempt,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Instance, Diagnostic> {
    let quoted = planned.estimated_cost.known();
    let unpriced = || Instance { estimated_cost: quoted.cloned().into(), ..planned.clone() };
    let Some((order, region)) = order(planned).zip(planned.region.as_str()) else { return Ok(unpriced()) };
    let is_quoted = quoted.is_some_and(|quote| quote.unit_price.is_known());
    let must_know = is_quoted || !budgets(planned, client).is_empty();
    let specs = match client.api.specs().since(region, attempt.since, limits).await {
        Ok(specs) => specs,
        Err(error) if must_know => {
            let now = "This instance was not bought: without the live price, quote and budget cannot be checked.";
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
    if let Some(quote) = quoted.filter(|quote| quote.unit_price.is_known() && !live.is_priced_like(quote)) {
        return Err(Diagnostic::error(
            "The price is no longer known",
            format!(
                "The plan quoted {quote} for {}, and the service has no live price for it now. This instance was not \
                 bought. Plan again.",
                planned.title()
            ),
        )
        .at(blame(planned, attempt.choice)));
    }
    hold_budgets(&live, planned, attempt.choice, client)?;
    let Some(spec) = spec else { return Ok(unpriced()) };
    if let Some(mut disagreement) = disagreement(planned, spec.spec_id, spec.spec_type.as_deref()) {
        disagreement.detail.push_str(" This instance was not bought.");
        return Err(disagreement);
    }
    if let Some(quote) = quoted.filter(|quote| live.is_above(quote)) {
        return Err(Diagnostic::error(
            "The price has risen",
            format!(
                "The plan quoted {quote}, and the live price is {live}. This instance was not bought. Plan again to \
                 see and accept the new price."
            ),
        )
        .at(Path::to("estimated_cost")));
    }
    if let (Some(billed), Some(hourly)) =
        (client.billed_for_create(attempt.since, limits).await?, live.hourly_equivalent.known())
    {
        billed.reserve(&attempt.marker, &planned.title(), hourly).map_err(|mut over| {
            over.detail.push_str(" This instance was not bought.");
            over.at(blame(planned, attempt.choice))
        })?;
    }
    let price_ceiling = match &planned.price_ceiling {
        Attr::Unknown => live.hourly_equivalent.clone(),
        planned => planned.clone(),
    };
    Ok(Instance { estimated_cost: Attr::Known(live), price_ceiling, ..planned.clone() })
}

/// Shows the quote as the result of a create, which must equal its plan, and keeps the lower price that it was bought
/// at for the first refresh.
pub(super) fn keep_quote(state: &mut Instance, planned: &Instance, private: &mut Private) {
    if planned.estimated_cost.is_known() {
        let bought = std::mem::replace(&mut state.estimated_cost, planned.estimated_cost.clone());
        if bought != state.estimated_cost {
            private.insert(BOUGHT, &bought);
        }
    }
}

/// Shows the price that the instance was bought at.
pub(super) fn take_bought(state: &mut Instance, private: &mut Private) {
    if let Some(bought) = private.entry(BOUGHT) {
        state.estimated_cost = bought;
        private.remove(BOUGHT);
    }
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
