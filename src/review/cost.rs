//! The costs of a plan's instances before and after it, their prepaid terms, and their candidate specifications. The
//! service has prices for instances alone.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    changes::ChangeAction,
    money::{Money, Price, price},
    plan::{ResourceChange, ReviewedPlan, Stated},
    policy_file::module_of,
    values::{ChangeSide, ShownValue, told},
};
use crate::provider::pricing::HOURS_A_MONTH;

/// The resource type that has prices.
pub(super) const INSTANCE: &str = "damodel_instance";

/// A resource type without prices.
pub(super) const CLOUD_DISK: &str = "damodel_cloud_disk";

/// A resource type without prices.
pub(super) const PRIVATE_IMAGE: &str = "damodel_private_image";

/// The costs of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The unit of every sum.
    pub currency: &'static str,
    /// The hours of a month in every sum.
    pub hours_per_month: u32,
    /// The costs before the plan.
    pub now: Total,
    /// The costs after it.
    pub after: Total,
    /// The monthly increase (or decrease) of the known prices.
    pub monthly_change: Money,
    /// The instances that may cost more after the plan, by an unknown amount.
    pub unknown_increases: Vec<Unpriced>,
    /// The sums by module; the root module is "".
    pub modules: BTreeMap<String, Sums>,
    /// All instances.
    pub resources: Vec<CostRow>,
    /// The number of cloud disks and private images after the plan, for which the service has no prices.
    pub unpriced_disks_and_images: usize,
}

/// The costs of several instances.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sums {
    /// The costs before the plan.
    pub now: Total,
    /// The costs after it.
    pub after: Total,
    /// The monthly increase (or decrease) of the known prices.
    pub monthly_change: Money,
    /// The number of instances that may cost more after the plan, by an unknown amount.
    pub unknown_increases: usize,
}

/// A sum over several instances.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Total {
    /// The sum of the known prices per hour.
    pub hourly: Money,
    /// The sum of the known prices per month.
    pub monthly: Money,
    /// The number of instances with an unknown price.
    pub unknown: usize,
}

/// An instance that may cost more than before.
#[derive(Clone, Debug, Serialize)]
pub struct Unpriced {
    /// Its address.
    pub address: String,
    /// The reason why its price is unknown.
    pub why: Cow<'static, str>,
}

/// The costs of one instance.
#[derive(Clone, Debug, Serialize)]
pub struct CostRow {
    /// Its address.
    pub address: String,
    /// Its address before, if it is moved.
    pub previous_address: Option<String>,
    /// The planned action; `None` if the plan does not contain it, or not in a readable form.
    pub action: Option<ChangeAction>,
    /// Whether it is removed from the state and still billed.
    pub forgotten: bool,
    /// Before the plan.
    pub now: Amount,
    /// After it.
    pub after: Amount,
    /// The monthly difference, if it is known.
    pub monthly_change: Option<Money>,
    /// Whether the price after the plan is a ceiling (`price_ceiling`) instead of a quote.
    pub is_ceiling: bool,
    /// The specifications among which the apply chooses.
    pub candidates: Option<Candidates>,
}

/// The costs on one side of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Amount {
    /// The price is known.
    Known {
        /// Per hour.
        hourly: Money,
        /// Per month.
        monthly: Money,
    },
    /// The instance does not exist.
    Nothing,
    /// The instance exists, and its price is unknown.
    Unknown {
        /// The reason.
        why: Cow<'static, str>,
    },
}

impl Cost {
    pub(super) fn of(plan: &ReviewedPlan) -> Self {
        let changed = plan.changes.iter().filter(|change| change.is(INSTANCE)).map(row);
        let in_plan: BTreeSet<&str> = plan.changes.iter().map(|change| change.address.as_str()).collect();
        let prior = plan.prior.iter().filter(|stated| stated.managed && stated.kind == INSTANCE);
        let left_out = prior
            .filter(|stated| !in_plan.contains(stated.address.as_str()))
            .map(|stated| untouched(stated, plan.unread.contains(&stated.address)));
        let resources: Vec<CostRow> = changed.chain(left_out).filter(CostRow::is_something).collect();
        let mut of_modules: BTreeMap<String, Vec<&CostRow>> = BTreeMap::new();
        for row in &resources {
            of_modules.entry(module_of(&row.address).to_owned()).or_default().push(row);
        }
        let modules = of_modules.into_iter().map(|(module, rows)| (module, Sums::of(rows))).collect();
        let Sums { now, after, monthly_change, .. } = Sums::of(&resources);
        let unknown = |row: &CostRow| Some(Unpriced { address: row.address.clone(), why: row.change().err()? });
        Self {
            currency: "the service's currency",
            hours_per_month: HOURS_A_MONTH,
            now,
            after,
            monthly_change,
            unknown_increases: resources.iter().filter_map(unknown).collect(),
            modules,
            resources,
            unpriced_disks_and_images: unpriced(plan),
        }
    }
}

impl Sums {
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a CostRow>) -> Self {
        let mut sums = Self::default();
        for row in rows {
            sums.now.add(&row.now);
            sums.after.add(&row.after);
            match row.change() {
                Ok(change) => sums.monthly_change += &change,
                Err(_) => sums.unknown_increases += 1,
            }
        }
        sums
    }

    /// Adds other sums.
    pub(super) fn add(&mut self, other: &Self) {
        for (total, other) in [(&mut self.now, &other.now), (&mut self.after, &other.after)] {
            total.hourly += &other.hourly;
            total.monthly += &other.monthly;
            total.unknown += other.unknown;
        }
        self.monthly_change += &other.monthly_change;
        self.unknown_increases += other.unknown_increases;
    }
}

impl Total {
    fn add(&mut self, amount: &Amount) {
        match amount {
            Amount::Known { hourly, monthly } => {
                self.hourly += hourly;
                self.monthly += monthly;
            }
            Amount::Nothing => {}
            Amount::Unknown { .. } => self.unknown += 1,
        }
    }
}

impl CostRow {
    /// The change of the monthly costs, or the reason why it is unknown.
    ///
    /// An unknown price that ends counts as 0, because its end can only lower the costs.
    pub(super) fn change(&self) -> Result<Money, Cow<'static, str>> {
        let makes = self.action.is_some_and(ChangeAction::makes);
        match (&self.now, &self.after) {
            // An instance that is not created again keeps its price.
            (Amount::Unknown { .. }, Amount::Unknown { .. }) if !makes => Ok(Money::default()),
            (_, Amount::Unknown { why }) => Err(why.clone()),
            (now, after) => Ok(after.monthly() - &now.monthly()),
        }
    }

    fn is_something(&self) -> bool {
        self.now != Amount::Nothing || self.after != Amount::Nothing
    }
}

impl Amount {
    /// The costs of a month; 0 if they are unknown.
    pub(super) fn monthly(&self) -> Money {
        match self {
            Self::Known { monthly, .. } => monthly.clone(),
            Self::Nothing | Self::Unknown { .. } => Money::default(),
        }
    }

    fn of(price: Result<Price, &'static str>) -> Self {
        match price {
            Ok(Price { hourly, monthly, .. }) => Self::Known { hourly, monthly },
            Err(why) => Self::Unknown { why: why.into() },
        }
    }

    /// The sum of two amounts, for an instance that is billed beside its replacement.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, amount) | (amount, Self::Nothing) => amount,
            (Self::Unknown { why }, _) | (_, Self::Unknown { why }) => Self::Unknown { why },
            (Self::Known { hourly, monthly }, Self::Known { hourly: more, monthly: months }) => {
                Self::Known { hourly: hourly + &more, monthly: monthly + &months }
            }
        }
    }
}

fn row(change: &ResourceChange) -> CostRow {
    let (action, side) = (change.action, &change.side);
    let amount = |exists: bool, values: &ChangeSide| if exists { Amount::of(price(values)) } else { Amount::Nothing };
    let now = amount(action != ChangeAction::Create, &side.before);
    let mut after = amount(action.keeps(), &side.after);
    if action.forgets() {
        // It is removed from the state and still billed.
        after = now.clone().and(after);
    }
    let is_known = !matches!((&now, &after), (Amount::Unknown { .. }, _) | (_, Amount::Unknown { .. }));
    CostRow {
        address: change.title(),
        previous_address: change.moved_from().cloned(),
        action: Some(action),
        forgotten: action.forgets(),
        monthly_change: is_known.then(|| after.monthly() - &now.monthly()),
        now,
        after,
        is_ceiling: action.keeps() && price(&side.after).is_ok_and(|price| price.is_ceiling),
        candidates: action.keeps().then(|| Candidates::of(&side.after)).flatten(),
    }
}

/// An instance of the state without a readable change.
fn untouched(stated: &Stated, is_unread: bool) -> CostRow {
    let now = Amount::of(price(&stated.values));
    let after = if is_unread { Amount::Unknown { why: UNREAD.into() } } else { now.clone() };
    CostRow {
        address: stated.address.clone(),
        previous_address: None,
        action: None,
        forgotten: false,
        monthly_change: matches!(after, Amount::Known { .. }).then(Money::default),
        now,
        after,
        is_ceiling: price(&stated.values).is_ok_and(|price| price.is_ceiling),
        candidates: Candidates::of(&stated.values),
    }
}

/// Why the price of an object is unknown whose change is a fault of the plan.
pub(super) const UNREAD: &str = "its change in the plan is unreadable";

fn unpriced(plan: &ReviewedPlan) -> usize {
    let is_unpriced = |change: &&ResourceChange| [CLOUD_DISK, PRIVATE_IMAGE].iter().any(|kind| change.is(kind));
    plan.changes.iter().filter(is_unpriced).filter(|change| change.action.keeps()).count()
}

/// The term of a prepaid instance that a plan buys or ends early.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    /// The object's address.
    pub address: String,
    /// The planned action.
    pub action: ChangeAction,
    /// Whether the term is bought or given up.
    pub kind: TermKind,
    /// `Daily`, `Weekly` or `Monthly`; `None` if it is unknown or sensitive.
    pub payment_type: Option<String>,
    /// The number of days, weeks or months.
    pub periods: Option<i64>,
    /// The price of the whole term, if the service quotes one.
    pub total: Option<Money>,
    /// Whether the service renews the term automatically.
    pub auto_renew: bool,
    /// The end of a term that is given up, in the service's format.
    pub until: Option<String>,
}

/// The change of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TermKind {
    /// It is bought.
    Bought,
    /// It is given up before its end, without a refund.
    GivenUp,
}

impl Term {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let (mut bought, mut given_up) = (Vec::new(), Vec::new());
        for change in plan.changes.iter().filter(|change| change.is(INSTANCE)) {
            if change.action.makes() && is_prepaid(&change.side.after) {
                bought.push(Self::of(change, TermKind::Bought, &change.side.after));
            }
            if change.action.destroys() && is_prepaid(&change.side.before) {
                given_up.push(Self::of(change, TermKind::GivenUp, &change.side.before));
            }
        }
        bought.extend(given_up);
        bought
    }

    fn of(change: &ResourceChange, kind: TermKind, machine: &ChangeSide) -> Self {
        let until = ["release_time", "rent_deadline"].iter().find_map(|name| machine.text(&[name]));
        Self {
            address: change.title(),
            action: change.action,
            kind,
            payment_type: machine.text(&["payment_type"]).map(str::to_owned),
            periods: machine.number(&["purchase_duration"]).and_then(serde_json::Number::as_i64),
            total: machine.number(&["estimated_cost", "period_total"]).and_then(Money::of),
            auto_renew: machine.at(&["auto_renew"]) == ShownValue::Known(&Value::Bool(true)),
            until: until.filter(|text| kind == TermKind::GivenUp && *text != "0").map(str::to_owned),
        }
    }
}

/// Whether the instance is or may be prepaid.
fn is_prepaid(machine: &ChangeSide) -> bool {
    match machine.at(&["payment_type"]) {
        ShownValue::Known(payment) => payment != "Hourly",
        // The default of the argument is Hourly.
        ShownValue::Null => false,
        ShownValue::Sensitive | ShownValue::Unknown => true,
    }
}

/// The specifications among which an apply chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidates {
    /// Their number.
    pub count: usize,
    /// Each one in order of preference, if it is not sensitive.
    pub options: Vec<String>,
    /// The chosen one, if it is known.
    pub choice: Option<String>,
}

impl Candidates {
    /// The candidates of an instance; `None` if it has a fixed specification.
    pub(super) fn of(instance: &ChangeSide) -> Option<Self> {
        let candidates = instance.elements("candidates");
        (!candidates.is_empty()).then(|| Self {
            count: candidates.len(),
            options: candidates
                .iter()
                .map(|candidate| written(candidate).unwrap_or_else(|| "(sensitive)".to_owned()))
                .collect(),
            choice: written(instance),
        })
    }
}

/// A specification with its number of GPUs and its region: `2 × gpu.a1 in region-1`; `None` while it is unknown.
fn written(values: &ChangeSide) -> Option<String> {
    let spec = match (values.text(&["spec_type"]), values.number(&["spec_id"])) {
        (Some(spec), _) => spec.to_owned(),
        (None, Some(id)) => format!("spec_id {id}"),
        (None, None) => return None,
    };
    let count = values.number(&["gpu_num"]).map(|count| format!("{count} \u{d7} ")).unwrap_or_default();
    let region = match values.at(&["region"]) {
        ShownValue::Null => String::new(),
        ShownValue::Known(region) => format!(" in {}", region.as_str().unwrap_or_default()),
        seen => format!(" in {}", told(seen)),
    };
    Some(format!("{count}{spec}{region}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_choice_is_told_once_it_is_known() {
        let instance = json!({"candidates": [
            {"spec_id": 101, "spec_type": null, "region": null, "gpu_num": 1},
            {"spec_id": null, "spec_type": "gpu.b", "region": "r2", "gpu_num": 2}
        ], "spec_type": "gpu.b", "region": "r2", "gpu_num": 2});
        let known = Candidates::of(&ChangeSide::new(Some(&instance), None, None)).unwrap();
        assert_eq!(known.options, ["1 \u{d7} spec_id 101", "2 \u{d7} gpu.b in r2"]);
        assert_eq!((known.count, known.choice.as_deref()), (2, Some("2 \u{d7} gpu.b in r2")));
        let open = json!({"spec_type": true, "spec_id": true, "region": true});
        let mut instance = instance;
        instance["spec_type"] = json!(null);
        assert_eq!(Candidates::of(&ChangeSide::new(Some(&instance), Some(&open), None)).unwrap().choice, None);
        assert_eq!(Candidates::of(&ChangeSide::new(Some(&json!({"candidates": []})), None, None)), None);
    }
}
