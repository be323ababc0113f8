//! Reports of whole plans.

mod attacks;
mod forms;
mod gate;
mod policies;
mod shapes;

use serde_json::{Value, json};

use super::*;

/// A plan of Terraform 1.11 with every kind of change.
const EVERYTHING: &str = include_str!("../../../tests/fixtures/review/everything.json");

/// Texts in it that are marked as sensitive, or are in a part that reports never show.
const SECRETS: [&str; 10] = [
    "hunter2-",
    "jt-",
    "secret-host-",
    "sk-llama-",
    "old-password",
    "new-password",
    "variable-secret",
    "constant-secret",
    "data-secret",
    "output-secret",
];

const FORMATS: [Format; 5] = [Format::Html, Format::Json, Format::Markdown, Format::Sarif, Format::Text];

fn everything() -> Value {
    serde_json::from_str(EVERYTHING).unwrap()
}

fn report(plan: &Value) -> Report {
    Report::of(None, &ReviewedPlan::read(plan.to_string().as_bytes()).unwrap())
}

/// The changes of a report that a section shows.
fn only(report: &Report, is: fn(&Change) -> bool) -> Vec<&Change> {
    report.changes.iter().filter(|change| is(change)).collect()
}

/// The review of one plan.
fn review(plan: &Value, policy: &Policy) -> Review {
    review_all(&[plan], policy)
}

/// The review of plans, which are named a, b and so on if there are several.
fn review_all(plans: &[&Value], policy: &Policy) -> Review {
    let name = |index: usize| (plans.len() > 1).then(|| char::from(b'a' + u8::try_from(index).unwrap()).to_string());
    let read = |plan: &Value| ReviewedPlan::read(plan.to_string().as_bytes()).unwrap();
    let plans = plans.iter().enumerate().map(|(index, plan)| Reviewed::new(name(index), &read(plan))).collect();
    Review::new(plans, policy, |_| None)
}

fn write(review: &Review, format: Format) -> String {
    render(review, &Style { format, ..Style::default() }).unwrap()
}

fn policy(max: Option<&str>, deny: &[Deny]) -> Policy {
    let max_monthly_increase = max.map(|most| most.parse().unwrap());
    let limits = Limits { max_monthly_increase, deny: deny.to_vec(), ..Limits::default() };
    Policy { limits: vec![limits], ..Policy::default() }
}

/// The violations of a policy, as `rule address`.
fn found(plan: &Value, policy: &Policy) -> Vec<String> {
    violations(&review(plan, policy))
}

fn violations(review: &Review) -> Vec<String> {
    let verdict = review.gate.as_ref().unwrap();
    assert_eq!(verdict.passed, verdict.violations.is_empty());
    let line = |violation: &Finding| format!("{} {}", violation.rule, violation.address.as_deref().unwrap_or("-"));
    verdict.violations.iter().map(line).collect()
}

/// A plan with these changes.
fn plan_of(changes: &[Value]) -> Value {
    json!({"format_version": "1.2", "planned_values": {}, "resource_changes": changes})
}

/// A change of an instance with these hourly prices.
fn machine(actions: &[&str], before: Option<f64>, after: Option<f64>) -> Value {
    let side = |price: Option<f64>| match price {
        Some(price) => json!({"payment_type": "Hourly", "estimated_cost":
            {"payment_type": "Hourly", "unit_price": price, "data_disk_price": 0}}),
        None => Value::Null,
    };
    json!({"address": "damodel_instance.a", "mode": "managed", "type": "damodel_instance",
        "change": {"actions": actions, "before": side(before), "after": side(after)}})
}

#[test]
fn a_comment_tells_everything() {
    let review = review(&everything(), &policy(Some("100"), &[Deny::DestroyData, Deny::Prepaid]));
    insta::assert_snapshot!(write(&review, Format::Markdown));
}

#[test]
fn the_form_for_programs_is_a_contract() {
    let mut change = machine(&["delete", "create"], Some(1.0), Some(2.5));
    change["change"]["replace_paths"] = json!([["image_id"]]);
    change["action_reason"] = "replace_because_cannot_update".into();
    insta::assert_snapshot!(write(&review(&plan_of(&[change]), &policy(Some("1000"), &[])), Format::Json));
}

#[test]
fn nothing_sensitive_is_in_any_form() {
    let plan = everything();
    let all = plan.to_string();
    let review = review(&plan, &policy(Some("0"), &[Deny::DestroyData, Deny::Prepaid, Deny::SecretsInState]));
    for secret in SECRETS {
        assert!(all.contains(secret), "{secret}");
        for format in FORMATS {
            assert!(!write(&review, format).contains(secret), "{secret} in {format:?}");
        }
    }
}

#[test]
fn a_comment_is_cut_to_what_is_taken() {
    let change = |number: usize| {
        let mut change = machine(&["create"], None, Some(1.0));
        change["address"] = format!("damodel_instance.m[{:?}]", format!("<{number}>{}", "|`".repeat(200))).into();
        change
    };
    let plan = plan_of(&(0..2000).map(change).collect::<Vec<_>>());
    let review = review(&plan, &policy(Some("1"), &[]));
    let text = write(&review, Format::Markdown);
    assert!((50_000..=65_536).contains(&text.chars().count()), "{}", text.chars().count());
    assert!(text.contains(" more left out"));
    assert!(text.contains("| **total** |  | **0.00** | **1460000.00** |") && text.ends_with("</sub>\n"));
    assert!(write(&review, Format::Html).len() > 500_000);
}

#[test]
fn every_rule_finds_what_it_is_for() {
    let plan = everything();
    assert_eq!(
        found(&plan, &policy(Some("6751.66"), &[])),
        [
            "max-monthly-increase damodel_instance.spot[\"a|b`c<i>@team\"]",
            "max-monthly-increase damodel_instance.weekly",
            "max-monthly-increase -"
        ]
    );
    assert_eq!(found(&plan, &policy(Some("6751.67"), &[])).len(), 2);
    assert_eq!(
        found(&plan, &policy(None, &[Deny::Prepaid])),
        ["prepaid module.paid.damodel_instance.monthly", "prepaid damodel_instance.weekly"]
    );
    let destroyed = found(&plan, &policy(None, &[Deny::DestroyData]));
    assert_eq!(destroyed.len(), 7, "{destroyed:?}");
    assert!(!destroyed.iter().any(|found| found.contains("forgotten") || found.contains("null_resource")));
    let secrets = found(&plan, &policy(None, &[Deny::SecretsInState]));
    assert!(secrets.contains(&"secrets-in-state output.password".to_owned()), "{secrets:?}");
    for kept in ["output.kept", "damodel_instance.renamed", "damodel_instance.moved", "damodel_instance.spot"] {
        assert!(!secrets.iter().any(|found| found.contains(kept)), "{kept}");
    }
    assert!(review(&plan, &Policy::default()).gate.is_none());
}

/// The refresh of the next plan reads a value that an import left out: a plan without changes, whose apply stores it.
#[test]
fn a_secret_that_comes_with_the_refresh_enters_the_state() {
    let side = |password: Value| json!({"ssh_password": password, "jupyter_token": "kept"});
    let marks = json!({"ssh_password": true, "jupyter_token": true});
    let change = |action: &str, before: Value, after: Value| {
        json!({"address": "damodel_instance.a", "mode": "managed", "type": "damodel_instance",
            "change": {"actions": [action],
            "before": before, "after": after, "before_sensitive": marks, "after_sensitive": marks}})
    };
    let (none, some) = (side(Value::Null), side("hunter2".into()));
    let mut plan = plan_of(&[change("no-op", some.clone(), some.clone())]);
    plan["resource_drift"] = json!([change("update", none.clone(), some.clone())]);
    let told = |plan: &Value| {
        let secrets = report(plan).secrets.into_iter();
        secrets.map(|secrets| format!("{} {}", secrets.address, secrets.attributes.join(","))).collect::<Vec<_>>()
    };
    assert_eq!(told(&plan), ["damodel_instance.a ssh_password"]);
    let denied = policy(None, &[Deny::SecretsInState]);
    assert_eq!(found(&plan, &denied), ["secrets-in-state damodel_instance.a"]);
    // A secret in both drift and change is listed once.
    plan["resource_changes"] = json!([change("create", Value::Null, some.clone())]);
    assert_eq!(told(&plan), ["damodel_instance.a jupyter_token,ssh_password"]);
    // A secret that drift removed or left unchanged is not listed.
    plan["resource_changes"] = json!([]);
    assert_eq!(told(&plan), ["damodel_instance.a ssh_password"]);
    plan["resource_drift"] = json!([change("update", some.clone(), none), change("update", some.clone(), some)]);
    assert_eq!(told(&plan), Vec::<String>::new());
}

#[test]
fn a_core_that_does_not_say_whether_a_plan_is_whole_is_not_trusted_to() {
    let sentence = "does not state whether it is complete";
    let told = |plan: &Value, format| write(&review(plan, &Policy::default()), format).contains(sentence);
    let mut plan = plan_of(&[]);
    for format in [Format::Html, Format::Markdown] {
        assert!(told(&plan, format), "{format:?}");
    }
    assert!(!report(&plan).says_whether_complete);
    plan["complete"] = true.into();
    for format in [Format::Html, Format::Markdown] {
        assert!(!told(&plan, format), "{format:?}");
    }
    assert!(report(&plan).says_whether_complete);
}

#[test]
fn a_plan_that_is_not_whole_passes_no_gate() {
    let gates = [policy(Some("100000"), &[]), policy(None, &[Deny::Prepaid])];
    let whole = plan_of(&[]);
    let with = |key: &str, value: Value| {
        let mut plan = whole.clone();
        plan[key] = value;
        plan
    };
    let mut strange = machine(&["transmogrify"], None, Some(1.0));
    strange["address"] = "damodel_instance.strange".into();
    for gate in &gates {
        assert_eq!(found(&whole, gate), Vec::<String>::new());
        for plan in [
            with("errored", true.into()),
            with("errored", "yes".into()),
            with("complete", false.into()),
            with("deferred_changes", json!([{"reason": "unknown"}])),
            with("resource_changes", json!({"a": 1})),
            with("resource_changes", json!([strange])),
            with("resource_changes", json!([{"address": "damodel_instance.a"}])),
            with("output_changes", json!({"a": {"actions": 1}})),
        ] {
            assert_eq!(found(&plan, gate), ["plan -"], "{plan}");
        }
    }
}

#[test]
fn an_unknown_price_is_no_low_one() {
    let limit = policy(Some("1000000"), &[]);
    let mut unknown = machine(&["create"], None, None);
    unknown["change"]["after"] = json!({"payment_type": "Hourly"});
    for (estimate, mask) in [
        (Value::Null, json!({})),
        (Value::Null, json!({"estimated_cost": true})),
        (json!({"payment_type": "Hourly", "data_disk_price": 0}), json!({"estimated_cost": {"unit_price": true}})),
        (json!({"payment_type": "Hourly", "unit_price": "free", "data_disk_price": 0}), json!({})),
        (json!({"payment_type": "Yearly", "unit_price": 1, "data_disk_price": 0}), json!({})),
        (json!({"payment_type": "Hourly", "unit_price": -9, "data_disk_price": 0}), json!({})),
    ] {
        unknown["change"]["after"]["estimated_cost"] = estimate;
        unknown["change"]["after_unknown"] = mask;
        let plan = plan_of(&[unknown.clone()]);
        assert_eq!(found(&plan, &limit), ["max-monthly-increase damodel_instance.a"], "{plan}");
    }
    // An existing, unchanged instance keeps its costs.
    let mut imported = machine(&["no-op"], Some(1.0), Some(1.0));
    imported["change"]["before"]["estimated_cost"] = Value::Null;
    imported["change"]["after"]["estimated_cost"] = Value::Null;
    assert_eq!(found(&plan_of(&[imported.clone()]), &policy(Some("0"), &[])), Vec::<String>::new());
    // A destroyed instance of unknown cost does not reduce the increase.
    imported["change"]["actions"] = json!(["delete", "create"]);
    imported["change"]["after"] = machine(&[], None, Some(2.0))["change"]["after"].clone();
    assert_eq!(found(&plan_of(&[imported]), &policy(Some("1459"), &[])), ["max-monthly-increase -"]);
}

#[test]
fn what_is_forgotten_is_paid_for_and_not_destroyed() {
    let all = [Deny::DestroyData, Deny::Prepaid, Deny::SecretsInState];
    let forgotten = machine(&["forget"], Some(2.0), None);
    assert_eq!(found(&plan_of(std::slice::from_ref(&forgotten)), &policy(Some("0"), &all)), Vec::<String>::new());
    let beside = machine(&["create", "forget"], Some(2.0), Some(1.0));
    let report = report(&plan_of(&[forgotten, beside]));
    assert_eq!(report.cost.monthly_change.with_digits(2), "730.00");
    assert_eq!(only(&report, |change| change.action.forgets()).len(), 2);
    assert_eq!(only(&report, |change| change.loss.is_some()).len(), 0);
}

#[test]
fn prices_as_large_as_no_memory_are_not_known() {
    let mut change = machine(&["create"], None, Some(1.0));
    change["change"]["after"]["estimated_cost"]["unit_price"] = serde_json::from_str("1e999999999").unwrap();
    assert_eq!(report(&plan_of(&[change])).cost.unknown_increases.len(), 1);
}

/// OpenTofu 1.11 lists ephemeral resources among the changes.
#[test]
fn what_is_only_opened_is_no_change() {
    let address = "ephemeral.damodel_instance_access.a";
    let entry = |mode: &str, action: &str| {
        json!({"address": address, "mode": mode, "type": "damodel_instance_access", "name": "a",
            "change": {"actions": [action], "before": null, "after": null, "after_unknown": false,
            "before_sensitive": false, "after_sensitive": false}})
    };
    let unreadable = |mode: &str, action: &str| report(&plan_of(&[entry(mode, action)])).unreadable;
    let all = policy(Some("0"), &[Deny::DestroyData, Deny::Prepaid, Deny::Unpriced, Deny::SecretsInState]);
    for action in ["open", "renew", "close"] {
        let mut plan = plan_of(&[entry("ephemeral", action)]);
        plan["resource_drift"] = json!([entry("ephemeral", action)]);
        assert_eq!(found(&plan, &all), Vec::<String>::new(), "{action}");
        assert_eq!(report(&plan).changes.len(), 0, "{action}");
        for mode in ["managed", "data"] {
            assert_eq!(unreadable(mode, action), [format!("resource_changes[0] ({address})")], "{mode} {action}");
        }
    }
    assert_eq!(unreadable("ephemeral", "delete"), [format!("resource_changes[0] ({address})")]);
}

/// `>` of Windows PowerShell 5 writes UTF-16 with a byte order mark.
#[test]
fn a_plan_in_utf_16_is_read() {
    let utf_16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
    let read = |document: &[u8]| ReviewedPlan::read(document).map(|plan| format!("{plan:?}"));
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        for text in [format!("\u{feff}{EVERYTHING}"), EVERYTHING.to_owned()] {
            let mut document = utf_16(&text, bytes);
            assert_eq!(read(&document), read(EVERYTHING.as_bytes()));
            document.pop();
            let cut = read(&document).unwrap_err().to_string();
            assert!(cut.contains("not valid UTF-16"), "{cut}");
            let mut lone = utf_16(&text, bytes);
            lone.extend(bytes(0xd800));
            let lone = read(&lone).unwrap_err().to_string();
            assert!(lone.contains("not valid UTF-16"), "{lone}");
        }
        assert_eq!(read(&utf_16("\u{feff}\r\n", bytes)), Err(NotAPlan::Empty));
    }
}

/// What the wrappers of setup-terraform and setup-opentofu print around the output.
#[test]
fn a_wrapper_s_lines_are_named() {
    let first = "[command]/home/runner/work/_temp/a/terraform-bin show -json tfplan\n";
    let last = "\n::debug::Terraform exited with code 0.%0A\n::set-output name=exitcode::0\n";
    for document in [format!("{first}{EVERYTHING}{last}"), format!("{first}{{}}"), format!("{EVERYTHING}{last}")] {
        let error = ReviewedPlan::read(document.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("terraform_wrapper: false") && error.contains("[command]"), "{error}");
    }
}

#[test]
fn what_is_no_plan_is_told_from_one() {
    let is = |document: &[u8]| ReviewedPlan::read(document).unwrap_err();
    assert_eq!(is(b""), NotAPlan::Empty);
    assert_eq!(is(b" \n"), NotAPlan::Empty);
    assert_eq!(is(b"PK\x03\x04rest"), NotAPlan::Saved);
    assert_eq!(is(br#"{"format_version":"1.0","terraform_version":"1.11.4","values":{}}"#), NotAPlan::State);
    assert_eq!(
        is(br#"{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"x","resources":[]}"#),
        NotAPlan::State
    );
    assert_eq!(is(br#"{"meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}"#), NotAPlan::Encrypted);
    assert_eq!(is(br#"{"format_version":"1.0","diagnostics":[],"valid":true}"#), NotAPlan::Other);
    assert_eq!(is(br#"{"format_version":"1.0","provider_schemas":{}}"#), NotAPlan::Other);
    assert_eq!(is(b"[]"), NotAPlan::Other);
    assert_eq!(is(b"{\"@level\":\"info\"}\n{\"@level\":\"info\"}\n"), NotAPlan::Log);
    assert_eq!(is(br#"{"format_version":"2.0","planned_values":{}}"#), NotAPlan::Version("2.0".to_owned()));
    let cut = EVERYTHING.split_at(EVERYTHING.len() / 2).0;
    assert!(matches!(is(cut.as_bytes()), NotAPlan::Syntax(_)));
    assert!(matches!(is(EVERYTHING.repeat(2).as_bytes()), NotAPlan::Syntax(_)));
    assert!(matches!(is("[".repeat(100_000).as_bytes()), NotAPlan::Syntax(_)));
    for whole in [EVERYTHING.to_owned(), format!("\u{feff}{EVERYTHING}\n")] {
        assert!(ReviewedPlan::read(whole.as_bytes()).is_ok());
    }
}

proptest::proptest! {
    /// Every format can be written for a plan with any texts.
    #[test]
    fn no_plan_breaks_a_report(address in "\\PC{0,60}", word in "\\PC{0,20}", number in proptest::num::f64::NORMAL) {
        let mut change = machine(&["delete", "create"], Some(number), Some(1.0));
        change["address"] = address.into();
        change["action_reason"] = word.clone().into();
        change["change"]["replace_paths"] = json!([[word, 1, null, {"a": 1}]]);
        let review = review(&plan_of(&[change]), &policy(Some("0"), &[Deny::DestroyData]));
        for format in FORMATS {
            write(&review, format);
        }
    }
}
