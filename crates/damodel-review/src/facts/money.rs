//! Sums of money, and the price of an instance per hour and per month.

use std::{
    ops::{Add, AddAssign, Sub},
    str::FromStr,
};

use bigdecimal::{BigDecimal, One, RoundingMode, Zero};
use serde::{Serialize, Serializer};
use serde_json::Number;

use super::super::{
    rules::{HOURS_A_MONTH, hours, thousands},
    values::{ShownValue, Values},
};

/// The decimal places of a quotient.
const DIGITS: i64 = 6;

/// The maximum digits of a price.
const MOST_DIGITS: u64 = 40;

const SECONDS_AN_HOUR: i64 = 3600;

/// A sum in the service's currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(BigDecimal);

/// The price of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Price {
    pub(super) hourly: Money,
    pub(super) monthly: Money,
    /// Whether this is a maximum, and the actual price may be lower.
    pub(super) is_ceiling: bool,
}

impl Money {
    /// Rounded to `digits` decimal places.
    #[must_use]
    pub fn with_digits(&self, digits: u32) -> String {
        let rounded = self.0.with_scale_round(i64::from(digits), RoundingMode::HalfUp);
        // A value that is rounded to 0 has no sign.
        if rounded.is_zero() { rounded.abs() } else { rounded }.to_plain_string()
    }

    /// With two decimal places and separated thousands.
    #[must_use]
    pub fn grouped(&self) -> String {
        thousands(&self.with_digits(2))
    }

    /// As [`Self::grouped`], with a sign unless it is 0.
    #[must_use]
    pub fn signed(&self) -> String {
        let text = self.grouped();
        let is_positive = self.0 > BigDecimal::zero() && text.contains(|c| matches!(c, '1'..='9'));
        if is_positive { format!("+{text}") } else { text.replacen('-', "\u{2212}", 1) }
    }

    /// As the price of an hour: with four decimal places below 1, else with two.
    pub(crate) fn an_hour(&self) -> String {
        if self.0.abs() < BigDecimal::one() { self.with_digits(4) } else { self.grouped() }
    }

    /// What an hourly price adds up to in a month.
    #[must_use]
    pub fn a_month(&self) -> Self {
        Self(&self.0 * BigDecimal::from(HOURS_A_MONTH))
    }

    /// What an hourly price adds up to in this time.
    #[must_use]
    pub fn of_seconds(&self, seconds: i64) -> Self {
        Self(&self.0 * BigDecimal::from(seconds) / BigDecimal::from(SECONDS_AN_HOUR))
    }

    pub(super) fn of(number: &Number) -> Option<Self> {
        parse(&number.to_string()).map(Self)
    }

    /// The share of another sum in thousandths; 0 if that sum is 0.
    pub(crate) fn thousandths_of(&self, whole: &Self) -> u32 {
        if whole.0.is_zero() {
            return 0;
        }
        let share = (&self.0 * BigDecimal::from(1000) / &whole.0).with_scale_round(0, RoundingMode::HalfUp);
        share.to_plain_string().parse().unwrap_or(0)
    }
}

impl From<BigDecimal> for Money {
    fn from(sum: BigDecimal) -> Self {
        Self(sum)
    }
}

impl FromStr for Money {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let money = parse(text).map(Self).ok_or("not a number")?;
        if money < Self::default() { Err("below 0".to_owned()) } else { Ok(money) }
    }
}

impl Add<&Self> for Money {
    type Output = Self;

    fn add(self, other: &Self) -> Self {
        Self(self.0 + &other.0)
    }
}

impl AddAssign<&Self> for Money {
    fn add_assign(&mut self, other: &Self) {
        self.0 += &other.0;
    }
}

impl Sub<&Self> for Money {
    type Output = Self;

    fn sub(self, other: &Self) -> Self {
        Self(self.0 - &other.0)
    }
}

impl Serialize for Money {
    /// Written as a JSON number with at most six decimal places.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.with_scale_round(DIGITS, RoundingMode::HalfUp).normalized().to_plain_string();
        Number::from_str(&text).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A number of limited size: a sum with a large exponent would fill the memory.
fn parse(text: &str) -> Option<BigDecimal> {
    let number = BigDecimal::from_str(text).ok()?;
    let is_sane = number.digits() <= MOST_DIGITS && number.fractional_digit_count().unsigned_abs() <= MOST_DIGITS;
    is_sane.then_some(number)
}

/// The price of an instance: its `estimated_cost`, or without a quote its `price_ceiling` as a maximum; or the reason
/// why it is unknown.
pub(super) fn price(instance: &Values) -> Result<Price, &'static str> {
    let is_open = matches!(instance.at(&["estimated_cost"]), ShownValue::Unknown | ShownValue::Null);
    let ceiling = || instance.number(&["price_ceiling"]).and_then(Money::of).filter(|price| *price >= Money::default());
    match ceiling().filter(|_| is_open) {
        Some(hourly) => Ok(Price { monthly: hourly.a_month(), hourly, is_ceiling: true }),
        None => quoted(instance),
    }
}

/// The price in `estimated_cost`: `unit_price` and `data_disk_price` are for one period.
fn quoted(instance: &Values) -> Result<Price, &'static str> {
    let cost = |name: &str| instance.number(&["estimated_cost", name]).and_then(Money::of);
    match instance.at(&["estimated_cost"]) {
        ShownValue::Sensitive => return Err("the estimate is marked as sensitive"),
        ShownValue::Unknown => return Err("known after the apply, as with spot"),
        ShownValue::Null => return Err("no quote in the plan"),
        ShownValue::Known(_) => {}
    }
    let payment_type = instance.text(&["estimated_cost", "payment_type"]);
    if payment_type == Some("Weekly") {
        return Err("the service has no weekly price");
    }
    let hours = payment_type.and_then(hours).ok_or("its payment type is unknown")?;
    let period = match (cost("unit_price"), cost("data_disk_price")) {
        (Some(unit), Some(disk)) => unit + &disk,
        _ => return Err("the service has no price for it"),
    };
    if period < Money::default() {
        return Err("its price is below 0");
    }
    let times = |factor: u32| Money(&period.0 * BigDecimal::from(factor) / BigDecimal::from(hours));
    Ok(Price { hourly: times(1), monthly: times(HOURS_A_MONTH), is_ceiling: false })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(cost: serde_json::Value) -> Result<Price, &'static str> {
        price(&Values::new(json!({ "estimated_cost": cost }), serde_json::Value::Null, serde_json::Value::Null))
    }

    #[test]
    fn a_month_has_730_hours() {
        let monthly = |payment: &str, unit: &str, disk: &str| {
            let number = |text: &str| Number::from_str(text).unwrap();
            let cost = json!({"payment_type": payment, "unit_price": number(unit), "data_disk_price": number(disk)});
            of(cost).map(|price| (price.hourly.with_digits(4), price.monthly.with_digits(2)))
        };
        assert_eq!(monthly("Hourly", "1.98", "0"), Ok(("1.9800".into(), "1445.40".into())));
        assert_eq!(monthly("Daily", "48", "2.4"), Ok(("2.1000".into(), "1533.00".into())));
        assert_eq!(monthly("Monthly", "1000.1", "20"), Ok(("1.3974".into(), "1020.10".into())));
        assert!(monthly("Weekly", "1", "1").is_err() && monthly("Hourly", "-1", "0").is_err());
    }

    #[test]
    fn a_part_of_an_hour_is_a_decimal() {
        let of = |seconds: i64| serde_json::to_string(&"1.98".parse::<Money>().unwrap().of_seconds(seconds)).unwrap();
        assert_eq!([of(0), of(1), of(100), of(32_400)], ["0", "0.00055", "0.055", "17.82"]);
    }

    #[test]
    fn a_price_with_a_part_missing_is_not_known() {
        assert!(of(json!(null)).is_err());
        assert!(of(json!({"payment_type": "Hourly", "unit_price": 1, "data_disk_price": null})).is_err());
        assert!(of(json!({"payment_type": "Hourly", "unit_price": "1", "data_disk_price": 0})).is_err());
    }

    #[test]
    fn a_ceiling_counts_where_there_is_no_quote_yet() {
        let price = |estimate: serde_json::Value, unknown: serde_json::Value| {
            let values = json!({"estimated_cost": estimate, "price_ceiling": 2.5});
            price(&Values::new(values, unknown, serde_json::Value::Null))
        };
        let open = price(json!(null), json!({"estimated_cost": true})).unwrap();
        assert_eq!(
            (open.hourly.with_digits(2), open.monthly.with_digits(2), open.is_ceiling),
            ("2.50".into(), "1825.00".into(), true)
        );
        assert!(price(json!(null), json!({})).unwrap().is_ceiling);
        let quote = json!({"payment_type": "Hourly", "unit_price": 1, "data_disk_price": 0});
        assert!(!price(quote, json!({})).unwrap().is_ceiling);
        // An invalid quote is not replaced by a guess.
        assert!(price(json!({"payment_type": "Hourly", "unit_price": -1, "data_disk_price": 0}), json!({})).is_err());
    }

    #[test]
    fn what_rounds_to_nothing_has_no_sign() {
        let money = |text: &str| Money(BigDecimal::from_str(text).unwrap());
        assert_eq!(money("0.004").signed(), "0.00");
        assert_eq!(money("-0.004").signed(), "0.00");
        assert_eq!(money("12345.345").signed(), "+12,345.35");
        assert_eq!(money("-3").signed(), "\u{2212}3.00");
        assert_eq!([money("0.5").an_hour(), money("1234.5").an_hour()], ["0.5000", "1,234.50"]);
        assert_eq!(serde_json::to_string(&money("1445.40")).unwrap(), "1445.4");
    }

    #[test]
    fn a_limit_is_a_number_from_0_on() {
        assert!("100.5".parse::<Money>().is_ok() && "0".parse::<Money>().is_ok());
        assert!("-1".parse::<Money>().is_err() && "NaN".parse::<Money>().is_err() && "".parse::<Money>().is_err());
        assert!("1e999999999".parse::<Money>().is_err() && "1e-999999999".parse::<Money>().is_err());
    }
}
