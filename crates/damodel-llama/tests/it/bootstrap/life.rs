//! A server that runs: with which options, in which environment, with which libraries.

use std::{fs, path::Path};

use damodel_llama::{FailureKind, Fingerprint, Job, LoginLifetime, Phase, Start, Verb, program};
use nix::sys::signal::Signal;
use rstest::rstest;
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    home::{Home, answer, chat, header, no_inference, start, until, until_so, with_option},
    process::{environment, is_running, kill},
    stand_in::{PACKAGE, working},
};

/// The whole life, where each text has what a shell may take for its own.
#[rstest]
#[case("dash")]
#[case("bash")]
#[case("busybox")]
fn server_lives_in_every_shell(#[case] shell: &str) {
    let Some(home) = Home::with_shell(shell) else { return };
    let nasty = "it's \"quoted\" $HOME `id` \\ \n\t * ; end ";
    let model = home.text(&format!("models/{nasty}/a'b \n c.gguf"));
    fs::create_dir_all(Path::new(&model).parent().unwrap()).unwrap();
    fs::write(&model, working()).unwrap();
    let mut job = Job {
        model: format!("~/models/{nasty}/a'b \n c.gguf"),
        extra_args: ["-a", nasty].map(str::to_owned).to_vec(),
        environment: [("NASTY".to_owned(), SecretString::from(nasty))].into(),
        api_key: Some("planted-key-2".into()),
        host: "localhost".to_owned(),
        ..home.job()
    };
    job.place.workspace = format!("~/work {nasty}");
    let place = &job.place;
    let begin = program(place, &Verb::Ensure(&start(&home, &job)));
    let login = "umask 027; echo Welcome; echo damodel-report; printf 'no newline at the end'\n";
    assert_eq!(answer(home.feed(&format!("{login}{}echo goodbye\n", begin.expose_secret()))).failure, None);
    let loads = home.look_until_at(place, Phase::Load);
    // Words about another process.
    let failure = &no_inference();
    for verb in [Verb::Ready { process: "1.2.3" }, Verb::Failed { process: "1.2.3", failure }] {
        let after = home.run_at(place, &verb);
        assert_eq!((after.phase, &after.process), (Phase::Load, &loads.process), "{verb:?}");
    }
    let report = home.until_ready(&job);
    assert_eq!((chat(home.port, ""), chat(home.port, &header(&job))), (401, 200));
    assert_eq!(report.build_used.as_deref(), Some("prebuilt"));
    assert_eq!(report.server_version.as_deref(), Some("0.5.0-dev (build 0, commit 0c1e57098)"));
    assert_eq!(report.fingerprint, Some(Fingerprint::of(&job).to_string()));
    assert!(report.model_now.is_some() && report.model_fingerprint == report.model_now);
    assert!(report.work.is_some_and(is_running) && report.has_key && report.rival.is_none());
    assert!(report.log_tail.iter().any(|line| line.contains("server is listening on http://127.0.0.1")), "{report:#?}");
    assert_eq!(report.notes, ["the server uses no GPU: no CUDA-capable device"]);
    let process = report.process.unwrap();
    assert!(process.is_alive && home.servers() == [process.pid]);
    let (binary, port) = (home.text(&format!("{PACKAGE}/llama-server")), home.port.to_string());
    let expected = [binary.as_str(), "-m", &model, "--host", "127.0.0.1", "--port", &port]
        .into_iter()
        .chain("-c 32768 -np 1 -ngl 999 -fa on -ctk q8_0 -ctv q8_0 --jinja --metrics --api-key-file".split(' '))
        .chain(["/dev/stdin", "-a", nasty]);
    assert_eq!(process.command_line, expected.collect::<Vec<_>>());
    let has_environment = |pid: u32| {
        let environment = environment(pid);
        assert!(environment.split('\0').any(|line| line == format!("NASTY={nasty}")), "{environment:?}");
        let of_the_login = ["LLAMA_ARG", "LLAMA_API_KEY", "AIP_MODE", "DAMODEL_"];
        assert!(!of_the_login.iter().any(|name| environment.contains(name)), "{environment}");
    };
    has_environment(process.pid);
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    assert!(status.contains("Umask:\t0027"), "{status}");

    fs::write(&model, [&working()[..], b"more"].concat()).unwrap();
    let changed = home.run_at(place, &Verb::Look);
    assert_ne!(changed.model_now, changed.model_fingerprint);
    // It is restarted as it was by a caller who knows only its place.
    let restart = Verb::Restart { process: &process.identity };
    assert_eq!(home.run_at(place, &restart).failure, None);
    let restarted = home.until_ready(&job);
    assert_eq!(restarted.model_fingerprint, changed.model_now);
    let second = restarted.process.unwrap();
    assert_ne!(process.identity, second.identity);
    assert_eq!((&process.command_line, home.servers()), (&second.command_line, vec![second.pid]));
    has_environment(second.pid);
    // A caller whose connection broke asks again, and means the same restart.
    assert_eq!(home.run_at(place, &restart).process.unwrap().identity, second.identity);

    for _ in 0..2 {
        let report = home.run_at(place, &Verb::Stop { owner: "owner" });
        assert_eq!((report.phase, report.failure), (Phase::Absent, None));
        assert!(!report.process.unwrap().is_alive && !report.log_tail.is_empty());
        assert_eq!(home.processes(), []);
    }
    home.serve(&job);
    let destroyed = home.run_at(place, &Verb::Destroy { owner: "owner" });
    assert_eq!((destroyed.phase, destroyed.process), (Phase::Absent, None));
    assert_eq!(home.processes(), []);
}

/// Released packages are linked with libraries that no loader knows by itself.
#[rstest]
#[case::beside_it("public-storage/package/llama-cuda/bin", None)]
#[case::in_lib("public-storage/package/llama-cuda/lib", None)]
#[case::where_the_environment_says("elsewhere", Some("elsewhere"))]
fn server_finds_its_libraries(#[case] folder: &str, #[case] named: Option<&str>) {
    let home = Home::new();
    home.package_with_library(folder);
    let named = named.map(|named| ("LD_LIBRARY_PATH".to_owned(), SecretString::from(home.text(named))));
    let package = Some(format!("~/{PACKAGE}/bin/llama-server"));
    let job = Job { package, environment: named.into_iter().collect(), ..home.job() };
    assert_eq!(home.serve(&job).server_version.as_deref(), Some("0.5.0-dev (build 0, commit 0c1e57098)"));
}

/// The forks show the value of `-fa` in different brackets, and some have no help. A build that lacks a required option
/// ends before the previous server does.
#[test]
fn server_gets_the_options_of_its_help() {
    let home = Home::new();
    let previous = home.serve(&home.job()).process.unwrap();
    let key: Job = Job { api_key: Some("planted-key-1".into()), ..home.job() };
    for (command, job, kind, words) in [
        ("sed 's/.on|off|auto./             /'", home.job(), FailureKind::Unsupported, "no value for -fa"),
        ("grep -v -e api-key", key, FailureKind::Unsupported, "no option --api-key-file"),
        ("cat", home.with_bad_option(), FailureKind::BadOption, "error: invalid argument: --no-such-option"),
    ] {
        home.change_help(command);
        let report = home.fails(&job);
        let failure = report.failure.unwrap();
        assert!(failure.kind == kind && failure.text.ends_with(words), "{failure:?}");
        assert_eq!((home.servers(), report.process), (vec![previous.pid], Some(previous.clone())), "{command}");
    }
    for (command, words) in [
        ("sed 's/.on|off|auto./(auto|on|off|0|1)/'", " -fa on -ctk "),
        ("sed 's/.on|off|auto./<on|off|auto>/'", " -fa on -ctk "),
        ("sed 's/.on|off|auto./{on,off,auto}/; s/-fa, *--flash-attn/--flash-attn, -fa/'", " -fa on -ctk "),
        ("true", " -fa on -ctk "),
        ("grep -v -e --jinja", "-ngl 999 -fa on -ctk q8_0 -ctv q8_0 --metrics"),
    ] {
        home.change_help(command);
        home.ensure(&home.job());
        let report = home.look_until(Phase::Load);
        let line = report.process.unwrap().command_line.join(" ");
        assert!(line.contains(words), "{line}");
        let is_old = |note: &String| note.starts_with("the server is too old for --jinja, and runs without it: ");
        assert_eq!(report.notes.iter().any(is_old), command.contains("--jinja"), "{command}");
    }
}

/// A build without code for any GPU, in an instance that shows one: judged before anything is ended.
#[test]
fn server_that_sees_no_gpu_is_a_failure_if_the_instance_has_one() {
    let home = Home::new().with_cuda();
    let previous = home.serve(&home.job()).process.unwrap();
    home.package(PACKAGE, "[]");
    let report = home.fails(&home.changed());
    assert_eq!((report.failure.unwrap().kind, report.process.unwrap()), (FailureKind::NoGpu, previous));
    for (has_gpu, gpu_layers) in [(true, "0"), (false, "999")] {
        home.gpu(has_gpu);
        home.ensure(&with_option("gpu_layers", gpu_layers, home.job()));
        home.look_until(Phase::Load);
    }
}

#[test]
fn restart_is_waited_for_and_needs_the_model() {
    let home = Home::new();
    let first = home.serve(&home.job()).process.unwrap();
    // As the request leaves it whose answer is lost: marked, and the process is gone. The supervisor has not seen it
    // yet.
    kill(home.worker(), Signal::SIGSTOP);
    fs::write(home.state().join("restart"), format!("{}\n", first.identity)).unwrap();
    kill(first.pid, Signal::SIGKILL);
    until_so("it lives", || !is_running(first.pid));
    let report = answer(home.spawn(&home.place(), &Verb::Restart { process: &first.identity }));
    assert_eq!((report.phase, report.failure), (Phase::Start, None));
    kill(home.worker(), Signal::SIGCONT);
    let second = home.until_ready(&home.job()).process.unwrap();
    assert_ne!(first.identity, second.identity);
    assert_eq!(home.servers(), [second.pid]);

    fs::rename(home.path("public-storage/model/tiny.gguf"), home.path("away")).unwrap();
    assert_eq!(home.look().model_now, None);
    home.run(&Verb::Restart { process: &second.identity });
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::MissingModel);
    until_so("the work goes on", || !is_running(home.worker()));
}

/// Records what systemd is asked, and does it in the same process, as the real one does for a scope.
const SYSTEMD_RUN: &str = "#!/bin/sh\nprintf '%s|' \"$@\" >>~/asked\n\
                           while :; do case $1 in -p) shift 2 ;; --*) shift ;; *) exec \"$@\" ;; esac; done\n";

#[test]
fn work_runs_in_the_scope_that_outlives_the_login() {
    let home = Home::new();
    home.script("bin/systemd-run", SYSTEMD_RUN);
    let scope = "systemd-run --scope --quiet -p OOMPolicy=continue".to_owned();
    let (job, login) = (home.job(), LoginLifetime { scope, note: None });
    home.run(&Verb::Ensure(&Start { login: &login, ..start(&home, &job) }));
    home.until_ready(&job);
    let asked = fs::read_to_string(home.path("asked")).unwrap();
    let [begin, end] = ["--scope|--quiet|-p|OOMPolicy=continue|sh|", "/bootstrap.sh|work|"];
    assert!(asked.starts_with(begin) && asked.ends_with(end), "{asked}");
}

/// Two resources with one port: the second does not take the first for a server that was started by hand.
#[rstest]
#[case::with_ss(&[])]
#[case::without_ss(&["ss"])]
fn another_listener_is_seen(#[case] missing: &[&str]) {
    let home = Home::new().without(missing);
    let mut hand = home.by_hand();
    let rival = home.look().rival.unwrap();
    assert!(rival.about.starts_with(&format!("process {} (", hand.id())), "{}", rival.about);
    assert!(rival.identity.is_some() && rival.command_line.contains(&"-m".to_owned()), "{rival:?}");
    // It may be faster than a server that starts.
    home.hurry();
    assert_eq!(home.fails(&home.job()).failure.unwrap().kind, FailureKind::PortInUse);
    assert!(is_running(hand.id()));
    hand.kill().unwrap();
    hand.wait().unwrap();
    fs::remove_file(home.path("bin/sleep")).unwrap();

    let process = home.serve(&home.job()).process.unwrap();
    let mut elsewhere = home.place();
    elsewhere.workspace = "~/elsewhere".to_owned();
    let rival = until("no listener", || home.run_at(&elsewhere, &Verb::Look).rival);
    assert!(rival.about.ends_with(&format!("with the workspace {}", home.text("workspace"))), "{}", rival.about);
    assert!(rival.command_line.is_empty() && is_running(process.pid));
}
