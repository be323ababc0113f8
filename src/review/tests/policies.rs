//! Policies of several parts, and exceptions.

use jiff::civil::date;

use super::*;

fn read(text: &str) -> Policy {
    Policy::read(&format!("version = 1\n{text}"), date(2026, 11, 22)).unwrap()
}

/// The create of an instance with this address and hourly price.
fn made(address: &str, price: f64) -> Value {
    let mut change = machine(&["create"], None, Some(price));
    change["address"] = address.into();
    change
}

fn destroyed(address: &str) -> Value {
    let mut change = machine(&["delete"], Some(1.0), None);
    change["address"] = address.into();
    change["change"]["before"]["id"] = format!("id of {address}").into();
    change
}

#[test]
fn a_rule_holds_for_its_part_of_the_plan() {
    let plan = plan_of(&[made("module.prod[\"eu\"].damodel_instance.a", 1.0), made("damodel_instance.b", 2.0)]);
    let policy = read(
        "[limits]\nmax_monthly_increase = 5000\n[[rule]]\nmatch = [\"module.prod.**\"]\nmax_monthly_increase = 0\n",
    );
    let review = review(&plan, &policy);
    assert_eq!(violations(&review), ["max-monthly-increase -"]);
    let violation = &review.gate.as_ref().unwrap().violations[0];
    assert_eq!(
        violation.to_string(),
        "max-monthly-increase: increases add up to 730.00 a month (limit 0.00); decreases of 0.00 do not count: \
         module.prod.**"
    );
    let elsewhere =
        read("[[rule]]\nmatch = [\"module.test.**\"]\nmax_monthly_increase = 0\ndeny = [\"destroy-data\"]\n");
    assert_eq!(found(&plan, &elsewhere), Vec::<String>::new());
}

#[test]
fn an_exception_lets_one_object_through_until_its_day() {
    let plan = plan_of(&[destroyed("damodel_instance.db[0]"), destroyed("damodel_instance.other")]);
    let with = |rule: &str, day: &str| {
        read(&format!(
            "[limits]\ndeny = [\"destroy-data\"]\n[[exception]]\nmatch = [\"damodel_instance.db\"]\n\
             rule = [\"{rule}\"]\nowner = \"storage\"\nreason = \"moved\"\nexpires = {day}\n"
        ))
    };
    let open = review(&plan, &with("destroy-data", "2026-11-22"));
    assert_eq!(violations(&open), ["destroy-data damodel_instance.other"]);
    let text = write(&open, Format::Markdown);
    assert!(text.contains("(excepted until 2026-11-22)<br>`storage`<br>`moved`"), "{text}");
    let over = with("destroy-data", "2026-11-21");
    assert_eq!(
        found(&plan, &over),
        ["destroy-data damodel_instance.db[0]", "destroy-data damodel_instance.other", "exception -"]
    );
    // An exception that covers no object is reported and does not close the gate.
    let useless = review(&plan_of(&[]), &with("prepaid", "2027-01-01"));
    assert!(useless.gate.as_ref().unwrap().passed);
    assert!(write(&useless, Format::Markdown).contains("an exception of the policy matches no object"));
}

#[test]
fn several_plans_have_one_gate() {
    let (one, other) =
        (plan_of(&[made("damodel_instance.a", 1.0)]), plan_of(&[made("module.m.damodel_instance.a", 2.0)]));
    let review = review_all(&[&one, &other], &policy(Some("2000"), &[]));
    assert_eq!(violations(&review), ["max-monthly-increase -"]);
    let text = write(&review, Format::Markdown);
    for part in [
        "2 plans: 2 to create",
        "### Cost by plan\n",
        "| `b` | 1 to create | 0.00 | 1460.00 | +1460.00 |",
        "### Cost by module\n",
        "| root module | 0.00 | 730.00 | +730.00 |",
        "| **total** |  | **0.00** | **2190.00** | **+2190.00** |",
        "| `damodel_instance.a`<br>in `a` |",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value = serde_json::from_str(&write(&review, Format::Json)).unwrap();
    assert_eq!((&json["plans"][1]["name"], json["cost"]["after"]["monthly"].as_f64()), (&"b".into(), Some(2190.0)));
    // The same object in two plans gives two findings.
    let twice = review_all(
        &[&plan_of(&[destroyed("x.y")]), &plan_of(&[destroyed("x.y")])],
        &policy(None, &[Deny::DestroyData]),
    );
    assert_ne!(twice.findings[0].fingerprint, twice.findings[1].fingerprint);
}
