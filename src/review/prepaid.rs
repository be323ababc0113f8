//! Terms that are paid ahead.

use serde::Serialize;
use serde_json::Value;

use super::{
    actions::Action,
    cost::INSTANCE,
    money::Money,
    plan::{Change, Plan},
    values::{Seen, Values},
};

/// A prepaid machine that a plan buys or gives up.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    /// The machine's address.
    pub address: String,
    /// What the plan does to it.
    pub action: Action,
    /// What is done to the term.
    pub kind: TermKind,
    /// `Daily`, `Weekly`, `Monthly`; none when it is not known or not to be shown.
    pub payment_type: Option<String>,
    /// How many days, weeks or months.
    pub periods: Option<i64>,
    /// What is paid for all of them, where the service names a price.
    pub total: Option<Money>,
    /// Whether the service goes on buying by itself.
    pub auto_renew: bool,
    /// When what is given up would have ended, as the service says it.
    pub until: Option<String>,
}

/// What is done to a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TermKind {
    /// It is bought.
    Bought,
    /// It is given up before its end, and nothing is paid back.
    GivenUp,
}

impl Term {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let machines = || plan.changes.iter().filter(|change| change.is(INSTANCE));
        let bought = machines().filter(|change| change.action.makes() && is_prepaid(&change.side.after));
        let given_up = machines().filter(|change| change.action.destroys() && is_prepaid(&change.side.before));
        let bought = bought.map(|change| Self::of(change, TermKind::Bought, &change.side.after));
        bought.chain(given_up.map(|change| Self::of(change, TermKind::GivenUp, &change.side.before))).collect()
    }

    fn of(change: &Change, kind: TermKind, machine: &Values) -> Self {
        let until = ["release_time", "rent_deadline"].iter().find_map(|name| machine.text(&[name]));
        Self {
            address: change.title(),
            action: change.action,
            kind,
            payment_type: machine.text(&["payment_type"]).map(str::to_owned),
            periods: machine.number(&["purchase_duration"]).and_then(serde_json::Number::as_i64),
            total: machine.number(&["estimated_cost", "period_total"]).and_then(Money::of),
            auto_renew: machine.at(&["auto_renew"]) == Seen::Known(&Value::Bool(true)),
            until: until.filter(|text| kind == TermKind::GivenUp && *text != "0").map(str::to_owned),
        }
    }
}

/// Whether it is paid ahead, or may be.
fn is_prepaid(machine: &Values) -> bool {
    match machine.at(&["payment_type"]) {
        Seen::Known(payment) => payment != "Hourly",
        // Without the argument it is Hourly.
        Seen::Null => false,
        Seen::Sensitive | Seen::Unknown => true,
    }
}
