//! What becomes of the server that is replaced, however the replacement ends; a destroy leaves nothing of ours.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use rstest::rstest;

use super::{
    home::{Home, PACKAGE, RTX, answer, http, is_running, kill, start, until},
    model,
    stand_in::CUDA,
};
use crate::provider::llama_server::bootstrap::{Binary, FailureKind, Former, Job, Phase, Start, Verb};

/// What serves before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Watched,
    Unwatched,
    HandStarted,
    Nothing,
}

/// How the replacement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    CompileFails,
    OptionIsRefused,
    LoadFails,
    ProviderIsKilled,
}

/// A server that was started by hand. It has another home, as a process of another login.
fn by_hand(home: &Home) -> Child {
    let model = home.path("public-storage/model/tiny.gguf");
    let hand = Command::new(home.path(PACKAGE).join("llama-server"))
        .args(["-m", model.to_str().unwrap(), "--host", "127.0.0.1", "--port", &home.port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it is not healthy", || (http(home.port, "GET /health", "").0 == 200).then_some(()));
    hand
}

#[rstest]
fn replaced_server_ends_after_the_options_were_accepted_and_a_destroy_leaves_nothing(
    #[values(Before::Watched, Before::Unwatched, Before::HandStarted, Before::Nothing)] before: Before,
    #[values(Ending::CompileFails, Ending::OptionIsRefused, Ending::LoadFails, Ending::ProviderIsKilled)]
    ending: Ending,
) {
    let home = Home::new().with_cuda(RTX);
    let mut hand = None;
    let former = match before {
        Before::Watched | Before::Unwatched => {
            let former = home.serve(&home.job()).process.unwrap().pid;
            if before == Before::Unwatched {
                let work = home.worker();
                kill(work, "KILL");
                until("it lives", || (!is_running(work)).then_some(()));
            }
            Some(former)
        }
        Before::HandStarted => Some(hand.insert(by_hand(&home)).id()),
        Before::Nothing => None,
    };
    let mut job = Job { context_size: 4096, ..home.job() };
    let recipe = home.recipe(&job).unwrap();
    let source = Binary::Source(Box::new(recipe));
    let seen = home.look();
    let rival = seen.rival.as_ref().and_then(|rival| rival.identity.clone());
    assert_eq!(rival.is_some(), before == Before::HandStarted);
    match ending {
        Ending::CompileFails => fs::write(home.path(CUDA), "no program\n").unwrap(),
        Ending::OptionIsRefused => job.extra_args = vec!["--no-such-option".to_owned()],
        Ending::LoadFails => job.model = home.model_named("other", model::truncated()),
        Ending::ProviderIsKilled => {}
    }
    let begun = start(&home, &job);
    let binary = if ending == Ending::CompileFails { &source } else { begun.binary };
    let begun = Start { binary, ends_rival: rival.as_deref(), ..begun };
    assert!(!answer(home.spawn(&job.place, &Verb::Ensure(&begun))).is_refused);
    let is_ended = matches!(ending, Ending::LoadFails | Ending::ProviderIsKilled);
    let report = home.look_until(if ending == Ending::ProviderIsKilled { Phase::Load } else { Phase::Failed });
    // The former one was ended only if its successor was started. Only one with a work can be started again.
    let lives = |pid: u32| is_running(pid);
    if let Some(former) = former {
        assert_eq!(lives(former), !is_ended, "{report:#?}");
    }
    let expected = match before {
        Before::Watched if is_ended => Some(Former::Ended),
        Before::Watched | Before::Unwatched if !is_ended => Some(Former::Serving),
        _ => None,
    };
    assert_eq!(report.former, expected);
    if expected == Some(Former::Serving) {
        // The way back is that it goes on.
        let back = home.run(&Verb::RollBack);
        assert_eq!((back.phase, back.process.map(|process| process.pid)), (Phase::Ready, former));
    }
    assert_eq!(home.run(&Verb::Destroy { owner: "owner" }).failure, None);
    let hand_pid = hand.as_ref().map(Child::id);
    until("something of ours goes on", || home.processes().iter().all(|(pid, _)| Some(*pid) == hand_pid).then_some(()));
    if let Some(mut hand) = hand {
        // One that was not replaced goes on.
        assert_eq!(lives(hand.id()), !is_ended);
        let _ = hand.kill();
        hand.wait().unwrap();
    }
}

/// Two resources with one port: the second does not take the first for a server that was started by hand.
#[test]
fn server_of_another_resource_is_told_with_its_workspace_and_goes_on() {
    let home = Home::new();
    let process = home.serve(&home.job()).process.unwrap();
    let mut job = home.job();
    job.place.workspace = "~/elsewhere".to_owned();
    let report = home.check(&job);
    let failure = report.failure.unwrap();
    assert_eq!((report.is_refused, failure.kind), (true, FailureKind::PortInUse));
    let workspace = home.path("workspace");
    assert!(failure.text.ends_with(&format!("with the workspace {}", workspace.display())), "{}", failure.text);
    assert_eq!(report.rival.unwrap().command_line, [""; 0]);
    assert!(is_running(process.pid));
}
