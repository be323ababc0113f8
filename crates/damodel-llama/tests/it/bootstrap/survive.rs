//! Whatever is killed at whatever moment, the next run takes it up: one compile, one server, no error.

use std::{fs, io::Write as _, process::Child};

use damodel_llama::{FailureKind, Job, Phase, Verb, program};
use nix::sys::signal::Signal;
use secrecy::ExposeSecret as _;

use super::{
    home::{Home, answer, start, until, until_so},
    process::{end, is_running, kill, session},
};

/// A reboot: no process goes on, and the kernel has another identity.
fn reboot(home: &Home) {
    until_so("it lives", || {
        let processes = home.processes();
        // None of them sees the end of another.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            processes.iter().for_each(|(pid, _)| kill(*pid, signal));
        }
        processes.is_empty()
    });
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for record in ["worker", "server"].map(|name| home.record(name)).iter().filter(|path| path.exists()) {
        let text = fs::read_to_string(record).unwrap();
        fs::write(record, text.replace(boot.trim(), "11111111-2222-3333-4444-555555555555")).unwrap();
    }
}

/// Begins a job again and again, and halts it before one rename more each time, until it comes to a server. What is
/// done to each that halts, `disturb` does.
fn at_each_record(home: &Home, job: &Job, mut disturb: impl FnMut(&mut Child)) {
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut run = home.spawn(&job.place, &Verb::Ensure(&start(home, job)));
        let is_halted = home.halts_before(&mut run, job);
        disturb(&mut run);
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
}

#[test]
fn two_runs_with_different_options_end_with_one_server() {
    let home = Home::new();
    let (one, other) = (home.job(), home.changed());
    // The second finds the first at every moment: once it took the server that was just being started for a
    // stranger's on its port.
    let mut rename = 0;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut first = home.spawn(&one.place, &Verb::Ensure(&start(&home, &one)));
        let is_halted = home.halts_before(&mut first, &one);
        let second = home.spawn(&other.place, &Verb::Ensure(&start(&home, &other)));
        home.release();
        answer(first);
        let mut report = answer(second);
        // It saw what was there before the first, and decides again.
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
    let report = home.until_ready(&other);
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
}

#[test]
fn shell_that_is_killed_at_any_moment_harms_nothing() {
    let home = Home::new();
    at_each_record(&home, &home.job(), |_| ());
    let report = home.serve(&home.job());
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
    home.stop();
    assert_eq!(home.processes(), []);
}

#[test]
fn work_that_is_killed_at_any_moment_harms_nothing() {
    let home = Home::new().with_cuda();
    let job = home.compiled();
    at_each_record(&home, &job, |_| home.kill_works());
    let report = home.serve(&job);
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
    // Whatever the killed ones left behind has been ended.
    let mut others: Vec<u32> = home.processes().into_iter().map(|(pid, _)| pid).collect();
    others.retain(|pid| session(*pid) != Some(home.worker()));
    assert!(!is_running(home.worker()) || others.is_empty(), "{:?}", home.processes());
}

#[test]
fn work_outlives_its_login_and_a_hangup() {
    let home = Home::new().with_cuda();
    home.hold_compile();
    let job = home.compiled();
    home.ensure(&job);
    until_so("no compile", || home.compiles() == 1);
    let worker = home.worker();
    assert_eq!(session(worker), Some(worker));
    kill(worker, Signal::SIGHUP);
    // The next apply of the same job resumes it.
    let report = home.own(&job);
    assert_eq!((report.phase, report.failure, home.worker()), (Phase::Compile, None, worker));
    home.release_compile();
    let server = home.until_ready(&job).process.unwrap().pid;
    assert_eq!((home.compiles(), home.servers()), (1, vec![server]));
    for pid in [server, worker] {
        kill(pid, Signal::SIGHUP);
    }
    assert_eq!(home.look().phase, Phase::Ready);
    // Nothing of the login is left open: the input was its key, the output is the log.
    let opened = |descriptor: u32| fs::read_link(format!("/proc/{server}/fd/{descriptor}")).unwrap();
    assert_eq!([opened(1), opened(2)], [home.state().join("server.log"), home.state().join("server.log")]);
    let others =
        fs::read_dir(format!("/proc/{server}/fd")).unwrap().map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    assert_eq!(others.filter(|target| target.extension().is_some_and(|end| end == "lock")).count(), 0);
}

#[test]
fn work_that_is_killed_while_compiling_is_taken_up() {
    let home = Home::new().with_cuda();
    home.hold_compile();
    let job = home.compiled();
    home.ensure(&job);
    until_so("no compile", || home.compiles() == 1);
    end(home.worker());
    let report = home.look();
    let failure = report.failure.unwrap();
    assert_eq!((report.phase, failure.kind), (Phase::Failed, FailureKind::Interrupted));
    assert!(failure.text.starts_with("the work ended in the phase \"compile\": it was killed"), "{}", failure.text);
    // The compilers that it left behind are ended: two in one folder would spoil each other's files.
    home.ensure(&job);
    until_so("no compile", || home.compiles() == 2);
    // A shell that begins another program is seen twice for a moment.
    let is_compiler = |words: &[String]| words.iter().any(|word| word.ends_with("bin/nvcc"));
    until_so("two compilers", || home.processes().iter().filter(|(_, words)| is_compiler(words)).count() == 1);
    reboot(&home);
    assert_eq!(home.look().failure.unwrap().kind, FailureKind::Interrupted);
    home.release_compile();
    home.serve(&job);
    assert_eq!(home.servers().len(), 1);
}

#[test]
fn server_without_its_supervisor_serves_and_is_not_restarted() {
    let home = Home::new();
    let job = Job { restarts: true, ..home.job() };
    home.ensure(&job);
    let process = home.loading(&job);
    end(home.worker());
    let report = home.own(&job);
    assert_eq!((report.phase, &report.process), (Phase::Load, &Some(process.clone())));
    let report = home.until_ready(&job);
    assert_eq!(report.process.as_ref(), Some(&process));
    assert!(report.lacks_supervisor() && report.work.is_none());
    let restart = Verb::Restart { process: &process.identity };
    assert_eq!(home.run(&restart).failure.unwrap().kind, FailureKind::NotRunning);
    assert_eq!(home.servers(), [process.pid]);
    // The same job is begun again, under a supervisor.
    let second = home.serve(&job);
    assert!(!second.lacks_supervisor() && is_running(home.worker()) && !is_running(process.pid));
    assert_eq!(home.servers(), [second.process.unwrap().pid]);
}

/// A reboot while it serves, and a power cut during a compile.
#[test]
fn files_that_a_power_cut_left_in_pieces_are_made_again() {
    let home = Home::new().with_cuda();
    home.serve(&home.job());
    reboot(&home);
    let report = home.look();
    let failure = report.failure.unwrap();
    assert_eq!((report.phase, failure.kind), (Phase::Failed, FailureKind::Interrupted));
    assert!(failure.text.ends_with("the instance was rebooted"), "{}", failure.text);
    home.hold_compile();
    let job = home.compiled();
    home.ensure(&job);
    // What does not wait for nvcc was compiled.
    let build = home.path("workspace/.damodel/builds/build");
    until_so("no build", || build.join("libggml.a").exists());
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
    // And a finished build that does not run any more.
    home.stop();
    let binary = build.join("bin/llama-server");
    fs::remove_file(&binary).unwrap();
    fs::write(&binary, "\x7fELF").unwrap();
    home.serve(&job);
}

#[test]
fn program_that_was_cut_off_does_nothing() {
    let home = Home::new();
    let job = home.job();
    let text = program(&job.place, &Verb::Ensure(&start(&home, &job)));
    let text = text.expose_secret();
    // The last: all but the last line.
    let cuts = (1..20).map(|share| text.floor_char_boundary(text.len() * share / 20));
    for cut in cuts.chain(text.trim_end().rfind('\n')) {
        let output = home.feed(&text[..cut]).wait_with_output().unwrap();
        assert_eq!(output.stdout, b"", "{cut}");
    }
    assert!(!home.path("workspace").exists());
}
