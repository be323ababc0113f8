//! An update, and the way back to the server that served before.

use std::fs;

use rand::{RngExt as _, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use secrecy::SecretString;

use super::{
    home::{Home, RTX, chat, http, is_running, kill, start, until},
    model,
};
use crate::provider::llama_server::{
    bootstrap::{Build, FailureKind, Fingerprint, Former, Job, Phase, Start, Verb},
    decide::{Goal, History, Step, decide},
};

/// A server that serves with a key and a variable.
fn served() -> (Home, Job, super::super::Process) {
    let home = Home::new().with_cuda(RTX);
    let mut job = home.job();
    job.api_key = Some(SecretString::from("planted-former-key"));
    job.environment.insert("PLANTED".to_owned(), SecretString::from("former value"));
    let process = home.serve(&job).process.unwrap();
    (home, job, process)
}

#[test]
fn former_server_serves_until_its_successor_is_compiled() {
    let (home, job, former) = served();
    home.hold_compile();
    let job = Job { build: Build::Source, context_size: 4096, ..job };
    home.ensure(&job);
    until("no compile", || (home.compiles().len() == 1).then_some(()));
    let report = home.look();
    assert_eq!((report.phase, report.former), (Phase::Compile, Some(Former::Serving)));
    assert_eq!(report.process.unwrap().identity, former.identity);
    assert_eq!(http(home.port, "GET /health", "").0, 200);
    home.release_compile();
    let report = home.serve(&job);
    assert_eq!((report.build_used.as_deref(), report.former), (Some("source"), None));
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
    // The supervisor of the former one has seen that it is not needed any more.
    until("it stays", || (home.works().len() == 1).then_some(()));
}

#[test]
fn options_that_are_not_understood_end_no_server() {
    let (home, job, former) = served();
    let (report, step) = home.apply(&Job { extra_args: vec!["--no-such-option".to_owned()], ..job.clone() });
    assert_eq!(step, Step::RollBack);
    assert_eq!((report.phase, report.failure, report.former), (Phase::Ready, None, None));
    assert_eq!(report.process.unwrap().identity, former.identity);
    assert_eq!(report.fingerprint.as_deref(), Some(Fingerprint::of(&job).to_string().as_str()));
    // As if nothing had been: a second apply of the former job changes nothing, and it is restarted as before.
    assert_eq!(home.serve(&job).process.unwrap().identity, former.identity);
}

#[test]
fn former_server_is_started_again_as_it_was() {
    let (home, job, former) = served();
    let mut changed = Job {
        model: home.model_named("other", model::truncated()),
        build: Build::Prebuilt,
        api_key: None,
        ..job.clone()
    };
    changed.environment.clear();
    let (report, step) = home.apply(&changed);
    assert_eq!((step, report.failure), (Step::RollBack, None));
    let report = home.until_ready_with(&job.place, "Authorization: Bearer planted-former-key\r\n");
    let process = report.process.unwrap();
    assert_ne!(process.identity, former.identity);
    assert_eq!(process.command_line, former.command_line);
    assert_eq!(home.servers(), [process.pid]);
    let environment = fs::read_to_string(format!("/proc/{}/environ", process.pid)).unwrap();
    assert!(environment.contains("PLANTED=former value"), "{environment}");
    assert_eq!(chat(home.port, ""), 401);
    // Once more, as whoever did not hear the answer asks.
    assert_eq!(home.run(&Verb::RollBack).process.unwrap().identity, process.identity);
    assert_eq!(home.serve(&job).process.unwrap().identity, process.identity);
}

#[test]
fn second_update_keeps_the_way_back_of_the_first() {
    let (home, job, former) = served();
    let slow = Job { model: home.model_named("other", model::loading(600)), ..job.clone() };
    home.ensure(&slow);
    let loading = home.look_until(Phase::Load).process.unwrap();
    // The run was killed; the next one has other options, which are worse.
    let (_, step) = home.apply(&Job { extra_args: vec!["--no-such-option".to_owned()], ..slow });
    assert_eq!(step, Step::RollBack);
    assert!(!is_running(loading.pid));
    let report = home.until_ready_with(&job.place, "Authorization: Bearer planted-former-key\r\n");
    assert_eq!(report.process.unwrap().command_line, former.command_line);
}

#[test]
fn failed_update_that_nobody_follows_is_rolled_back_by_itself() {
    let (home, job, former) = served();
    home.ensure(&Job { model: home.model_named("other", model::truncated()), build: Build::Prebuilt, ..job.clone() });
    home.look_until(Phase::Failed);
    home.leave();
    until("it does not come back", || (http(home.port, "GET /health", "").0 == 200).then_some(()));
    let report = home.until_ready_with(&job.place, "Authorization: Bearer planted-former-key\r\n");
    assert_eq!(report.process.as_ref().unwrap().command_line, former.command_line);
    // Who comes back then is not told that its own job serves.
    let goal = Goal { fingerprint: Some("of the changed one".to_owned()), ..Goal::of(&home.job(), true) };
    assert_eq!(decide(&goal, &report, &History::begun()), Step::Superseded);
}

#[test]
fn way_back_that_is_not_wanted_is_given_up_when_the_successor_starts() {
    let (home, job, former) = served();
    let changed = Job { model: home.model_named("other", model::truncated()), build: Build::Prebuilt, ..job };
    let begun = Start { rolls_back: false, ..start(&home, &changed) };
    home.run(&Verb::Ensure(&begun));
    let report = home.look_until(Phase::Failed);
    assert_eq!((report.failure.unwrap().kind, report.former), (FailureKind::BrokenModel, None));
    assert!(!is_running(former.pid));
    assert_eq!(home.servers(), [0; 0]);
}

/// A work that is killed after it has written itself down, and before it has written how far it is: what the records
/// say is the former one's.
#[test]
fn ready_server_is_not_taken_for_that_of_a_work_that_was_killed() {
    let (home, job, former) = served();
    let changed = Job { context_size: 4096, ..job.clone() };
    // As the begun run was killed before its work was sent off: the stand-in ends after the run, which notices nothing.
    home.script("bin/setsid", "#!/bin/sh\n: >~/sent\nwhile kill -0 $PPID; do sleep 0.05; done 2>/dev/null\nexit 1\n");
    let mut run = home.spawn(&job.place, &Verb::Ensure(&start(&home, &changed)));
    until("it is not begun", || home.path("sent").exists().then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    fs::remove_file(home.path("bin/setsid")).unwrap();
    let report = home.look();
    assert_eq!((report.phase, report.former), (Phase::Failed, Some(Former::Serving)));
    assert_eq!(report.failure.unwrap().kind, FailureKind::Interrupted);
    let report = home.serve(&changed);
    let process = report.process.unwrap();
    assert_ne!(process.identity, former.identity);
    assert!(process.command_line.contains(&"4096".to_owned()), "{:?}", process.command_line);
    assert_eq!(home.servers(), [process.pid]);
}

/// Whatever is killed at whatever moment of an update that fails, the next apply of the former job serves.
#[test]
fn work_of_an_update_that_is_killed_at_any_moment_leaves_a_way_back() {
    let (home, job, former) = served();
    let changed = Job { model: home.model_named("other", model::loading(600)), ..job.clone() };
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut run = home.spawn(&job.place, &Verb::Ensure(&start(&home, &changed)));
        // A status that is still the former one's says nothing of the successor.
        let is_halted = home.halts_before(&mut run, &Fingerprint::of(&changed));
        if home.recorded("job", "job_record").contains(&Fingerprint::of(&changed).to_string())
            && home.record("worker").exists()
        {
            kill(home.worker(), "KILL");
        }
        run.kill().unwrap();
        run.wait().unwrap();
        home.release();
        let report = home.run(&Verb::RollBack);
        assert_eq!(report.failure, None, "{rename}");
        let report = home.until_ready_with(&job.place, "Authorization: Bearer planted-former-key\r\n");
        let process = report.process.unwrap();
        assert_eq!(process.command_line, former.command_line, "{rename}");
        assert_eq!(home.servers(), [process.pid], "{rename}");
        if !is_halted {
            break;
        }
    }
    assert!(rename > 6, "{rename}");
}

/// Random changes of a server that serves, good ones and bad ones, by applies that end, or are cut off after some
/// steps, while shells and works are killed: whatever happens, in the end something serves. `LLAMA_UPDATES` says how
/// many, and `LLAMA_SEED` with which seed they begin, when the test is built.
#[test]
fn random_updates_leave_a_server_that_serves() {
    let number = |text: Option<&str>, default: u64| text.map_or(default, |text| text.parse().unwrap());
    let (updates, first) = (number(option_env!("LLAMA_UPDATES"), 4), number(option_env!("LLAMA_SEED"), 1));
    let home = Home::new().with_cuda(RTX);
    for (name, model) in [
        ("good", model::loading(0)),
        ("slow", model::loading(1)),
        ("broken", model::truncated()),
        ("page", b"<html>".to_vec()),
    ] {
        home.model_named(name, model);
    }
    home.package("other", &[90]);
    home.serve(&home.job());
    for seed in first..first + updates {
        let mut random = StdRng::seed_from_u64(seed);
        let model = *["good", "slow", "broken", "aborts", "page", "none"].choose(&mut random).unwrap();
        let mut job = home.job();
        job.model = format!("~/public-storage/model/{model}.gguf");
        if model == "aborts" {
            // The fault of the server, which has no code for the GPU.
            job.model = "~/public-storage/model/good.gguf".to_owned();
            job.package = Some("~/other".to_owned());
        }
        job.build = *[Build::Prebuilt, Build::Prebuilt, Build::Auto].choose(&mut random).unwrap();
        job.context_size = random.random_range(64..100_000);
        if random.random_ratio(1, 5) {
            job.extra_args = vec!["--no-such-option".to_owned()];
        }
        let told = format!("seed {seed}: {model} {:?} {:?}", job.build, job.extra_args);
        let checked = home.check(&job);
        if checked.is_refused {
            // As an apply does where a killed one has left an update half way.
            if checked.former.is_some() {
                home.run(&Verb::RollBack);
            }
        } else if random.random_ratio(1, 2) {
            home.follow(&job, checked, usize::MAX);
        } else if random.random_ratio(1, 3) {
            // The connection is lost, and its shell killed, while the job is begun.
            home.halt_at(random.random_range(1..16));
            let mut shell = home.spawn(&job.place, &Verb::Ensure(&start(&home, &job)));
            home.halts_before(&mut shell, &Fingerprint::of(&job));
            shell.kill().unwrap();
            shell.wait().unwrap();
            home.release();
            home.leave();
        } else {
            home.follow(&job, checked, random.random_range(1..12));
            if random.random_ratio(1, 2) && home.state().join("former").exists() {
                kill(home.worker(), "KILL");
            }
            home.leave();
        }
        until(&told, || (chat(home.port, "") == 200).then_some(()));
    }
}
