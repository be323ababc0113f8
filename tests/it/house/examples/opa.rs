//! The policy of examples/ci/opa, by a real OPA: its form, recorded plans, and small plans for each rule.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::{examples, files};
use crate::{
    house::root,
    support::{plugin::BINARY, record::skipped, terraform::Run},
};

/// Judges several plans, each by limits of its own, in one run.
const CASES: &str = "package cases

verdicts := [verdict |
\tsome case in input
\tverdict := data.damodel.deny with input as case.plan with data.damodel_limits as case.limits
]
";

fn folder() -> PathBuf {
    examples().join("ci/opa")
}

/// A run of OPA; `None` without one.
fn opa(arguments: &[&str]) -> Option<Run> {
    let Ok(output) = Command::new("opa").args(arguments).current_dir(folder()).output() else {
        skipped("opa is not on PATH");
        return None;
    };
    Some(Run::of(output))
}

/// The violations of each plan by its limits; `None` without OPA.
fn verdicts(cases: &[(Value, Value)]) -> Option<Vec<Vec<String>>> {
    let input: Vec<Value> = cases.iter().map(|(plan, limits)| json!({"plan": plan, "limits": limits})).collect();
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name).display().to_string();
    fs::write(path("cases.rego"), CASES).unwrap();
    fs::write(path("input.json"), Value::from(input).to_string()).unwrap();
    let (cases, input) = (path("cases.rego"), path("input.json"));
    let policy = ["eval", "--format", "raw", "--data", "policy.rego", "--data"];
    let run = opa(&[&policy[..], &[&cases, "--input", &input, "data.cases.verdicts"]].concat())?;
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    Some(serde_json::from_str(&run.stdout).unwrap())
}

/// Expects of each plan, by its limits, these violations.
fn expect(cases: Vec<(Value, Value, &[&str])>) {
    let given: Vec<(Value, Value)> = cases.iter().map(|(plan, limits, _)| (plan.clone(), limits.clone())).collect();
    let Some(verdicts) = verdicts(&given) else { return };
    assert_eq!(verdicts.len(), cases.len());
    for ((plan, limits, expected), verdict) in cases.iter().zip(verdicts) {
        assert_eq!(verdict, *expected, "{limits}: {plan:#}");
    }
}

fn recorded(name: &str) -> Value {
    let file = root().join("tests/fixtures/review").join(name);
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// A plan with these changes.
fn plan(changes: &[Value]) -> Value {
    json!({"format_version": "1.2", "planned_values": {}, "resource_changes": changes})
}

/// A plan with one change, of an instance.
fn instance(actions: &[&str], before: Value, after: Value) -> Value {
    plan(&[json!({"address": "damodel_instance.a", "mode": "managed", "type": "damodel_instance",
        "change": {"actions": actions, "before": before, "after": after}})])
}

/// The values of an instance with a price for a period of its payment type.
fn quoted(payment_type: &str, unit: f64, disk: f64) -> Value {
    json!({"payment_type": payment_type,
        "estimated_cost": {"payment_type": payment_type, "unit_price": unit, "data_disk_price": disk}})
}

fn hourly(price: f64) -> Value {
    quoted("Hourly", price, 0.0)
}

/// With a further member of its change.
fn with(mut plan: Value, name: &str, member: Value) -> Value {
    plan["resource_changes"][0]["change"][name] = member;
    plan
}

#[test]
fn the_policy_is_formatted_and_passes_the_strict_check() {
    for arguments in [&["check", "--strict", "."][..], &["fmt", "--fail", "--diff", "."]] {
        let Some(run) = opa(arguments) else { return };
        assert_eq!((run.code, &*run.stdout), (Some(0), ""), "{}", run.stderr);
    }
}

/// The command of the page, with the limits beside the policy.
#[test]
fn the_command_ends_with_1_if_a_rule_is_violated() {
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    let command = page.lines().find(|line| line.starts_with("opa ")).unwrap();
    for (file, code, part) in [
        ("everything.json", 1, "max-monthly-increase: increases of 6751.67 a month, limit 2000"),
        ("cores/terraform-1.17-refresh-only.json", 0, "undefined"),
    ] {
        let work = tempfile::tempdir().unwrap();
        symlink(examples(), work.path().join("examples")).unwrap();
        symlink(root().join("tests/fixtures/review").join(file), work.path().join("plan.json")).unwrap();
        if opa(&["version"]).is_none() {
            return;
        }
        let run = Run::of(Command::new("sh").args(["-c", command]).current_dir(work.path()).output().unwrap());
        assert!(run.code == Some(code) && run.stdout.contains(part), "{file}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn recorded_plans_are_judged() {
    let limits: Value = serde_json::from_slice(&fs::read(folder().join("data.json")).unwrap()).unwrap();
    let mixed: &[&str] = &[
        "destroy-data: damodel_instance.kept: it is destroyed",
        "max-monthly-increase: increases of 10532 a month, limit 2000",
        "no-max-age: damodel_instance.kept: it has no known max_age",
        "no-max-age: damodel_instance.pick: it has no known max_age",
        "prepaid: damodel_instance.paid: its payment_type is Monthly",
    ];
    let everything: &[&str] = &[
        "destroy-data: damodel_cloud_disk.gone[\"<script>alert(1)</script>\"]: it is destroyed",
        "destroy-data: damodel_instance.create_first: it is destroyed",
        "destroy-data: damodel_instance.prepaid_gone: it is destroyed",
        "destroy-data: damodel_instance.replaced[0]: it is destroyed",
        "destroy-data: damodel_instance.tainted: it is destroyed",
        "destroy-data: damodel_private_image.gone: it is destroyed",
        "max-monthly-increase: damodel_instance.spot[\"a|b`c<i>@team\"]: its price is unknown",
        "max-monthly-increase: damodel_instance.weekly: its price is unknown",
        "max-monthly-increase: increases of 6751.67 a month, limit 2000",
        "no-max-age: damodel_instance.create_first: it has no known max_age",
        "no-max-age: damodel_instance.created: it has no known max_age",
        "no-max-age: damodel_instance.imported: it has no known max_age",
        "no-max-age: damodel_instance.renamed: it has no known max_age",
        "no-max-age: damodel_instance.replaced[0]: it has no known max_age",
        "no-max-age: damodel_instance.spot[\"a|b`c<i>@team\"]: it has no known max_age",
        "no-max-age: damodel_instance.tainted: it has no known max_age",
        "prepaid: damodel_instance.weekly: its payment_type is Weekly",
        "prepaid: module.paid.damodel_instance.monthly: its payment_type is Monthly",
    ];
    let cases: [(&str, &[&str]); 6] = [
        ("everything.json", everything),
        ("cores/terraform-1.17-mixed.json", mixed),
        ("cores/opentofu-1.12-mixed.json", mixed),
        ("cores/opentofu-1.12-forget-create.json", &["no-max-age: damodel_instance.a: it has no known max_age"]),
        (
            "cores/terraform-1.17-deferred.json",
            &["no-max-age: damodel_instance.a: it has no known max_age", "plan: it is incomplete, as with -target"],
        ),
        ("cores/terraform-1.11-refresh-only.json", &[]),
    ];
    let case = |(file, expected): (&str, _)| (recorded(file), limits["damodel_limits"].clone(), expected);
    expect(cases.map(case).into());
}

/// The rules that both have give the same verdicts.
#[test]
fn review_and_the_policy_agree_about_recorded_plans() {
    let folder = root().join("tests/fixtures/review");
    let plans = [vec![folder.join("everything.json")], files(&folder.join("cores"))].concat();
    let limits = json!({"max_monthly_increase": 1000, "deny": ["destroy-data", "no-max-age", "prepaid"]});
    let cases: Vec<(Value, Value)> =
        plans.iter().map(|file| (recorded(file.to_str().unwrap()), limits.clone())).collect();
    let Some(verdicts) = verdicts(&cases) else { return };
    for (file, verdict) in plans.iter().zip(verdicts) {
        let mut review = Command::new(BINARY);
        let deny = limits["deny"].as_array().unwrap().iter().flat_map(|rule| ["--deny", rule.as_str().unwrap()]);
        review.arg("review").arg(file).args(["--max-monthly-increase", "1000"]).args(deny);
        let report: Value =
            serde_json::from_slice(&review.args(["--format", "json"]).output().unwrap().stdout).unwrap();
        let violations = report["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] == "error");
        let expected: BTreeSet<String> = violations
            .map(|finding| {
                let address = finding["address"].as_str().unwrap_or_default();
                format!("{}: {}", finding["rule"].as_str().unwrap(), address.split(" (deposed ").next().unwrap())
            })
            .collect();
        // The sum and the plan have no address.
        let subject = |text: &String| match text.split(": ").collect::<Vec<_>>()[..] {
            [rule, address, _] => format!("{rule}: {address}"),
            [rule, ..] => format!("{rule}: "),
            [] => String::new(),
        };
        assert_eq!(verdict.iter().map(subject).collect::<BTreeSet<_>>(), expected, "{}", file.display());
    }
}

#[test]
fn increases_of_all_instances_count_together() {
    let create = |after: Value| instance(&["create"], Value::Null, after);
    let mut two = create(hourly(1.0));
    let other = |actions: &[&str], before: Value, after: Value| {
        let mut change = instance(actions, before, after)["resource_changes"][0].take();
        change["address"] = "damodel_instance.b".into();
        change
    };
    two["resource_changes"].as_array_mut().unwrap().push(other(&["create"], Value::Null, hourly(1.0)));
    let mut falls = create(hourly(1.0));
    falls["resource_changes"].as_array_mut().unwrap().push(other(&["delete"], hourly(9.0), Value::Null));
    let open = json!({"payment_type": "Hourly", "price_ceiling": 2.5});
    let sums = [
        (create(hourly(1.98)), "1445.4"),
        (create(quoted("Daily", 48.0, 2.4)), "1533"),
        (create(quoted("Monthly", 1000.1, 20.0)), "1020.1"),
        (with(create(open), "after_unknown", json!({"estimated_cost": true})), "1825"),
        (two, "1460"),
        (falls, "730"),
        (instance(&["update"], hourly(2.0), hourly(3.0)), "730"),
        (instance(&["update"], json!({}), hourly(1.0)), "730"),
        (instance(&["create", "delete"], hourly(2.0), hourly(3.5)), "1095"),
        // What is forgotten is still billed.
        (instance(&["forget", "create"], hourly(1.0), hourly(1.0)), "730"),
        (instance(&["create", "forget"], hourly(3.0), hourly(1.0)), "730"),
        // Nothing rises.
        (instance(&["forget"], hourly(1.0), Value::Null), "0"),
        (instance(&["delete"], hourly(1.0), Value::Null), "0"),
        (instance(&["update"], hourly(3.0), hourly(2.0)), "0"),
        (instance(&["update"], json!({}), json!({})), "0"),
        (plan(&[]), "0"),
    ];
    let limit = |limit: f64| json!({"max_monthly_increase": limit});
    let below: Vec<String> = sums
        .iter()
        .map(|(_, sum)| {
            format!("max-monthly-increase: increases of {sum} a month, limit {}", sum.parse::<f64>().unwrap() - 1.0)
        })
        .collect();
    let below: Vec<[&str; 1]> = below.iter().map(|text| [&**text]).collect();
    let cases = sums.iter().zip(&below).flat_map(|((plan, sum), below)| {
        let sum: f64 = sum.parse().unwrap();
        [(plan.clone(), limit(sum), &[][..]), (plan.clone(), limit(sum - 1.0), &below[..])]
    });
    expect(cases.collect());
}

#[test]
fn an_unknown_price_violates_a_limit_alone() {
    let unknown: &[&str] = &["max-monthly-increase: damodel_instance.a: its price is unknown"];
    let text = json!({"estimated_cost": {"payment_type": "Hourly", "unit_price": "1", "data_disk_price": 0}});
    let plans = [
        instance(&["create"], Value::Null, json!({})),
        instance(&["create"], Value::Null, quoted("Weekly", 1.0, 0.0)),
        instance(&["create"], Value::Null, hourly(-1.0)),
        instance(&["create"], Value::Null, json!({"price_ceiling": -1})),
        instance(&["create"], Value::Null, text),
        instance(&["update"], hourly(1.0), json!({})),
        instance(&["delete", "create"], json!({}), json!({})),
        // What is forgotten is billed on, at an unknown price.
        instance(&["forget", "create"], json!({}), hourly(1.0)),
        with(instance(&["create"], Value::Null, hourly(1.0)), "after_sensitive", json!({"estimated_cost": true})),
        with(
            instance(&["create"], Value::Null, json!({"price_ceiling": 1})),
            "after_sensitive",
            json!({"price_ceiling": true}),
        ),
    ];
    let cases = plans.into_iter().flat_map(|plan| {
        [(plan.clone(), json!({"max_monthly_increase": 1_000_000}), unknown), (plan, json!({}), &[][..])]
    });
    expect(cases.collect());
}

#[test]
fn data_is_not_destroyed_if_that_is_denied() {
    let deny = json!({"deny": ["destroy-data"]});
    let change = |mode: &str, kind: &str, actions: &[&str]| {
        plan(&[json!({"address": format!("{kind}.x"), "mode": mode, "type": kind,
            "change": {"actions": actions, "before": {}, "after": null}})])
    };
    let mut cases: Vec<(Value, Value, &[&str])> = vec![
        (
            change("managed", "damodel_instance", &["create", "delete"]),
            deny.clone(),
            &["destroy-data: damodel_instance.x: it is destroyed"],
        ),
        (
            change("managed", "damodel_cloud_disk", &["delete"]),
            deny.clone(),
            &["destroy-data: damodel_cloud_disk.x: it is destroyed"],
        ),
        (
            change("managed", "damodel_private_image", &["delete", "create"]),
            deny.clone(),
            &["destroy-data: damodel_private_image.x: it is destroyed"],
        ),
        (change("managed", "damodel_instance", &["delete"]), json!({}), &[]),
    ];
    for (mode, kind, actions) in [
        ("managed", "damodel_instance", "forget"),
        ("managed", "damodel_cloud_disk", "update"),
        ("managed", "damodel_llama_server", "delete"),
        ("managed", "null_resource", "delete"),
        ("data", "damodel_instance", "delete"),
    ] {
        cases.push((change(mode, kind, &[actions]), deny.clone(), &[]));
    }
    expect(cases);
}

#[test]
fn a_prepaid_term_is_not_bought_if_that_is_denied() {
    let deny = json!({"deny": ["prepaid"]});
    let paid = |payment_type: &str| json!({"payment_type": payment_type});
    let unknown: &[&str] = &["prepaid: damodel_instance.a: its payment_type is unknown"];
    let create = |after: Value| instance(&["create"], Value::Null, after);
    let marked = json!({"payment_type": true});
    expect(vec![
        (create(paid("Monthly")), deny.clone(), &["prepaid: damodel_instance.a: its payment_type is Monthly"]),
        (
            instance(&["delete", "create"], paid("Hourly"), paid("Weekly")),
            deny.clone(),
            &["prepaid: damodel_instance.a: its payment_type is Weekly"],
        ),
        (with(create(json!({})), "after_unknown", marked.clone()), deny.clone(), unknown),
        (with(create(paid("Hourly")), "after_sensitive", marked.clone()), deny.clone(), unknown),
        (with(create(json!({})), "after_sensitive", marked), deny.clone(), &[]),
        (create(paid("Hourly")), deny.clone(), &[]),
        (create(json!({"payment_type": null})), deny.clone(), &[]),
        (instance(&["update"], paid("Monthly"), paid("Monthly")), deny.clone(), &[]),
        (instance(&["delete"], paid("Monthly"), Value::Null), deny, &[]),
        (create(paid("Monthly")), json!({}), &[]),
    ]);
}

#[test]
fn an_hourly_instance_has_a_max_age_if_that_is_demanded() {
    let deny = json!({"deny": ["no-max-age"]});
    let aged = json!({"payment_type": "Hourly", "max_age": "8h"});
    let ageless = json!({"payment_type": "Hourly", "max_age": null});
    let prepaid = json!({"payment_type": "Monthly", "max_age": null});
    let marked = |name: &str| json!({name: true});
    let create = |after: &Value| instance(&["create"], Value::Null, after.clone());
    let change = |actions: &[&str], after: &Value| instance(actions, aged.clone(), after.clone());
    let mut moved = change(&["no-op"], &ageless);
    moved["resource_changes"][0]["previous_address"] = "damodel_instance.old".into();
    let violating = [
        create(&ageless),
        with(create(&json!({"payment_type": "Hourly"})), "after_unknown", marked("max_age")),
        with(create(&aged), "after_sensitive", marked("max_age")),
        with(create(&json!({"max_age": null})), "after_unknown", marked("payment_type")),
        change(&["update"], &ageless),
        change(&["delete", "create"], &ageless),
        change(&["forget", "create"], &ageless),
        with(change(&["no-op"], &ageless), "importing", json!({"id": "ins-a"})),
    ];
    let passing = [
        create(&aged),
        create(&prepaid),
        change(&["update"], &aged),
        change(&["no-op"], &ageless),
        change(&["delete"], &Value::Null),
        change(&["forget"], &Value::Null),
        with(change(&["no-op"], &aged), "importing", json!({"id": "ins-a"})),
        moved,
    ];
    let violation: &[&str] = &["no-max-age: damodel_instance.a: it has no known max_age"];
    let violating = violating.into_iter().map(|plan| (plan, deny.clone(), violation));
    let passing = passing.into_iter().map(|plan| (plan, deny.clone(), &[][..]));
    expect(violating.chain(passing).chain([(create(&ageless), json!({}), &[][..])]).collect());
}

#[test]
fn a_plan_that_cannot_be_judged_does_not_pass() {
    let whole = |name: &str, value: Value| {
        let mut plan = plan(&[]);
        plan[name] = value;
        plan
    };
    let not_a_plan: &[&str] = &["plan: it is not the output of `show -json` for a saved plan"];
    let entry = |entry: Value| plan(&[entry]);
    let unknown = json!({"actions": ["dream"], "before": null, "after": null});
    let x: &[&str] = &["plan: the change of damodel_instance.x is unreadable"];
    let of = |mode: &str, kind: &str, change: &Value| {
        entry(json!({"address": format!("{kind}.x"), "mode": mode, "type": kind, "change": change}))
    };
    expect(vec![
        (json!({}), json!({}), not_a_plan),
        (json!({"format_version": "1.0", "values": {}}), json!({}), not_a_plan),
        (whole("format_version", json!("2.0")), json!({}), not_a_plan),
        (whole("resource_changes", json!("x")), json!({}), not_a_plan),
        (whole("errored", json!(true)), json!({}), &["plan: it is errored"]),
        (whole("complete", json!(false)), json!({}), &["plan: it is incomplete, as with -target"]),
        (whole("complete", json!(true)), json!({}), &[]),
        (of("managed", "damodel_instance", &unknown), json!({}), x),
        (of("borrowed", "damodel_instance", &unknown), json!({}), x),
        (of("managed", "null_resource", &unknown), json!({}), &[]),
        (of("ephemeral", "damodel_instance_access", &json!({"actions": ["open"]})), json!({}), &[]),
        (
            entry(json!({"mode": "managed", "type": "damodel_instance"})),
            json!({}),
            &["plan: the change of 0 is unreadable"],
        ),
        (entry(json!({"address": "a.b", "mode": "managed"})), json!({}), &["plan: the change of a.b is unreadable"]),
    ]);
}

#[test]
fn wrong_limits_do_not_pass() {
    let wrong: &[&str] = &["policy: the limits are missing, or a name or a value in them is unknown"];
    let limits = [
        Value::Null,
        json!({"max_monthly_increse": 100}),
        json!({"max_monthly_increase": "100"}),
        json!({"deny": "prepaid"}),
        json!({"deny": ["destroy"]}),
    ];
    expect(limits.map(|limits| (plan(&[]), limits, wrong)).into());
    let plan = root().join("tests/fixtures/review/cores/terraform-1.17-refresh-only.json");
    let arguments = ["eval", "--format", "raw", "--data", "policy.rego", "--input", plan.to_str().unwrap()];
    let Some(run) = opa(&[&arguments[..], &["data.damodel.deny"]].concat()) else { return };
    assert_eq!(serde_json::from_str::<Vec<String>>(&run.stdout).unwrap(), wrong);
}
