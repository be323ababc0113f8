//! The words of the attribute `status`, and which of them a report means.

use super::bootstrap::{FailureKind, JobReport, Phase};

/// It serves.
pub const READY: &str = "ready";
/// There is no process.
pub const STOPPED: &str = "stopped";
/// The work in the instance goes on.
pub const STARTING: &str = "starting";
/// The last start failed.
pub const FAILED: &str = "failed";
/// It does not run, and another program listens on its port.
pub const BLOCKED: &str = "blocked";
/// It does not run, and a llama-server that was started by hand serves on its port.
pub const DISPLACED: &str = "displaced";
/// It runs, and does not answer.
pub const UNRESPONSIVE: &str = "unresponsive";
/// It serves a file that has been replaced since.
pub const OUTDATED: &str = "outdated";
/// It serves, and no process would start it again.
pub const UNSUPERVISED: &str = "unsupervised";

/// The status in a report. The health check has yet to confirm [`READY`].
pub fn status_of(report: &JobReport) -> &'static str {
    let is_alive = report.process.as_ref().is_some_and(|process| process.is_alive);
    let kind = report.failure.as_ref().map(|failure| failure.kind);
    if let Some(rival) = report.rival.as_ref().filter(|_| !is_alive && is_over(report)) {
        return if rival.command_line.is_empty() { BLOCKED } else { DISPLACED };
    }
    match report.phase {
        Phase::Absent => STOPPED,
        // Started again by itself: whether it serves shows when it is asked.
        Phase::Load | Phase::Ready if report.lacks_supervisor() && !report.has_other_model() => UNSUPERVISED,
        Phase::Load if is_alive && report.is_proved => READY,
        Phase::Find | Phase::Compile | Phase::Start | Phase::Download | Phase::Load => STARTING,
        Phase::Ready if !is_alive => STOPPED,
        Phase::Ready if report.has_other_model() => OUTDATED,
        Phase::Ready => READY,
        Phase::Failed if !is_alive && matches!(kind, Some(FailureKind::Died | FailureKind::Interrupted)) => STOPPED,
        Phase::Failed => FAILED,
    }
}

/// Whether the work is over.
fn is_over(report: &JobReport) -> bool {
    matches!(report.phase, Phase::Absent | Phase::Ready | Phase::Failed)
}
