//! Findings as workflow commands of GitHub Actions (GitHub Actions, workflow commands, setting an error message).

use std::fmt::Write as _;

use crate::review::{
    findings::{Finding, Level},
    report::{Review, visible},
};

/// The longest message, in characters.
const LONGEST: usize = 1000;

/// Writes the commands, a line each.
pub(super) fn write(review: &Review) -> String {
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

/// The text of a command, in which a line break would end it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, in which more means something.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
