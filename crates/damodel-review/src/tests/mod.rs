//! Reports of whole plans.

mod attacks;
mod forms;
mod page;
mod random;
mod shapes;

use serde_json::{Value, json};

use super::*;

/// A plan of Terraform 1.11 with every kind of change.
const EVERYTHING: &str = include_str!("../../../../tests/fixtures/review/everything.json");

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

fn read(plan: &Value) -> Plan {
    Plan::read(plan.to_string().as_bytes()).unwrap()
}

/// The review of one plan.
fn review(plan: &Value, policy: &Policy) -> Review<'static> {
    review_all(&[plan], policy)
}

/// Some arguments of instances, with their defaults.
fn arguments() -> Arguments {
    let defaults =
        [("auto_renew", Some("false")), ("name", None), ("new_disks", None), ("payment_type", Some("\"Hourly\""))];
    let defaults = defaults.map(|(name, default)| (name.to_owned(), default.map(str::to_owned)));
    Arguments([("damodel_instance", defaults.into())].into())
}

/// The review of plans, which are named a, b and so on if there are several. What it borrows is not released before the
/// tests end.
fn review_all(plans: &[&Value], policy: &Policy) -> Review<'static> {
    let name = |index: usize| (plans.len() > 1).then(|| char::from(b'a' + u8::try_from(index).unwrap()).to_string());
    let plans = plans
        .iter()
        .enumerate()
        .map(|(index, plan)| Facts::of(name(index), &read(plan), &arguments()))
        .collect::<Vec<_>>();
    Review::new(Vec::leak(plans), Box::leak(Box::new(policy.clone())), |_| None)
}

fn write(review: &Review<'_>, format: Format) -> String {
    render(review, &Style { format, ..Style::default() }).unwrap()
}

fn json(plan: &Value) -> Value {
    serde_json::from_str(&write(&review(plan, &Policy::default()), Format::Json)).unwrap()
}

/// The comment on a plan without a gate.
fn comment(plan: &Value) -> String {
    write(&review(plan, &Policy::default()), Format::Markdown)
}

fn policy(max: Option<&str>, deny: &[Rule]) -> Policy {
    let limits =
        Limits { matching: None, max_monthly_increase: max.map(|most| most.parse().unwrap()), deny: deny.to_vec() };
    Policy { is_gate: true, limits: vec![limits], ..Policy::default() }
}

/// A policy without its version.
fn policy_of(text: &str) -> Result<Policy, NotAPolicy> {
    Policy::read(&format!("version = 1\n{text}"), jiff::civil::date(2026, 11, 22))
}

/// The violations, as `rule address`.
fn violations(review: &Review<'_>) -> Vec<String> {
    let line = |judged: &Judged<'_>| {
        let address = judged.finding.address.map_or_else(|| "-".to_owned(), ToString::to_string);
        format!("{} {address}", judged.finding.rule)
    };
    review.violations().map(line).collect()
}

/// The messages of all findings, as `level rule: message`.
fn messages(review: &Review<'_>) -> Vec<String> {
    review.findings.iter().map(|judged| format!("{}: {}", judged.finding.rule, judged.message())).collect()
}

/// A plan with these changes.
fn plan_of(changes: &[Value]) -> Value {
    json!({"format_version": "1.2", "planned_values": {}, "resource_changes": changes})
}

/// A change of an instance with these hourly prices.
fn instance(actions: &[&str], before: Option<f64>, after: Option<f64>) -> Value {
    let side = |price: Option<f64>| match price {
        Some(price) => json!({"payment_type": "Hourly", "estimated_cost":
            {"payment_type": "Hourly", "unit_price": price, "data_disk_price": 0}}),
        None => Value::Null,
    };
    json!({"address": "damodel_instance.a", "mode": "managed", "type": "damodel_instance",
        "change": {"actions": actions, "before": side(before), "after": side(after)}})
}

/// `>` of Windows PowerShell 5 writes UTF-16 with a byte order mark.
#[test]
fn a_plan_in_utf_16_is_read() {
    let utf_16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
    let read = |document: &[u8]| Plan::read(document).map(|plan| format!("{plan:?}"));
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
    let first = "[command]/usr/bin/terraform-bin show -json tfplan\n";
    let last = "\n::debug::Terraform exited with code 0.%0A\n::set-output name=exitcode::0\n";
    for document in [format!("{first}{EVERYTHING}{last}"), format!("{first}{{}}"), format!("{EVERYTHING}{last}")] {
        let error = Plan::read(document.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("terraform_wrapper: false") && error.contains("[command]"), "{error}");
    }
}

/// Warnings and logs of standard error (`2>&1`), traces of a shell, colours, and the prefixes of Terragrunt.
#[test]
fn text_before_the_json_is_named() {
    for before in [
        "\nWarning: Unable to open CLI configuration file\n\n",
        "2026-11-20T10:00:00.000Z [INFO]  Terraform version: 1.11.4\n",
        "12:01:02.003 STDOUT terraform: ",
        "[module] ",
        "+ terraform show -json tfplan\n",
        "\u{1b}[0m",
    ] {
        let error = Plan::read(format!("{before}{EVERYTHING}").as_bytes()).unwrap_err();
        assert_eq!(error, NotAPlan::Document(DocumentError::Preceded), "{before}");
    }
    let json = r#"{"a": {"version": 4} oops"#;
    assert!(matches!(Plan::read(json.as_bytes()), Err(NotAPlan::Syntax(_))));
}

#[test]
fn what_is_no_plan_is_told_from_one() {
    let is = |document: &[u8]| Plan::read(document).unwrap_err();
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
    let backend = br#"{"version":3,"lineage":"x","backend":{"type":"pg","config":{"conn_str":"hunter2"}}}"#;
    assert_eq!(is(backend), NotAPlan::Backend);
    assert_eq!(is(b"{\"@level\":\"info\"}\n{\"@level\":\"info\"}\n"), NotAPlan::Log);
    assert_eq!(is(br#"{"format_version":"2.0","planned_values":{}}"#), NotAPlan::Version("2.0".to_owned()));
    let cut = EVERYTHING.split_at(EVERYTHING.len() / 2).0;
    assert!(matches!(is(cut.as_bytes()), NotAPlan::Syntax(_)));
    assert!(matches!(is(EVERYTHING.repeat(2).as_bytes()), NotAPlan::Syntax(_)));
    assert!(matches!(is("[".repeat(100_000).as_bytes()), NotAPlan::Syntax(_)));
    for whole in [EVERYTHING.to_owned(), format!("\u{feff}{EVERYTHING}\n")] {
        assert!(Plan::read(whole.as_bytes()).is_ok());
    }
}

proptest::proptest! {
    /// Every format can be written for a plan with any texts.
    #[test]
    fn no_plan_breaks_a_report(address in "\\PC{0,60}", word in "\\PC{0,20}", number in proptest::num::f64::NORMAL) {
        let mut change = instance(&["delete", "create"], Some(number), Some(1.0));
        change["address"] = address.into();
        change["action_reason"] = word.clone().into();
        change["change"]["replace_paths"] = json!([[word, 1, null, {"a": 1}]]);
        let review = review(&plan_of(&[change]), &policy(Some("0"), &[Rule::DestroyData]));
        for format in FORMATS {
            write(&review, format);
        }
    }
}
