//! Whatever is killed at whatever moment, the next run takes it up: one compile, one server, no error.

use std::{fs, io::Write};

use rstest::rstest;
use secrecy::ExposeSecret;

use super::{
    super::{Binary, Build, FailureKind, Fingerprint, Job, JobFailure, JobReport, Phase, Start, Verb, program},
    home::{Home, RTX, V100, answer, is_running, kill, session, start, until},
    model,
};

/// Waits until nvcc was asked so many times.
fn until_compiles(home: &Home, times: usize) {
    until("no compile", || (home.compiles().len() == times).then_some(()));
}

/// Kills a process and waits for its end.
fn end(pid: u32) {
    kill(pid, "KILL");
    until("it lives", || (!is_running(pid)).then_some(()));
}

/// What a reboot does: nothing lives, and the kernel has another identity.
fn reboot(home: &Home) {
    until("it lives", || {
        let processes = home.processes();
        // None of them sees the end of another.
        for signal in ["STOP", "KILL"] {
            processes.iter().for_each(|(pid, _)| kill(*pid, signal));
        }
        processes.is_empty().then_some(())
    });
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for record in ["worker", "server"].map(|name| home.record(name)).iter().filter(|path| path.exists()) {
        let text = fs::read_to_string(record).unwrap();
        fs::write(record, text.replace(boot.trim(), "11111111-2222-3333-4444-555555555555")).unwrap();
    }
}

#[rstest]
#[case("dash")]
#[case("bash")]
#[case("busybox")]
fn two_runs_at_once_make_one_compile_and_one_server(#[case] shell: &'static str) {
    let Some(home) = Home::with_shell(shell) else { return };
    let home = home.with_cuda(V100);
    let job = home.job();
    let recipe = home.recipe(&job).unwrap();
    let begin = Start { binary: &Binary::Source(Box::new(recipe)), ..start(&home, &job) };
    let runs: Vec<_> = (0..2).map(|_| home.spawn(&job.place, &Verb::Ensure(&begin))).collect();
    // One of them is told that the other was faster, and would take its work over.
    let refused: Vec<_> = runs.into_iter().map(answer).filter_map(|report| report.failure).collect();
    assert!(matches!(&refused[..], [JobFailure { kind: FailureKind::Changed, .. }]), "{refused:?}");
    assert!(matches!(home.ensure(&job), JobReport { failure: None, is_refused: false, .. }));
    let report = home.until_ready(&job.place);
    assert_eq!(home.compiles(), ["70"]);
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
}

#[test]
fn two_runs_with_different_options_end_with_one_server() {
    let home = Home::new();
    let one = home.job();
    let other = Job { context_size: 4096, ..home.job() };
    // The second finds the first at every moment: once it took the server that was just being started for a
    // stranger's on its port.
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut first = home.spawn(&one.place, &Verb::Ensure(&start(&home, &one)));
        let is_halted = home.halts_before(&mut first, &Fingerprint::of(&one));
        let second = home.spawn(&other.place, &Verb::Ensure(&start(&home, &other)));
        home.release();
        answer(first);
        let mut report = answer(second);
        // It saw what was there before the first, and decides anew.
        while report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Changed) {
            report = home.run(&Verb::Ensure(&start(&home, &other)));
        }
        assert_eq!(report.failure, None, "{rename}");
        if !is_halted {
            break;
        }
        // All renames of the next round are the first's: a work that is ended at the one to halt at never halts.
        until("it does not start the server", || home.look_until(Phase::Load).process);
    }
    assert!(rename > 6, "{rename}");
    let report = home.until_ready(&one.place);
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
}

#[test]
fn apply_after_a_killed_one_takes_the_compile_up() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    home.ensure(&home.job());
    until_compiles(&home, 1);
    let worker = home.worker();
    let report = home.ensure(&home.job());
    assert_eq!((report.phase, report.failure), (Phase::Compile, None));
    assert_eq!(home.worker(), worker);
    home.release_compile();
    home.until_ready(&home.place());
    assert_eq!(home.compiles(), ["70"]);
    assert_eq!(home.servers().len(), 1);
}

#[test]
fn work_outlives_its_login_and_a_hangup() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    home.ensure(&home.job());
    until_compiles(&home, 1);
    let worker = home.worker();
    let stat = fs::read_to_string(format!("/proc/{worker}/stat")).unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap();
    assert_eq!(session, worker.to_string());
    kill(worker, "HUP");
    home.release_compile();
    let server = home.until_ready(&home.place()).process.unwrap().pid;
    kill(server, "HUP");
    kill(home.worker(), "HUP");
    assert_eq!(home.look().phase, Phase::Ready);
    // Nothing of the login is left open: the input was its key, the output is the log.
    let opened = |descriptor: u32| fs::read_link(format!("/proc/{server}/fd/{descriptor}")).unwrap();
    assert_eq!([opened(1), opened(2)], [home.state().join("server.log"), home.state().join("server.log")]);
    let others =
        fs::read_dir(format!("/proc/{server}/fd")).unwrap().map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    assert_eq!(others.filter(|target| target.extension().is_some_and(|end| end == "lock")).count(), 0);
}

#[test]
fn shell_that_is_killed_at_any_moment_harms_nothing() {
    let home = Home::new();
    let job = home.job();
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut run = home.spawn(&job.place, &Verb::Ensure(&start(&home, &job)));
        let is_halted = home.halts_before(&mut run, &Fingerprint::of(&job));
        run.kill().unwrap();
        run.wait().unwrap();
        home.release();
        if !is_halted {
            break;
        }
        // So that each begins at the beginning.
        home.run(&Verb::Stop { owner: "owner" });
    }
    assert!(rename > 6, "{rename}");
    let report = home.serve(&job);
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
    home.run(&Verb::Stop { owner: "owner" });
    assert_eq!(home.processes(), []);
}

#[test]
fn work_that_is_killed_at_any_moment_harms_nothing() {
    let home = Home::new().with_cuda(V100);
    let job = home.job();
    let binary = Binary::Source(Box::new(home.recipe(&job).unwrap()));
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut run = home.spawn(&job.place, &Verb::Ensure(&Start { binary: &binary, ..start(&home, &job) }));
        let is_halted = home.halts_before(&mut run, &Fingerprint::of(&job));
        home.kill_works();
        home.release();
        run.kill().unwrap();
        run.wait().unwrap();
        if !is_halted {
            break;
        }
        home.run(&Verb::Stop { owner: "owner" });
    }
    assert!(rename > 6, "{rename}");
    let report = home.serve(&home.job());
    let server = report.process.unwrap().pid;
    assert_eq!(home.servers(), [server]);
    // Whatever the killed ones left behind has been ended.
    let mut others: Vec<u32> = home.processes().into_iter().map(|(pid, _)| pid).collect();
    others.retain(|pid| session(*pid) != Some(home.worker()));
    assert!(!is_running(home.worker()) || others.is_empty(), "{:?}", home.processes());
}

/// Nobody waits for the half minute that a slow machine is given.
#[test]
fn work_that_ends_before_it_has_begun_is_told_at_once() {
    let home = Home::new();
    home.script("bin/setsid", "#!/bin/sh\necho no session >&2\nexit 1\n");
    home.script("bin/sleep", "#!/bin/sh\necho >>~/slept\nexec /bin/sleep \"$@\"\n");
    let report = home.ensure(&home.job());
    let failure = report.failure.unwrap();
    assert_eq!((report.is_refused, failure.kind), (true, FailureKind::Workspace), "{}", failure.text);
    assert!(failure.text.ends_with("did not start: no session"), "{}", failure.text);
    let slept = fs::read_to_string(home.path("slept")).unwrap_or_default().lines().count();
    assert!(slept < 100, "{slept}");
    fs::remove_file(home.path("bin/setsid")).unwrap();
    home.serve(&home.job());
}

#[test]
fn work_that_is_killed_while_compiling_is_taken_up() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    home.ensure(&home.job());
    until_compiles(&home, 1);
    end(home.worker());
    let report = home.look();
    let failure = report.failure.unwrap();
    assert_eq!((report.phase, failure.kind), (Phase::Failed, FailureKind::Interrupted));
    assert!(failure.text.starts_with("the work ended in the phase \"compile\": it was killed"), "{}", failure.text);
    // The compilers that it left behind are ended: two in one folder would spoil each other's files.
    assert_eq!(home.ensure(&home.job()).failure, None);
    until_compiles(&home, 2);
    // A shell that begins another program is seen twice for a moment.
    let is_compiler = |words: &[String]| words.iter().any(|word| word.ends_with("bin/nvcc"));
    until("two compilers", || {
        let processes = home.processes();
        (processes.iter().filter(|(_, words)| is_compiler(words)).count() == 1).then_some(())
    });
    home.release_compile();
    home.until_ready(&home.place());
    assert_eq!(home.servers().len(), 1);
}

#[test]
fn server_whose_supervisor_is_killed_is_taken_up() {
    let home = Home::new();
    home.ensure(&home.job());
    let process = home.look_until(Phase::Load).process.unwrap();
    end(home.worker());
    let report = home.ensure(&home.job());
    assert_eq!((report.phase, &report.process), (Phase::Load, &Some(process.clone())));
    assert!(!is_running(home.worker()));
    let report = home.until_ready(&home.place());
    assert_eq!(report.process.unwrap().identity, process.identity);
    let restart = Verb::Restart { process: &process.identity };
    assert_eq!(home.run(&restart).failure.unwrap().kind, FailureKind::NotRunning);
    assert_eq!(home.servers(), [process.pid]);
}

/// Nobody would start it again, so the same job is begun anew, under a supervisor.
#[test]
fn server_that_lacks_its_supervisor_is_started_anew() {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    let first = home.serve(&job);
    assert!(!first.lacks_supervisor());
    end(home.worker());
    let seen = home.look();
    assert!(seen.phase == Phase::Ready && seen.lacks_supervisor());
    let second = home.serve(&job);
    assert!(!second.lacks_supervisor() && is_running(home.worker()));
    assert_eq!(home.servers(), [second.process.unwrap().pid]);
    assert!(!is_running(first.process.unwrap().pid));
}

#[test]
fn server_whose_end_its_supervisor_has_not_judged_is_no_failure() {
    let home = Home::new();
    let served = home.serve(&home.job()).process.unwrap();
    kill(home.worker(), "STOP");
    end(served.pid);
    let report = home.look();
    assert_eq!((report.phase, report.failure), (Phase::Start, None));
    kill(home.worker(), "CONT");
    let report = home.look_until(Phase::Failed);
    assert_eq!(report.failure.unwrap().kind, FailureKind::Died);
}

#[test]
fn reboot_while_it_serves_is_told_and_repaired_without_a_compile() {
    let home = Home::new().with_cuda(V100);
    home.serve(&home.job());
    reboot(&home);
    let report = home.look();
    let failure = report.failure.unwrap();
    assert_eq!((report.phase, failure.kind), (Phase::Failed, FailureKind::Interrupted));
    assert!(failure.text.ends_with("the instance was rebooted"), "{}", failure.text);
    home.serve(&home.job());
    assert_eq!(home.compiles(), ["70"]);
}

#[test]
fn reboot_while_it_compiles_is_taken_up() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    home.ensure(&home.job());
    until_compiles(&home, 1);
    reboot(&home);
    assert_eq!(home.look().failure.unwrap().kind, FailureKind::Interrupted);
    home.release_compile();
    home.serve(&home.job());
}

#[test]
fn prebuilt_that_failed_once_is_tried_again_by_the_next_apply() {
    let home = Home::new().with_cuda(RTX);
    home.model(model::truncated());
    let report = home.apply(&Job { build: Build::Prebuilt, ..home.job() }).0;
    assert_eq!(report.failure.unwrap().kind, FailureKind::BrokenModel);
    home.hold_compile();
    home.ensure(&home.job());
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    home.begin(&home.job(), Build::Source, Some(&failure));
    until_compiles(&home, 1);
    reboot(&home);
    // The model was half copied, and is whole now.
    home.model(model::working());
    let report = home.serve(&home.job());
    assert_eq!((report.build_used.as_deref(), report.because), (Some("prebuilt"), None));
}

#[test]
fn files_that_a_power_cut_left_in_pieces_are_made_anew() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    let job = Job { build: Build::Source, ..home.job() };
    home.ensure(&job);
    // What does not wait for nvcc was compiled.
    let builds = home.path("workspace/.damodel/builds");
    let entries = || fs::read_dir(&builds).ok().into_iter().flatten().map(|entry| entry.unwrap().path());
    let build = until("no build", || entries().find(|path| path.join("libggml.a").exists()));
    reboot(&home);
    for record in ["status", "worker"] {
        fs::write(home.record(record), "status_phase='lo\0\0\0").unwrap();
    }
    for object in ["libggml.a", "CMakeFiles/ggml.dir/ggml/src/ggml.cpp.o"] {
        fs::OpenOptions::new().write(true).truncate(true).open(build.join(object)).unwrap().write_all(b"\0\0").unwrap();
    }
    assert_eq!(home.look().phase, Phase::Absent);
    home.release_compile();
    home.serve(&job);
    let binary = home.binary();
    // And a finished build that does not run any more.
    home.run(&Verb::Stop { owner: "owner" });
    fs::write(&binary, "").unwrap();
    fs::write(&binary, "\x7fELF").unwrap();
    home.serve(&job);
}

#[test]
fn what_a_login_prints_is_no_part_of_the_report() {
    let home = Home::new();
    let text = program(&home.place(), &Verb::Look);
    let noise = "echo Welcome; echo damodel-report; printf 'no newline at the end'\n";
    let report = answer(home.feed(&format!("{noise}{}echo goodbye\n", text.expose_secret())));
    assert_eq!(report.phase, Phase::Absent);
}

#[test]
fn program_that_was_cut_off_does_nothing() {
    let home = Home::new();
    let job = home.job();
    let text = program(&job.place, &Verb::Ensure(&start(&home, &job)));
    let text = text.expose_secret();
    for share in 1..20 {
        let cut = text.floor_char_boundary(text.len() * share / 20);
        let output = home.feed(&text[..cut]).wait_with_output().unwrap();
        assert_eq!(output.stdout, b"", "{share}");
    }
    // All but the last line.
    let cut = text.trim_end().rfind('\n').unwrap();
    assert_eq!(home.feed(&text[..cut]).wait_with_output().unwrap().stdout, b"");
    assert!(!home.path("workspace").exists());
}
