//! The end of a server: asked for, by itself, and what is no server at all.

use std::{fs, io::Write as _, process::Command, thread};

use damodel_llama::{FailureKind, Job, Phase, Verb, program};
use nix::{
    sys::{signal::Signal, stat::Mode},
    unistd::mkfifo,
};
use rstest::rstest;
use secrecy::ExposeSecret as _;

use super::{
    home::{Home, answer, chat, http, is_healthy, start, until_so},
    process::{end, is_running, kill, stat},
    stand_in::{PACKAGE, chatting, killed, truncated, working},
};

#[test]
fn stop_does_not_wait_for_a_request_for_ever() {
    let home = Home::new();
    home.model(chatting(1_000_000));
    home.ensure(&home.job());
    let pid = home.loading(&home.job()).pid;
    let port = home.port;
    until_so("it is not healthy", || is_healthy(port));
    let request = thread::spawn(move || chat(port, ""));
    until_so("the request does not arrive", || http(port, "GET /metrics", "").1.contains("requests_processing 1\n"));
    home.script("bin/sleep", "#!/bin/sh\necho \"$1\" >>~/slept\nexec /bin/sleep 0.01\n");
    home.stop();
    // The first signal leaves it 10 s, the second ends it.
    let slept = fs::read_to_string(home.path("slept")).unwrap();
    assert!((100..130).contains(&slept.lines().filter(|time| *time == "0.1").count()), "{slept}");
    assert!(!is_running(pid));
    assert_eq!(request.join().unwrap(), 0);
}

/// The root folder is no run: a record there would be taken for one of every server.
#[test]
fn without_a_server_nothing_is_written() {
    let home = Home::new();
    home.destroy();
    let restarted = home.run(&Verb::Restart { process: "" });
    assert_eq!((restarted.phase, restarted.failure.unwrap().kind), (Phase::Absent, FailureKind::NotRunning));
    assert!(!home.path("workspace/.damodel/runs").exists() && home.run_folder().is_empty());
    fs::create_dir_all(home.state()).unwrap();
    for program in ["mv", "rm"] {
        home.script(
            &format!("bin/{program}"),
            &format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>~/files\nexec /bin/{program} \"$@\"\n"),
        );
    }
    home.stop();
    let files = fs::read_to_string(home.path("files")).unwrap_or_default();
    assert!(!files.lines().any(|file| file.rsplit_once('/').is_some_and(|(folder, _)| folder.is_empty())), "{files}");
}

#[test]
fn stop_ends_a_compile_and_destroy_keeps_what_was_built() {
    let home = Home::new().with_cuda();
    home.hold_compile();
    home.ensure(&home.compiled());
    until_so("no compile", || home.compiles() == 1);
    home.destroy();
    assert_eq!(home.processes(), []);
    assert!(!home.state().exists() && home.path("workspace/.damodel/builds/build").is_dir());
}

#[test]
fn server_that_cannot_be_stopped_now_goes_on() {
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

/// As flock of util-linux, and that of busybox, on a file system without locks.
#[rstest]
#[case::util_linux(71)]
#[case::busybox(1)]
fn workspace_without_locks_is_refused(#[case] code: i32) {
    let home = Home::new();
    home.script("bin/sleep", "#!/bin/sh\n");
    home.script("bin/flock", &format!("#!/bin/sh\necho 'flock: 9: No locks available' >&2; exit {code}\n"));
    let report = home.run(&Verb::Ensure(&start(&home, &home.job())));
    let failure = report.failure.unwrap();
    assert_eq!((report.is_refused, failure.kind), (true, FailureKind::NoLocks), "{failure:?}");
    assert!(failure.text.contains("No locks available") && failure.kind.argument() == Some("workspace"));
    assert_eq!(home.processes(), []);
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
    home.model(killed());
    let hold = home.path("public-storage/model/tiny.gguf.hold");
    fs::write(&hold, "").unwrap();
    home.ensure(&home.job());
    home.look_until(Phase::Load);
    count(kills);
    fs::remove_file(hold).unwrap();
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert!(failure.kind == kind && failure.text.contains("137"), "{failure:?}");
}

#[test]
fn only_the_owner_ends_a_server() {
    let home = Home::new();
    let process = home.serve(&home.job()).process.unwrap();
    let report = |verb: Verb<'_>| {
        let report = home.run(&verb);
        (report.is_refused, report.failure.map(|failure| failure.kind))
    };
    for owner in ["", "another"] {
        assert_eq!(report(Verb::Stop { owner }), (true, Some(FailureKind::Foreign)));
        assert_eq!(report(Verb::Destroy { owner }), (true, Some(FailureKind::Foreign)));
    }
    // A successor takes over what runs as it shall, and the previous owner ends nothing.
    let (job, seen) = (home.job(), home.run_folder());
    let owned = home.run(&Verb::Own { seen: &seen, owner: "another", job: &job });
    assert_eq!((owned.phase, owned.owner.as_deref()), (Phase::Ready, Some("another")));
    assert_eq!(owned.process.unwrap().identity, process.identity);
    assert!(report(Verb::Destroy { owner: "owner" }).0 && is_running(process.pid));
    assert!(!report(Verb::Destroy { owner: "another" }).0 && !is_running(process.pid));
}

/// Each is followed by a server that serves, and then dies.
#[test]
fn server_that_ends_says_why() {
    let home = Home::new();
    let server = |text: &str| {
        fs::remove_file(home.path(PACKAGE).join("llama-server")).unwrap();
        home.script(&format!("{PACKAGE}/llama-server"), text);
    };
    home.model(truncated());
    let failure = home.fails(&home.job()).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::BrokenModel, "{failure:?}");
    for words in ["exited with 1 after", "not within the file bounds"] {
        assert!(failure.text.contains(words), "{failure:?}");
    }
    home.model(working());
    for (text, words) in [
        ("#!/no/such/interpreter\n", "exited with 127"),
        ("#!/bin/sh\ncase $1 in --*) exit 0 ;; esac\necho 'error: why'; exit 3\n", "error: why"),
    ] {
        server(text);
        let failure = home.fails(&home.job()).failure.unwrap();
        assert!(failure.kind == FailureKind::Exited && failure.text.contains(words), "{failure:?}");
    }
    home.package(PACKAGE, "[]");
    let process = home.serve(&home.job()).process.unwrap();
    kill(process.pid, Signal::SIGKILL);
    let report = home.look_until(Phase::Failed);
    let failure = report.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Died);
    assert!(failure.text.contains("exited with 137 (SIGKILL: it was killed, or memory ran out)"), "{}", failure.text);
    let dead = report.process.unwrap();
    assert_eq!((dead.is_alive, dead.identity), (false, process.identity));
}

/// A pipe in the place of a record keeps the look where it reads that.
#[test]
fn work_that_ends_during_a_look_was_not_interrupted() {
    let home = Home::new();
    home.model(truncated());
    home.fails(&home.job());
    let [worker, status] = ["worker", "status"].map(|name| home.record(name));
    let (process, ended) = (fs::read(&worker).unwrap(), fs::read(&status).unwrap());
    home.rewrite("status", "status_phase", "load");
    home.rewrite("status", "status_kind", "");
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

/// A process that has the number of an ended one is left alone, and a zombie is dead.
#[test]
fn number_of_a_process_is_not_its_identity() {
    let home = Home::new();
    home.serve(&home.job());
    [home.worker(), home.servers()[0]].into_iter().for_each(end);
    let stranger = Command::new("sleep").arg("100").spawn().unwrap();
    for (record, name) in [("server", "server_identity"), ("worker", "worker_identity")] {
        let identity = home.recorded(record, name);
        let (_, rest) = identity.split_once('.').unwrap();
        home.rewrite(record, name, &format!("{}.{rest}", stranger.id()));
    }
    let report = home.look();
    assert_eq!((report.phase, report.failure.unwrap().kind), (Phase::Failed, FailureKind::Interrupted));
    assert!(!report.process.unwrap().is_alive);

    home.serve(&home.job());
    let zombie = Command::new("true").spawn().unwrap();
    until_so("it lives", || stat(zombie.id()).first().is_some_and(|state| state == "Z"));
    let started = stat(zombie.id())[19].clone();
    let server = home.servers()[0];
    [home.worker(), server].into_iter().for_each(end);
    let boot = home.recorded("server", "server_identity").rsplit('.').next().unwrap().to_owned();
    home.rewrite("server", "server_identity", &format!("{}.{started}.{boot}", zombie.id()));
    let report = home.look();
    assert_eq!((report.phase, report.process.unwrap().is_alive), (Phase::Failed, false));
    home.script("bin/sleep", "#!/bin/sh\necho >>~/slept\nexec /bin/sleep \"$@\"\n");
    home.destroy();
    // It is not waited for.
    let slept = fs::read_to_string(home.path("slept")).unwrap_or_default().lines().count();
    assert!(slept < 50 && is_running(stranger.id()), "{slept}");
    for mut child in [stranger, zombie] {
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// The program that would make a session fails: the half minute that a slow instance is given is not waited for.
#[test]
fn work_that_ends_before_it_has_begun_is_a_refusal() {
    let home = Home::new();
    home.script("bin/setsid", "#!/bin/sh\necho no session >&2\nexit 1\n");
    home.script("bin/sleep", "#!/bin/sh\necho >>~/slept\nexec /bin/sleep \"$@\"\n");
    let job: Job = home.job();
    let report = home.run(&Verb::Ensure(&start(&home, &job)));
    let failure = report.failure.unwrap();
    assert_eq!((report.is_refused, failure.kind), (true, FailureKind::Workspace), "{}", failure.text);
    assert!(failure.text.ends_with("did not start: no session"), "{}", failure.text);
    let slept = fs::read_to_string(home.path("slept")).unwrap_or_default().lines().count();
    assert!(slept < 100, "{slept}");
    fs::remove_file(home.path("bin/setsid")).unwrap();
    home.serve(&job);
}
