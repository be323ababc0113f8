//! Findings for GitLab (GitLab, Code Quality, report format): a subset of the format of Code Climate.

use serde::Serialize;

use super::{Style, place};
use crate::review::{
    findings::{Finding, Level},
    report::{Review, visible},
};

/// The longest description, in characters.
const LONGEST: usize = 1000;

#[derive(Serialize)]
struct Issue<'a> {
    description: String,
    check_name: &'static str,
    fingerprint: &'a str,
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
pub(super) fn write(review: &Review, style: &Style) -> serde_json::Result<String> {
    let issues: Vec<Issue<'_>> = review.findings.iter().map(|finding| issue(finding, style)).collect();
    Ok(serde_json::to_string_pretty(&issues)? + "\n")
}

fn issue<'a>(finding: &'a Finding, style: &Style) -> Issue<'a> {
    let object = finding.address.as_ref().map(|object| format!("{}: ", visible(object, LONGEST))).unwrap_or_default();
    let place = place(finding, style);
    Issue {
        description: format!("{object}{}", finding.sentence(LONGEST)),
        check_name: finding.rule.as_str(),
        fingerprint: &finding.fingerprint,
        severity: match finding.level {
            Level::Error => "critical",
            Level::Note => "info",
            Level::Warning => "minor",
        },
        location: Location { path: place.file, lines: Lines { begin: place.line } },
    }
}
