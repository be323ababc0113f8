//! The gate: sums, moves, baselines and exceptions, in every combination and against sums that the test makes itself.

use std::collections::{BTreeMap, BTreeSet};

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

fn named(plans: &[(Option<&str>, &Value)]) -> Vec<Reviewed> {
    let read = |plan: &Value| ReviewedPlan::read(plan.to_string().as_bytes()).unwrap();
    plans.iter().map(|(name, plan)| Reviewed::new(name.map(str::to_owned), &read(plan))).collect()
}

/// The review of plans beside the report of earlier ones.
fn against(plans: &[(Option<&str>, &Value)], old: &[(Option<&str>, &Value)], policy: &Policy) -> Review {
    let old = Review::new(named(old), &Policy::default(), None, |_| None);
    let baseline = Baseline::read(write(&old, Format::Json).as_bytes()).unwrap();
    Review::new(named(plans), policy, Some(&baseline), |_| None)
}

/// The violations beside a baseline that is a plan, which are the same beside its report.
fn beside(plan: &Value, old: &Value, policy: &Policy) -> Vec<String> {
    let of_report = violations(&against(&[(None, plan)], &[(None, old)], policy));
    let baseline = Baseline::read(old.to_string().as_bytes()).unwrap();
    let of_plan = violations(&Review::new(named(&[(None, plan)]), policy, Some(&baseline), |_| None));
    assert_eq!(of_plan, of_report);
    of_plan
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

/// A rise that was accepted is not accepted again, and what is excepted here does not count there.
#[test]
fn the_reference_is_the_same_object_after_the_baseline_s_plan() {
    let limit = policy(Some("0"), &[]);
    let one = |change: Value| plan_of(&[change]);
    let rise = |id: &str, now: f64, after: f64| {
        one(instance("damodel_instance.a", &["delete", "create"], Some(id), (Some(now), Some(after))))
    };
    let fresh = |price: f64| one(created("damodel_instance.a", price));
    let none = Vec::<String>::new();
    // The same plan, a cheaper one and a dearer one.
    assert_eq!(beside(&rise("ins-1", 1.0, 2.0), &rise("ins-1", 1.0, 2.0), &limit), none);
    assert_eq!(beside(&rise("ins-1", 1.0, 1.5), &rise("ins-1", 1.0, 2.0), &limit), none);
    assert_eq!(beside(&rise("ins-1", 1.0, 2.5), &rise("ins-1", 1.0, 2.0), &limit), [SUM]);
    assert_eq!(beside(&fresh(2.0), &fresh(2.0), &limit), none);
    assert_eq!(beside(&fresh(2.5), &fresh(2.0), &limit), [SUM]);
    // Applied since: the object has an id, and is another one than what was created or replaced.
    assert_eq!(beside(&rise("ins-2", 2.0, 3.0), &rise("ins-1", 1.0, 3.0), &limit), [SUM]);
    assert_eq!(beside(&rise("ins-2", 1.0, 2.0), &fresh(2.0), &limit), [SUM]);
    assert_eq!(beside(&fresh(2.0), &rise("ins-1", 1.0, 2.0), &limit), [SUM]);
    // What the baseline destroys costs nothing there.
    let gone = one(deleted("damodel_instance.a", "ins-1", 1.0));
    let kept = one(instance("damodel_instance.a", &["no-op"], Some("ins-1"), (Some(1.0), Some(1.0))));
    assert_eq!(beside(&kept, &gone, &limit), [SUM]);
    // What it forgets is no part of it.
    let forgotten = one(instance("damodel_instance.a", &["forget"], Some("ins-1"), (Some(1.0), None)));
    assert_eq!(beside(&kept, &forgotten, &limit), none);
    let left = |price: f64| {
        one(instance("damodel_instance.a", &["create", "forget"], Some("ins-1"), (Some(1.0), Some(price))))
    };
    assert_eq!(beside(&left(2.0), &left(2.0), &limit), none);
    assert_eq!(beside(&left(2.5), &left(2.0), &limit), [SUM]);
    assert_eq!(beside(&left(1.0), &kept, &limit), [SUM]);
    // An id that is hidden proves nothing.
    let hide = |mut plan: Value| {
        plan["resource_changes"][0]["change"]["before_sensitive"] = json!({"id": true});
        plan
    };
    assert_eq!(beside(&hide(rise("ins-1", 1.0, 2.0)), &hide(rise("ins-1", 1.0, 2.0)), &limit), [SUM]);
}

/// Each address of the baseline is the reference of one object.
#[test]
fn a_move_takes_the_reference_with_it() {
    let limit = policy(Some("0"), &[]);
    let old = plan_of(&[instance("damodel_instance.a", &["delete", "create"], Some("ins-1"), (Some(1.0), Some(3.0)))]);
    let moved = instance("damodel_instance.b", &["delete", "create"], Some("ins-1"), (Some(1.0), Some(3.0)));
    let moved = moved_from(moved, "damodel_instance.a");
    assert_eq!(beside(&plan_of(std::slice::from_ref(&moved)), &old, &limit), Vec::<String>::new());
    let both = plan_of(&[created("damodel_instance.a", 3.0), moved]);
    assert_eq!(beside(&both, &old, &limit), [SUM]);
    // A deposed object is no reference, and has none.
    let mut deposed = deleted("damodel_instance.a", "ins-0", 9.0);
    deposed["deposed"] = "abcd1234".into();
    let old = plan_of(&[deposed, created("damodel_instance.a", 1.0)]);
    assert_eq!(beside(&plan_of(&[created("damodel_instance.a", 2.0)]), &old, &limit), [SUM]);
    // Two objects that change places.
    let swap = |here: &str, there: &str, id: &str, price: f64| {
        moved_from(instance(here, &["no-op"], Some(id), (Some(price), Some(price))), there)
    };
    let stay =
        |address: &str, id: &str, price: f64| instance(address, &["no-op"], Some(id), (Some(price), Some(price)));
    let old = plan_of(&[stay("damodel_instance.a", "ins-1", 1.0), stay("damodel_instance.b", "ins-2", 2.0)]);
    let new = plan_of(&[
        swap("damodel_instance.b", "damodel_instance.a", "ins-1", 1.0),
        swap("damodel_instance.a", "damodel_instance.b", "ins-2", 2.0),
    ]);
    assert_eq!(beside(&new, &old, &limit), Vec::<String>::new());
}

#[test]
fn plans_are_compared_by_their_names() {
    let gate = policy(Some("0"), &[Deny::DestroyData]);
    let plan = plan_of(&[created("damodel_instance.a", 1.0), deleted("damodel_instance.b", "ins-b", 1.0)]);
    assert_eq!(violations(&against(&[(Some("a"), &plan)], &[(Some("a"), &plan)], &gate)), Vec::<String>::new());
    for (here, there) in [(Some("b"), Some("a")), (None, Some("a")), (Some("a"), None)] {
        let review = against(&[(here, &plan)], &[(there, &plan)], &gate);
        assert_eq!(violations(&review), ["destroy-data damodel_instance.b", SUM]);
        let note = review.findings.iter().find(|finding| finding.level == Level::Warning).unwrap();
        for name in [here, there] {
            let name = name.map_or_else(|| "a plan without a name".to_owned(), |name| format!("{name:?}"));
            assert!(note.to_string().contains(&name), "{note}");
        }
    }
    let gate = policy(None, &[Deny::DestroyData]);
    let review = against(&[(Some("b"), &plan), (Some("a"), &plan)], &[(Some("a"), &plan)], &gate);
    assert_eq!(violations(&review), ["destroy-data damodel_instance.b"]);
    assert_eq!(review.gate.unwrap().violations[0].plan.as_deref(), Some("b"));
}

/// A finding is known only with the same facts.
#[test]
fn other_facts_are_another_finding() {
    let all = policy(None, &[Deny::DestroyData, Deny::Prepaid, Deny::Unpriced, Deny::SecretsInState]);
    let prepaid = |set: &dyn Fn(&mut Value)| {
        let mut change = created("damodel_instance.a", 1.0);
        let values = json!({"payment_type": "Monthly", "purchase_duration": 1, "auto_renew": false, "gpu_num": 1,
            "spec_id": 101, "spec_type": "gpu.a", "candidates": [{"spec_id": 1}, {"spec_id": 2}],
            "data_disk_expand_size_gb": 0});
        for (name, value) in values.as_object().unwrap() {
            change["change"]["after"][name] = value.clone();
        }
        set(&mut change["change"]);
        plan_of(&[change])
    };
    let same = prepaid(&|_| {});
    let none = Vec::<String>::new();
    assert_eq!(beside(&same, &same, &all), none);
    for (name, value) in [
        ("payment_type", json!("Weekly")),
        ("purchase_duration", json!(60)),
        ("auto_renew", json!(true)),
        ("gpu_num", json!(64)),
        ("spec_id", json!(102)),
        ("spec_type", json!("gpu.b")),
        ("candidates", json!([{"spec_id": 2}, {"spec_id": 1}])),
        ("data_disk_expand_size_gb", json!(30_000)),
    ] {
        let other = prepaid(&|change| change["after"][name] = value.clone());
        assert_eq!(beside(&other, &same, &all), ["prepaid damodel_instance.a"], "{name}");
        // What is hidden or unknown is never known, whatever it is.
        if !["spec_id", "spec_type", "gpu_num"].contains(&name) {
            let hidden = prepaid(&|change| change["after_sensitive"] = json!({ name: true }));
            assert_eq!(beside(&hidden, &hidden, &all), ["prepaid damodel_instance.a"], "{name}");
            let unknown = prepaid(&|change| change["after_unknown"] = json!({ name: true }));
            assert_eq!(beside(&unknown, &unknown, &all), ["prepaid damodel_instance.a"], "{name}");
        }
    }
    // Prices move, and are no facts.
    let dearer = prepaid(&|change| change["after"]["estimated_cost"]["unit_price"] = 2.into());
    assert_eq!(beside(&dearer, &same, &all), none);
    // Of specification and number of GPUs only what is configured is a fact.
    let configured = |names: &[&str], mut plan: Value| {
        let expressions: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        plan["configuration"] =
            json!({"root_module": {"resources": [{"address": "damodel_instance.a", "expressions": expressions}]}});
        plan
    };
    let other = || prepaid(&|change| change["after"]["spec_type"] = "gpu.b".into());
    assert_eq!(beside(&configured(&["spec_id"], other()), &configured(&["spec_id"], same.clone()), &all), none);
    let both = ["spec_id", "spec_type"];
    let violated = beside(&configured(&both, other()), &configured(&both, same), &all);
    assert_eq!(violated, ["prepaid damodel_instance.a"]);

    let destroyed = |id: &str, disks: Value| {
        let mut change = deleted("damodel_instance.a", id, 1.0);
        change["change"]["before"]["exist_disks"] = disks;
        plan_of(&[change])
    };
    let disk = |id: i64| json!({"disk_id": id, "release_with_instance": true});
    let one = destroyed("ins-1", json!([disk(1), disk(2)]));
    assert_eq!(beside(&destroyed("ins-1", json!([disk(2), disk(1)])), &one, &all), none);
    for other in [
        destroyed("ins-99", json!([disk(1), disk(2)])),
        destroyed("ins-1", json!([disk(1), disk(2), disk(3)])),
        destroyed("ins-1", json!([disk(1)])),
    ] {
        assert_eq!(beside(&other, &one, &all), ["destroy-data damodel_instance.a"]);
    }
    // A current and a deposed object share an address; each finding of the baseline covers one.
    let mut deposed = deleted("damodel_instance.a", "ins-1", 1.0);
    deposed["deposed"] = "abcd1234".into();
    let current = deleted("damodel_instance.a", "ins-1", 1.0);
    let twice = plan_of(&[current.clone(), deposed.clone()]);
    assert_eq!(beside(&twice, &twice, &all), none);
    assert_eq!(beside(&twice, &plan_of(&[current]), &all).len(), 1);
    // Actions and incomplete plans are never known.
    let mut action = plan_of(&[]);
    action["action_invocations"] = json!([{"address": "action.local_command.x", "type": "local_command", "name": "x",
        "invoke_action_trigger": {}}]);
    action["errored"] = true.into();
    assert_eq!(beside(&action, &action, &all), ["plan -", "destroy-data action.local_command.x"]);
}

#[test]
fn a_baseline_in_another_format_is_an_error() {
    for version in ["1.0", "1.2", ""] {
        let report = json!({"format_version": version, "findings": [], "cost": {}});
        let error = Baseline::read(report.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains("make it again"), "{error}");
    }
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
    // The known finding has the same size.
    let grown = |size_gb: i64| plan_of(&[disk(&["update"], size(30), size(size_gb))]);
    assert_eq!(beside(&grown(60), &grown(60), &denied), Vec::<String>::new());
    assert_eq!(beside(&grown(90), &grown(60), &denied), unpriced);
    // A disk for several periods is prepaid.
    let term = |periods: Value| {
        disk(&["create"], Value::Null, json!({"size_gb": 30, "spec_id": 1, "purchase_duration": periods}))
    };
    let prepaid = policy(None, &[Deny::Prepaid]);
    assert_eq!(found(&plan_of(&[term(120.into())]), &prepaid), ["prepaid damodel_cloud_disk.d"]);
    assert_eq!(found(&plan_of(&[term(1.into())]), &prepaid), Vec::<String>::new());
    assert_eq!(found(&plan_of(&[term(Value::Null)]), &prepaid), Vec::<String>::new());
}

/// An action of another provider is not assessed, as its destroy is not; a provisioner is a note.
#[test]
fn other_programs_are_not_assessed() {
    let mut plan = plan_of(&[created("damodel_instance.a", 1.0)]);
    plan["action_invocations"] = json!(["local_command", "damodel_chat_completion"].map(|kind| json!({
        "address": format!("action.{kind}.x"), "type": kind, "name": "x", "invoke_action_trigger": {}})));
    assert_eq!(found(&plan, &policy(None, &[Deny::DestroyData])), ["destroy-data action.local_command.x"]);
    assert_eq!(found(&plan, &policy(None, &[Deny::Prepaid])), Vec::<String>::new());
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
fn an_exception_has_an_end_in_money_too() {
    let fleet = |count: usize, price: f64| {
        let machines = (0..count).map(|index| created(&format!("damodel_instance.db[{index}]"), price));
        plan_of(&machines.collect::<Vec<_>>())
    };
    let gate = |most: &str| {
        read(&format!(
            "[limits]\nmax_monthly_increase = 100\ndeny = [\"prepaid\"]\n[[exception]]\nmatch = \
             [\"damodel_instance.db\"]\n{most}owner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01\n"
        ))
    };
    let open = review(&fleet(50, 10.0), &gate(""));
    assert_eq!(violations(&open), Vec::<String>::new());
    let used = "exception: an exception lets through 50 objects and 365000.00 a month: damodel_instance.db, o, r";
    assert!(messages(&open).contains(&used.to_owned()), "{:?}", messages(&open));
    assert!(write(&open, Format::Markdown).contains("lets through 50 objects and 365000.00 a month"));
    let limit = gate("max_monthly_increase = 7300\n");
    assert_eq!(found(&fleet(1, 10.0), &limit), Vec::<String>::new());
    assert_eq!(found(&fleet(2, 10.0), &limit), [SUM, "exception -"]);
    // Over all plans.
    assert_eq!(violations(&review_all(&[&fleet(1, 10.0), &fleet(1, 10.0)], &limit)), [SUM, "exception -"]);
    // An unknown sum is more; the denials that the exception lifts are not concerned.
    let mut unknown = created("damodel_instance.db", 1.0);
    unknown["change"]["after"]["estimated_cost"] = Value::Null;
    unknown["change"]["after"]["payment_type"] = "Weekly".into();
    let unknown = plan_of(&[unknown]);
    assert_eq!(found(&unknown, &limit), ["max-monthly-increase damodel_instance.db", "exception -"]);
    assert_eq!(found(&unknown, &gate("")), Vec::<String>::new());
    // Neither the sum nor the exceeded exception is known from a baseline.
    let both = plan_of(&[created("damodel_instance.db[0]", 10.0), created("damodel_instance.db[1]", 10.0)]);
    assert_eq!(beside(&both, &plan_of(&[]), &limit), [SUM, "exception -"]);
    assert_eq!(beside(&both, &both, &limit), Vec::<String>::new());
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
                let plain = policy("");
                assert_eq!(found(&plan, &plain), expected(holds), "{case}");
                // Beside a baseline that has it, or another object at its address.
                assert_eq!(beside(&plan, &plan, &plain), Vec::<String>::new(), "{case}");
                let mut other = plan.clone();
                other["resource_changes"][0]["change"]["before"]["id"] = "ins-2".into();
                assert_eq!(beside(&plan, &other, &plain), expected(holds), "{case}");
                let mut before = plan.clone();
                before["resource_changes"][0]["previous_address"] = Value::Null;
                if is_moved {
                    before["resource_changes"][0]["address"] = "module.prod.damodel_instance.a".into();
                }
                assert_eq!(beside(&plan, &before, &plain), Vec::<String>::new(), "{case}");
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

/// A random change: action, price before and after, id, the address it moved from, whether it is deposed, its term.
type Made = (usize, i64, i64, usize, Option<usize>, bool, Option<i64>);

/// The address that a random policy excepts, while nothing moved to it.
const EXCEPTED: &str = "damodel_instance.m[0]";

/// The changes of both plans: each is in the first or in the second.
fn random_plans(made: &[(bool, Made)]) -> [Value; 2] {
    [false, true].map(|second| {
        let own = made.iter().filter(|(is_second, _)| *is_second == second);
        random_plan(&own.map(|(_, made)| *made).collect::<Vec<_>>())
    })
}

/// The plans by their names.
fn both(plans: &[Value; 2]) -> [(Option<&'static str>, &Value); 2] {
    [(Some("a.json"), &plans[0]), (Some("b.json"), &plans[1])]
}

fn random_plan(made: &[Made]) -> Value {
    let mut moved = BTreeSet::new();
    let change = |(index, made): (usize, &Made)| {
        let (action, before, after, id, from, is_deposed, term) = *made;
        let actions = if is_deposed { &["delete"][..] } else { ACTIONS[action] };
        let exists = |is: bool, price: i64| is.then(|| f64::from(i32::try_from(price).unwrap()));
        let has_before = actions != ["create"];
        let has_after = !matches!(actions, ["delete"] | ["forget"]);
        let id = format!("ins-{id}");
        let mut change = instance(
            &format!("damodel_instance.m[{index}]"),
            actions,
            has_before.then_some(id.as_str()),
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

/// What this test reads of a change, in whole units of money a month.
struct Fact {
    address: String,
    before_address: Option<String>,
    id: Option<String>,
    now: i64,
    after: i64,
    makes: bool,
    destroys: bool,
    forgets: bool,
    is_deposed: bool,
    term: Option<i64>,
}

impl Fact {
    fn is_excepted(&self, excepts: bool) -> bool {
        excepts && self.address == EXCEPTED && self.before_address.is_none()
    }
}

fn facts(plan: &Value) -> Vec<Fact> {
    let price = |side: &Value| side["estimated_cost"]["unit_price"].as_f64().map_or(0.0, |price| price * 730.0);
    #[expect(clippy::cast_possible_truncation, reason = "the prices of this test are small whole numbers")]
    let fact = |change: &Value| {
        let actions = &change["change"]["actions"];
        let has = |word: &str| actions.as_array().unwrap().iter().any(|action| action == word);
        let (before, after) = (&change["change"]["before"], &change["change"]["after"]);
        Fact {
            address: change["address"].as_str().unwrap().to_owned(),
            before_address: change["previous_address"].as_str().map(str::to_owned),
            id: before["id"].as_str().map(str::to_owned),
            now: price(before).round() as i64,
            after: price(after).round() as i64,
            makes: has("create"),
            destroys: has("delete"),
            forgets: has("forget"),
            is_deposed: !change["deposed"].is_null(),
            term: after["purchase_duration"].as_i64(),
        }
    };
    plan["resource_changes"].as_array().unwrap().iter().map(fact).collect()
}

/// The sum of the increases in a plan, made without the gate's own code.
fn reckoned(plan: &[Fact], old: &[Fact], excepts: bool) -> i64 {
    let in_old = |address: &str, one: &Fact| {
        let there = old.iter().find(|other| other.address == address && !other.is_deposed)?;
        (there.id == one.id && (there.makes || !there.forgets)).then_some(there)
    };
    let mut sum = 0;
    for one in plan.iter().filter(|one| !one.is_excepted(excepts)) {
        let billed = one.after + if one.forgets { one.now } else { 0 };
        let own = if one.is_deposed { None } else { in_old(&one.address, one) };
        let reference = match &one.before_address {
            Some(before) => own.or_else(|| in_old(before, one)),
            None => {
                // Another object moved away from this address, and its reference is here unless it has one of its own.
                let is_taken = plan.iter().any(|other| {
                    other.before_address.as_ref() == Some(&one.address) && in_old(&other.address, other).is_none()
                });
                own.filter(|_| !is_taken)
            }
        };
        let accepted =
            reference.map_or(one.now, |there| there.after + if there.forgets && one.forgets { one.now } else { 0 });
        sum += (billed - accepted).max(0);
    }
    sum
}

/// The number of findings in a plan that the baseline does not have.
fn unknown(plan: &[Fact], old: &[Fact], excepts: bool) -> usize {
    let key = |fact: &Fact, rule: &str, address: &str| {
        let term = if rule == "prepaid" { fact.term } else { None };
        (rule.to_owned(), address.to_owned(), fact.id.clone(), term)
    };
    let of = |fact: &Fact| {
        let rules = [("destroy", fact.destroys), ("prepaid", fact.makes && fact.term.is_some())];
        rules.into_iter().filter(|(_, is)| *is).map(|(rule, _)| rule).collect::<Vec<_>>()
    };
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for fact in old {
        for rule in of(fact) {
            *known.entry(key(fact, rule, &fact.address)).or_default() += 1;
        }
    }
    let mut count = 0;
    for fact in plan.iter().filter(|fact| !fact.is_excepted(excepts)) {
        for rule in of(fact) {
            let addresses = [Some(&fact.address), fact.before_address.as_ref()].into_iter().flatten();
            let mut keys = addresses.map(|address| key(fact, rule, address));
            match keys.find(|key| known.get(key).is_some_and(|count| *count > 0)) {
                Some(key) => *known.get_mut(&key).unwrap() -= 1,
                None => count += 1,
            }
        }
    }
    count
}

fn made() -> impl Strategy<Value = Vec<(bool, Made)>> {
    let one = (
        0..ACTIONS.len(),
        1..4_i64,
        1..4_i64,
        0..3_usize,
        prop::option::of(0..8_usize),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.3, 1..3_i64),
    );
    prop::collection::vec((prop::bool::weighted(0.3), one), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever plans add in priced money or in findings, beyond what was accepted and excepted, closes the gate.
    #[test]
    fn what_was_not_accepted_closes_the_gate(
        new in made(),
        old in prop::option::of(made()),
        limit in 0..4_i64,
        excepts: bool,
    ) {
        let (plans, before) = (random_plans(&new), old.as_deref().map(random_plans));
        let limit = limit * 730;
        let exception = format!(
            "[[exception]]\nmatch = [\"{EXCEPTED}\"]\nowner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01\n"
        );
        let gate = read(&format!(
            "[limits]\nmax_monthly_increase = {limit}\ndeny = [\"destroy-data\", \"prepaid\"]\n{}",
            if excepts { &exception } else { "" }
        ));
        let judged = violations(&match &before {
            Some(before) => against(&both(&plans), &both(before), &gate),
            None => Review::new(named(&both(&plans)), &gate, None, |_| None),
        });
        let (mut sum, mut findings) = (0, 0);
        for (number, plan) in plans.iter().enumerate() {
            let accepted = before.as_ref().map(|before| facts(&before[number])).unwrap_or_default();
            sum += reckoned(&facts(plan), &accepted, excepts);
            findings += unknown(&facts(plan), &accepted, excepts);
        }
        let expected = findings + usize::from(sum > limit);
        prop_assert_eq!(judged.len(), expected, "{} {:?} {}\n{:?}\n{:?}", sum, judged, limit, plans, before);
        prop_assert_eq!(judged.contains(&SUM.to_owned()), sum > limit);
    }
}
