//! Random plans against sums that the test makes itself.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const ACTIONS: [&[&str]; 8] = [
    &["create"],
    &["update"],
    &["no-op"],
    &["delete"],
    &["delete", "create"],
    &["create", "delete"],
    &["forget"],
    &["create", "forget"],
];

/// A random change: action, price before and after, the address it moved from, whether it is deposed, its term.
type Made = (usize, i64, i64, Option<usize>, bool, Option<i64>);

/// The address that a random policy excepts, while nothing moved to it.
const EXCEPTED: &str = "damodel_instance.m[0]";

fn random_plan(made: &[Made]) -> Value {
    let mut moved = BTreeSet::new();
    let change = |(index, made): (usize, &Made)| {
        let (action, before, after, from, is_deposed, term) = *made;
        let actions = if is_deposed { &["delete"][..] } else { ACTIONS[action] };
        let exists = |is: bool, price: i64| is.then(|| f64::from(i32::try_from(price).unwrap()));
        let has_before = actions != ["create"];
        let has_after = !matches!(actions, ["delete"] | ["forget"]);
        let mut change = instance(actions, exists(has_before, before), exists(has_after, after));
        change["address"] = format!("damodel_instance.m[{index}]").into();
        if let Some(from) = from.filter(|from| has_before && !is_deposed && *from != index && moved.insert(*from)) {
            change["previous_address"] = format!("damodel_instance.m[{from}]").into();
        }
        if is_deposed {
            change["deposed"] = "abcd1234".into();
        }
        if let Some(term) = term.filter(|_| has_after) {
            change["change"]["after"]["payment_type"] = "Monthly".into();
            change["change"]["after"]["purchase_duration"] = term.into();
        }
        change
    };
    plan_of(&made.iter().enumerate().map(change).collect::<Vec<_>>())
}

/// The increases in a plan, in whole units of money a month, and its number of other violations. Made without the
/// gate's own code.
fn reckoned(plan: &Value, excepts: bool) -> (i64, usize) {
    #[expect(clippy::cast_possible_truncation, reason = "the prices of this test are small whole numbers")]
    let price = |side: &Value| (side["estimated_cost"]["unit_price"].as_f64().unwrap_or(0.0) * 730.0).round() as i64;
    let (mut sum, mut findings) = (0, 0);
    for change in plan["resource_changes"].as_array().unwrap() {
        if excepts && change["address"] == EXCEPTED && change["previous_address"].is_null() {
            continue;
        }
        let (before, after) = (&change["change"]["before"], &change["change"]["after"]);
        let has = |word: &str| change["change"]["actions"].as_array().unwrap().iter().any(|action| action == word);
        let forgotten = if has("forget") { price(before) } else { 0 };
        sum += (price(after) + forgotten - price(before)).max(0);
        findings += usize::from(has("delete"));
        findings += usize::from(has("create") && !after["purchase_duration"].is_null());
    }
    (sum, findings)
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    let one = (
        0..ACTIONS.len(),
        1..4_i64,
        1..4_i64,
        prop::option::of(0..8_usize),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.3, 1..3_i64),
    );
    prop::collection::vec(one, 0..8)
}

proptest! {
    /// Whatever plans add in priced money or in findings, beyond what is excepted, closes the gate.
    #[test]
    fn what_is_not_excepted_closes_the_gate(first in made(), second in made(), limit in 0..4_i64, excepts: bool) {
        let plans = [random_plan(&first), random_plan(&second)];
        let limit = limit * 730;
        let exception = format!(
            "[[exception]]\nmatch = [\"{EXCEPTED}\"]\nowner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01\n"
        );
        let gate = policy_of(&format!(
            "[limits]\nmax_monthly_increase = {limit}\ndeny = [\"destroy-data\", \"prepaid\"]\n{}",
            if excepts { &exception } else { "" }
        ))
        .unwrap();
        let judged = violations(&review_all(&plans.each_ref(), &gate));
        let [(one, few), (other, more)] = plans.each_ref().map(|plan| reckoned(plan, excepts));
        let (sum, expected) = (one + other, few + more + usize::from(one + other > limit));
        prop_assert_eq!(judged.len(), expected, "{} {:?} {}\n{:?}", sum, judged, limit, plans);
        prop_assert_eq!(judged.contains(&"max-monthly-increase -".to_owned()), sum > limit);
    }

    /// Each object is in the data once, also one that only drifted.
    #[test]
    fn no_object_is_lost_or_doubled(made in made(), drifted in prop::collection::btree_set(0..12_usize, 0..6)) {
        let mut plan = random_plan(&made);
        let drift = |index: &usize| {
            let mut change = instance(&["update"], Some(1.0), Some(2.0));
            change["address"] = format!("damodel_instance.m[{index}]").into();
            change
        };
        plan["resource_drift"] = drifted.iter().map(drift).collect();
        let key = |object: &Value| (object["address"].to_string(), object["deposed"].to_string());
        let all = |list: &str| plan[list].as_array().unwrap().iter().map(key).collect::<BTreeSet<_>>();
        let json = json(&plan);
        let objects = json["plans"][0]["changes"].as_array().unwrap();
        let expected = &all("resource_changes") | &all("resource_drift");
        prop_assert_eq!(objects.len(), expected.len());
        prop_assert_eq!(objects.iter().map(key).collect::<BTreeSet<_>>(), expected);
        let drifted = objects.iter().filter(|object| !object["drift"].is_null()).map(key).collect::<BTreeSet<_>>();
        prop_assert_eq!(drifted, all("resource_drift"));
    }
}
