//! The plan of a create with candidates: which are ruled out, the cost of each other one, and the values that all have
//! in common.
//!
//! The offers are kept for the plan inside the apply and for the create: a candidate that was ruled out is not bought,
//! and another one is bought at or below its quote.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    candidates,
    checks::Findings,
    price::{budget, earlier, is_above, is_spot, key, live, plan_id, told},
    schema::Instance,
};
use crate::{
    api::{Context, Spec, WithJson},
    framework::{Attr, CreatePlan, Diagnostic, Diagnostics, Path, Private, value::Number},
    provider::{
        ProviderClient,
        account_budget::{AccountBill, AccountBudget, Room},
        lifecycle::{Choice, ManagedExt as _},
        pricing::EstimatedCost,
    },
};

/// The private entry with the offers of a plan.
const OFFERS: &str = "offers";

/// An offer: a candidate that a create may request, at the price of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Offer {
    /// Its index among the candidates.
    place: usize,
    spec_id: i64,
    spec_type: Option<String>,
    is_spot: bool,
    cost: EstimatedCost,
}

/// The result of checking a candidate.
enum Verdict {
    /// It may be bought, possibly later because of a shortage.
    Fits { offer: Box<Offer>, shortage: Option<String> },
    /// Undecided: its values are unknown, or the service did not answer.
    Open,
    /// Ruled out, with the reason.
    Out(String),
}

/// The candidates of a create, with the reason for those that its plan ruled out.
pub(super) fn choices(
    config: &Instance,
    planned: &Instance,
    private: &Private,
    client: &ProviderClient,
) -> Vec<Choice<Instance>> {
    let offers = private.entry::<Vec<Offer>>(OFFERS);
    let each = candidates::each(config, planned, Some(client)).into_iter().enumerate();
    let choice = |(place, mut object): (usize, Instance)| {
        let offer = offers.as_ref().and_then(|offers| offers.iter().find(|offer| offer.place == place));
        object.estimated_cost = offer.map(|offer| offer.cost.clone()).into();
        let ruled_out = (offers.is_some() && offer.is_none())
            .then(|| "The plan of this apply did not contain it. Plan again to check it.".to_owned());
        Choice { object, ruled_out }
    };
    each.map(choice).collect()
}

/// Removes the offers from a plan's private data.
pub(super) fn forget(private: &mut Private) {
    private.remove(OFFERS);
}

/// Removes the stored offers, which later plans would repeat.
pub(super) fn forget_kept(config: &Instance, planned: &Instance, client: &ProviderClient) {
    client.quotes.forget(&list_key(&candidates::each(config, planned, Some(client)), client));
}

/// Checks each candidate, and plans the common values of the remaining ones.
pub(super) async fn plan(
    plan: &mut CreatePlan<Instance>,
    billed: Option<&AccountBill<'_>>,
    client: &ProviderClient,
    limits: &Context,
) {
    let (config, planned) = (plan.config.clone(), plan.planned.clone());
    let each = candidates::each(&config, &planned, Some(client));
    let key = list_key(&each, client);
    let kept = earlier::<Vec<Offer>>(plan.earlier.as_ref(), OFFERS, &key, client);
    // Stock moves: one list without any is no reason to end an apply that was planned with some.
    let mut pauses = client.api.rounds().filter(|_| planned.wait_for_capacity.is_null());
    let (mut verdicts, found) = loop {
        let (verdicts, found) = check(&planned, &each, client, limits).await;
        match pauses.next().filter(|_| is_sold_out(kept.as_deref(), &verdicts)) {
            Some(pause) if is_worth_another_look(pause, &each, client, limits).await => {}
            _ => break (verdicts, found),
        }
    };
    plan.diagnostics.extend(found);
    let is_whole = config.candidates.known().is_some_and(|candidates| candidates.len() == each.len());
    let title = planned.title();
    match billed {
        Some(billed) => billed.plan(&plan_id(&mut plan.private, client), &title, |room| {
            rule_out_by(room, &title, &mut verdicts);
            ((), decide(plan, &config, &each, &verdicts, kept, is_whole, client))
        }),
        None => drop(decide(plan, &config, &each, &verdicts, kept, is_whole, client)),
    }
}

/// Checks each candidate, and what they have in common.
async fn check(
    planned: &Instance,
    each: &[Instance],
    client: &ProviderClient,
    limits: &Context,
) -> (Vec<Verdict>, Diagnostics) {
    let mut common = Findings::default();
    let image = common.find_image(planned, client, limits).await;
    let mut verdicts = Vec::new();
    for (place, candidate) in each.iter().enumerate() {
        let mut findings = Findings::default();
        findings.check_spec(candidate, candidate, client, limits).await;
        if let Some(image) = &image {
            findings.hold_image(image, candidate);
        }
        verdicts.push(judge(place, candidate, findings, client, &mut common));
    }
    (verdicts, common.diagnostics)
}

/// Whether nothing but stock is missing, and it is missing for each candidate that may be bought.
fn is_sold_out(kept: Option<&[Offer]>, verdicts: &[Verdict]) -> bool {
    let may_be_bought = |place: &usize| kept.is_none_or(|offers| offers.iter().any(|offer| offer.place == *place));
    let mut left = verdicts
        .iter()
        .enumerate()
        .filter(|(place, verdict)| may_be_bought(place) && !matches!(verdict, Verdict::Out(_)))
        .peekable();
    left.peek().is_some() && left.all(|(_, verdict)| matches!(verdict, Verdict::Fits { shortage: Some(_), .. }))
}

/// Waits, then asks for the specifications of the candidates anew; whether there is another answer to judge.
async fn is_worth_another_look(pause: Duration, each: &[Instance], client: &ProviderClient, limits: &Context) -> bool {
    if limits.cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
        return false;
    }
    let regions: BTreeSet<&str> = each.iter().filter_map(|candidate| candidate.region.as_str()).collect();
    for region in regions {
        if client.api.specs().fresh(region, limits).await.is_err() {
            return false;
        }
    }
    true
}

/// Rules out candidates that would exceed the account's budget.
fn rule_out_by(room: &Room<'_>, title: &str, verdicts: &mut [Verdict]) {
    for verdict in verdicts {
        if let Verdict::Fits { offer, .. } = verdict
            && let Err(over) = room.hold(title, &offer.cost.hourly_equivalent)
        {
            *verdict = Verdict::Out(over.detail);
        }
    }
}

/// Decides which candidates remain, and plans their common values; returns the highest price among them.
fn decide(
    plan: &mut CreatePlan<Instance>,
    config: &Instance,
    each: &[Instance],
    verdicts: &[Verdict],
    kept: Option<Vec<Offer>>,
    is_whole: bool,
    client: &ProviderClient,
) -> Option<Number> {
    let planned = &mut plan.planned;
    let key = list_key(each, client);
    let offers = match kept {
        Some(kept) => kept,
        None if !is_whole || verdicts.iter().any(|verdict| matches!(verdict, Verdict::Open)) => return None,
        None => offers(verdicts).cloned().collect(),
    };
    if let Err(diagnostic) = has_stock(&offers, verdicts, each, planned) {
        let is_error = diagnostic.is_error();
        plan.diagnostics.push(diagnostic);
        if is_error {
            client.quotes.forget(&key);
            return None;
        }
    }
    settle(planned, config, &offers, each);
    let ceiling = planned.price_ceiling.known().cloned();
    plan.private.insert(OFFERS, &offers);
    warn_of_moved_prices(plan, &offers, verdicts, each);
    if offers.iter().all(|offer| current(offer, verdicts).is_some_and(|now| now.cost == offer.cost)) {
        client.quotes.keep(&key, &offers, jiff::Timestamp::now().as_second());
    }
    ceiling
}

/// The verdict about one candidate. Warnings are reported once for all candidates.
fn judge(
    place: usize,
    candidate: &Instance,
    findings: Findings,
    client: &ProviderClient,
    common: &mut Findings,
) -> Verdict {
    let error = findings.diagnostics.iter().find(|diagnostic| diagnostic.is_error());
    if let (Some(error), false) = (error, findings.spec_is_unanswered) {
        return Verdict::Out(error.detail.clone());
    }
    for diagnostic in findings.diagnostics.iter() {
        if !common.diagnostics.iter().any(|said| said == diagnostic) {
            common.diagnostics.push(diagnostic.clone());
        }
    }
    let (Some(spec), Some(live)) = (&findings.spec, findings.spec.as_ref().and_then(|spec| live(candidate, spec)))
    else {
        return Verdict::Open;
    };
    if let Err(over) = budget(&live, candidate, client) {
        return Verdict::Out(over.detail);
    }
    let shortage = findings.shortage.map(|shortage| shortage.reason);
    Verdict::Fits { offer: Box::new(Offer::of(place, spec, live)), shortage }
}

impl Offer {
    fn of(place: usize, spec: &WithJson<Spec>, cost: EstimatedCost) -> Self {
        Self { place, spec_id: spec.spec_id, spec_type: spec.spec_type.clone(), is_spot: is_spot(spec), cost }
    }
}

fn offers(verdicts: &[Verdict]) -> impl Iterator<Item = &Offer> {
    verdicts.iter().filter_map(|verdict| match verdict {
        Verdict::Fits { offer, .. } => Some(offer.as_ref()),
        Verdict::Open | Verdict::Out(_) => None,
    })
}

/// The same candidate's current offer.
fn current<'a>(offer: &Offer, verdicts: &'a [Verdict]) -> Option<&'a Offer> {
    offers(verdicts).find(|now| now.place == offer.place)
}

/// Checks that at least one offer may be bought now; otherwise the diagnostic has the reason for each candidate.
fn has_stock(offers: &[Offer], verdicts: &[Verdict], each: &[Instance], planned: &Instance) -> Result<(), Diagnostic> {
    let of = |offer: &&Offer| verdicts.get(offer.place);
    let is_open = |verdict: &Verdict| matches!(verdict, Verdict::Open | Verdict::Fits { shortage: None, .. });
    if offers.iter().filter_map(|offer| of(&offer)).any(is_open) {
        return Ok(());
    }
    let reason = |verdict: &Verdict| match verdict {
        Verdict::Out(reason) => reason.clone(),
        Verdict::Fits { shortage, .. } => {
            shortage.clone().unwrap_or_else(|| "An earlier plan ruled it out.".to_owned())
        }
        Verdict::Open => "It could not be checked.".to_owned(),
    };
    let lines: Vec<String> = each
        .iter()
        .zip(verdicts)
        .map(|(candidate, verdict)| format!("- {}: {}", candidates::title(candidate), reason(verdict)))
        .collect();
    let lines = lines.join("\n");
    let can_wait = offers.iter().filter_map(|offer| of(&offer)).any(|verdict| matches!(verdict, Verdict::Fits { .. }));
    Err(match (can_wait, planned.wait_for_capacity.is_null()) {
        (true, false) => Diagnostic::warning(
            format!("No candidate of {} has stock now", planned.title()),
            format!("{lines}\n\nThe create will wait for capacity."),
        ),
        (true, true) => Diagnostic::error(
            format!("No candidate of {} has stock now", planned.title()),
            format!("{lines}\n\nNothing was bought. To let the create wait for capacity, set wait_for_capacity."),
        ),
        (false, _) => Diagnostic::error(
            format!("No candidate of {} can be created", planned.title()),
            format!(
                "{lines}\n\nNothing was bought. The data source damodel_specs lists the specifications of a \
                     region."
            ),
        ),
    }
    .at(Path::to("candidates")))
}

fn warn_of_moved_prices(plan: &mut CreatePlan<Instance>, offers: &[Offer], verdicts: &[Verdict], each: &[Instance]) {
    for offer in offers {
        let (Some(now), Some(candidate)) = (current(offer, verdicts), each.get(offer.place)) else { continue };
        if is_above(&now.cost, &offer.cost) {
            plan.diagnostics.warning_at(
                Path::to("candidates").index(offer.place),
                "The price has changed",
                format!(
                    "An earlier plan quoted {} for {}, and the live price is {}. This plan keeps the quote. An apply \
                     takes this candidate only if its live price is not above it.",
                    told(&offer.cost),
                    candidates::title(candidate),
                    told(&now.cost)
                ),
            );
        }
    }
}

/// Plans the common values of the remaining candidates.
fn settle(planned: &mut Instance, config: &Instance, offers: &[Offer], each: &[Instance]) {
    let left: Vec<Instance> = offers
        .iter()
        .filter_map(|offer| {
            let spec_type = offer.spec_type.clone().map_or(Attr::Unknown, Attr::Known);
            Some(Instance { spec_id: Attr::Known(offer.spec_id), spec_type, ..each.get(offer.place)?.clone() })
        })
        .collect();
    candidates::plan_common(config, planned, &left);
    if let [only] = offers
        && !only.is_spot
    {
        planned.estimated_cost = Attr::Known(only.cost.clone());
    }
    let prices: Option<Vec<&Number>> = offers.iter().map(|offer| offer.cost.hourly_equivalent.known()).collect();
    planned.price_ceiling = prices.and_then(|prices| prices.into_iter().max().cloned()).into();
}

/// The key of stored offers: everything that they depend on.
fn list_key(each: &[Instance], client: &ProviderClient) -> String {
    let mut parts: Vec<String> = each.iter().map(|candidate| key(candidate, client)).collect();
    if let Some(candidate) = each.first() {
        let image = (&candidate.image, &candidate.image_id, &candidate.image_type);
        // With a budget for the account, the remaining candidates depend on the other instances, so the key contains
        // the instance.
        parts.push(format!("{image:?} {:?} {:?}", candidate.name, candidate.hostname));
    }
    parts.push(format!("{:?} {:?}", client.max_hourly_price, client.account_budget.as_ref().map(AccountBudget::most)));
    format!("candidates|{}", parts.join("|"))
}
