//! A server that ends by itself: the pauses between its starts, and its log.

use std::{fs, time::Duration};

use damodel_llama::{FailureKind, Job, Phase, Process, Verb};
use nix::sys::signal::Signal;

use super::{
    home::{Home, until, until_so},
    process::{end, is_running, kill},
    stand_in::{truncated, working},
};
use crate::support::wait::found_within;

#[test]
fn server_that_exits_is_started_again_with_longer_pauses() {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let process = home.serve(&job).process.unwrap();
    home.hurry();
    home.model(truncated());
    kill(process.pid, Signal::SIGKILL);
    let report = until("no long pause", || Some(home.look()).filter(|report| report.phase == Phase::Failed));
    // The pauses are as long as they are from here on.
    fs::remove_file(home.path("bin/sleep")).unwrap();
    let failure = report.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::Died, "{}", failure.text);
    // 1, 2, 4, 8, 16 and 32 s were no failure.
    assert!(report.restarts >= 6 && report.next_try.is_some() && report.work.is_some(), "{report:#?}");
    // An update that fails has the server tried at once.
    home.model(working());
    home.fails(&Job { restarts: true, ..home.with_bad_option() });
    home.run(&Verb::RollBack);
    let report = home.until_ready(&job);
    assert!(!report.process.unwrap().command_line.contains(&"--no-such-option".to_owned()));
    until_so("the work of the update goes on", || home.works().len() == 1);
    let pause = || {
        home.hurry();
        home.model(truncated());
        end(home.servers()[0]);
        let report = until("no long pause", || Some(home.look()).filter(|report| report.phase == Phase::Failed));
        fs::remove_file(home.path("bin/sleep")).unwrap();
        home.model(working());
        report.process.unwrap().identity
    };
    // A restart does not wait for the next try, and reports the start that it caused.
    let process = pause();
    let restarted = home.run(&Verb::Restart { process: &process });
    assert!(restarted.phase != Phase::Failed && restarted.failure.is_none(), "{restarted:#?}");
    home.until_ready(&job);
    // An apply does not wait for it either, and ends the work that does.
    pause();
    let served = home.serve(&job);
    assert_eq!((served.restarts, served.next_try, served.previous), (0, None, None));
    until_so("the pausing work goes on", || home.works().len() == 1);
    assert_eq!(home.servers().len(), 1);
}

/// Its storage is away for a moment, which is no reason to give it up. One that was asked to end stays ended.
#[test]
fn server_that_exits_waits_for_its_model() {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let first = home.serve(&job).process.unwrap();
    let (model, away) = (home.path("public-storage/model/tiny.gguf"), home.path("away"));
    fs::rename(&model, &away).unwrap();
    kill(first.pid, Signal::SIGKILL);
    until("no pause", || home.look().next_try);
    fs::rename(&away, &model).unwrap();
    let report = home.until_ready(&job);
    assert_eq!((report.restarts, report.is_proved), (1, true));
    assert_eq!(report.last_exit.as_deref(), Some("137 (SIGKILL: it was killed, or memory ran out)"));
    let second = report.process.unwrap();
    assert_ne!(second.identity, first.identity);
    kill(second.pid, Signal::SIGABRT);
    let is_new = |home: &Home| home.servers().first().is_some_and(|pid| *pid != second.pid);
    until_so("it does not come back", || is_new(&home));
    let third = home.until_ready(&job).process.unwrap();
    // An apply finds it as it is.
    assert_eq!(home.own(&job).process.unwrap().identity, third.identity);
    kill(third.pid, Signal::SIGTERM);
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::Died);
}

#[test]
fn log_is_cut_before_it_fills_the_disk() {
    let home = Home::new();
    home.hurry();
    let served = home.serve(&Job { restarts: true, ..home.job() });
    let (log, work) = (home.state().join("server.log"), home.worker());
    let cut = || {
        fs::OpenOptions::new().append(true).open(&log).unwrap().set_len((64 << 20) + 1).unwrap();
        until_so("it is not cut", || fs::metadata(&log).unwrap().len() < 1 << 20);
        assert!(fs::metadata(home.state().join("server.log.1")).unwrap().len() > 64 << 20);
    };
    cut();
    // What its beginning said is still known, also after another look at the same process.
    assert_eq!(home.look().notes, served.notes);
    let process = served.process.unwrap();
    assert_eq!(home.run(&Verb::Ready { process: &process.identity }).notes, served.notes);
    assert!(!served.notes.is_empty());
    // So is that of a process that was started again by itself, and is judged only later.
    kill(process.pid, Signal::SIGKILL);
    let is_new = |new: &Process| new.is_alive && new.identity != process.identity;
    let again = until("it does not come back", || home.look().process.filter(is_new));
    until_so("it says nothing", || fs::read_to_string(&log).is_ok_and(|text| text.contains("no CUDA-capable device")));
    cut();
    assert_eq!(home.run(&Verb::Ready { process: &again.identity }).notes, served.notes);
    // The process that cuts it does not outlive the work.
    kill(work, Signal::SIGKILL);
    until_so("it goes on", || {
        let is_work = |words: &[String]| words.last().is_some_and(|word| word == "work");
        home.processes().iter().all(|(pid, words)| !is_work(words) || !is_running(*pid))
    });
}

/// The process that tends the log pauses for seconds at a time; the pause ends with the work.
#[test]
fn nothing_of_the_work_outlives_it() {
    let home = Home::new();
    home.script("bin/sleep", "#!/bin/sh\n[ \"$1\" != 10 ] || set -- 1000\nexec /bin/sleep \"$@\"\n");
    let remain = |expected: usize, what: &str| {
        let sleeps =
            || home.processes().iter().filter(|(_, words)| words.last().is_some_and(|word| word == "1000")).count();
        let found = found_within(Duration::from_secs(10), || (sleeps() == expected).then_some(()));
        assert!(found.is_some(), "{what}");
    };
    let first = home.serve(&home.job()).process.unwrap();
    remain(1, "nothing tends the log");
    // An update ends the work of the previous server.
    let second = home.serve(&home.changed()).process.unwrap();
    assert_ne!(first.identity, second.identity);
    remain(1, "a pause of the previous work goes on");
    kill(second.pid, Signal::SIGTERM);
    home.look_until(Phase::Failed);
    remain(0, "a pause goes on after the end of the server");
    home.serve(&home.job());
    home.destroy();
    assert_eq!(home.processes(), []);
}
