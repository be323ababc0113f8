//! A server that ends by itself: the pauses between its starts, and its log.

use std::{fs, time::Duration};

use rstest::rstest;

use super::{
    home::{Home, is_running, kill, until, until_in},
    model,
};
use crate::provider::llama_server::{
    bootstrap::{FailureKind, Job, JobReport, Phase, Verb},
    failure,
    model::LlamaServer,
};

/// A server whose model is damaged after it was ready, in a pause of a minute or more.
fn pausing() -> (Home, Job, JobReport) {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let process = home.serve(&job).process.unwrap();
    home.hurry();
    home.model(model::truncated());
    kill(process.pid, "KILL");
    let report = until("no long pause", || Some(home.look()).filter(|report| report.phase == Phase::Failed));
    // The pauses are as long as they are from here on.
    fs::remove_file(home.path("bin/sleep")).unwrap();
    (home, job, report)
}

#[test]
fn server_that_goes_on_dying_is_started_again_with_longer_pauses() {
    let (home, job, report) = pausing();
    let failure = report.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::Died, "{}", failure.text);
    // 1, 2, 4, 8, 16 and 32 s were no failure.
    assert!(report.restarts >= 6, "{}", report.restarts);
    assert!(report.next_try.is_some() && report.work.is_some());
    let warning = failure::died(&LlamaServer::default(), &report).detail;
    assert!(warning.contains("is started again at 20"), "{warning}");
    // An apply does not wait for the next try, and ends the work that does.
    home.model(model::working());
    let served = home.serve(&job);
    assert_eq!((served.restarts, served.next_try, served.former), (0, None, None));
    until("the pausing work goes on", || (home.works().len() == 1).then_some(()));
    assert_eq!(home.servers().len(), 1);
}

#[test]
fn pausing_server_is_tried_at_once_when_the_update_fails() {
    let (home, job, _) = pausing();
    home.model(model::working());
    let (report, _) = home.apply(&Job { extra_args: vec!["--no-such-option".to_owned()], ..job.clone() });
    assert!(!report.is_refused, "{report:#?}");
    let report = home.until_ready(&job.place);
    assert!(!report.process.unwrap().command_line.contains(&"--no-such-option".to_owned()));
    assert_eq!(home.works().len(), 1);
}

#[rstest]
#[case::asked("TERM", false)]
#[case::aborted("ABRT", true)]
fn server_that_was_asked_to_end_stays_ended(#[case] signal: &str, #[case] comes_back: bool) {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let first = home.serve(&job).process.unwrap();
    kill(first.pid, signal);
    let report = until("it is not settled", || {
        let report = home.look();
        let is_back = report.process.as_ref().is_some_and(|process| process.is_alive && process.pid != first.pid);
        (is_back || report.phase == Phase::Failed).then_some(report)
    });
    assert_eq!(report.phase != Phase::Failed, comes_back, "{report:#?}");
}

#[test]
fn log_is_cut_before_it_fills_the_disk() {
    let home = Home::new();
    home.hurry();
    let served = home.serve(&home.job());
    let (log, work) = (home.state().join("server.log"), home.worker());
    fs::OpenOptions::new().append(true).open(&log).unwrap().set_len((64 << 20) + 1).unwrap();
    until("it is not cut", || (fs::metadata(&log).unwrap().len() < 1 << 20).then_some(()));
    assert!(fs::metadata(home.state().join("server.log.1")).unwrap().len() > 64 << 20);
    // What its beginning said is still known, also after another look at the same process.
    assert_eq!(home.look().notes, served.notes);
    let process = served.process.unwrap().identity;
    assert_eq!(home.run(&Verb::Ready { process: &process }).notes, served.notes);
    assert!(!served.notes.is_empty());
    // The process that cuts it does not outlive the work.
    kill(work, "KILL");
    until("it goes on", || {
        home.processes()
            .iter()
            .all(|(pid, words)| words.last().is_none_or(|word| word != "work") || !is_running(*pid))
            .then_some(())
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
        until_in(Duration::from_secs(10), what, || (sleeps() == expected).then_some(()));
    };
    let first = home.serve(&home.job()).process.unwrap();
    remain(1, "nothing tends the log");
    // An update ends the work of the former server.
    let second = home.serve(&Job { context_size: 4096, ..home.job() }).process.unwrap();
    assert_ne!(first.identity, second.identity);
    remain(1, "a pause of the former work goes on");
    kill(second.pid, "TERM");
    home.look_until(Phase::Failed);
    remain(0, "a pause goes on after the end of the server");
    home.serve(&home.job());
    home.run(&Verb::Destroy { owner: "owner" });
    assert_eq!(home.processes(), []);
}
