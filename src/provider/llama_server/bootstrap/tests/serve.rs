//! A server that runs: with which options, in which environment, and what a second apply does to it.

use std::fs;

use rstest::rstest;
use secrecy::{ExposeSecret, SecretString};

use super::{
    home::{Gpu, Home, PACKAGE, RTX, V100, answer, chat, http, is_running, kill, no_inference, start, until},
    model,
};
use crate::provider::llama_server::{
    bootstrap::{Binary, Build, Facts, FailureKind, Fingerprint, Job, Phase, Question, Start, Verb, program},
    decide::Step,
    work::choose,
};

#[rstest]
#[case("dash")]
#[case("bash")]
#[case("busybox")]
fn prebuilt_server_becomes_ready_in_every_shell(#[case] shell: &'static str) {
    let Some(home) = Home::with_shell(shell) else { return };
    let job = home.job();
    let report = home.serve(&job);
    assert_eq!(report.build_used.as_deref(), Some("prebuilt"));
    assert_eq!(report.server_version.as_deref(), Some("0.5.0-dev (build 0, commit 0c1e57098)"));
    assert_eq!(report.fingerprint, Some(Fingerprint::of(&job).to_string()));
    assert_eq!(report.model_fingerprint, report.model_now);
    assert!(is_running(home.worker()));
    assert!(report.log_tail.iter().any(|line| line.contains("server is listening on http://127.0.0.1")), "{report:#?}");
    let process = report.process.unwrap();
    assert!(process.is_alive);
    assert_eq!(report.rival, None);
    let model = home.path("public-storage/model/tiny.gguf");
    let binary = home.path(PACKAGE).join("llama-server");
    let port = home.port.to_string();
    let expected = [binary.to_str().unwrap(), "-m", model.to_str().unwrap(), "--host", "127.0.0.1", "--port", &port]
        .into_iter()
        .chain("-c 32768 -np 1 -ngl 999 -fa on -ctk q8_0 -ctv q8_0 --jinja --metrics".split(' '));
    assert_eq!(process.command_line, expected.collect::<Vec<_>>());
    assert_eq!(home.servers(), [process.pid]);
}

#[test]
fn second_apply_changes_nothing() {
    let home = Home::new();
    let first = home.serve(&home.job());
    let second = home.ensure(&home.job());
    assert_eq!((second.phase, second.failure, second.process), (Phase::Ready, None, first.process));
}

#[test]
fn changed_options_restart_the_server() {
    let home = Home::new();
    let first = home.serve(&home.job()).process.unwrap();
    let mut job = home.job();
    job.context_size = 4096;
    let second = home.serve(&job).process.unwrap();
    assert_ne!(first.identity, second.identity);
    assert!(second.command_line.windows(2).any(|words| words == ["-c", "4096"]), "{second:?}");
    assert_eq!(home.servers(), [second.pid]);
}

#[test]
fn changed_model_file_restarts_the_server() {
    let home = Home::new();
    let first = home.serve(&home.job());
    home.model(model::loading(0));
    let look = home.look();
    assert_ne!(look.model_now, look.model_fingerprint);
    let second = home.serve(&home.job());
    assert_eq!(second.model_fingerprint, look.model_now);
    assert_ne!(first.process.unwrap().pid, second.process.unwrap().pid);
}

#[test]
fn words_reach_the_server_as_they_are() {
    let home = Home::new();
    let nasty = "it's \"quoted\" $HOME `id` \\ \n\t * ; end ";
    let folder = home.path(&format!("models/{nasty}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a'b \n c.gguf"), model::working()).unwrap();
    let mut job = home.job();
    job.place.workspace = format!("~/work {nasty}");
    job.model = format!("~/models/{nasty}/a'b \n c.gguf");
    job.extra_args = ["-a", nasty].map(str::to_owned).to_vec();
    job.environment.insert("NASTY".to_owned(), SecretString::from(nasty));
    let report = home.serve(&job);
    let process = report.process.unwrap();
    let model = folder.join("a'b \n c.gguf").to_str().unwrap().to_owned();
    assert_eq!(process.command_line[1..3], ["-m".to_owned(), model]);
    assert_eq!(process.command_line.last().unwrap(), nasty);
    let environment = fs::read_to_string(format!("/proc/{}/environ", process.pid)).unwrap();
    assert!(environment.split('\0').any(|line| line == format!("NASTY={nasty}")), "{environment:?}");
    assert_eq!(home.ensure(&job).phase, Phase::Ready);
    let stopped = home.run_at(&job.place, &Verb::Destroy { owner: "owner" });
    assert_eq!((stopped.phase, stopped.process), (Phase::Absent, None));
    assert_eq!(home.servers(), [0; 0]);
}

/// Released packages are linked with libraries that no loader knows by itself.
#[rstest]
#[case::beside_it("public-storage/package/llama-cuda/bin", None)]
#[case::in_lib("public-storage/package/llama-cuda/lib", None)]
#[case::where_the_environment_says("elsewhere", Some("elsewhere"))]
fn server_finds_its_libraries(#[case] folder: &str, #[case] named: Option<&str>) {
    let home = Home::new();
    home.package_with_library(folder);
    let mut job = Job { build: Build::Prebuilt, ..home.job() };
    if let Some(named) = named {
        let path = home.path(named).display().to_string();
        job.environment.insert("LD_LIBRARY_PATH".to_owned(), SecretString::from(path));
    }
    assert_eq!(home.serve(&job).server_version.as_deref(), Some("0.5.0-dev (build 0, commit 0c1e57098)"));
}

/// Changes the help of the prebuilt server with this command.
fn with_help(home: &Home, command: &str) {
    home.package("stand-in/other", &[75, 80, 86, 89, 90]);
    home.script(
        &format!("{PACKAGE}/llama-server"),
        &format!(
            "#!/bin/sh\nserver=~/stand-in/other/llama-server\n[ \"$1\" = --help ] || exec \"$server\" \"$@\"\n\
             \"$server\" --help | {command}\n"
        ),
    );
}

/// The forks show the value in different brackets, and some have no help.
#[rstest]
#[case("sed 's/.on|off|auto./(auto|on|off|0|1)/'")]
#[case("sed 's/.on|off|auto./<on|off|auto>/'")]
#[case("sed 's/.on|off|auto./{on,off,auto}/; s/-fa, *--flash-attn/--flash-attn, -fa/'")]
#[case("true")]
fn value_of_flash_attention_is_known_by_any_brackets(#[case] command: &str) {
    let home = Home::new();
    with_help(&home, command);
    let line = home.serve(&home.job()).process.unwrap().command_line.join(" ");
    assert!(line.contains(" -fa on -ctk "), "{line}");
}

#[test]
fn server_is_given_the_flags_that_it_knows() {
    let home = Home::new();
    with_help(&home, "grep -v -e --jinja");
    let report = home.serve(&home.job());
    let line = report.process.unwrap().command_line.join(" ");
    assert!(line.ends_with("-ngl 999 -fa on -ctk q8_0 -ctv q8_0 --metrics"), "{line}");
    assert!(
        report.notes.iter().any(|note| note.starts_with("the server is too old for --jinja, and runs without it: ")),
        "{:?}",
        report.notes
    );
}

/// A build that lacks a required option ends before the previous server does, or is followed by a compile.
#[rstest]
#[case::flag_without_a_value("sed 's/.on|off|auto./             /'", "its help shows no value for -fa")]
#[case::no_key("grep -v -e api-key", "its help shows no option --api-key-file")]
fn build_without_a_required_option_is_unsupported(#[case] command: &str, #[case] words: &str) {
    let home = Home::new().with_cuda(RTX);
    let job = Job { api_key: Some(SecretString::from("planted-key-1")), build: Build::Prebuilt, ..home.job() };
    let former = home.serve(&job).process.unwrap();
    with_help(&home, command);
    home.ensure(&Job { context_size: 4096, ..job.clone() });
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(failure.text.ends_with(words), "{}", failure.text);
    assert_eq!(home.servers(), [former.pid]);
    let report = home.serve(&Job { build: Build::Auto, ..job });
    assert_eq!(report.build_used.as_deref(), Some("source"));
    assert_eq!(report.because.unwrap().kind, FailureKind::Unsupported);
}

/// The public storage may be in the home of the user, or in that of root.
#[test]
fn first_folder_that_has_it_counts() {
    let home = Home::new();
    fs::create_dir_all(home.path("empty")).unwrap();
    let trees = |folder: &str| {
        fs::create_dir_all(home.path(folder).join("tree")).unwrap();
        fs::write(home.path(folder).join("tree/CMakeLists.txt"), "project(llama)\n").unwrap();
    };
    trees("one");
    trees("two");
    home.package("one/cuda", &[89]);
    home.package("two/cuda", &[89]);
    for (folders, found) in [(["empty", "two"], "two"), (["one", "two"], "one"), (["missing", "one"], "one")] {
        let ask = |key| folders.iter().fold(Question::new(key), |question, folder| question.on(&format!("~/{folder}")));
        let questions = [ask("servers"), ask("trees")];
        let facts = home.run(&Verb::Check { questions: &questions, job: None }).facts;
        let servers: Vec<&str> = facts.entries::<5>("servers").iter().map(|[path, ..]| *path).collect();
        assert_eq!(servers, [home.path(found).join("cuda/llama-server").to_str().unwrap()]);
        let trees: Vec<&str> = facts.entries::<2>("trees").iter().map(|[_, path]| *path).collect();
        assert_eq!(trees, [home.path(found).join("tree").to_str().unwrap()]);
    }
}

#[test]
fn logins_environment_does_not_change_the_server() {
    let home = Home::new();
    let process = home.serve(&home.job()).process.unwrap();
    let environment = fs::read_to_string(format!("/proc/{}/environ", process.pid)).unwrap();
    for name in ["LLAMA_ARG", "LLAMA_API_KEY", "AIP_MODE", "DAMODEL_"] {
        assert!(!environment.contains(name), "{environment}");
    }
}

#[test]
fn key_is_asked_of_clients_once_it_is_given() {
    let home = Home::new();
    let mut job = home.job();
    job.api_key = Some(SecretString::from("planted-key-2"));
    home.ensure(&job);
    let report = home.look_until(Phase::Load);
    let process = report.process.unwrap().identity;
    until("it is not healthy", || (http(home.port, "GET /health", "").0 == 200).then_some(()));
    assert_eq!(chat(home.port, ""), 401);
    assert_eq!(chat(home.port, "Authorization: Bearer planted-key-2\r\n"), 200);
    assert_eq!(home.run(&Verb::Ready { process: &process }).phase, Phase::Ready);
}

#[test]
fn server_is_restarted_as_it_was_by_who_knows_only_the_place() {
    let home = Home::new();
    let mut job = home.job();
    job.environment.insert("PLANTED".to_owned(), SecretString::from("value of it"));
    let first = home.serve(&job).process.unwrap();
    let restart = Verb::Restart { process: &first.identity };
    let report = home.run(&restart);
    assert_eq!(report.failure, None);
    let second = home.until_ready(&job.place).process.unwrap();
    assert_ne!(first.identity, second.identity);
    assert_eq!(first.command_line, second.command_line);
    let environment = fs::read_to_string(format!("/proc/{}/environ", second.pid)).unwrap();
    assert!(environment.contains("PLANTED=value of it"));
    assert_eq!(home.servers(), [second.pid]);
    // A caller whose connection broke asks again, and means the same restart.
    assert_eq!(home.run(&restart).process.unwrap().identity, second.identity);
}

#[test]
fn restart_that_is_on_its_way_is_waited_for() {
    let home = Home::new();
    let first = home.serve(&home.job()).process.unwrap();
    // As the request leaves it whose answer is lost: marked, and the process is gone. The supervisor has not seen it
    // yet.
    kill(home.worker(), "STOP");
    fs::write(home.state().join("restart"), format!("{}\n", first.identity)).unwrap();
    kill(first.pid, "KILL");
    until("it lives", || (!is_running(first.pid)).then_some(()));
    let report = answer(home.spawn(&home.place(), &Verb::Restart { process: &first.identity }));
    assert_eq!((report.phase, report.failure), (Phase::Start, None));
    kill(home.worker(), "CONT");
    let second = home.until_ready(&home.place()).process.unwrap();
    assert_ne!(first.identity, second.identity);
    assert_eq!(home.servers(), [second.pid]);
}

#[test]
fn model_that_is_gone_is_seen_before_and_after_a_restart() {
    let home = Home::new().with_cuda(RTX);
    let before = home.serve(&home.job()).process.unwrap();
    let model = home.path("public-storage/model/tiny.gguf");
    fs::rename(&model, home.path("public-storage/model/other.gguf")).unwrap();
    // Who asks for a restart sees that.
    assert_eq!(home.look().model_now, None);
    // Gone only when the server has ended already: no compile cures that either.
    kill(home.worker(), "STOP");
    fs::write(home.state().join("restart"), &before.identity).unwrap();
    kill(before.pid, "KILL");
    kill(home.worker(), "CONT");
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::MissingModel);
    until("the work goes on", || (!is_running(home.worker())).then_some(()));
    assert!(home.compiles().is_empty());
}

#[test]
fn what_does_not_run_is_not_restarted() {
    let home = Home::new();
    let report = home.run(&Verb::Restart { process: "" });
    assert_eq!((report.phase, report.failure.unwrap().kind), (Phase::Absent, FailureKind::NotRunning));
}

#[test]
fn word_about_another_process_has_no_effect() {
    let home = Home::new();
    let job = home.job();
    home.ensure(&job);
    let report = home.look_until(Phase::Load);
    let failure = no_inference("none");
    for verb in [Verb::Ready { process: "1.2.3" }, Verb::Failed { process: "1.2.3", failure: &failure }] {
        let after = home.run(&verb);
        assert_eq!((after.phase, &after.process), (Phase::Load, &report.process), "{verb:?}");
    }
}

#[test]
fn best_of_several_packages_serves() {
    let home = Home::new();
    let package = home.path("public-storage/package");
    let says = |version: &str| format!("#!/bin/sh\necho 'version: {version}' >&2\n");
    for (folder, server) in [
        ("cuda-a", says("4748 (c392e5094)")),
        ("cuda-b", says("0.5.0-dev (build 0, commit 0c1e57098)")),
        ("cuda-c", says("5000 (later in the alphabet and in time)")),
        ("cuda-d", "#!/bin/sh\necho 'error while loading shared libraries'; exit 127\n".to_owned()),
        ("vulkan", says("0.6.0 (newer, and not for CUDA)")),
    ] {
        home.script(&format!("public-storage/package/{folder}/bin/llama-server"), &server);
    }
    let mut job = home.job();
    job.build = Build::Prebuilt;
    fs::remove_dir_all(home.path(PACKAGE)).unwrap();
    home.ensure(&job);
    let report = home.look_until(Phase::Failed);
    assert_eq!(report.package.unwrap(), package.join("cuda-b/bin/llama-server").to_str().unwrap());
    // A folder that is named is looked through, and a file taken as it is.
    for (given, found) in
        [("cuda-a", "cuda-a/bin/llama-server"), ("vulkan/bin/llama-server", "vulkan/bin/llama-server")]
    {
        job.package = Some(format!("~/public-storage/package/{given}"));
        home.ensure(&job);
        let report = home.look_until(Phase::Failed);
        assert_eq!(report.package.unwrap(), package.join(found).to_str().unwrap());
    }
}

/// A server that uses no GPU is told, unless the CPU was asked for.
#[rstest]
#[case::unasked(999, &[], "", true)]
#[case::no_layers(0, &[], "", false)]
#[case::no_layers_among_the_extra_options(999, &["-ngl", "0"], "", false)]
#[case::all_cards_hidden(999, &[], "CUDA_VISIBLE_DEVICES", false)]
fn server_that_uses_no_gpu_is_noted(
    #[case] gpu_layers: i64,
    #[case] words: &[&str],
    #[case] emptied: &str,
    #[case] is_noted: bool,
) {
    let home = Home::new();
    let mut job = Job { gpu_layers, extra_args: words.iter().map(|word| (*word).to_owned()).collect(), ..home.job() };
    if !emptied.is_empty() {
        job.environment.insert(emptied.to_owned(), SecretString::from(""));
    }
    let expected: &[&str] = if is_noted { &["the server uses no GPU: no CUDA-capable device"] } else { &[] };
    assert_eq!(home.serve(&job).notes, expected);
}

/// A build without code for any GPU, in an instance that shows one: judged after the options, and before anything is
/// ended. Who wants the CPU says so.
#[rstest]
#[case::prebuilt(Build::Prebuilt, true, &[], "", Some(FailureKind::NoGpu))]
#[case::cured_by_a_compile(Build::Auto, true, &[], "", None)]
#[case::no_gpu_in_the_instance(Build::Prebuilt, false, &[], "", None)]
#[case::no_layers(Build::Prebuilt, true, &["-ngl", "0"], "", None)]
#[case::hidden(Build::Prebuilt, true, &[], "CUDA_VISIBLE_DEVICES", None)]
fn server_that_sees_no_gpu_is_a_failure_if_the_instance_has_one(
    #[case] build: Build,
    #[case] has_gpu: bool,
    #[case] words: &[&str],
    #[case] emptied: &str,
    #[case] expected: Option<FailureKind>,
) {
    let home = Home::new().with_cuda(if has_gpu { RTX } else { Gpu { driver: "", ..RTX } });
    let former = home.serve(&home.job()).process.unwrap();
    home.package(PACKAGE, &[]);
    let mut job = Job { build, extra_args: words.iter().map(|word| (*word).to_owned()).collect(), ..home.job() };
    job.triggers.insert("a".to_owned(), "change".to_owned());
    if !emptied.is_empty() {
        job.environment.insert(emptied.to_owned(), SecretString::from(""));
    }
    let (report, step) = home.apply(&job);
    match expected {
        Some(_) => {
            assert_eq!((step, report.process.unwrap().identity), (Step::RollBack, former.identity));
        }
        None => {
            let build = if build == Build::Auto { "source" } else { "prebuilt" };
            assert!(matches!(step, Step::Confirm(_)), "{step:?} {report:#?}");
            assert_eq!(report.build_used.as_deref(), Some(build));
            let because = report.because.map(|because| because.kind);
            assert_eq!(because, (build == "source").then_some(FailureKind::NoGpu));
        }
    }
}

/// A package for the CPU beside one for the GPU: only one that certainly sees none comes last, and what is known only
/// with the user's libraries is asked with them.
#[test]
fn package_that_sees_the_gpu_comes_before_a_newer_one() {
    let home = Home::new().with_cuda(RTX);
    let package = home.path("public-storage/package");
    home.package("public-storage/package/newer-cuda", &[]);
    let job = Job { build: Build::Prebuilt, ..home.job() };
    let checked = home.check(&job);
    assert_eq!(hardware_path(&job, &checked.facts), package.join("llama-cuda/llama-server"));
    // Nobody asks who wants the CPU.
    let job = Job { gpu_layers: 0, ..job };
    let facts = home.check(&job).facts;
    assert!(!facts.entries::<5>("servers").iter().any(|[.., gpu]| *gpu == "none"));
}

fn hardware_path(job: &Job, facts: &Facts) -> std::path::PathBuf {
    choose(job, Build::Prebuilt, None, facts)
        .map(|(binary, _)| match binary {
            Binary::Prebuilt(prebuilt) => prebuilt.path.into(),
            Binary::Source(_) => panic!("a compile"),
        })
        .unwrap()
}

#[test]
fn user_whose_processes_end_at_logout_is_told_how_to_linger() {
    let home = Home::new();
    home.script("bin/id", "#!/bin/sh\ncase $1 in -u) echo 1000 ;; *) echo user ;; esac\n");
    home.script("bin/busctl", "#!/bin/sh\necho b true\n");
    if !home.with_systemd() {
        return;
    }
    let notes = home.serve(&home.job()).notes.join("\n");
    assert!(notes.contains("KillUserProcesses=yes") && notes.contains("loginctl enable-linger user"), "{notes}");
}

#[test]
fn server_has_the_umask_of_the_login() {
    let home = Home::new();
    let text = program(&home.place(), &Verb::Ensure(&start(&home, &home.job())));
    let report = answer(home.feed(&format!("umask 027\n{}", text.expose_secret())));
    assert_eq!(report.failure, None);
    let process = home.until_ready(&home.place()).process.unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    assert!(status.contains("Umask:\t0027"), "{status}");
}

#[test]
fn words_of_the_login_with_our_names_reach_nobody() {
    let home = Home::new().with_cuda(V100);
    home.hold_compile();
    let job = Job { api_key: Some(SecretString::from("planted-key-3")), ..home.job() };
    let recipe = home.recipe(&job).unwrap();
    let begin = Start { binary: &Binary::Source(Box::new(recipe)), ..start(&home, &job) };
    let text = program(&home.place(), &Verb::Ensure(&begin));
    answer(home.feed(&format!("export DAMODEL_API_KEY=of-the-login\n{}", text.expose_secret())));
    until("no compile", || (home.compiles().len() == 1).then_some(()));
    for (pid, words) in home.processes() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment);
        assert!(!environment.contains("planted-key-3") && !environment.contains("of-the-login"), "{words:?}");
    }
}

#[test]
fn options_that_the_server_does_not_understand_are_told_and_nothing_starts() {
    let home = Home::new().with_cuda(RTX);
    let job = Job { extra_args: vec!["--no-such-option".to_owned()], ..home.job() };
    let (report, step) = home.apply(&job);
    assert_eq!((step, report.process), (Step::Fail, None));
    let failure = report.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::BadOption);
    assert!(failure.text.ends_with("error: invalid argument: --no-such-option"), "{}", failure.text);
    assert_eq!(home.compiles(), [""; 0]);
}

#[test]
fn localhost_is_the_address_that_is_asked() {
    let home = Home::new();
    let process = home.serve(&Job { host: "localhost".to_owned(), ..home.job() }).process.unwrap();
    assert!(process.command_line.windows(2).any(|words| words == ["--host", "127.0.0.1"]), "{process:?}");
}

/// Records what systemd is asked, and does it in the same process, as the real one does for a scope. If it is old, it
/// does not know what happens to a scope when memory runs out.
const SYSTEMD_RUN: &str = "#!/bin/sh\nprintf '%s|' \"$@\" >>~/asked; echo >>~/asked\n\
                           while :; do case $1 in -p) [ ! -e ~/old-systemd ] || exit 1; shift 2 ;; --*) shift ;; \
                           *) exec \"$@\" ;; esac; done\n";

/// A user whose manager ends with the last login stays in the login's scope, which nobody ends unless that is asked
/// for. A scope whose server is killed for memory keeps its supervisor.
#[rstest]
#[case::root(0, &[], false, &["--scope|--quiet|--collect|-p|OOMPolicy=continue|"])]
#[case::old_systemd(0, &[], true, &["--scope|--quiet|--collect|-p|OOMPolicy=continue|", "--scope|--quiet|--collect|"])]
#[case::user(1000, &["other"], false, &[])]
#[case::user_who_lingers(1000, &["other", "user"], false, &["--user|--scope|--quiet|--collect|-p|OOMPolicy=continue|"])]
fn where_systemd_runs_the_work_is_a_scope_that_outlives_the_login(
    #[case] id: u32,
    #[case] lingering: &[&str],
    #[case] is_old: bool,
    #[case] tried: &[&str],
) {
    let home = Home::new();
    home.script("bin/systemd-run", SYSTEMD_RUN);
    home.script("bin/id", &format!("#!/bin/sh\ncase $1 in -u) echo {id} ;; *) echo user ;; esac\n"));
    for user in lingering {
        home.script(&format!("linger/{user}"), "");
    }
    if is_old {
        home.script("old-systemd", "");
    }
    if !home.with_systemd() {
        return;
    }
    home.serve(&home.job());
    let asked = fs::read_to_string(home.path("asked")).unwrap_or_default();
    let mut asked = asked.lines();
    for scope in tried {
        assert_eq!(asked.next(), Some(format!("{scope}true|").as_str()));
    }
    match (tried.last(), asked.next(), asked.next()) {
        (None, None, None) => {}
        (Some(scope), Some(made), None) => {
            assert!(made.starts_with(&format!("{scope}sh|")) && made.ends_with("/bootstrap.sh|work|"), "{made}");
        }
        others => panic!("{others:?}"),
    }
    home.run(&Verb::Destroy { owner: "owner" });
    assert_eq!(home.servers(), [0; 0]);
}
