//! The phase of a run, from its records and its processes.

use std::str::FromStr;

use super::{
    kinds::{FailureKind, JobFailure, Malformed},
    wire::ReportValues,
};

/// A phase of a run. They are in the order of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Never begun, or stopped.
    #[default]
    Absent,
    /// The work begins.
    Find,
    /// The source is fetched and compiled.
    Compile,
    /// The server is being started.
    Start,
    /// A file is downloaded, or its sum is computed. The previous server serves.
    Download,
    /// The server runs and loads the model: ask `/health`.
    Load,
    /// It generates tokens.
    Ready,
    /// [`super::JobReport::failure`] is the reason.
    Failed,
}

impl Phase {
    /// In a word or two.
    pub fn title(self) -> &'static str {
        match self {
            Self::Absent => "stopped",
            Self::Find => "looking for a build",
            Self::Compile => "compiling",
            Self::Start => "being started",
            Self::Download => "downloading",
            Self::Load => "loading the model",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for Phase {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Ok(match text {
            "absent" => Self::Absent,
            "find" => Self::Find,
            "compile" => Self::Compile,
            "start" => Self::Start,
            "download" => Self::Download,
            "load" => Self::Load,
            "ready" => Self::Ready,
            "failed" => Self::Failed,
            _ => return Err(Malformed::Value { key: "phase".to_owned() }),
        })
    }
}

/// A phase with its reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObservedPhase {
    pub(super) phase: Phase,
    /// The failure of work that ended without a record of its end.
    pub(super) interrupted: Option<JobFailure>,
    /// [`super::JobReport::is_transient`].
    pub(super) is_transient: bool,
}

/// Compares the recorded phase with the processes: the work, and the server of this run. A phase without its process is
/// a failure.
pub(super) fn observed_phase(values: &ReportValues, is_alive: bool) -> Result<ObservedPhase, Malformed> {
    let is_at_work = values.is_yes("worker_alive");
    let recorded = values.text("status_phase").unwrap_or("absent");
    let phase: Phase = recorded.parse()?;
    let as_it_is = |phase| Ok(ObservedPhase { phase, interrupted: None, is_transient: false });
    let was_ready = phase == Phase::Ready || values.is_yes("status_proved");
    let interrupted = |what: &str| {
        let (work, boot) = (values.text("worker_identity"), values.text("boot"));
        let text = match (work.zip(boot).is_some_and(|(work, boot)| !work.ends_with(boot)), was_ready) {
            (true, true) => "the instance was rebooted".to_owned(),
            (false, true) => "the server and the process that supervises it were ended".to_owned(),
            (true, false) => format!("{what}: the instance was rebooted"),
            (false, false) => format!("{what}: it was killed, or memory ran out"),
        };
        let failure = JobFailure { kind: FailureKind::Interrupted, text };
        Ok(ObservedPhase { phase: Phase::Failed, interrupted: Some(failure), is_transient: false })
    };
    match phase {
        Phase::Find | Phase::Compile | Phase::Start | Phase::Download if is_at_work => as_it_is(phase),
        Phase::Start if is_alive => as_it_is(Phase::Load),
        Phase::Find | Phase::Compile | Phase::Start | Phase::Download => {
            interrupted(&format!("the work ended in the phase \"{recorded}\""))
        }
        Phase::Load | Phase::Ready if is_alive => as_it_is(phase),
        // Only the work decides whether the server starts again.
        Phase::Load | Phase::Ready if is_at_work => {
            Ok(ObservedPhase { phase: Phase::Start, interrupted: None, is_transient: true })
        }
        Phase::Load | Phase::Ready => {
            interrupted("the server exited before it was ready, and its exit code is unknown")
        }
        Phase::Absent | Phase::Failed => as_it_is(phase),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::at_work("compile", "yes", "", "", Phase::Compile, "")]
    #[case::killed("compile", "", "", "", Phase::Failed, "the work ended in the phase \"compile\": it was killed")]
    #[case::rebooted(
        "compile",
        "",
        "",
        "yes",
        Phase::Failed,
        "the work ended in the phase \"compile\": the instance was rebooted"
    )]
    #[case::killed_while_it_started("start", "", "yes", "", Phase::Load, "")]
    #[case::serves("ready", "yes", "yes", "", Phase::Ready, "")]
    #[case::without_supervisor("ready", "", "yes", "", Phase::Ready, "")]
    #[case::about_to_be_judged("ready", "yes", "", "", Phase::Start, "")]
    #[case::unjudged("load", "", "", "", Phase::Failed, "the server exited before it was ready")]
    #[case::failed("failed", "", "yes", "", Phase::Failed, "")]
    #[case::was_ready("ready", "", "", "", Phase::Failed, "the server and the process that supervises it were ended")]
    #[case::was_ready_before_a_reboot("ready", "", "", "yes", Phase::Failed, "the instance was rebooted")]
    #[case::started_again_before_a_reboot("proved load", "", "", "yes", Phase::Failed, "the instance was rebooted")]
    #[case::paused_before_a_reboot("proved start", "", "", "yes", Phase::Failed, "the instance was rebooted")]
    fn a_phase_is_judged_by_what_lives(
        #[case] phase: &str,
        #[case] work: &str,
        #[case] alive: &str,
        #[case] rebooted: &str,
        #[case] expected: Phase,
        #[case] text: &str,
    ) {
        let boot = if rebooted == "yes" { "another" } else { "this" };
        let (proved, phase) = phase.strip_prefix("proved ").map_or(("", phase), |phase| ("yes", phase));
        let values = [
            ("status_phase", phase),
            ("status_proved", proved),
            ("worker_alive", work),
            ("worker_identity", "1.2.this"),
            ("boot", boot),
        ];
        let seen = observed_phase(&values.into_iter().collect(), alive == "yes").unwrap();
        assert_eq!((seen.phase, seen.is_transient), (expected, expected == Phase::Start));
        let interrupted = seen.interrupted.map(|failure| failure.text).unwrap_or_default();
        assert!(interrupted.starts_with(text) && interrupted.is_empty() == text.is_empty(), "{interrupted}");
    }
}
