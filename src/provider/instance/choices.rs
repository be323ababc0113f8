//! The plan of a create: which of its choices are ruled out, the cost of each other one, and the values that all have
//! in common. A plain instance has one choice, one with candidates has several.
//!
//! The offers are kept for the plan inside the apply and for the create: a choice that was ruled out is not bought, and
//! another one is bought at or below its quote.

use serde::{Deserialize, Serialize};

use super::{
    budgets::{hold_budgets, plan_id},
    candidates::{self, blame},
    checks::{Findings, Shortage},
    price::{is_spot, live},
    schema::Instance,
};
use crate::{
    api::{Context, Spec, WithJson},
    creation::Quoted,
    framework::{Attr, CreatePlan, Diagnostic, Diagnostics, Path, Private, Walk, value::Number},
    provider::{
        ProviderClient,
        account_budget::{AccountBill, AccountBudget, Room},
        lifecycle::{Choice, ManagedExt as _, UNKNOWN_QUOTE},
        pricing::EstimatedCost,
    },
};

/// The private entry with the offers of a plan.
const OFFERS: &str = "offers";

/// An offer: a choice that a create may request, at the price of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Offer {
    /// Its index among the choices.
    place: usize,
    spec_id: i64,
    spec_type: Option<String>,
    gpu_name: Option<String>,
    capacity_type: Option<String>,
    is_spot: bool,
    cost: EstimatedCost,
}

/// The result of checking a choice.
enum Verdict {
    /// It may be bought, possibly later because of a shortage.
    Fits { offer: Box<Offer>, shortage: Option<Shortage> },
    /// Undecided: its values are unknown, the service did not answer, or the plan fails for another reason.
    Open,
    /// Ruled out, with the reason.
    Out(Diagnostic),
}

impl Verdict {
    /// Why it is not bought, for people.
    fn reason(&self) -> String {
        match self {
            Self::Out(reason) => reason.detail.clone(),
            Self::Fits { shortage, .. } => {
                shortage.as_ref().map_or_else(|| "An earlier plan ruled it out.".to_owned(), |it| it.reason.clone())
            }
            Self::Open => "Its check failed.".to_owned(),
        }
    }
}

/// The choices of a create, with the reason for those that its plan ruled out.
pub(super) fn choices(
    config: &Instance,
    planned: &Instance,
    private: &Private,
    client: &ProviderClient,
) -> Vec<Choice<Instance>> {
    let offers = private.entry::<Vec<Offer>>(OFFERS);
    let each = candidates::each(config, planned, Some(client)).into_iter().enumerate();
    each.map(|(place, mut object)| {
        let offer = offers.as_ref().and_then(|offers| offers.iter().find(|offer| offer.place == place));
        object.estimated_cost = offer.map(|offer| offer.cost.clone()).into();
        let ruled_out = (offers.is_some() && offer.is_none())
            .then(|| "The plan of this apply did not contain it. Plan again to check it.".to_owned());
        Choice { object, ruled_out }
    })
    .collect()
}

/// Removes the offers from a plan's private data.
pub(super) fn forget(private: &mut Private) {
    private.remove(OFFERS);
}

/// Checks each choice, and plans the common values of the remaining ones.
pub(super) async fn plan(
    plan: &mut CreatePlan<Instance>,
    billed: Option<&AccountBill<'_>>,
    client: &ProviderClient,
    limits: &Context,
) {
    let (config, planned) = (plan.config.clone(), plan.planned.clone());
    let each = candidates::each(&config, &planned, Some(client));
    let (key, unpriced) = (list_key(&each, client), format!("unpriced {:?} {:?}", planned.name, planned.hostname));
    let now = jiff::Timestamp::now().as_second();
    let quoted: Quoted<Vec<Offer>> = client.quotes.find(&key, now, limits).await;
    let is_apply = plan.walk == Walk::Apply || (plan.walk == Walk::Unknown && quoted.is_planned);
    let kept = match &plan.earlier {
        Some(earlier) => earlier.entry(OFFERS),
        None if is_apply => {
            // A plan without a price leaves its apply free.
            let is_lost =
                quoted.quote.is_none() && client.quotes.find::<bool>(&unpriced, now, limits).await.quote.is_none();
            if is_lost || quoted.is_ambiguous {
                plan.diagnostics.push(unknown_quote(client));
            }
            quoted.quote
        }
        None => None,
    };
    let mut survey = Survey { config, planned, each, kept, verdicts: Vec::new() };
    plan.diagnostics.extend(survey.check(client, limits).await);
    match billed {
        Some(billed) => {
            let (title, id) = (survey.planned.title(), plan_id(&mut plan.private, client));
            billed.plan(&id, &title, |room| {
                survey.rule_out_by(room);
                survey.decide(plan)
            });
        }
        None => drop(survey.decide(plan)),
    }
    if is_apply || plan.diagnostics.has_errors() {
        return;
    }
    match plan.private.entry::<Vec<Offer>>(OFFERS) {
        Some(offers) => client.quotes.keep(&key, &offers, now, limits).await,
        None => client.quotes.keep(&unpriced, &true, now, limits).await,
    }
}

/// The warning of an apply that does not know the quote of its plan: the same for all instances, so that Terraform
/// shows it once.
fn unknown_quote(client: &ProviderClient) -> Diagnostic {
    let file = client.quotes.file();
    let file = file.strip_prefix(client.environment.directory()).unwrap_or(file).display();
    Diagnostic::warning(
        UNKNOWN_QUOTE,
        format!(
            "The plan was made elsewhere, or plans of this configuration showed different prices. If Terraform now \
             reports an inconsistent final plan, that instance was not bought: plan again. To check prices against \
             the plan, keep the file {file} from it to the apply, and make no other plan between them."
        ),
    )
}

/// The choices of a create, and what a plan finds out about each.
struct Survey {
    config: Instance,
    planned: Instance,
    each: Vec<Instance>,
    /// The offers of the plan, inside its apply.
    kept: Option<Vec<Offer>>,
    verdicts: Vec<Verdict>,
}

impl Survey {
    fn has_choice(&self) -> bool {
        candidates::has_choice(&self.config)
    }

    /// Checks each choice; what they have in common is said once.
    async fn check(&mut self, client: &ProviderClient, limits: &Context) -> Diagnostics {
        let mut common = Findings::default();
        let image = common.find_image(&self.planned, client, limits).await;
        let mut verdicts = Vec::new();
        for (place, choice) in self.each.iter().enumerate() {
            let mut findings = Findings::default();
            let config = if self.has_choice() { choice } else { &self.config };
            findings.check_spec(choice, config, client, limits).await;
            if let Some(image) = &image {
                findings.hold_image(image, choice);
            }
            verdicts.push(self.judge(place, choice, findings, client, &mut common.diagnostics));
        }
        self.verdicts = verdicts;
        common.diagnostics
    }

    /// The verdict about one choice. An error rules out a candidate; without candidates it ends the plan.
    fn judge(
        &self,
        place: usize,
        choice: &Instance,
        findings: Findings,
        client: &ProviderClient,
        said: &mut Diagnostics,
    ) -> Verdict {
        let error = findings.diagnostics.iter().find(|diagnostic| diagnostic.is_error());
        if let (Some(error), true, false) = (error, self.has_choice(), findings.spec_is_unanswered) {
            return Verdict::Out(error.clone());
        }
        for diagnostic in findings.diagnostics.iter() {
            if !said.iter().any(|said| said == diagnostic) {
                said.push(diagnostic.clone());
            }
        }
        let (Some(spec), Some(live)) = (&findings.spec, findings.spec.as_ref().and_then(|spec| live(choice, spec)))
        else {
            return Verdict::Open;
        };
        if let Err(over) = hold_budgets(&live, choice, place, client) {
            return Verdict::Out(over);
        }
        Verdict::Fits { offer: Box::new(Offer::of(place, spec, live)), shortage: findings.shortage }
    }

    /// Rules out choices that would exceed the account's budget.
    fn rule_out_by(&mut self, room: &Room<'_>) {
        let title = self.planned.title();
        for (verdict, choice) in self.verdicts.iter_mut().zip(&self.each) {
            // With a budget for the account, an offer has a price.
            if let Verdict::Fits { offer, .. } = verdict
                && let Some(price) = offer.cost.hourly_equivalent.known()
                && let Err(over) = room.hold(&title, price)
            {
                *verdict = Verdict::Out(over.at(blame(choice, offer.place)));
            }
        }
    }

    /// Decides which choices remain, and plans their common values. Returns the highest price among them.
    fn decide(&self, plan: &mut CreatePlan<Instance>) -> Option<Number> {
        let planned = &mut plan.planned;
        let is_whole = !self.has_choice()
            || self.config.candidates.known().is_some_and(|candidates| candidates.len() == self.each.len());
        let offers = match &self.kept {
            Some(kept) => kept.clone(),
            None if !is_whole || self.verdicts.iter().any(|it| matches!(it, Verdict::Open)) => {
                return None;
            }
            None => self.offers().cloned().collect(),
        };
        if let Err(diagnostic) = self.has_stock(&offers) {
            let is_over = diagnostic.is_error() && (self.has_choice() || offers.is_empty());
            plan.diagnostics.push(diagnostic);
            if is_over {
                return None;
            }
        }
        self.plan_common_values(planned, &offers);
        plan.private.insert(OFFERS, &offers);
        planned.price_ceiling.known().cloned()
    }

    fn offers(&self) -> impl Iterator<Item = &Offer> {
        self.verdicts.iter().filter_map(|verdict| match verdict {
            Verdict::Fits { offer, .. } => Some(offer.as_ref()),
            Verdict::Open | Verdict::Out(_) => None,
        })
    }

    /// Checks that at least one offer may be bought now; otherwise the diagnostic has the reason for each choice.
    fn has_stock(&self, offers: &[Offer]) -> Result<(), Diagnostic> {
        let of = |offer: &Offer| self.verdicts.get(offer.place);
        let is_open = |verdict: &Verdict| matches!(verdict, Verdict::Open | Verdict::Fits { shortage: None, .. });
        if offers.iter().filter_map(of).any(is_open) {
            return Ok(());
        }
        if !self.has_choice() {
            return match self.verdicts.first() {
                Some(Verdict::Out(reason)) => Err(reason.clone()),
                Some(Verdict::Fits { shortage: Some(shortage), .. }) => Err(shortage.diagnostic(&self.planned)),
                _ => Ok(()),
            };
        }
        let each = self.each.iter().zip(&self.verdicts);
        let lines = each.map(|(choice, verdict)| format!("- {}: {}", candidates::title(choice), verdict.reason()));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let can_wait = offers.iter().filter_map(of).any(|verdict| matches!(verdict, Verdict::Fits { .. }));
        let title = self.planned.title();
        let diagnostic = match (can_wait, self.planned.wait_for_capacity.is_null()) {
            (true, false) => Diagnostic::warning(
                format!("No candidate of {title} has stock now"),
                format!("{lines}\n\nThe apply will wait for capacity."),
            ),
            (true, true) => Diagnostic::error(
                format!("No candidate of {title} has stock now"),
                format!("{lines}\n\nThis instance was not bought. To wait for capacity, set wait_for_capacity."),
            ),
            (false, _) => Diagnostic::error(
                format!("No candidate of {title} can be created"),
                format!(
                    "{lines}\n\nThis instance was not bought. The data source damodel_specs lists the specifications \
                     of a region."
                ),
            ),
        };
        Err(diagnostic.at(Path::to("candidates")))
    }

    /// Plans the common values of the remaining choices.
    fn plan_common_values(&self, planned: &mut Instance, offers: &[Offer]) {
        let open = |text: &Option<String>| text.clone().map_or(Attr::Unknown, Attr::Known);
        let left = offers.iter().filter_map(|offer| {
            let choice = self.each.get(offer.place)?.clone();
            Some(Instance {
                spec_id: Attr::Known(offer.spec_id),
                spec_type: open(&offer.spec_type),
                gpu_name: open(&offer.gpu_name),
                capacity_type: open(&offer.capacity_type),
                ..choice
            })
        });
        let left: Vec<Instance> = left.collect();
        if self.has_choice() || !left.is_empty() {
            candidates::plan_common(&self.config, planned, &left);
        }
        if let [only] = offers
            && !only.is_spot
        {
            planned.estimated_cost = Attr::Known(only.cost.clone());
        }
        if !offers.is_empty() {
            let prices: Option<Vec<&Number>> = offers.iter().map(|it| it.cost.hourly_equivalent.known()).collect();
            planned.price_ceiling = prices.and_then(|prices| prices.into_iter().max().cloned()).into();
        }
    }
}

impl Offer {
    fn of(place: usize, spec: &WithJson<Spec>, cost: EstimatedCost) -> Self {
        Self {
            place,
            spec_id: spec.spec_id,
            spec_type: spec.spec_type.clone(),
            gpu_name: spec.gpu_name.clone(),
            capacity_type: spec.capacity_type.clone(),
            is_spot: is_spot(spec),
            cost,
        }
    }
}

/// The key of stored offers: everything that they depend on.
fn list_key(each: &[Instance], client: &ProviderClient) -> String {
    let mut parts: Vec<String> = each.iter().map(|choice| key(choice, client)).collect();
    if let Some(choice) = each.first().filter(|choice| candidates::has_choice(choice)) {
        let image = (&choice.image, &choice.image_id, &choice.image_type);
        // With a budget for the account, the remaining candidates depend on the other instances, so the key contains
        // the instance.
        parts.push(format!("{image:?} {:?} {:?}", choice.name, choice.hostname));
        let budgets = (&client.max_hourly_price, &client.max_prepaid_total);
        parts.push(format!("{budgets:?} {:?}", client.account_budget.as_ref().map(AccountBudget::most)));
    }
    parts.join("|")
}

/// The key of a quote: everything that the price depends on.
fn key(planned: &Instance, client: &ProviderClient) -> String {
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
