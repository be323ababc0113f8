//! What is done next about a job in the instance: a pure function of what was asked for, what was seen and what was
//! tried.

use std::sync::LazyLock;

use regex::Regex;

use super::bootstrap::{Build, Failure, Former, Kind, Phase, Report};

/// How often work that was interrupted, as by a restart of the machine, is resumed within one apply.
const RESUMPTIONS: usize = 3;

/// Cards that the prebuilt server cannot use (service API, In-instance inference server guide).
static OLD_CARDS: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant that the tests compile")]
    Regex::new("(?i)(^|[^a-z0-9])(V100S?|P40)([^a-z0-9]|$)").expect("a pattern")
});

/// What a prebuilt server says that the card or its driver rules out: it fails so each time.
const RULED_OUT: &[&str] = &[
    "no kernel image is available for execution on the device",
    "CUDA driver version is insufficient for CUDA runtime version",
    "the provided PTX was compiled with an unsupported toolchain",
];

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    /// Which binary may serve; none where nothing is begun, and what is there is followed.
    pub(super) build: Option<Build>,
    /// The job, as the instance tells jobs apart; none where it may be any.
    pub(super) fingerprint: Option<String>,
    /// Whether a server that served before is to serve again when the new one does not.
    pub(super) rolls_back: bool,
}

impl Goal {
    /// That of who begins nothing: what is there shall serve.
    pub(super) fn seen() -> Self {
        Self { build: None, fingerprint: None, rolls_back: false }
    }
}

/// What was tried in this apply.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Whether the job was begun, or resumed.
    pub(super) is_begun: bool,
    /// How often interrupted work was resumed.
    pub(super) resumptions: usize,
    /// What the last trial of a server came to.
    pub(super) verdict: Option<Verdict>,
}

impl History {
    /// That of who has begun it some other way than with a job.
    pub(super) fn begun() -> Self {
        Self { is_begun: true, ..Self::default() }
    }
}

/// What a health check and a probe came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// [`super::bootstrap::Process::identity`] of the process that was asked.
    pub(super) process: String,
    /// Why it does not infer; none when it does.
    pub(super) failure: Option<String>,
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The job is begun with this binary; and why it is not the prebuilt one.
    Begin(Build, Option<Failure>),
    /// The server infers.
    Confirm(String),
    /// It came to nothing.
    Fail,
    /// A server that serves does not answer the probe as expected. It goes on.
    Leave(String),
    /// The failure of this process is recorded.
    Record(String, String),
    /// The job is under way, or served: this resource takes it over.
    Own,
    /// The former server serves again.
    RollBack,
    /// The instance works on another job by now: that of another run, or the former one, which it returns to by itself
    /// when nobody follows an update.
    Superseded,
    /// This process is asked.
    Try(String),
    /// The work goes on.
    Wait,
}

/// What is done next.
pub(super) fn decide(goal: &Goal, seen: &Report, history: &History) -> Step {
    if let (false, Some(build)) = (history.is_begun, goal.build) {
        return if is_under_way(goal, seen) { Step::Own } else { first(build, seen) };
    }
    if let (Some(own), Some(there)) = (&goal.fingerprint, &seen.fingerprint)
        && own != there
    {
        return Step::Superseded;
    }
    match (seen.phase, &seen.process) {
        (Phase::Failed | Phase::Absent, _) => after_failure(goal, seen, history),
        (Phase::Load | Phase::Ready, Some(process)) if process.is_alive => {
            match history.verdict.as_ref().filter(|verdict| verdict.process == process.identity) {
                None => Step::Try(process.identity.clone()),
                Some(Verdict { failure: None, process }) => Step::Confirm(process.clone()),
                Some(Verdict { failure: Some(reason), .. }) if seen.phase == Phase::Ready || goal.build.is_none() => {
                    Step::Leave(reason.clone())
                }
                Some(Verdict { failure: Some(reason), process }) => Step::Record(process.clone(), reason.clone()),
            }
        }
        _ => Step::Wait,
    }
}

/// Whether the instance works on this very job, or serves it with the model as it is now.
pub(super) fn is_under_way(goal: &Goal, seen: &Report) -> bool {
    seen.fingerprint.is_some()
        && seen.fingerprint == goal.fingerprint
        && match seen.phase {
            Phase::Find | Phase::Compile | Phase::Start => true,
            Phase::Load | Phase::Ready => seen.model_fingerprint == seen.model_now,
            Phase::Absent | Phase::Failed => false,
        }
}

/// What follows a failure or a refusal when nothing else is tried.
pub(super) fn give_up(goal: &Goal, seen: &Report) -> Step {
    match seen.former {
        Some(Former::Serving) => Step::RollBack,
        Some(Former::Ended) if goal.rolls_back => Step::RollBack,
        _ => Step::Fail,
    }
}

fn after_failure(goal: &Goal, seen: &Report, history: &History) -> Step {
    let Some(build) = goal.build else { return Step::Fail };
    let kind = seen.failure.as_ref().map(|failure| failure.kind);
    if kind == Some(Kind::Interrupted) && history.resumptions < RESUMPTIONS {
        return match seen.begun {
            Some(begun) => Step::Begin(begun, seen.because.clone()),
            None => first(build, seen),
        };
    }
    let is_prebuilt = seen.begun == Some(Build::Prebuilt);
    if is_prebuilt && !seen.is_proved && kind.is_some_and(|kind| is_cured_by_source(goal, kind)) {
        return Step::Begin(Build::Source, seen.failure.clone());
    }
    give_up(goal, seen)
}

/// The binary that is tried first. Each apply begins anew: what made the prebuilt server fail may have passed, unless
/// it was the card or the driver, and both are what they were.
fn first(build: Build, seen: &Report) -> Step {
    let (build, because) = match build {
        Build::Auto if seen.facts.cards.iter().any(|card| OLD_CARDS.is_match(card)) => (Build::Source, None),
        Build::Auto => match &seen.because {
            Some(because) if seen.is_same_hardware && RULED_OUT.iter().any(|words| because.text.contains(words)) => {
                (Build::Source, Some(because.clone()))
            }
            _ => (Build::Prebuilt, None),
        },
        build => (build, None),
    };
    Step::Begin(build, because)
}

/// Whether a build of one's own is tried, and may serve, where the prebuilt server failed so.
pub(super) fn is_cured_by_source(goal: &Goal, kind: Kind) -> bool {
    goal.build == Some(Build::Auto)
        && matches!(kind, Kind::Exited | Kind::NoInference | Kind::NoPackage | Kind::Unsupported)
}

#[cfg(test)]
mod tests;
