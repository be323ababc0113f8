//! Findings for GitLab (GitLab, Code Quality, report format): a subset of the format of Code Climate.

use serde::Serialize;

use super::PLAN_FILE;
use crate::review::{
    findings::{Finding, Level},
    reviewed::Review,
    text::visible,
};

/// The longest description, in characters.
const LONGEST: usize = 1000;

#[derive(Serialize)]
struct Issue<'a> {
    description: String,
    check_name: &'static str,
    fingerprint: &'a str,
    severity: &'static str,
    location: Location<'a>,
}

#[derive(Serialize)]
struct Location<'a> {
    path: &'a str,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: usize,
}

/// Writes the report.
pub(super) fn write(review: &Review) -> serde_json::Result<String> {
    let issues: Vec<Issue<'_>> = review.findings.iter().map(issue).collect();
    Ok(serde_json::to_string_pretty(&issues)? + "\n")
}

fn issue(finding: &Finding) -> Issue<'_> {
    let object = finding.address.as_ref().map(|object| format!("{}: ", visible(object, LONGEST))).unwrap_or_default();
    let location = finding.location.as_ref();
    Issue {
        description: format!("{object}{}", finding.sentence(LONGEST)),
        check_name: finding.rule.as_str(),
        fingerprint: &finding.fingerprint,
        severity: match finding.level {
            Level::Error => "critical",
            Level::Note => "info",
            Level::Warning => "minor",
        },
        location: Location {
            path: location.map(|location| location.file.as_str()).or(finding.plan.as_deref()).unwrap_or(PLAN_FILE),
            lines: Lines { begin: location.map_or(1, |location| location.line) },
        },
    }
}
