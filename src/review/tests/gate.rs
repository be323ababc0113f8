//! The gate: sums, moves and exceptions, in every combination and against sums that the test makes itself.

use std::collections::BTreeSet;

use jiff::civil::date;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Policy {
    Policy::read(&format!("version = 1\n{text}"), date(2026, 11, 22)).unwrap()
}

/// A change of an instance at an address, with its own id and hourly prices.
fn instance(address: &str, actions: &[&str], id: Option<&str>, prices: (Option<f64>, Option<f64>)) -> Value {
    let mut change = machine(actions, prices.0, prices.1);
    change["address"] = address.into();
    if let Some(id) = id {
        change["change"]["before"]["id"] = id.into();
    }
    change
}

fn created(address: &str, price: f64) -> Value {
    instance(address, &["create"], None, (None, Some(price)))
}

fn deleted(address: &str, id: &str, price: f64) -> Value {
    instance(address, &["delete"], Some(id), (Some(price), None))
}

fn moved_from(mut change: Value, address: &str) -> Value {
    change["previous_address"] = address.into();
    change
}

fn messages(review: &Review) -> Vec<String> {
    review.findings.iter().map(ToString::to_string).collect()
}

const SUM: &str = "max-monthly-increase -";

/// Falls never pay: not another object's, another plan's or a given-up term's.
#[test]
fn only_increases_are_summed() {
    let limit = policy(Some("100"), &[]);
    let pays = plan_of(&[created("damodel_instance.a", 1.0), deleted("damodel_instance.b", "ins-b", 9.0)]);
    let judged = review(&pays, &limit);
    assert_eq!(
        messages(&judged).last().unwrap(),
        "max-monthly-increase: increases add up to 730.00 a month (limit 100.00); decreases of 6570.00 do not count"
    );
    let other = plan_of(&[deleted("damodel_instance.b", "ins-b", 9.0)]);
    let new = plan_of(&[created("damodel_instance.a", 1.0)]);
    assert_eq!(violations(&review_all(&[&new, &other], &limit)), [SUM]);
    // A rename without `moved`.
    let renamed = plan_of(&[created("damodel_instance.new", 1.0), deleted("damodel_instance.old", "ins-1", 1.0)]);
    assert_eq!(found(&renamed, &limit), [SUM]);
    let moved = instance("damodel_instance.new", &["no-op"], Some("ins-1"), (Some(1.0), Some(1.0)));
    assert_eq!(found(&plan_of(&[moved_from(moved, "damodel_instance.old")]), &limit), Vec::<String>::new());
}

/// Disks and images have no price, so that no limit stops them.
#[test]
fn what_has_no_price_can_be_denied() {
    let disk = |actions: &[&str], before: Value, after: Value| {
        json!({"address": "damodel_cloud_disk.d", "mode": "managed", "type": "damodel_cloud_disk",
            "change": {"actions": actions, "before": before, "after": after}})
    };
    let denied = policy(Some("0"), &[Deny::Unpriced]);
    let unpriced = ["unpriced damodel_cloud_disk.d"];
    let size = |size: i64| json!({"id": "7", "size_gb": size});
    assert_eq!(found(&plan_of(&[disk(&["create"], Value::Null, size(32_000))]), &denied), unpriced);
    assert_eq!(found(&plan_of(&[disk(&["update"], size(30), size(30_000))]), &denied), unpriced);
    assert_eq!(found(&plan_of(&[disk(&["delete", "create"], size(30), size(30))]), &denied), unpriced);
    assert_eq!(found(&plan_of(&[disk(&["update"], size(30), size(30))]), &denied), Vec::<String>::new());
    // A mask hides what is printed, not what is compared.
    let mut hidden = disk(&["update"], size(30), size(60));
    hidden["change"]["after_sensitive"] = json!({"size_gb": true});
    assert_eq!(found(&plan_of(&[hidden]), &denied), unpriced);
    let mut machine = created("damodel_instance.a", 1.0);
    machine["change"]["after"]["new_disks"] = json!([{"size_gb": 20_000}]);
    let rise = policy(None, &[Deny::Unpriced]);
    assert_eq!(found(&plan_of(&[machine]), &rise), ["unpriced damodel_instance.a"]);
    let image = json!({"address": "damodel_private_image.i", "mode": "managed", "type": "damodel_private_image",
        "change": {"actions": ["create"], "before": null, "after": {"name": "i"}}});
    assert_eq!(found(&plan_of(&[image]), &denied), ["unpriced damodel_private_image.i"]);
}

#[test]
fn a_provisioner_is_a_note() {
    let mut plan = plan_of(&[created("damodel_instance.a", 1.0)]);
    plan["configuration"] = json!({"root_module": {"resources": [{"address": "damodel_instance.a",
        "provisioners": [{"type": "local-exec"}]}]}});
    let review = review(&plan, &policy(None, &[Deny::Prepaid]));
    let note = "note: damodel_instance.a: its provisioners are not assessed: local-exec";
    assert!(messages(&review).contains(&note.to_owned()), "{:?}", messages(&review));
}

/// A rule holds for both addresses of a moved object, and for those of the disks that go with a destroyed one; an
/// exception must match all of them.
#[test]
fn no_move_leads_out_of_a_rule_or_into_an_exception() {
    let rule = read("[[rule]]\nmatch = [\"module.prod.**\"]\ndeny = [\"destroy-data\"]\n");
    let gone = moved_from(deleted("damodel_instance.gone", "ins-1", 1.0), "module.prod.damodel_instance.db");
    let judged = review(&plan_of(std::slice::from_ref(&gone)), &rule);
    assert_eq!(violations(&judged), ["destroy-data damodel_instance.gone"]);
    let note = "note: damodel_instance.gone: it moves out of a rule of the policy: module.prod.**";
    assert!(messages(&judged).contains(&note.to_owned()), "{:?}", messages(&judged));
    let excepted = |pattern: &str| {
        read(&format!(
            "[limits]\ndeny = [\"destroy-data\"]\n[[exception]]\nmatch = [{pattern}]\nowner = \"o\"\nreason = \"r\"\n\
             expires = 2027-01-01\n"
        ))
    };
    let into = excepted("\"damodel_instance.gone\"");
    let judged = review(&plan_of(std::slice::from_ref(&gone)), &into);
    assert_eq!(violations(&judged), ["destroy-data damodel_instance.gone"]);
    let note = "note: damodel_instance.gone: it moves into an exception: damodel_instance.gone";
    assert!(messages(&judged).contains(&note.to_owned()), "{:?}", messages(&judged));
    let both = excepted("\"damodel_instance.gone\", \"module.prod.**\"");
    assert_eq!(found(&plan_of(&[gone]), &both), Vec::<String>::new());
    // The disk of another plan of the review goes with the machine.
    let mut machine = deleted("damodel_instance.a", "ins-1", 1.0);
    machine["change"]["before"]["exist_disks"] = json!([{"disk_id": 7, "release_with_instance": true}]);
    let machine = plan_of(&[machine]);
    let disk = |id: &str| {
        let change = json!({"actions": ["no-op"], "before": {"id": id}, "after": {"id": id}});
        plan_of(&[json!({"address": "module.prod.damodel_cloud_disk.d", "mode": "managed",
            "type": "damodel_cloud_disk", "change": change})])
    };
    let lost = ["destroy-data damodel_instance.a"];
    assert_eq!(violations(&review_all(&[&machine, &disk("7")], &rule)), lost);
    assert_eq!(violations(&review_all(&[&machine, &disk("8")], &rule)), Vec::<String>::new());
    assert_eq!(violations(&review_all(&[&machine, &disk("7")], &excepted("\"damodel_instance.*\""))), lost);
    // A hidden number is compared all the same.
    let mut hidden = machine;
    hidden["resource_changes"][0]["change"]["before_sensitive"] = json!({"exist_disks": [{"disk_id": true}]});
    assert_eq!(violations(&review_all(&[&hidden, &disk("7")], &rule)), lost);
}

#[test]
fn an_exception_tells_how_much_it_lets_through() {
    let machines = (0..50).map(|index| created(&format!("damodel_instance.db[{index}]"), 10.0));
    let fleet = plan_of(&machines.collect::<Vec<_>>());
    let gate = read(
        "[limits]\nmax_monthly_increase = 100\n[[exception]]\nmatch = [\"damodel_instance.db\"]\nowner = \"o\"\n\
         reason = \"r\"\nexpires = 2027-01-01\n",
    );
    let open = review(&fleet, &gate);
    assert_eq!(violations(&open), Vec::<String>::new());
    let used = "exception: an exception lets through 50 objects and 365000.00 a month: damodel_instance.db, o, r";
    assert!(messages(&open).contains(&used.to_owned()), "{:?}", messages(&open));
    assert!(write(&open, Format::Markdown).contains("lets through 50 objects and 365000.00 a month"));
    let mut unknown = created("damodel_instance.db", 1.0);
    unknown["change"]["after"]["estimated_cost"] = Value::Null;
    unknown["change"]["after"]["payment_type"] = "Weekly".into();
    assert_eq!(found(&plan_of(&[unknown]), &gate), Vec::<String>::new());
}

#[test]
fn a_rule_that_matches_nothing_is_told() {
    let plan = plan_of(&[created("damodel_instance.a", 1.0)]);
    let judged = review(&plan, &read("[[rule]]\nmatch = [\"module.prod.**\"]\nmax_monthly_increase = 0\n"));
    assert_eq!(violations(&judged), Vec::<String>::new());
    let note = "note: a rule of the policy matches no object: module.prod.**";
    assert_eq!(messages(&judged), [note]);
    assert!(write(&judged, Format::Markdown).contains("a rule of the policy matches no object"));
    let judged = review(&plan, &read("[[rule]]\nmatch = [\"**\"]\nmax_monthly_increase = 1000\n"));
    assert_eq!(messages(&judged), Vec::<String>::new());
}

/// Every combination of where a limit or a denial comes from, what speaks for the object, and whether it moved.
#[test]
fn every_combination_is_judged() {
    // A machine is replaced by a dearer one: its data is destroyed, and the bill rises by 730.
    let plan = |is_moved: bool| {
        let change =
            instance("module.free.damodel_instance.a", &["delete", "create"], Some("ins-1"), (Some(1.0), Some(2.0)));
        plan_of(&[if is_moved { moved_from(change, "module.prod.damodel_instance.a") } else { change }])
    };
    let exception = |pattern: &str| {
        format!("[[exception]]\nmatch = [{pattern}]\nowner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01\n")
    };
    let free = exception("\"module.free.**\"");
    let both = exception("\"module.free.**\", \"module.prod.**\"");
    for is_limit in [true, false] {
        let text = if is_limit { "max_monthly_increase = 700\n" } else { "deny = [\"destroy-data\"]\n" };
        let options = if is_limit { policy(Some("700"), &[]) } else { policy(None, &[Deny::DestroyData]) };
        let violated: &[&str] = &[if is_limit { SUM } else { "destroy-data module.free.damodel_instance.a" }];
        // Where it comes from, and whether it holds for an object that did not move, or that did.
        for (source, holds) in [
            ("the command line", [true, true]),
            ("[limits]\n", [true, true]),
            ("[[rule]]\nmatch = [\"module.free.**\"]\n", [true, true]),
            ("[[rule]]\nmatch = [\"module.prod.**\"]\n", [false, true]),
        ] {
            let policy = |exceptions: &str| {
                let is_option = source == "the command line";
                let mut policy =
                    read(&if is_option { exceptions.to_owned() } else { format!("{source}{text}{exceptions}") });
                policy.limits.extend(options.limits.iter().filter(|_| is_option).cloned());
                policy
            };
            for is_moved in [false, true] {
                let plan = plan(is_moved);
                let expected = |holds: bool| if holds { violated.to_vec() } else { Vec::new() };
                let holds = holds[usize::from(is_moved)];
                let case = format!("{source:?} limit {is_limit} moved {is_moved}");
                assert_eq!(found(&plan, &policy(&both)), Vec::<String>::new(), "{case}");
                assert_eq!(found(&plan, &policy(&free)), expected(holds && is_moved), "{case}");
                assert_eq!(found(&plan, &policy("")), expected(holds), "{case}");
            }
        }
    }
}

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
        let mut change = instance(
            &format!("damodel_instance.m[{index}]"),
            actions,
            has_before.then_some("ins-1"),
            (exists(has_before, before), exists(has_after, after)),
        );
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
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever plans add in priced money or in findings, beyond what is excepted, closes the gate.
    #[test]
    fn what_is_not_excepted_closes_the_gate(first in made(), second in made(), limit in 0..4_i64, excepts: bool) {
        let plans = [random_plan(&first), random_plan(&second)];
        let limit = limit * 730;
        let exception = format!(
            "[[exception]]\nmatch = [\"{EXCEPTED}\"]\nowner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01\n"
        );
        let gate = read(&format!(
            "[limits]\nmax_monthly_increase = {limit}\ndeny = [\"destroy-data\", \"prepaid\"]\n{}",
            if excepts { &exception } else { "" }
        ));
        let judged = violations(&review_all(&plans.each_ref(), &gate));
        let [(one, few), (other, more)] = plans.each_ref().map(|plan| reckoned(plan, excepts));
        let (sum, expected) = (one + other, few + more + usize::from(one + other > limit));
        prop_assert_eq!(judged.len(), expected, "{} {:?} {}\n{:?}", sum, judged, limit, plans);
        prop_assert_eq!(judged.contains(&SUM.to_owned()), sum > limit);
    }
}
