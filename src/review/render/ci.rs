//! Findings in the formats of continuous integration: code scanning (SARIF 2.1.0, OASIS Standard), GitLab's report of
//! code quality (a subset of the format of Code Climate), reports of tests (JUnit for Jenkins and GitLab: a suite for
//! each plan, a test for each passed rule and for each violation), and workflow commands of GitHub Actions (setting an
//! error message).

use std::{collections::BTreeMap, fmt::Write as _};

use askama::Template;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Style, place};
use crate::review::{
    findings::{Finding, Level, Rule},
    report::{Review, visible},
};

/// The longest message, in characters.
const LONGEST: usize = 1000;

/// Writes the log.
pub(super) fn sarif(review: &Review, style: &Style) -> serde_json::Result<String> {
    let rules: Vec<Value> = Rule::ALL.iter().map(|rule| self::rule(*rule)).collect();
    let results: Vec<Value> = review.findings.iter().map(|finding| result(finding, style)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "terraform-provider-damodel review",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn rule(rule: Rule) -> Value {
    json!({"id": rule.as_str(), "shortDescription": {"text": rule.describe()}})
}

fn result(finding: &Finding, style: &Style) -> Value {
    let level = match finding.level {
        Level::Error => "error",
        Level::Note => "note",
        Level::Warning => "warning",
    };
    let object = finding.address.as_ref().map(|object| visible(object, LONGEST));
    let text = match &object {
        Some(object) => format!("{object}: {}", finding.sentence(LONGEST)),
        None => finding.sentence(LONGEST),
    };
    let place = place(finding, style);
    let mut location = json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&place.file)},
        "region": {"startLine": place.line},
    }});
    if let (Some(object), Some(location)) = (object, location.as_object_mut()) {
        location.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": object, "kind": "resource"}]));
    }
    json!({
        "ruleId": finding.rule.as_str(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == finding.rule),
        "level": level,
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {"damodelReview/v1": finding.fingerprint},
    })
}

/// A path as a relative reference (RFC 3986): all but unreserved characters are percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: usize,
}

/// Writes the report.
pub(super) fn gitlab(review: &Review, style: &Style) -> serde_json::Result<String> {
    let mut issues: Vec<Issue> = review.findings.iter().map(|finding| issue(finding, style)).collect();
    // GitLab drops an issue with the fingerprint of another one; a current and a deposed object share theirs.
    distinguish(issues.iter_mut().map(|issue| &mut issue.fingerprint));
    Ok(serde_json::to_string_pretty(&issues)? + "\n")
}

fn issue(finding: &Finding, style: &Style) -> Issue {
    let object = finding.address.as_ref().map(|object| format!("{}: ", visible(object, LONGEST))).unwrap_or_default();
    let place = place(finding, style);
    Issue {
        description: format!("{object}{}", finding.sentence(LONGEST)),
        check_name: finding.rule.as_str(),
        fingerprint: finding.fingerprint.clone(),
        severity: match finding.level {
            Level::Error => "critical",
            Level::Note => "info",
            Level::Warning => "minor",
        },
        location: Location { path: place.file, lines: Lines { begin: place.line } },
    }
}

/// Numbers equal names.
fn distinguish<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let _ = write!(name, " ({count})");
        }
    }
}

#[derive(Template)]
#[template(path = "report.xml", config = "src/review/render/askama.toml")]
struct Suites {
    tests: usize,
    violations: usize,
    suites: Vec<Suite>,
}

struct Suite {
    name: String,
    tests: Vec<Test>,
    violations: usize,
    /// The findings that are not violations, one per line.
    remarks: Vec<String>,
}

struct Test {
    rule: &'static str,
    name: String,
    /// The violation; `None` for a passed rule.
    violation: Option<Violation>,
}

struct Violation {
    message: String,
    text: String,
}

/// Writes the report.
pub(super) fn junit(review: &Review) -> Result<String, askama::Error> {
    let of_plan = |plan: Option<&str>| {
        review.findings.iter().filter(move |finding| finding.plan.as_deref() == plan).collect::<Vec<_>>()
    };
    let mut suites: Vec<Suite> = review
        .plans
        .iter()
        .map(|plan| suite(plan.name.as_deref().unwrap_or("plan"), &of_plan(plan.name.as_deref())))
        .collect();
    let of_all = of_plan(None);
    if review.is_of_several() && !of_all.is_empty() {
        suites.push(suite("all plans", &of_all));
    }
    let page = Suites {
        tests: suites.iter().map(|suite| suite.tests.len()).sum(),
        violations: suites.iter().map(|suite| suite.violations).sum(),
        suites,
    };
    Ok(page.render()? + "\n")
}

fn suite(name: &str, findings: &[&Finding]) -> Suite {
    let mut tests = Vec::new();
    for rule in Rule::ALL {
        let begin = tests.len();
        let mut violations =
            findings.iter().filter(|finding| finding.rule == rule && finding.level == Level::Error).peekable();
        if violations.peek().is_none() {
            tests.push(Test { rule: rule.as_str(), name: rule.as_str().to_owned(), violation: None });
        }
        tests.extend(violations.map(|finding| violated(finding)));
        distinguish(tests.iter_mut().skip(begin).map(|test| &mut test.name));
    }
    let remarks = findings.iter().filter(|finding| finding.level != Level::Error);
    Suite {
        name: xml(name),
        violations: tests.iter().filter(|test| test.violation.is_some()).count(),
        remarks: remarks.map(|finding| xml(&finding.to_string())).collect(),
        tests,
    }
}

fn violated(finding: &Finding) -> Test {
    let place = finding.location.as_ref().map(|place| format!("\n{}:{}", xml(&place.file), place.line));
    Test {
        rule: finding.rule.as_str(),
        name: finding.address.as_deref().map_or_else(|| format!("the plan ({})", finding.kind), xml),
        violation: Some(Violation {
            message: xml(&finding.sentence(LONGEST)),
            text: format!("{}{}", xml(&finding.to_string()), place.unwrap_or_default()),
        }),
    }
}

/// Text without the characters that XML 1.0 forbids.
fn xml(text: &str) -> String {
    visible(text, LONGEST).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// Writes the commands, one per line.
pub(super) fn github(review: &Review) -> String {
    review.findings.iter().map(command).collect()
}

fn command(finding: &Finding) -> String {
    let name = match finding.level {
        Level::Error => "error",
        Level::Note => "notice",
        Level::Warning => "warning",
    };
    let mut text = format!("::{name} ");
    if let Some(location) = &finding.location {
        let _ = write!(text, "file={},line={},", property(&location.file), location.line);
    }
    let plan = finding.plan.as_ref().map(|plan| format!("{}: ", visible(plan, LONGEST))).unwrap_or_default();
    let object = finding.address.as_ref().map(|object| format!("{}: ", visible(object, LONGEST))).unwrap_or_default();
    let message = format!("{plan}{object}{}", finding.sentence(LONGEST));
    let _ = writeln!(text, "title={}::{}", property(finding.rule.as_str()), data(&message));
    text
}

/// The text of a command, with escaped line breaks, which would end it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, in which further characters are escaped.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
