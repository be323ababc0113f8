//! An update, and the way back to the server that served before.

use std::{fs, thread};

use damodel_llama::{FailureKind, Fingerprint, Job, Phase, Previous, Process, Start, Verb};
use nix::sys::signal::Signal;

use super::{
    home::{Home, chat, http, is_healthy, start, until_so},
    process::{environment, is_running, kill},
    stand_in::{chatting, loading, truncated},
};

/// A server that serves with a key and a variable.
fn served() -> (Home, Job, Process) {
    let home = Home::new().with_cuda();
    let mut job = Job { api_key: Some("planted-previous-key".into()), ..home.job() };
    job.environment.insert("PLANTED".to_owned(), "previous value".into());
    let process = home.serve(&job).process.unwrap();
    (home, job, process)
}

/// A job that does not load.
fn broken(home: &Home) -> Job {
    Job { model: home.model_named("other", truncated()), ..home.job() }
}

#[test]
fn previous_server_serves_until_its_successor_is_compiled() {
    let (home, _, previous) = served();
    home.hold_compile();
    let job = home.compiled();
    home.ensure(&job);
    until_so("no compile", || home.compiles() == 1);
    let report = home.look();
    assert_eq!((report.phase, report.previous), (Phase::Compile, Some(Previous::Serving)));
    assert_eq!(report.process.unwrap().identity, previous.identity);
    assert!(is_healthy(home.port));
    home.release_compile();
    let report = home.until_ready(&job);
    assert_eq!((report.build_used.as_deref(), report.previous), (Some("source"), None));
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
    // The supervisor of the previous one has seen that it is not needed any more.
    until_so("it stays", || home.works().len() == 1);
}

/// Neither options that are refused nor a work that was killed before it was begun change what serves.
#[test]
fn update_that_begins_nothing_ends_no_server() {
    let (home, job, previous) = served();
    home.fails(&home.with_bad_option());
    let report = home.run(&Verb::RollBack);
    assert_eq!((report.phase, report.failure, report.previous), (Phase::Ready, None, None));
    assert_eq!(report.process.unwrap().identity, previous.identity);
    assert_eq!(report.fingerprint, Some(Fingerprint::of(&job).to_string()));
    assert_eq!(home.own(&job).phase, Phase::Ready);
    let changed = home.changed();
    // As the begun run was killed before its work was sent off: the stand-in ends after the run, which notices nothing.
    home.script("bin/setsid", "#!/bin/sh\n: >~/sent\nwhile kill -0 $PPID; do sleep 0.05; done 2>/dev/null\nexit 1\n");
    let mut run = home.spawn(&job.place, &Verb::Ensure(&start(&home, &changed)));
    until_so("it is not begun", || home.path("sent").exists());
    run.kill().unwrap();
    run.wait().unwrap();
    fs::remove_file(home.path("bin/setsid")).unwrap();
    let report = home.look();
    assert_eq!((report.phase, report.previous), (Phase::Failed, Some(Previous::Serving)));
    assert_eq!(report.failure.unwrap().kind, FailureKind::Interrupted);
    let process = home.serve(&changed).process.unwrap();
    assert_ne!(process.identity, previous.identity);
    assert!(process.command_line.contains(&"4096".to_owned()), "{:?}", process.command_line);
    assert_eq!(home.servers(), [process.pid]);
}

#[test]
fn previous_server_is_started_again_as_it_was() {
    let (home, job, previous) = served();
    home.fails(&broken(&home));
    assert_eq!(home.run(&Verb::RollBack).failure, None);
    let process = home.until_ready(&job).process.unwrap();
    assert_ne!(process.identity, previous.identity);
    assert_eq!((&process.command_line, home.servers()), (&previous.command_line, vec![process.pid]));
    assert!(environment(process.pid).contains("PLANTED=previous value"));
    assert_eq!(chat(home.port, ""), 401);
    // Once more, as a client does whose answer was lost.
    assert_eq!(home.run(&Verb::RollBack).process.unwrap().identity, process.identity);
    assert_eq!(home.own(&job).process.unwrap().identity, process.identity);
    // The run of an update is killed; the next update has other options, which are worse.
    let slow = Job { model: home.model_named("other", loading(600)), ..job.clone() };
    home.ensure(&slow);
    let loads = home.loading(&slow);
    home.fails(&home.with_bad_option());
    home.run(&Verb::RollBack);
    assert!(!is_running(loads.pid));
    assert_eq!(home.until_ready(&job).process.unwrap().command_line, previous.command_line);
}

/// A server that was told to end, and still answers requests, is not taken for one that serves.
#[test]
fn previous_server_that_is_about_to_end_is_started_again() {
    let home = Home::new().with_cuda();
    home.model(chatting(1_000_000));
    let job = home.job();
    home.ensure(&job);
    let (previous, port) = (home.loading(&job), home.port);
    until_so("it is not healthy", || is_healthy(port));
    home.run(&Verb::Ready { process: &previous.identity });
    let request = thread::spawn(move || chat(port, ""));
    until_so("the request does not arrive", || http(port, "GET /metrics", "").1.contains("requests_processing 1\n"));
    home.ensure(&Job { model: home.model_named("other", loading(600)), ..job });
    until_so("it is not told to end", || !is_healthy(port));
    assert!(is_running(previous.pid));
    assert_eq!(home.run(&Verb::RollBack).failure, None);
    request.join().unwrap();
    until_so("it does not come back", || is_healthy(port));
    assert_ne!(home.servers(), [previous.pid]);
}

#[test]
fn failed_update_without_a_client_is_rolled_back_by_itself() {
    let (home, job, previous) = served();
    home.fails(&broken(&home));
    home.leave();
    until_so("it does not come back", || is_healthy(home.port));
    let report = home.until_ready(&job);
    assert_eq!(report.process.unwrap().command_line, previous.command_line);
    // The next client sees whose job serves.
    assert_eq!(report.fingerprint, Some(Fingerprint::of(&job).to_string()));
}

#[test]
fn way_back_that_is_not_wanted_is_given_up_when_the_successor_starts() {
    let (home, _, previous) = served();
    let changed = broken(&home);
    home.run(&Verb::Ensure(&Start { rolls_back: false, ..start(&home, &changed) }));
    let report = home.look_until(Phase::Failed);
    assert_eq!((report.failure.unwrap().kind, report.previous), (FailureKind::BrokenModel, None));
    assert!(!is_running(previous.pid) && home.servers().is_empty());
}

/// Whatever is killed at whatever moment of an update that fails, the previous server serves after a rollback.
#[test]
fn work_of_an_update_that_is_killed_at_any_moment_leaves_a_way_back() {
    let (home, job, previous) = served();
    let changed = Job { model: home.model_named("other", loading(600)), ..job.clone() };
    let fingerprint = Fingerprint::of(&changed).to_string();
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut run = home.spawn(&job.place, &Verb::Ensure(&start(&home, &changed)));
        // A status that is still the previous one's says nothing of the successor.
        let is_halted = home.halts_before(&mut run, &changed);
        if home.recorded("job", "job_record").contains(&fingerprint) && home.record("worker").exists() {
            kill(home.worker(), Signal::SIGKILL);
        }
        run.kill().unwrap();
        run.wait().unwrap();
        home.release();
        let report = home.run(&Verb::RollBack);
        assert_eq!(report.failure, None, "{rename}");
        let process = home.until_ready(&job).process.unwrap();
        assert_eq!(process.command_line, previous.command_line, "{rename}");
        assert_eq!(home.servers(), [process.pid], "{rename}");
        if !is_halted {
            break;
        }
    }
    assert!(rename > 6, "{rename}");
}
