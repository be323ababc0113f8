//! Prices as quotes: the plan inside the apply must repeat the price of the first plan, and the create must not exceed
//! it.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    candidates,
    checks::{disagreement, select},
    schema::Instance,
};
use crate::{
    api::{Attempt, Context, Spec, WithJson},
    framework::{Attr, CreatePlan, Diagnostic, Path, Private},
    provider::{
        ProviderClient,
        account_budget::AccountBill,
        errors::Failure,
        lifecycle::ManagedExt as _,
        pricing::{EstimatedCost, PriceTerms, estimate},
    },
};

/// The private entry with the quote of a plan.
const QUOTE: &str = "quote";

/// The private entry with a plan's id in the account's budget.
const PLAN: &str = "budget";

/// Plans the price of an instance, and checks the live price against the budgets. For spot capacity, only the highest
/// possible price is planned.
pub(super) fn quote(
    plan: &mut CreatePlan<Instance>,
    spec: &WithJson<Spec>,
    billed: Option<&AccountBill<'_>>,
    client: &ProviderClient,
) {
    let planned = &plan.planned;
    let Some(live) = live(planned, spec) else { return };
    if let Err(diagnostic) = budget(&live, planned, client) {
        plan.diagnostics.push(diagnostic);
    }
    if let Some(billed) = billed {
        let title = planned.title();
        let held = billed.plan(&plan_id(&mut plan.private, client), &title, |room| {
            match room.hold(&title, &live.hourly_equivalent) {
                Ok(()) => (Ok(()), live.hourly_equivalent.known().cloned()),
                Err(over) => (Err(over), None),
            }
        });
        if let Err(over) = held {
            plan.diagnostics.push(over.at(selector(planned)));
        }
    }
    let key = key(planned, client);
    let quote = earlier(plan.earlier.as_ref(), QUOTE, &key, client).unwrap_or_else(|| Quote::of(live.clone(), spec));
    if quote.cost == live {
        // The quote is now valid for another hour, even if an earlier plan made it.
        client.quotes.keep(&key, &quote, now());
    } else {
        plan.diagnostics.warning_at(
            Path::to("estimated_cost"),
            "The price has changed",
            format!(
                "An earlier plan quoted {}, and the live price is {}. This plan keeps the quote. An apply buys only \
                 if the live price is not above it.",
                told(&quote.cost),
                told(&live)
            ),
        );
    }
    put(plan, quote);
}

/// Repeats the quote of an earlier plan if the service does not answer: Terraform rejects a plan inside the apply that
/// has fewer known values than the first plan. The apply itself requests the price again.
pub(super) fn repeat(plan: &mut CreatePlan<Instance>, client: &ProviderClient) {
    if order(&plan.planned).is_some()
        && let Some(quote) = earlier(plan.earlier.as_ref(), QUOTE, &key(&plan.planned, client), client)
    {
        put(plan, quote);
    }
}

fn put(plan: &mut CreatePlan<Instance>, quote: Quote) {
    plan.private.insert(QUOTE, &quote);
    plan.planned.price_ceiling = quote.cost.hourly_equivalent.clone();
    if !quote.is_spot {
        plan.planned.estimated_cost = Attr::Known(quote.cost);
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Quote {
    cost: EstimatedCost,
    is_spot: bool,
}

impl Quote {
    fn of(cost: EstimatedCost, spec: &WithJson<Spec>) -> Self {
        Self { cost, is_spot: is_spot(spec) }
    }
}

/// Whether a specification is spot capacity, whose price changes.
pub(super) fn is_spot(spec: &WithJson<Spec>) -> bool {
    spec.capacity_type.as_deref() == Some("spot")
}

/// The current cost of an instance of a specification; `None` while an input is unknown.
pub(super) fn live(planned: &Instance, spec: &WithJson<Spec>) -> Option<EstimatedCost> {
    Some(estimate(spec, &order(planned)?))
}

/// The value that an earlier plan stored under `entry` of its private data, or in a file.
pub(super) fn earlier<T: DeserializeOwned>(
    private: Option<&Private>,
    entry: &str,
    key: &str,
    client: &ProviderClient,
) -> Option<T> {
    let stored = private.and_then(|private| private.entry(entry));
    stored.or_else(|| client.quotes.find(key, now()))
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// The planned instance with the price that its create must not exceed, also for spot capacity.
pub(super) fn choice(planned: &Instance, private: &Private) -> Instance {
    let quoted = private.entry::<Quote>(QUOTE).map(|quote| quote.cost);
    Instance { estimated_cost: quoted.map_or_else(|| planned.estimated_cost.clone(), Attr::Known), ..planned.clone() }
}

/// Removes the stored quote, which later plans would repeat.
pub(super) fn forget_kept(planned: &Instance, client: &ProviderClient) {
    client.quotes.forget(&key(planned, client));
}

/// Requests the price again before the purchase. It fails if the price exceeds the quote or a budget, or if the
/// specification has another code than the configuration. The cost in the state is the quote; for spot capacity, or
/// without a quote, the live price.
pub(super) async fn confirm(
    planned: &Instance,
    attempt: &Attempt,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Instance, Diagnostic> {
    let unpriced = || Instance { estimated_cost: Attr::Null, ..planned.clone() };
    let Some((order, region)) = order(planned).zip(planned.region.as_str()) else { return Ok(unpriced()) };
    let quoted = planned.estimated_cost.known();
    let has_budget = client.max_hourly_price.is_some() || client.account_budget.is_some();
    let must_know = quoted.is_some_and(|quote| quote.unit_price.known().is_some()) || has_budget;
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
    let Some(spec) = select(&specs, planned) else {
        if has_budget {
            return Err(unknown(planned, client));
        }
        return Ok(Instance { estimated_cost: quoted.cloned().into(), ..planned.clone() });
    };
    if let Some(mut disagreement) = disagreement(planned, spec.spec_id, spec.spec_type.as_deref()) {
        disagreement.detail.push_str(" Nothing was bought.");
        return Err(disagreement);
    }
    let live = estimate(spec, &order);
    budget(&live, planned, client)?;
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
    if let Some(billed) = client.billed_for_create(attempt.since, limits).await? {
        billed.reserve(&attempt.marker, &planned.title(), &live.hourly_equivalent).map_err(|mut over| {
            over.detail.push_str(" Nothing was bought.");
            over.at(selector(planned))
        })?;
    }
    let price_ceiling = match &planned.price_ceiling {
        Attr::Unknown => live.hourly_equivalent.clone(),
        planned => planned.clone(),
    };
    let cost = if is_spot(spec) { None } else { quoted.cloned() }.unwrap_or(live);
    Ok(Instance { estimated_cost: Attr::Known(cost), price_ceiling, ..planned.clone() })
}

/// Removes the quote from a plan's private data: the state has the cost.
pub(super) fn forget(private: &mut Private) {
    private.remove(QUOTE);
}

/// Checks the budget of each instance (`max_hourly_price`).
pub(super) fn budget(live: &EstimatedCost, planned: &Instance, client: &ProviderClient) -> Result<(), Diagnostic> {
    let Some(most) = &client.max_hourly_price else { return Ok(()) };
    match live.hourly_equivalent.known() {
        Some(price) if price > most => Err(Diagnostic::error(
            "Above the budget",
            format!(
                "{} would cost {price} an hour, but the provider's max_hourly_price is {most}. Nothing was bought.",
                planned.title()
            ),
        )
        .at(selector(planned))),
        Some(_) => Ok(()),
        None => Err(unknown(planned, client)),
    }
}

/// The error that a budget cannot be checked without a price.
fn unknown(planned: &Instance, client: &ProviderClient) -> Diagnostic {
    let budget = if client.max_hourly_price.is_some() { "max_hourly_price" } else { "max_account_hourly_price" };
    Diagnostic::error(
        "The price is not known",
        format!(
            "The service has no price for {} with this payment type, so the provider's {budget} cannot be enforced. \
             Choose another payment_type, or use a provider configuration without this budget (alias).",
            planned.title()
        ),
    )
    .at(selector(planned))
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

/// The attribute that selects the specification.
fn selector(planned: &Instance) -> Path {
    if candidates::has_choice(planned) {
        return Path::to("candidates");
    }
    Path::to(if planned.spec_id.known().is_some() { "spec_id" } else { "spec_type" })
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
