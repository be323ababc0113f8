//! The cost of an instance, from the prices of its specification (service API, Instance specification).

use std::fmt;

use bigdecimal::{BigDecimal, RoundingMode, Zero};
use serde::{Deserialize, Serialize};

use super::words::discount_status;
use crate::{
    api::{Lenient as _, Listing, Spec, WithJson},
    framework::{
        Attr, Type,
        schema::{Attribute, AttributeType, Nesting},
        value::Number,
    },
    review::rules::hours,
};

/// The decimal places of a price that results from a division.
const DIGITS: i64 = 6;

/// The cost of an instance. Parts without a price of the service are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EstimatedCost {
    pub(super) payment_type: Attr<String>,
    pub(super) unit_price: Attr<Number>,
    pub(super) data_disk_price: Attr<Number>,
    pub(super) period_total: Attr<Number>,
    pub(crate) hourly_equivalent: Attr<Number>,
    pub(super) discount: Attr<Number>,
    pub(super) discount_status: Attr<String>,
}

impl EstimatedCost {
    /// Whether it has the parts that a quote has.
    pub(super) fn is_priced_like(&self, quote: &Self) -> bool {
        let has = |quote: &Attr<Number>, live: &Attr<Number>| quote.known().is_none() || live.is_known();
        has(&quote.unit_price, &self.unit_price) && has(&quote.period_total, &self.period_total)
    }

    /// Whether it is above a quote.
    pub(super) fn is_above(&self, quote: &Self) -> bool {
        let above = |live: &Attr<_>, quote: &Attr<_>| match (live, quote) {
            (Attr::Known(live), Attr::Known(quote)) => live > quote,
            _ => false,
        };
        above(&self.period_total, &quote.period_total)
            || (quote.period_total.is_null() && above(&self.unit_price, &quote.unit_price))
    }
}

impl fmt::Display for EstimatedCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.period_total.known(), self.hourly_equivalent.known()) {
            (Some(total), Some(hourly)) if self.payment_type.as_str() != Some("Hourly") => {
                write!(f, "{total} in all ({hourly} an hour)")
            }
            (Some(total), _) => write!(f, "{total} an hour"),
            _ => f.write_str("no price"),
        }
    }
}

/// The inputs of an instance's price besides its specification.
#[derive(Clone, Debug)]
pub(crate) struct PriceTerms<'a> {
    /// `Hourly`, `Daily`, `Weekly` or `Monthly`.
    pub(crate) payment_type: &'a str,
    /// The number of days, weeks or months.
    pub(crate) purchase_duration: i64,
    /// The number of GPUs.
    pub(crate) gpu_num: i64,
    /// Extra local data disk in GB.
    pub(crate) data_disk_expand_size_gb: i64,
}

/// The payment types of an instance (service API, POST /api/instance/create).
pub(super) const PAYMENT_TYPES: &[&str] = &["Hourly", "Daily", "Weekly", "Monthly"];

/// The prices of a specification for one period of a payment type. The service has no weekly price.
#[derive(Clone, Debug, Default)]
pub(super) struct Prices {
    /// The price of one GPU.
    pub(super) price: Option<BigDecimal>,
    /// The price of one GB of extra local data disk.
    pub(super) data_disk_price: Option<BigDecimal>,
    /// The discount as the service reports it.
    pub(super) discount: Option<BigDecimal>,
    /// The word for the discount's status.
    pub(super) discount_status: Option<String>,
}

/// The specification that a number or, without one, a code selects; the number takes precedence (service API, POST
/// /api/instance/create, rule 2).
pub(super) fn select<'a>(
    specs: &'a Listing<WithJson<Spec>>,
    spec_id: Option<i64>,
    spec_type: Option<&str>,
) -> Option<&'a WithJson<Spec>> {
    specs.records.iter().find(|spec| match spec_id {
        Some(id) => spec.spec_id == id,
        None => spec_type.is_some() && spec.spec_type.as_deref() == spec_type,
    })
}

/// The cost of an order at the prices of a specification.
pub(crate) fn estimate(spec: &WithJson<Spec>, order: &PriceTerms<'_>) -> EstimatedCost {
    cost(&Prices::of(spec, order.payment_type), order)
}

/// The cost of an order at these prices, which must be those of its payment type.
pub(super) fn cost(prices: &Prices, order: &PriceTerms<'_>) -> EstimatedCost {
    let mut cost = EstimatedCost { payment_type: order.payment_type.into(), ..EstimatedCost::default() };
    let Some(hours) = hours(order.payment_type) else { return cost };
    let times = |price: &Option<BigDecimal>, count: i64| price.as_ref().map(|price| price * BigDecimal::from(count));
    let unit = times(&prices.price, order.gpu_num);
    let disk = if order.data_disk_expand_size_gb == 0 {
        Some(BigDecimal::zero())
    } else {
        times(&prices.data_disk_price, order.data_disk_expand_size_gb)
    };
    if let (Some(unit), Some(disk)) = (&unit, &disk) {
        let sum = unit + disk;
        let periods = if order.payment_type == "Hourly" { 1 } else { order.purchase_duration };
        cost.hourly_equivalent = rounded(&sum / BigDecimal::from(hours));
        cost.period_total = Attr::Known((sum * BigDecimal::from(periods)).into());
    }
    cost.unit_price = unit.map(Number::from).into();
    cost.data_disk_price = disk.map(Number::from).into();
    cost.discount = prices.discount.clone().map(Number::from).into();
    cost.discount_status = prices.discount_status.clone().into();
    cost
}

impl Prices {
    /// Those of a specification for a payment type.
    pub(super) fn of(spec: &WithJson<Spec>, payment_type: &str) -> Self {
        let period = match payment_type {
            "Hourly" => "hourly",
            "Daily" => "daily",
            "Monthly" => "monthly",
            _ => return Self::default(),
        };
        let field = |name: &str| spec.json.get(format!("{period}_{name}"));
        let decimal = |name: &str| field(name).and_then(BigDecimal::read);
        Self {
            price: decimal("price"),
            data_disk_price: decimal("data_disk_price"),
            discount: decimal("discount"),
            discount_status: field("discount_status").and_then(i64::read).map(discount_status),
        }
    }
}

fn rounded(price: BigDecimal) -> Attr<Number> {
    Attr::Known(price.with_scale_round(DIGITS, RoundingMode::HalfEven).into())
}

/// The schema of a cost.
pub(super) fn attribute(name: &'static str, description: &str) -> Attribute {
    Attribute::computed(name, AttributeType::Nested(Nesting::Single, attributes()), description)
}

fn attributes() -> Vec<Attribute> {
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        Attribute::computed("payment_type", Type::String, "The payment type."),
        number("unit_price", "The GPU price of the whole instance for one period."),
        number("data_disk_price", "The price of the extra data disk for one period."),
        number("period_total", "(GPU + disk price) × `purchase_duration`; `Hourly`: one hour."),
        number("hourly_equivalent", "The sum of both for one hour; a month has 730 hours."),
        number("discount", "The discount as the service reports it; it is not applied."),
        Attribute::computed(
            "discount_status",
            Type::String,
            "`none`, `voided`, `not_yet_effective`, `expired`, `effective` or `effective_with_next`.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> WithJson<Spec> {
        serde_json::from_value(json!({
            "spec_id": 1, "hourly_price": 1.98, "hourly_data_disk_price": 0.0004, "daily_price": 40,
            "monthly_price": 1000.1, "monthly_data_disk_price": 0.2, "hourly_discount": 0.9,
                "hourly_discount_status": 4,
        }))
        .unwrap()
    }

    fn cost(payment_type: &str, purchase_duration: i64, gpu_num: i64, data_disk_expand_size_gb: i64) -> EstimatedCost {
        estimate(&spec(), &PriceTerms { payment_type, purchase_duration, gpu_num, data_disk_expand_size_gb })
    }

    fn known(number: &Attr<Number>) -> String {
        number.known().unwrap().to_string()
    }

    #[test]
    fn by_the_hour_a_duration_means_nothing() {
        let cost = cost("Hourly", 5, 2, 100);
        assert_eq!(known(&cost.unit_price), "3.96");
        assert_eq!(known(&cost.data_disk_price), "0.04");
        assert_eq!(known(&cost.period_total), "4");
        assert_eq!(known(&cost.hourly_equivalent), "4");
        assert_eq!(cost.discount_status.as_str(), Some("effective"));
    }

    #[test]
    fn a_prepaid_term_is_multiplied() {
        let cost = cost("Monthly", 3, 1, 10);
        assert_eq!(known(&cost.period_total), "3006.3");
        assert_eq!(known(&cost.hourly_equivalent), "1.37274");
    }

    #[test]
    fn what_has_no_price_is_null() {
        let weekly = cost("Weekly", 1, 1, 0);
        assert!(weekly.unit_price.is_null() && weekly.hourly_equivalent.is_null());
        let daily = cost("Daily", 1, 1, 10);
        assert_eq!(known(&daily.unit_price), "40");
        assert!(daily.data_disk_price.is_null() && daily.period_total.is_null());
    }
}
