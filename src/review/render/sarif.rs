//! Findings as a log for code scanning (SARIF 2.1.0, OASIS Standard).

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Style;
use crate::review::{
    findings::{Finding, Level, Location, Rule},
    report::{Review, visible},
};

/// The longest message, in characters.
const LONGEST: usize = 1000;

/// The file of a finding, if no other is known.
const PLAN_FILE: &str = "plan.json";

/// Writes the log.
pub(super) fn write(review: &Review, style: &Style) -> serde_json::Result<String> {
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

/// The location of a finding: the configuration of its object, or its plan.
fn place(finding: &Finding, style: &Style) -> Location {
    let file = || style.plan_files.get(&finding.plan).map_or(PLAN_FILE, String::as_str);
    let of_plan = || Location { file: file().to_owned(), line: 1 };
    finding.location.clone().unwrap_or_else(of_plan)
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
