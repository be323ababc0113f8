//! The next step of the work on a server: a pure function of the goal, the last report and the history of this apply.

use tokio::time::Instant;

use bigdecimal::BigDecimal;

use super::{
    bootstrap::{Build, Facts, FailureKind, Fingerprint, Job, JobFailure, JobReport, Phase, Previous, recipe},
    model_file,
};

/// How often one apply resumes work that was interrupted, as by a reboot.
const RESUMPTIONS: usize = 3;

/// Errors of a prebuilt server that recur as long as the card and its driver are the same.
const RULED_OUT: &[&str] = &[
    "no kernel image is available for execution on the device",
    "CUDA driver version is insufficient for CUDA runtime version",
    "the provided PTX was compiled with an unsupported toolchain",
];

/// The goal of the work.
#[derive(Debug, Clone)]
pub struct Goal {
    /// Which binary may serve; `None` if nothing is begun.
    pub build: Option<Build>,
    /// The fingerprint of the job; `None` if any job will do.
    pub fingerprint: Option<String>,
    /// [`Job::downloads_hash`]: counts as long as one of the files is missing.
    pub downloads: Option<String>,
    /// Whether the previous server is started again if the new one does not serve.
    pub rolls_back: bool,
}

impl Goal {
    /// A goal that starts nothing: the existing server must become ready.
    pub fn seen() -> Self {
        Self { build: None, fingerprint: None, downloads: None, rolls_back: false }
    }

    /// The goal of a job.
    pub fn of(job: &Job, rolls_back: bool) -> Self {
        let fingerprint = Some(Fingerprint::of(job).to_string());
        Self { build: Some(job.build), fingerprint, downloads: job.downloads_hash(), rolls_back }
    }
}

/// The history of this apply.
#[derive(Debug, Default)]
pub struct History {
    /// Whether the job was begun, or resumed.
    pub is_begun: bool,
    /// How often interrupted work was resumed.
    pub resumptions: usize,
    /// How often the decision was repeated because another run was faster.
    pub changes: usize,
    /// The process that was asked, and when it was first seen.
    pub asked: Option<(String, Instant)>,
    /// The last answer to the probe.
    pub(super) tried: Option<Tried>,
    /// The owner of the server before this apply.
    pub owner_before: Option<String>,
    /// Whether a server ran before this apply.
    pub had_server: bool,
    /// The known facts about the instance.
    pub facts: Facts,
}

impl History {
    /// The history of a server that was begun in another way than with a job.
    pub fn begun() -> Self {
        Self { is_begun: true, ..Self::default() }
    }
}

/// An answer to the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tried {
    /// [`super::bootstrap::Process::identity`] of the process that was asked.
    pub(super) process: String,
    /// The answers of a server that serves, or why it does not.
    pub(super) result: Result<TrialAnswers, JobFailure>,
}

/// The answers of a server that serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialAnswers {
    /// The tokens per second; `None` if the answer was too short to tell.
    pub speed: Option<BigDecimal>,
    /// The name of the model; `None` if the server did not report it.
    pub model_name: Option<String>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Begin the job with this binary; and why it is not the prebuilt one.
    Begin(Build, Option<JobFailure>),
    /// Record that this process serves.
    Confirm(String),
    /// End: the job failed.
    Fail,
    /// End: a server that was ready before does not answer the probe as expected. It continues.
    Leave(JobFailure),
    /// Record the failure of this process.
    Record(String, JobFailure),
    /// Take over the job, which is under way or serves.
    Own,
    /// Start the previous server again.
    RollBack,
    /// End: the instance works on another job by now. Another run began it, or the instance returned to the previous
    /// server because the update was cut off.
    Superseded,
    /// Ask this process.
    Try(String),
    /// Wait.
    Wait,
}

/// The next step.
pub(super) fn decide(goal: &Goal, seen: &JobReport, history: &History) -> Step {
    if seen.is_refused {
        return give_up(goal, seen);
    }
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
            let identity = process.identity.clone();
            match history.tried.as_ref().filter(|tried| tried.process == identity).map(|tried| &tried.result) {
                None => Step::Try(identity),
                Some(Ok(_)) => Step::Confirm(identity),
                Some(Err(failure)) if seen.is_proved || goal.build.is_none() => Step::Leave(failure.clone()),
                Some(Err(failure)) => Step::Record(identity, failure.clone()),
            }
        }
        _ => Step::Wait,
    }
}

/// Whether the instance works on this very job, or serves it with the model as it is now.
pub(super) fn is_under_way(goal: &Goal, seen: &JobReport) -> bool {
    seen.fingerprint.is_some()
        && seen.fingerprint == goal.fingerprint
        && match seen.phase {
            // A server that has served before and is started again downloads nothing.
            Phase::Start if seen.is_proved && model_file::lacks_file(&seen.facts) => false,
            Phase::Find | Phase::Compile | Phase::Start | Phase::Download => {
                seen.downloads == goal.downloads || !model_file::lacks_file(&seen.facts)
            }
            Phase::Load | Phase::Ready => !seen.has_other_model() && !seen.lacks_supervisor(),
            Phase::Absent | Phase::Failed => false,
        }
}

/// The step after a failure or a refusal that nothing cures.
pub(super) fn give_up(goal: &Goal, seen: &JobReport) -> Step {
    match seen.previous {
        Some(Previous::Serving) => Step::RollBack,
        Some(Previous::Ended) if goal.rolls_back => Step::RollBack,
        _ => Step::Fail,
    }
}

fn after_failure(goal: &Goal, seen: &JobReport, history: &History) -> Step {
    let Some(build) = goal.build else { return Step::Fail };
    let kind = seen.failure.as_ref().map(|failure| failure.kind);
    if kind == Some(FailureKind::Interrupted) && history.resumptions < RESUMPTIONS {
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

/// The first binary. Each apply begins with the prebuilt server, because the cause of its failure may be gone, unless
/// the cause was a card or driver that is still there.
fn first(build: Build, seen: &JobReport) -> Step {
    let (build, because) = match build {
        Build::Auto if seen.facts.cards.iter().any(|card| recipe::of_an_old_card(card).is_some()) => {
            (Build::Source, None)
        }
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

/// Whether a build from source may serve after such a failure of the prebuilt server. No build cures a lack of memory
/// or a damaged model.
pub(super) fn is_cured_by_source(goal: &Goal, kind: FailureKind) -> bool {
    use FailureKind::{Exited, NoGpu, NoInference, NoPackage, Slow, Unsupported};
    goal.build == Some(Build::Auto) && matches!(kind, Exited | NoGpu | NoInference | NoPackage | Slow | Unsupported)
}

#[cfg(test)]
mod tests {
    use super::{
        super::bootstrap::{Facts, JobReport, Process},
        *,
    };

    const AUTO: Goal = goal(Build::Auto, true);

    const fn goal(build: Build, rolls_back: bool) -> Goal {
        Goal { build: Some(build), fingerprint: None, downloads: None, rolls_back }
    }

    /// A report with a phase, a failure, and the first binary.
    fn seen(phase: Phase, kind: Option<FailureKind>, begun: Build) -> JobReport {
        let alive = matches!(phase, Phase::Load | Phase::Ready);
        JobReport {
            phase,
            failure: kind.map(failure),
            begun: Some(begun),
            process: alive.then(|| process("1")),
            is_proved: phase == Phase::Ready,
            ..JobReport::default()
        }
    }

    fn failure(kind: FailureKind) -> JobFailure {
        JobFailure { kind, text: kind.as_str().to_owned() }
    }

    fn no_inference(text: &str) -> JobFailure {
        JobFailure { kind: FailureKind::NoInference, text: text.to_owned() }
    }

    fn process(identity: &str) -> Process {
        Process {
            pid: 1,
            identity: identity.to_owned(),
            started: 0,
            is_alive: true,
            model: "/m".to_owned(),
            command_line: Vec::new(),
        }
    }

    fn begun() -> History {
        History::begun()
    }

    fn said(failure: Option<&str>) -> History {
        let result = failure.map_or_else(|| Ok(TrialAnswers::default()), |text| Err(no_inference(text)));
        History { tried: Some(Tried { process: "1".to_owned(), result }), ..begun() }
    }

    #[test]
    fn the_card_decides_what_is_tried_first() {
        use Build::{Auto, Prebuilt, Source};
        for (build, card, first) in [
            (Auto, "NVIDIA GeForce RTX 4090", Prebuilt),
            (Auto, "Tesla V100-SXM2-16GB", Source),
            (Auto, "NVIDIA-V100S", Source),
            (Auto, "tesla p40", Source),
            (Auto, "Quadro P4000", Prebuilt),
            (Auto, "NVIDIA P400", Prebuilt),
            (Prebuilt, "Tesla V100", Prebuilt),
            (Source, "NVIDIA GeForce RTX 4090", Source),
        ] {
            let facts = Facts { cards: vec!["another".to_owned(), card.to_owned()], ..Facts::default() };
            let report = JobReport { facts, ..JobReport::default() };
            let step = decide(&goal(build, true), &report, &History::default());
            assert_eq!(step, Step::Begin(first, None), "{build:?} on {card}");
        }
    }

    /// Work on the same job is taken over, and nothing is begun.
    #[test]
    fn the_same_job_is_taken_over() {
        let own = Goal { fingerprint: Some("own".to_owned()), ..AUTO };
        let report = |phase, fingerprint: &str, model: &str| JobReport {
            fingerprint: Some(fingerprint.to_owned()),
            model_fingerprint: Some("1".to_owned()),
            model_now: Some(model.to_owned()),
            ..seen(phase, None, Build::Source)
        };
        let begins = Step::Begin(Build::Prebuilt, None);
        for (phase, fingerprint, model, expected) in [
            (Phase::Find, "own", "", Step::Own),
            (Phase::Compile, "own", "", Step::Own),
            (Phase::Start, "own", "", Step::Own),
            (Phase::Load, "own", "1", Step::Own),
            (Phase::Ready, "own", "1", Step::Own),
            // It serves the file as it was before.
            (Phase::Ready, "own", "2", begins.clone()),
            (Phase::Compile, "another", "", begins.clone()),
            (Phase::Failed, "own", "1", begins.clone()),
            (Phase::Absent, "own", "1", begins),
        ] {
            let step = decide(&own, &report(phase, fingerprint, model), &History::default());
            assert_eq!(step, expected, "{phase:?} {fingerprint} {model}");
        }
    }

    /// Its hash, whether the file is missing, and the step.
    #[test]
    fn the_address_of_a_file_counts_until_it_is_there() {
        for (downloads, missing, expected) in [
            ("own", "/m", Step::Own),
            ("another", "/m", Step::Begin(Build::Prebuilt, None)),
            ("another", "", Step::Own),
        ] {
            let goal = Goal { fingerprint: Some("own".to_owned()), downloads: Some("own".to_owned()), ..AUTO };
            let report = JobReport {
                fingerprint: goal.fingerprint.clone(),
                downloads: Some(downloads.to_owned()),
                facts: Facts::of([(model_file::DOWNLOADS.to_owned(), missing.to_owned())].into()),
                ..seen(Phase::Download, None, Build::Prebuilt)
            };
            assert_eq!(decide(&goal, &report, &History::default()), expected, "{downloads} {missing}");
        }
    }

    /// Its phase, whether it has served before, and the file that is missing.
    #[test]
    fn a_server_whose_file_has_vanished_is_not_under_way() {
        for (phase, is_proved, missing, is_taken_over) in [
            (Phase::Start, true, "/m", false),
            (Phase::Start, true, "", true),
            // It has yet to download the file.
            (Phase::Start, false, "/m", true),
            (Phase::Download, false, "/m", true),
        ] {
            let goal = Goal { fingerprint: Some("own".to_owned()), downloads: Some("own".to_owned()), ..AUTO };
            let report = JobReport {
                fingerprint: goal.fingerprint.clone(),
                downloads: goal.downloads.clone(),
                is_proved,
                facts: Facts::of([(model_file::DOWNLOADS.to_owned(), missing.to_owned())].into()),
                ..seen(phase, None, Build::Prebuilt)
            };
            let expected = if is_taken_over { Step::Own } else { Step::Begin(Build::Prebuilt, None) };
            assert_eq!(decide(&goal, &report, &History::default()), expected, "{phase:?} {is_proved} {missing}");
        }
    }

    /// Each kind of failure: whether the prebuilt server is followed by a compile, and what follows when the same
    /// happens to the build from source.
    #[test]
    fn only_what_a_compile_may_cure_leads_to_one() {
        use FailureKind::{Exited, NoGpu, NoInference, NoPackage, Slow, Unsupported};
        let cured = [Exited, NoGpu, NoInference, NoPackage, Slow, Unsupported];
        for kind in FailureKind::ALL {
            let step = decide(&AUTO, &seen(Phase::Failed, Some(*kind), Build::Prebuilt), &begun());
            let expected = match kind {
                kind if cured.contains(kind) => Step::Begin(Build::Source, Some(failure(*kind))),
                FailureKind::Interrupted => Step::Begin(Build::Prebuilt, None),
                _ => Step::Fail,
            };
            assert_eq!(step, expected, "{kind:?}");
            let expected =
                if *kind == FailureKind::Interrupted { Step::Begin(Build::Source, None) } else { Step::Fail };
            assert_eq!(decide(&AUTO, &seen(Phase::Failed, Some(*kind), Build::Source), &begun()), expected, "{kind:?}");
            for build in [Build::Prebuilt, Build::Source] {
                let step = decide(&goal(build, true), &seen(Phase::Failed, Some(*kind), build), &begun());
                let is_resumed = *kind == FailureKind::Interrupted;
                assert_eq!(step, if is_resumed { Step::Begin(build, None) } else { Step::Fail }, "{kind:?}");
            }
        }
    }

    /// The operator may have corrected the cause, so each apply tries the prebuilt server again.
    #[test]
    fn each_apply_begins_anew_after_each_failure() {
        for kind in FailureKind::ALL {
            for begun in [Build::Prebuilt, Build::Source] {
                let mut report = seen(Phase::Failed, Some(*kind), begun);
                report.because = Some(failure(FailureKind::Exited));
                let step = decide(&AUTO, &report, &History::default());
                assert_eq!(step, Step::Begin(Build::Prebuilt, None), "{kind:?}");
            }
        }
    }

    /// A server that the card or the driver rules out is not tried again while both and the server are the same.
    #[test]
    fn the_card_and_the_driver_rule_out_the_prebuilt_server() {
        for (text, is_same_hardware, is_ruled_out) in [
            ("its log says:\nCUDA error: no kernel image is available for execution on the device", true, true),
            ("CUDA driver version is insufficient for CUDA runtime version", true, true),
            ("CUDA error: no kernel image is available for execution on the device", false, false),
            ("cudaMalloc failed: out of memory", true, false),
        ] {
            let because = JobFailure { kind: FailureKind::Exited, text: text.to_owned() };
            let served = seen(Phase::Ready, None, Build::Source);
            let report = JobReport { because: Some(because.clone()), is_same_hardware, ..served };
            let ruled_out = Step::Begin(Build::Source, Some(because));
            let expected = if is_ruled_out { ruled_out } else { Step::Begin(Build::Prebuilt, None) };
            assert_eq!(decide(&AUTO, &report, &History::default()), expected, "{text} {is_same_hardware}");
            // The configuration asks for the prebuilt server.
            let step = decide(&goal(Build::Prebuilt, true), &report, &History::default());
            assert_eq!(step, Step::Begin(Build::Prebuilt, None), "{text}");
        }
    }

    /// The instance may have rolled back a failed update by itself, or another run may have begun its own job: that
    /// server is not the requested one.
    #[test]
    fn another_job_is_not_taken_for_the_own_one() {
        let own = Goal { fingerprint: Some("own".to_owned()), ..AUTO };
        for phase in [Phase::Find, Phase::Start, Phase::Load, Phase::Ready, Phase::Failed] {
            let report = |fingerprint: &str| JobReport {
                fingerprint: Some(fingerprint.to_owned()),
                ..seen(phase, (phase == Phase::Failed).then_some(FailureKind::Exited), Build::Source)
            };
            assert_eq!(decide(&own, &report("another"), &said(None)), Step::Superseded, "{phase:?}");
            assert_ne!(decide(&own, &report("own"), &said(None)), Step::Superseded, "{phase:?}");
        }
    }

    /// Without a job nothing is begun, and nothing is recorded as a failure.
    #[test]
    fn without_a_job_nothing_is_begun() {
        let goal = Goal::seen();
        for kind in FailureKind::ALL {
            for begun in [Build::Prebuilt, Build::Source] {
                let step = decide(&goal, &seen(Phase::Failed, Some(*kind), begun), &History::begun());
                assert_eq!(step, Step::Fail, "{kind:?}");
            }
        }
        let loading = seen(Phase::Load, None, Build::Prebuilt);
        assert_eq!(decide(&goal, &loading, &begun()), Step::Try("1".to_owned()));
        assert_eq!(decide(&goal, &loading, &said(Some("no"))), Step::Leave(no_inference("no")));
        assert_eq!(decide(&goal, &loading, &said(None)), Step::Confirm("1".to_owned()));
    }

    #[test]
    fn a_server_that_has_served_is_not_followed_by_a_compile() {
        for kind in FailureKind::ALL.iter().filter(|kind| **kind != FailureKind::Interrupted) {
            let report = JobReport { is_proved: true, ..seen(Phase::Failed, Some(*kind), Build::Prebuilt) };
            assert_eq!(decide(&AUTO, &report, &begun()), Step::Fail, "{kind:?}");
        }
    }

    #[test]
    fn interrupted_work_is_resumed_with_its_binary_and_its_reason_and_not_for_ever() {
        let report = JobReport {
            because: Some(failure(FailureKind::Exited)),
            ..seen(Phase::Failed, Some(FailureKind::Interrupted), Build::Source)
        };
        let mut history = begun();
        for _ in 0..RESUMPTIONS {
            assert_eq!(
                decide(&AUTO, &report, &history),
                Step::Begin(Build::Source, Some(failure(FailureKind::Exited)))
            );
            history.resumptions += 1;
        }
        assert_eq!(decide(&AUTO, &report, &history), Step::Fail);
    }

    #[test]
    fn a_server_is_asked_and_then_confirmed_or_recorded() {
        let loading = seen(Phase::Load, None, Build::Prebuilt);
        assert_eq!(decide(&AUTO, &loading, &begun()), Step::Try("1".to_owned()));
        assert_eq!(decide(&AUTO, &loading, &said(None)), Step::Confirm("1".to_owned()));
        assert_eq!(decide(&AUTO, &loading, &said(Some("no"))), Step::Record("1".to_owned(), no_inference("no")));
        // An answer counts only for the process that gave it.
        let another = JobReport { process: Some(process("2")), ..loading };
        assert_eq!(decide(&AUTO, &another, &said(None)), Step::Try("2".to_owned()));
        for phase in [Phase::Find, Phase::Compile, Phase::Start] {
            assert_eq!(decide(&AUTO, &seen(phase, None, Build::Prebuilt), &begun()), Step::Wait, "{phase:?}");
        }
        // While a previous server serves, its process is not the one that is asked.
        let compiling = JobReport {
            process: Some(process("1")),
            previous: Some(Previous::Serving),
            ..seen(Phase::Compile, None, Build::Source)
        };
        assert_eq!(decide(&AUTO, &compiling, &said(None)), Step::Wait);
    }

    #[test]
    fn a_ready_server_that_does_not_match_the_probe_goes_on() {
        let ready = seen(Phase::Ready, None, Build::Prebuilt);
        // It was started again by itself, and nobody has asked it since.
        let restarted = JobReport { is_proved: true, ..seen(Phase::Load, None, Build::Prebuilt) };
        for build in [Build::Auto, Build::Prebuilt, Build::Source] {
            for (rolls_back, seen) in [(true, &ready), (false, &ready), (true, &restarted), (false, &restarted)] {
                assert_eq!(decide(&goal(build, rolls_back), seen, &said(Some("no"))), Step::Leave(no_inference("no")));
            }
        }
    }

    #[test]
    fn an_update_that_fails_leads_back_to_the_previous_server() {
        let failed = |previous| JobReport { previous, ..seen(Phase::Failed, Some(FailureKind::Exited), Build::Source) };
        for (previous, rolls_back, expected) in [
            (None, true, Step::Fail),
            (None, false, Step::Fail),
            (Some(Previous::Ended), true, Step::RollBack),
            (Some(Previous::Ended), false, Step::Fail),
            // Nothing was ended yet: there is nothing to keep or to stop instead.
            (Some(Previous::Serving), true, Step::RollBack),
            (Some(Previous::Serving), false, Step::RollBack),
        ] {
            let goal = goal(Build::Auto, rolls_back);
            assert_eq!(decide(&goal, &failed(previous), &begun()), expected, "{previous:?} {rolls_back}");
            assert_eq!(give_up(&goal, &failed(previous)), expected);
        }
        // The compile that may cure it comes first.
        let prebuilt = JobReport {
            previous: Some(Previous::Ended),
            ..seen(Phase::Failed, Some(FailureKind::Exited), Build::Prebuilt)
        };
        assert_eq!(decide(&AUTO, &prebuilt, &begun()), Step::Begin(Build::Source, Some(failure(FailureKind::Exited))));
    }
}
