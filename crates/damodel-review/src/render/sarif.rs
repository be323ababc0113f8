//! Violations and warnings as a log for code scanning (SARIF 2.1.0, OASIS Standard).

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::style::{Style, visible};
use crate::{
    address::{Address, Pattern},
    findings::{Finding, Grounds},
    policy::Rule,
    verdict::{Judged, Level, Location, Review},
};

/// The maximum number of results that code scanning takes of one log.
const MOST: usize = 5_000;
/// The longest message, in characters.
const LONGEST: usize = 1000;
/// The file of a finding, if no other is known.
const PLAN_FILE: &str = "plan.json";
/// The number of bytes of a digest in a fingerprint.
const FINGERPRINT: usize = 16;

/// Writes the log.
pub(super) fn write(review: &Review<'_>, style: &Style) -> serde_json::Result<String> {
    let rule = |(_, name, text): &(_, _, _)| json!({"id": name, "shortDescription": {"text": text}});
    let rules: Vec<Value> = Rule::ALL.iter().map(rule).collect();
    let mut shown: Vec<&Judged<'_>> = review.findings.iter().filter(|judged| judged.level != Level::Note).collect();
    shown.sort_by_key(|judged| (judged.level, judged.finding.rule));
    let results: Vec<Value> = shown.into_iter().take(MOST).map(|judged| result(judged, style)).collect();
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

fn result(judged: &Judged<'_>, style: &Style) -> Value {
    let finding = &judged.finding;
    let object = finding.address.map(|object| visible(&object.to_string(), LONGEST));
    let message = visible(&judged.message(), LONGEST);
    let text = object.iter().fold(message, |message, object| format!("{object}: {message}"));
    // The location of a finding: the configuration of its object, or its plan.
    let place = judged.location.clone().unwrap_or_else(|| Location {
        file: style.plan_files.get(&finding.plan.map(str::to_owned)).map_or(PLAN_FILE, String::as_str).to_owned(),
        line: 1,
    });
    let mut location = json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&place.file)},
        "region": {"startLine": place.line},
    }});
    if let (Some(object), Some(location)) = (object, location.as_object_mut()) {
        location.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": object, "kind": "resource"}]));
    }
    json!({
        "ruleId": finding.rule.as_str(),
        "ruleIndex": Rule::ALL.iter().position(|(rule, ..)| *rule == finding.rule),
        "level": if judged.level == Level::Error { "error" } else { "warning" },
        "message": {"text": escaped(&text)},
        "locations": [location],
        "partialFingerprints": {"damodelReview/v1": fingerprint(finding)},
    })
}

/// A text in which no brackets make a link (SARIF, messages with embedded links).
fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| matches!(c, '[' | ']' | '\\').then_some('\\').into_iter().chain([c])).collect()
}

/// The digest of rule, plan, address and kind: equal for the same finding of a later plan, wherever the object is
/// configured.
fn fingerprint(finding: &Finding<'_>) -> String {
    let subject = match &finding.grounds {
        Grounds::Exception(exception) => exception.matching.iter().map(Pattern::as_str).collect::<Vec<_>>().join("\0"),
        Grounds::Excess { matching, .. } => matching.clone(),
        _ => finding.address.map(Address::to_string).unwrap_or_default(),
    };
    let mut digest = Sha256::new();
    // A plan without a name differs from one with an empty name.
    let plan = finding.plan.map_or_else(String::new, |plan| format!("={plan}"));
    for part in [finding.rule.as_str(), &plan, &subject, finding.kind] {
        digest.update(part);
        digest.update([0]);
    }
    digest.finalize().get(..FINGERPRINT).map(hex::encode).unwrap_or_default()
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
