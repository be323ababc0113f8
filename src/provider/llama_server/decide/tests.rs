//! Decisions, as tables.

use super::{
    super::bootstrap::{Facts, Process, Report},
    *,
};

const AUTO: Goal = goal(Build::Auto, true);

const fn goal(build: Build, rolls_back: bool) -> Goal {
    Goal { build: Some(build), fingerprint: None, rolls_back }
}

/// What a look shows: the phase, the failure, and which binary was begun with.
fn seen(phase: Phase, kind: Option<Kind>, begun: Build) -> Report {
    let alive = matches!(phase, Phase::Load | Phase::Ready);
    Report {
        phase,
        failure: kind.map(failure),
        begun: Some(begun),
        process: alive.then(|| process("1")),
        ..Report::absent()
    }
}

fn failure(kind: Kind) -> Failure {
    Failure { kind, text: kind.as_str().to_owned() }
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
    let verdict = Verdict { process: "1".to_owned(), failure: failure.map(str::to_owned) };
    History { verdict: Some(verdict), ..begun() }
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
        let report = Report { facts, ..Report::absent() };
        let step = decide(&goal(build, true), &report, &History::default());
        assert_eq!(step, Step::Begin(first, None), "{build:?} on {card}");
    }
}

/// What is under way for this very job is taken over, and nothing is begun.
#[test]
fn the_same_job_is_taken_over() {
    let own = Goal { fingerprint: Some("own".to_owned()), ..AUTO };
    let report = |phase, fingerprint: &str, model: &str| Report {
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

/// Each kind of failure: whether the prebuilt server is followed by a compile, and what follows when the same happens
/// to the build from source.
#[test]
fn only_what_a_compile_may_cure_leads_to_one() {
    for kind in Kind::ALL {
        let step = decide(&AUTO, &seen(Phase::Failed, Some(*kind), Build::Prebuilt), &begun());
        let expected = match kind {
            Kind::Exited | Kind::NoInference | Kind::NoPackage | Kind::Unsupported => {
                Step::Begin(Build::Source, Some(failure(*kind)))
            }
            Kind::Interrupted => Step::Begin(Build::Prebuilt, None),
            _ => Step::Fail,
        };
        assert_eq!(step, expected, "{kind:?}");
        let expected = if *kind == Kind::Interrupted { Step::Begin(Build::Source, None) } else { Step::Fail };
        assert_eq!(decide(&AUTO, &seen(Phase::Failed, Some(*kind), Build::Source), &begun()), expected, "{kind:?}");
        for build in [Build::Prebuilt, Build::Source] {
            let step = decide(&goal(build, true), &seen(Phase::Failed, Some(*kind), build), &begun());
            let is_resumed = *kind == Kind::Interrupted;
            assert_eq!(step, if is_resumed { Step::Begin(build, None) } else { Step::Fail }, "{kind:?}");
        }
    }
}

/// The operator corrects the cause and applies again: what failed before is no reason to leave out the prebuilt server.
#[test]
fn each_apply_begins_anew_after_each_failure() {
    for kind in Kind::ALL {
        for begun in [Build::Prebuilt, Build::Source] {
            let mut report = seen(Phase::Failed, Some(*kind), begun);
            report.because = Some(failure(Kind::Exited));
            let step = decide(&AUTO, &report, &History::default());
            assert_eq!(step, Step::Begin(Build::Prebuilt, None), "{kind:?}");
        }
    }
}

/// What the card or the driver rules out is not tried again until one of them, or the prebuilt server, is another.
#[test]
fn the_card_and_the_driver_rule_out_the_prebuilt_server() {
    for (text, is_same_hardware, is_ruled_out) in [
        ("its log says:\nCUDA error: no kernel image is available for execution on the device", true, true),
        ("CUDA driver version is insufficient for CUDA runtime version", true, true),
        ("CUDA error: no kernel image is available for execution on the device", false, false),
        ("cudaMalloc failed: out of memory", true, false),
    ] {
        let because = Failure { kind: Kind::Exited, text: text.to_owned() };
        let served = seen(Phase::Ready, None, Build::Source);
        let report = Report { because: Some(because.clone()), is_same_hardware, ..served };
        let ruled_out = Step::Begin(Build::Source, Some(because));
        let expected = if is_ruled_out { ruled_out } else { Step::Begin(Build::Prebuilt, None) };
        assert_eq!(decide(&AUTO, &report, &History::default()), expected, "{text} {is_same_hardware}");
        // Who asks for the prebuilt server gets it.
        let step = decide(&goal(Build::Prebuilt, true), &report, &History::default());
        assert_eq!(step, Step::Begin(Build::Prebuilt, None), "{text}");
    }
}

/// A failed update that nobody followed has been rolled back by itself, or another run has begun its own job: what
/// serves then is not what was asked for.
#[test]
fn another_job_is_not_taken_for_the_own_one() {
    let own = Goal { fingerprint: Some("own".to_owned()), ..AUTO };
    for phase in [Phase::Find, Phase::Start, Phase::Load, Phase::Ready, Phase::Failed] {
        let report = |fingerprint: &str| Report {
            fingerprint: Some(fingerprint.to_owned()),
            ..seen(phase, (phase == Phase::Failed).then_some(Kind::Exited), Build::Source)
        };
        assert_eq!(decide(&own, &report("another"), &said(None)), Step::Superseded, "{phase:?}");
        assert_ne!(decide(&own, &report("own"), &said(None)), Step::Superseded, "{phase:?}");
    }
}

/// Who has no job follows what is there: nothing is begun, and nothing recorded as a failure.
#[test]
fn without_a_job_nothing_is_begun() {
    let goal = Goal::seen();
    for kind in Kind::ALL {
        for begun in [Build::Prebuilt, Build::Source] {
            let step = decide(&goal, &seen(Phase::Failed, Some(*kind), begun), &History::begun());
            assert_eq!(step, Step::Fail, "{kind:?}");
        }
    }
    let loading = seen(Phase::Load, None, Build::Prebuilt);
    assert_eq!(decide(&goal, &loading, &begun()), Step::Try("1".to_owned()));
    assert_eq!(decide(&goal, &loading, &said(Some("no"))), Step::Leave("no".to_owned()));
    assert_eq!(decide(&goal, &loading, &said(None)), Step::Confirm("1".to_owned()));
}

#[test]
fn a_server_that_has_served_is_not_followed_by_a_compile() {
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Interrupted) {
        let report = Report { is_proved: true, ..seen(Phase::Failed, Some(*kind), Build::Prebuilt) };
        assert_eq!(decide(&AUTO, &report, &begun()), Step::Fail, "{kind:?}");
    }
}

#[test]
fn interrupted_work_is_resumed_with_its_binary_and_its_reason_and_not_for_ever() {
    let report =
        Report { because: Some(failure(Kind::Exited)), ..seen(Phase::Failed, Some(Kind::Interrupted), Build::Source) };
    let mut history = begun();
    for _ in 0..RESUMPTIONS {
        assert_eq!(decide(&AUTO, &report, &history), Step::Begin(Build::Source, Some(failure(Kind::Exited))));
        history.resumptions += 1;
    }
    assert_eq!(decide(&AUTO, &report, &history), Step::Fail);
}

#[test]
fn a_server_is_asked_and_then_confirmed_or_recorded() {
    let loading = seen(Phase::Load, None, Build::Prebuilt);
    assert_eq!(decide(&AUTO, &loading, &begun()), Step::Try("1".to_owned()));
    assert_eq!(decide(&AUTO, &loading, &said(None)), Step::Confirm("1".to_owned()));
    assert_eq!(decide(&AUTO, &loading, &said(Some("no"))), Step::Record("1".to_owned(), "no".to_owned()));
    // What was said of another process says nothing of this one.
    let another = Report { process: Some(process("2")), ..loading };
    assert_eq!(decide(&AUTO, &another, &said(None)), Step::Try("2".to_owned()));
    for phase in [Phase::Find, Phase::Compile, Phase::Start] {
        assert_eq!(decide(&AUTO, &seen(phase, None, Build::Prebuilt), &begun()), Step::Wait, "{phase:?}");
    }
    // While a former server serves, its process is not the one that is asked.
    let compiling = Report {
        process: Some(process("1")),
        former: Some(Former::Serving),
        ..seen(Phase::Compile, None, Build::Source)
    };
    assert_eq!(decide(&AUTO, &compiling, &said(None)), Step::Wait);
}

#[test]
fn a_ready_server_that_does_not_match_the_probe_goes_on() {
    let ready = seen(Phase::Ready, None, Build::Prebuilt);
    for build in [Build::Auto, Build::Prebuilt, Build::Source] {
        for rolls_back in [true, false] {
            assert_eq!(decide(&goal(build, rolls_back), &ready, &said(Some("no"))), Step::Leave("no".to_owned()));
        }
    }
}

#[test]
fn an_update_that_fails_leads_back_to_the_former_server() {
    let failed = |former| Report { former, ..seen(Phase::Failed, Some(Kind::Exited), Build::Source) };
    for (former, rolls_back, expected) in [
        (None, true, Step::Fail),
        (None, false, Step::Fail),
        (Some(Former::Ended), true, Step::RollBack),
        (Some(Former::Ended), false, Step::Fail),
        // Nothing was ended yet: there is nothing to keep or to stop instead.
        (Some(Former::Serving), true, Step::RollBack),
        (Some(Former::Serving), false, Step::RollBack),
    ] {
        let goal = goal(Build::Auto, rolls_back);
        assert_eq!(decide(&goal, &failed(former), &begun()), expected, "{former:?} {rolls_back}");
        assert_eq!(give_up(&goal, &failed(former)), expected);
    }
    // The compile that may cure it comes first.
    let prebuilt = Report { former: Some(Former::Ended), ..seen(Phase::Failed, Some(Kind::Exited), Build::Prebuilt) };
    assert_eq!(decide(&AUTO, &prebuilt, &begun()), Step::Begin(Build::Source, Some(failure(Kind::Exited))));
}
