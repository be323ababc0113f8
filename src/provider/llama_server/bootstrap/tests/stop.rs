//! The end of a server: asked for, by itself, and what is no server at all.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
    thread,
};

use nix::{sys::stat::Mode, unistd::mkfifo};
use rstest::rstest;
use secrecy::ExposeSecret as _;

use super::{
    home::{Home, RTX, V100, answer, chat, http, is_running, kill, until},
    model,
};
use crate::provider::llama_server::bootstrap::{Build, FailureKind, Job, Phase, Verb, program};

#[test]
fn stop_ends_the_server_and_keeps_its_log() {
    let home = Home::new();
    let process = home.serve(&home.job()).process.unwrap();
    let report = home.run(&Verb::Stop { owner: "owner" });
    assert_eq!((report.phase, report.failure), (Phase::Absent, None));
    assert!(!report.process.unwrap().is_alive);
    assert!(!is_running(process.pid));
    assert!(!report.log_tail.is_empty());
    assert_eq!(home.processes(), []);
    // Once more is no error, and the next apply starts it.
    assert_eq!(home.run(&Verb::Stop { owner: "owner" }).failure, None);
    home.serve(&home.job());
}

#[test]
fn stop_does_not_wait_for_a_request_for_ever() {
    let home = Home::new();
    home.model(model::chatting(1_000_000));
    home.ensure(&home.job());
    let pid = home.look_until(Phase::Load).process.unwrap().pid;
    let port = home.port;
    until("it is not healthy", || (http(port, "GET /health", "").0 == 200).then_some(()));
    let request = thread::spawn(move || chat(port, ""));
    until("the request does not arrive", || {
        http(port, "GET /metrics", "").1.contains("requests_processing 1\n").then_some(())
    });
    home.script("bin/sleep", "#!/bin/sh\necho \"$1\" >>~/slept\nexec /bin/sleep 0.01\n");
    assert_eq!(home.run(&Verb::Stop { owner: "owner" }).failure, None);
    // The first signal leaves it 10 s, the second ends it.
    let slept = fs::read_to_string(home.path("slept")).unwrap();
    assert!((100..130).contains(&slept.lines().filter(|time| *time == "0.1").count()), "{slept}");
    assert!(!is_running(pid));
    assert_eq!(request.join().unwrap(), 0);
}

#[test]
fn destroy_of_what_never_was_leaves_nothing() {
    let home = Home::new();
    assert_eq!(home.run(&Verb::Destroy { owner: "owner" }).phase, Phase::Absent);
    assert_eq!(home.look().phase, Phase::Absent);
    assert!(!home.path("workspace").exists());
}

/// The root folder is no run: a record there would be taken for one of every server.
#[test]
fn stop_without_a_run_writes_no_record() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    for program in ["mv", "rm"] {
        home.script(
            &format!("bin/{program}"),
            &format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>~/files\nexec /bin/{program} \"$@\"\n"),
        );
    }
    assert_eq!(home.run(&Verb::Stop { owner: "owner" }).failure, None);
    let files = fs::read_to_string(home.path("files")).unwrap_or_default();
    assert!(!files.lines().any(|file| file.rsplit_once('/').is_some_and(|(folder, _)| folder.is_empty())), "{files}");
}

#[test]
fn stop_ends_a_compile_and_destroy_keeps_what_was_built() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    home.ensure(&home.job());
    until("no compile", || (home.compiles().len() == 1).then_some(()));
    assert_eq!(home.run(&Verb::Destroy { owner: "owner" }).failure, None);
    assert_eq!(home.processes(), []);
    assert!(!home.state().exists());
    assert_eq!(
        fs::read_dir(home.path("workspace/.damodel/builds"))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().is_dir())
            .count(),
        1
    );
}

#[test]
fn what_cannot_be_stopped_now_is_refused_and_goes_on() {
    let home = Home::new();
    let process = home.serve(&home.job()).process.unwrap();
    // Who waits for the lock gives up at once.
    home.script("bin/sleep", "#!/bin/sh\n");
    let lock = home.path("workspace/.damodel").join(format!("{}.lock", home.port));
    let held = fs::File::open(lock).unwrap();
    held.lock().unwrap();
    for verb in [Verb::Stop { owner: "owner" }, Verb::Destroy { owner: "owner" }] {
        let report = home.run(&verb);
        assert_eq!((report.is_refused, report.failure.unwrap().kind), (true, FailureKind::Busy), "{verb:?}");
    }
    assert!(is_running(process.pid) && home.state().exists());
}

#[test]
fn server_that_dies_after_it_was_ready_is_seen_and_started_again() {
    let home = Home::new().with_cuda(RTX);
    let process = home.serve(&home.job()).process.unwrap();
    kill(process.pid, "KILL");
    let report = home.look_until(Phase::Failed);
    let failure = report.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Died);
    assert!(failure.text.contains("ended with 137 (SIGKILL: it was killed, or memory ran out)"), "{}", failure.text);
    let dead = report.process.unwrap();
    assert_eq!((dead.is_alive, dead.identity), (false, process.identity));
    // It did infer: no compile.
    assert_eq!(home.serve(&home.job()).build_used.as_deref(), Some("prebuilt"));
}

#[test]
fn server_that_dies_after_it_was_ready_is_started_again_by_itself() {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let first = home.serve(&job).process.unwrap();
    kill(first.pid, "KILL");
    let report = until("it does not come back", || {
        let report = home.look();
        assert!(report.phase < Phase::Ready || !report.is_refused, "{report:#?}");
        let is_back = report.process.as_ref().is_some_and(|process| process.is_alive && process.pid != first.pid);
        (is_back && report.phase == Phase::Load).then_some(report)
    });
    assert_eq!((report.restarts, report.is_proved), (1, true));
    assert_eq!(report.last_exit.as_deref(), Some("137 (SIGKILL: it was killed, or memory ran out)"));
    // An apply finds it as it is.
    let second = report.process.unwrap();
    assert_eq!(home.serve(&job).process.unwrap().identity, second.identity);
    // What was asked to end stays so.
    kill(second.pid, "TERM");
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::Died);
}

/// 137 alone may be a kill by hand.
#[rstest]
#[case::and_the_kernel_counts_it(1, FailureKind::OutOfMemory)]
#[case::and_the_kernel_counts_nothing(0, FailureKind::Exited)]
fn server_that_was_killed_lacked_memory_if_the_kernel_says_so(#[case] kills: usize, #[case] kind: FailureKind) {
    let home = Home::new();
    let count = |kills: usize| {
        fs::write(home.path("memory.events"), format!("low 0\noom 0\noom_kill {kills}\n")).unwrap();
    };
    count(0);
    if !home.with_systemd() {
        return;
    }
    home.model(model::killed());
    let hold = home.path("public-storage/model/tiny.gguf.hold");
    fs::write(&hold, "").unwrap();
    home.ensure(&home.job());
    home.look_until(Phase::Load);
    count(kills);
    fs::remove_file(hold).unwrap();
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert_eq!(failure.kind, kind, "{}", failure.text);
    assert!(failure.text.contains("137"), "{}", failure.text);
}

/// A storage that is away for a moment is no reason to give a server up.
#[test]
fn server_that_died_waits_for_its_model() {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let first = home.serve(&job).process.unwrap();
    let (model, away) = (home.path("public-storage/model/tiny.gguf"), home.path("away"));
    fs::rename(&model, &away).unwrap();
    kill(first.pid, "KILL");
    until("no pause", || home.look().next_try);
    fs::rename(&away, &model).unwrap();
    let report = home.until_ready(&job.place);
    assert_ne!(report.process.unwrap().identity, first.identity);
    assert_eq!(report.restarts, 1);
    assert!(report.last_exit.unwrap().starts_with("137"));
}

#[test]
fn only_the_owner_ends_a_server() {
    let home = Home::new();
    let process = home.serve(&home.job()).process.unwrap();
    for owner in ["", "another"] {
        for verb in [Verb::Stop { owner }, Verb::Destroy { owner }] {
            let report = home.run(&verb);
            assert_eq!((report.is_refused, report.failure.unwrap().kind), (true, FailureKind::Foreign), "{verb:?}");
        }
    }
    // A successor takes over what runs as it shall, and the former owner ends nothing.
    let job = home.job();
    let seen = home.run_folder();
    let report = home.run(&Verb::Own { seen: &seen, owner: "another", job: &job });
    assert_eq!((report.phase, report.owner.as_deref()), (Phase::Ready, Some("another")));
    assert_eq!(report.process.unwrap().identity, process.identity);
    assert!(home.run(&Verb::Destroy { owner: "owner" }).is_refused && is_running(process.pid));
    assert!(!home.run(&Verb::Destroy { owner: "another" }).is_refused && !is_running(process.pid));
}

#[test]
fn server_that_ends_before_it_is_ready_is_told_with_its_words() {
    let home = Home::new();
    home.model(model::truncated());
    let job = Job { build: Build::Prebuilt, ..home.job() };
    home.ensure(&job);
    let report = home.look_until(Phase::Failed);
    let failure = report.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::BrokenModel);
    assert!(
        failure.text.contains("ended with 1 after") && failure.text.contains("not within the file bounds"),
        "{}",
        failure.text
    );
    // The next apply tries again.
    home.model(model::working());
    home.serve(&job);
}

/// A pipe in the place of a record keeps the look where it reads that.
#[test]
fn work_that_ends_during_a_look_was_not_interrupted() {
    let home = Home::new();
    home.model(model::truncated());
    home.ensure(&Job { build: Build::Prebuilt, ..home.job() });
    home.look_until(Phase::Failed);
    let [worker, status] = ["worker", "status"].map(|name| home.record(name));
    let (process, ended) = (fs::read(&worker).unwrap(), fs::read(&status).unwrap());
    rewrite(&home, "status", "status_phase", "load");
    rewrite(&home, "status", "status_kind", "");
    fs::remove_file(&worker).unwrap();
    mkfifo(&worker, Mode::S_IRWXU).unwrap();
    let chosen = format!("DAMODEL_STATE='{}'\n", home.state().display());
    let look = home.feed(&(chosen + program(&home.place(), &Verb::Look).expose_secret()));
    let mut read = fs::OpenOptions::new().write(true).open(&worker).unwrap();
    fs::write(&status, ended).unwrap();
    read.write_all(&process).unwrap();
    drop(read);
    assert_eq!(answer(look).failure.unwrap().kind, FailureKind::BrokenModel);
}

/// Rewrites a value of a record, as time would have.
fn rewrite(home: &Home, record: &str, name: &str, value: &str) {
    let path = home.record(record);
    let old = format!("{name}='{}'", home.recorded(record, name));
    let text = fs::read_to_string(&path).unwrap().replace(&old, &format!("{name}='{value}'"));
    fs::write(path, text).unwrap();
}

#[test]
fn process_that_has_the_number_by_now_is_left_alone() {
    let home = Home::new();
    home.serve(&home.job());
    let stop = [home.worker(), home.servers()[0]];
    for pid in stop {
        kill(pid, "KILL");
        until("it lives", || (!is_running(pid)).then_some(()));
    }
    let mut stranger = Command::new("sleep").arg("100").spawn().unwrap();
    for (record, name) in [("server", "server_identity"), ("worker", "worker_identity")] {
        let identity = home.recorded(record, name);
        let (_, rest) = identity.split_once('.').unwrap();
        rewrite(&home, record, name, &format!("{}.{rest}", stranger.id()));
    }
    let report = home.look();
    assert_eq!((report.phase, report.failure.unwrap().kind), (Phase::Failed, FailureKind::Interrupted));
    assert!(!report.process.unwrap().is_alive);
    home.serve(&home.job());
    home.run(&Verb::Destroy { owner: "owner" });
    assert!(is_running(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn zombie_is_dead() {
    let home = Home::new();
    home.serve(&home.job());
    let mut zombie = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
    let stat = until("it lives", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", zombie.id())).unwrap();
        stat.contains(") Z ").then_some(stat)
    });
    let started = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
    let server = home.servers()[0];
    kill(home.worker(), "KILL");
    kill(server, "KILL");
    let boot = home.recorded("server", "server_identity").rsplit('.').next().unwrap().to_owned();
    rewrite(&home, "server", "server_identity", &format!("{}.{started}.{boot}", zombie.id()));
    let report = home.look();
    assert!(!report.process.unwrap().is_alive);
    assert_eq!(report.phase, Phase::Failed);
    home.script("bin/sleep", "#!/bin/sh\necho >>~/slept\nexec /bin/sleep \"$@\"\n");
    assert_eq!(home.run(&Verb::Stop { owner: "owner" }).failure, None);
    // It is not waited for.
    let slept = fs::read_to_string(home.path("slept")).unwrap_or_default().lines().count();
    assert!(slept < 50, "{slept}");
    zombie.wait().unwrap();
}
