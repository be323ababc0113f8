//! What becomes of the server that is replaced, however the replacement ends; a destroy leaves nothing of ours.

use std::{fs, process::Child};

use damodel_llama::{Job, Phase, Previous, Start, Verb};
use rstest::rstest;

use super::{
    home::{Home, answer, start, until_so},
    process::{end, is_running},
    stand_in::{CUDA, truncated},
};

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

/// The first two endings come before the end of what serves, the others after it.
#[rstest]
fn replaced_server_ends_after_the_options_were_accepted_and_a_destroy_leaves_nothing(
    #[values(
        (Before::Watched, Ending::CompileFails),
        (Before::Watched, Ending::OptionIsRefused),
        (Before::Watched, Ending::LoadFails),
        (Before::Watched, Ending::ProviderIsKilled),
        (Before::Unwatched, Ending::CompileFails),
        (Before::Unwatched, Ending::LoadFails),
        (Before::HandStarted, Ending::OptionIsRefused),
        (Before::HandStarted, Ending::ProviderIsKilled),
        (Before::Nothing, Ending::OptionIsRefused),
        (Before::Nothing, Ending::LoadFails)
    )]
    (before, ending): (Before, Ending),
) {
    let home = Home::new().with_cuda();
    let mut hand = None;
    let previous = match before {
        Before::Watched | Before::Unwatched => {
            let previous = home.serve(&home.job()).process.unwrap().pid;
            if before == Before::Unwatched {
                end(home.worker());
            }
            Some(previous)
        }
        Before::HandStarted => Some(hand.insert(home.by_hand()).id()),
        Before::Nothing => None,
    };
    let rival = home.look().rival.and_then(|rival| rival.identity);
    assert_eq!(rival.is_some(), before == Before::HandStarted);
    let job = match ending {
        Ending::CompileFails => {
            fs::write(home.path(CUDA), "no program\n").unwrap();
            home.compiled()
        }
        Ending::OptionIsRefused => home.with_bad_option(),
        Ending::LoadFails => Job { model: home.model_named("other", truncated()), ..home.job() },
        Ending::ProviderIsKilled => home.changed(),
    };
    let begun = Start { ends_rival: rival.as_deref(), ..start(&home, &job) };
    assert!(!answer(home.spawn(&job.place, &Verb::Ensure(&begun))).is_refused);
    let is_ended = matches!(ending, Ending::LoadFails | Ending::ProviderIsKilled);
    let report = home.look_until(if ending == Ending::ProviderIsKilled { Phase::Load } else { Phase::Failed });
    // The previous one was ended only if its successor was started. Only one with a work can be started again.
    if let Some(previous) = previous {
        assert_eq!(is_running(previous), !is_ended, "{report:#?}");
    }
    let expected = match before {
        Before::Watched if is_ended => Some(Previous::Ended),
        Before::Watched | Before::Unwatched if !is_ended => Some(Previous::Serving),
        _ => None,
    };
    assert_eq!(report.previous, expected);
    if expected == Some(Previous::Serving) {
        // A rollback leaves it as it is.
        let back = home.run(&Verb::RollBack);
        assert_eq!((back.phase, back.process.map(|process| process.pid)), (Phase::Ready, previous));
    }
    home.destroy();
    let hand_pid = hand.as_ref().map(Child::id);
    until_so("something of ours goes on", || home.processes().iter().all(|(pid, _)| Some(*pid) == hand_pid));
    if let Some(mut hand) = hand {
        // One that was not replaced goes on.
        assert_eq!(is_running(hand.id()), !is_ended);
        let _ = hand.kill();
        hand.wait().unwrap();
    }
}
