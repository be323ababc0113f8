//! The costs of a plan's instances before and after it, their prepaid terms, and their candidate specifications. The
//! service has prices for instances alone.

use std::{borrow::Cow, collections::BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{
    super::{
        address::Address,
        plan::{Change, ChangeAction, INSTANCE, Plan, Stated},
        values::{ShownValue, Values, shown},
    },
    money::{Money, Price, price},
};

/// The costs of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// All instances, those without a change too.
    pub instances: Vec<CostRow>,
}

/// The costs of several instances.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sums {
    /// The costs before the plan.
    pub now: Total,
    /// The costs after it: what the plan leaves billed, in the state or not.
    pub after: Total,
    /// The monthly increase (or decrease) of the known prices.
    pub monthly_change: Money,
    /// The number of instances that may cost more after the plan, by an unknown amount.
    pub unknown_increases: usize,
    /// Whether a price of an instance is a maximum.
    pub is_ceiling: bool,
}

/// A sum over several instances.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Total {
    /// The sum of the known prices per month.
    pub monthly: Money,
    /// The number of instances with an unknown price.
    pub unknown: usize,
}

/// The costs of one instance.
#[derive(Clone, Debug, Serialize)]
pub struct CostRow {
    /// Its address.
    #[serde(flatten)]
    pub address: Address,
    /// Its address before, if it is moved.
    #[serde(serialize_with = "Address::serialize_text")]
    pub previous_address: Option<Address>,
    /// The planned action; `None` if the plan does not contain it, or not in a readable form.
    pub action: Option<ChangeAction>,
    /// Before the plan.
    pub now: Amount,
    /// After it.
    pub after: Amount,
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
    pub(super) fn of(plan: &Plan) -> Self {
        let changed = plan.changes.iter().filter(|change| change.is(INSTANCE)).map(CostRow::of);
        let entries: BTreeSet<&Address> = plan.changes.iter().map(|change| &change.address).collect();
        let prior = plan.prior.iter().filter(|stated| stated.managed && stated.kind == INSTANCE);
        let left_out = prior
            .filter(|stated| !entries.contains(&stated.address))
            .map(|stated| CostRow::of_state(stated, plan.unread.contains(&stated.address)));
        let is_billed = |row: &CostRow| row.now != Amount::Nothing || row.after != Amount::Nothing;
        let instances: Vec<CostRow> = changed.chain(left_out).filter(is_billed).collect();
        Self { sums: Sums::of(&instances), instances }
    }
}

impl Sums {
    pub(crate) fn of<'a>(rows: impl IntoIterator<Item = &'a CostRow>) -> Self {
        let mut sums = Self::default();
        for row in rows {
            sums.now.add(&row.now);
            sums.after.add(&row.after);
            sums.is_ceiling |= row.is_ceiling;
            match row.change() {
                Ok(change) => sums.monthly_change += &change,
                Err(_) => sums.unknown_increases += 1,
            }
        }
        sums
    }
}

impl Total {
    fn add(&mut self, amount: &Amount) {
        self.monthly += &amount.monthly();
        self.unknown += usize::from(matches!(amount, Amount::Unknown { .. }));
    }
}

impl CostRow {
    fn of(change: &Change) -> Self {
        let action = change.action;
        let amount =
            |is_there: bool, values: &Values| if is_there { Amount::of(price(values)) } else { Amount::Nothing };
        let now = amount(action != ChangeAction::Create, &change.before);
        let mut after = amount(action.keeps(), &change.after);
        if action.forgets() {
            // It is removed from the state and still billed.
            after = now.clone().and(after);
        }
        Self {
            address: change.address.clone(),
            previous_address: change.moved_from.clone(),
            action: Some(action),
            now,
            after,
            is_ceiling: action.keeps() && price(&change.after).is_ok_and(|price| price.is_ceiling),
            candidates: action.keeps().then(|| Candidates::of(&change.after)).flatten(),
        }
    }

    /// An instance of the state without a readable change.
    fn of_state(stated: &Stated, is_unread: bool) -> Self {
        let now = Amount::of(price(&stated.values));
        let unknown = Amount::Unknown { why: "its change in the plan is unreadable".into() };
        Self {
            address: stated.address.clone(),
            previous_address: None,
            action: None,
            after: if is_unread { unknown } else { now.clone() },
            now,
            is_ceiling: price(&stated.values).is_ok_and(|price| price.is_ceiling),
            candidates: Candidates::of(&stated.values),
        }
    }

    /// The change of the monthly costs, or the reason why it is unknown.
    ///
    /// An unknown price that ends counts as 0, because its end can only lower the costs.
    pub(crate) fn change(&self) -> Result<Money, Cow<'static, str>> {
        let makes = self.action.is_some_and(ChangeAction::makes);
        match (&self.now, &self.after) {
            // An instance that is not created again keeps its price.
            (Amount::Unknown { .. }, Amount::Unknown { .. }) if !makes => Ok(Money::default()),
            (_, Amount::Unknown { why }) => Err(why.clone()),
            (now, after) => Ok(after.monthly() - &now.monthly()),
        }
    }
}

impl Amount {
    /// The costs of a month; 0 if they are unknown.
    pub(crate) fn monthly(&self) -> Money {
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

/// The term of a prepaid instance that a plan buys or ends early.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    /// The object's address.
    #[serde(flatten)]
    pub address: Address,
    /// Whether the term is bought, or given up before its end without a refund.
    pub is_bought: bool,
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

impl Term {
    /// The terms that a plan buys, and then those that it gives up.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let instances = || plan.changes.iter().filter(|change| change.is(INSTANCE));
        let bought = instances().filter(|change| change.action.makes() && is_prepaid(&change.after));
        let bought = bought.map(|change| Self { is_bought: true, until: None, ..Self::of(change, &change.after) });
        let given_up = instances().filter(|change| change.action.destroys() && is_prepaid(&change.before));
        bought.chain(given_up.map(|change| Self::of(change, &change.before))).collect()
    }

    fn of(change: &Change, instance: &Values) -> Self {
        let until = ["release_time", "rent_deadline"].iter().find_map(|name| instance.text(&["reported", name]));
        Self {
            address: change.address.clone(),
            is_bought: false,
            payment_type: instance.text(&["payment_type"]).map(str::to_owned),
            periods: instance.number(&["purchase_duration"]).and_then(serde_json::Number::as_i64),
            total: instance.number(&["estimated_cost", "period_total"]).and_then(Money::of),
            auto_renew: instance.at(&["auto_renew"]) == ShownValue::Known(&Value::Bool(true)),
            until: until.filter(|text| *text != "0").map(str::to_owned),
        }
    }
}

/// Whether the instance is or may be prepaid.
pub(super) fn is_prepaid(instance: &Values) -> bool {
    match instance.at(&["payment_type"]) {
        ShownValue::Known(payment) => payment != "Hourly",
        // The default of the argument is Hourly.
        ShownValue::Null => false,
        ShownValue::Sensitive | ShownValue::Unknown => true,
    }
}

/// The specifications among which an apply chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidates {
    /// Each one in order of preference, if it is not sensitive.
    pub options: Vec<String>,
    /// The chosen one, if it is known.
    pub choice: Option<String>,
}

impl Candidates {
    /// The candidates of an instance; `None` if it has a fixed specification.
    fn of(instance: &Values) -> Option<Self> {
        let written = |candidate: &Values| written(candidate).unwrap_or_else(|| "(sensitive)".to_owned());
        let options: Vec<String> = instance.elements("candidates").iter().map(written).collect();
        (!options.is_empty()).then(|| Self { options, choice: self::written(instance) })
    }
}

/// A specification with its number of GPUs and its region: `2 × gpu.a1 in region-1`; `None` while it is unknown.
fn written(values: &Values) -> Option<String> {
    let spec = match (values.text(&["spec_type"]), values.number(&["spec_id"])) {
        (Some(spec), _) => spec.to_owned(),
        (None, Some(id)) => format!("spec_id {id}"),
        (None, None) => return None,
    };
    let count = values.number(&["gpu_num"]).map(|count| format!("{count} \u{d7} ")).unwrap_or_default();
    let region = match values.at(&["region"]) {
        ShownValue::Null => String::new(),
        ShownValue::Known(region) => format!(" in {}", region.as_str().unwrap_or_default()),
        hidden => format!(" in {}", shown(hidden)),
    };
    Some(format!("{count}{spec}{region}"))
}
