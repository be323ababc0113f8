//! Servers that are compiled, fetched or unpacked, and when not again.

use std::fs;

use damodel_llama::{
    Binary, FailureKind, JobFailure, JobReport, Phase, Prebuilt, Process, Provided, Recipe, Start, Supply, Tree, Verb,
};
use rstest::rstest;

use super::{
    home::{Home, answer, chat, is_healthy, no_inference, start, until, until_so},
    questions::git,
    stand_in::{CUDA, PACKAGE, loading},
};
use crate::support::ports::free_port;

/// Begins a job with this binary.
fn begin(home: &Home, binary: &Binary) {
    let job = home.compiled();
    let report = home.run(&Verb::Ensure(&Start { binary, ..start(home, &job) }));
    assert!(!report.is_refused, "{report:#?}");
}

fn serve(home: &Home, binary: &Binary) -> JobReport {
    begin(home, binary);
    home.until_ready(&home.compiled())
}

fn binary_of(process: Option<Process>) -> String {
    process.unwrap().command_line[0].clone()
}

#[rstest]
#[case("dash")]
#[case("bash")]
#[case("busybox")]
fn two_runs_at_once_make_one_compile_and_one_server(#[case] shell: &str) {
    let Some(home) = Home::with_shell(shell) else { return };
    let home = home.with_cuda();
    let job = home.compiled();
    let begin = start(&home, &job);
    let runs: Vec<_> = (0..2).map(|_| home.spawn(&job.place, &Verb::Ensure(&begin))).collect();
    // One of them answers that the other was faster, and would take its work over.
    let refused: Vec<_> = runs.into_iter().map(answer).filter_map(|report| report.failure).collect();
    assert!(matches!(&refused[..], [JobFailure { kind: FailureKind::Changed, .. }]), "{refused:?}");
    assert_eq!(home.own(&job).failure, None);
    let report = home.until_ready(&job);
    assert_eq!(report.build_used.as_deref(), Some("source"));
    assert_eq!(report.server_version.as_deref(), Some("0.5.0-dev (build 0, commit f1e2d3c4b)"));
    assert_eq!((report.notes.as_slice(), home.compiles()), (&[][..], 1));
    let process = report.process.unwrap();
    assert_eq!(home.servers(), [process.pid]);
    // A finished build is used again.
    home.destroy();
    let again = home.serve(&job);
    assert_eq!((binary_of(again.process), home.compiles()), (process.command_line[0].clone(), 1));
}

/// Without ninja. The build is made again if it does not run, as on another CPU.
#[test]
fn compile_shows_its_progress() {
    let home = Home::new().with_cuda().without(&["ninja"]);
    let mut recipe = home.recipe();
    *recipe.cmake.last_mut().unwrap() = "Unix Makefiles".to_owned();
    let binary = Binary::Source(Box::new(recipe));
    home.hold_compile();
    begin(&home, &binary);
    let compile = until("no progress", || home.look().compile.filter(|compile| compile.percent.is_some()));
    assert!((1..100).contains(&compile.percent.unwrap()) && compile.line.starts_with('['), "{compile:?}");
    assert!(fs::read_to_string(&compile.log_path).unwrap().contains("+ cmake --build"));
    home.release_compile();
    let report = home.until_ready(&home.compiled());
    assert_eq!(report.compile.unwrap().percent, Some(100));
    home.stop();
    let built = "workspace/.damodel/builds/build/bin/llama-server";
    fs::remove_file(home.path(built)).unwrap();
    home.script(built, "#!/bin/sh\nexit 132\n");
    serve(&home, &binary);
    assert_eq!(home.compiles(), 2);
}

#[test]
fn two_servers_of_one_instance_share_a_compile() {
    let home = Home::new().with_cuda();
    home.hold_compile();
    let one = home.compiled();
    let mut other = one.clone();
    other.place.port = free_port();
    home.ensure(&one);
    home.ensure(&other);
    until_so("no compile", || home.compiles() == 1);
    for job in [&one, &other] {
        home.look_until_at(&job.place, Phase::Compile);
    }
    home.release_compile();
    let first = home.until_ready(&one);
    let second = home.until_ready(&other).process;
    assert_eq!(binary_of(first.process), binary_of(second.clone()));
    assert_eq!((home.compiles(), home.servers().len()), (1, 2));
    // One ends, the other goes on.
    home.destroy();
    assert_eq!(home.servers(), [second.unwrap().pid]);
    assert_eq!(home.run_at(&other.place, &Verb::Look).phase, Phase::Ready);
}

/// As after an apply that was given up, whose configuration may be the former one again.
#[test]
fn compile_that_nobody_waits_for_ends_no_server() {
    let home = Home::new().with_cuda();
    let first = home.serve(&home.job()).process;
    home.hold_compile();
    home.ensure(&home.compiled());
    home.look_until(Phase::Compile);
    home.leave();
    home.release_compile();
    let recorded = || fs::read_to_string(home.record("status")).unwrap_or_default();
    until_so("it does not end", || recorded().contains("status_phase='failed'"));
    let report = home.look();
    assert_eq!((report.failure.unwrap().kind, &report.process), (FailureKind::Interrupted, &first));
    assert_eq!(chat(home.port, ""), 200);
    // The next apply uses the build.
    let served = home.serve(&home.compiled());
    assert_eq!((served.build_used.as_deref(), home.compiles(), home.servers().len()), (Some("source"), 1, 1));
}

/// It is recorded why, and the previous server ends.
#[test]
fn prebuilt_that_does_not_infer_is_followed_by_a_compile() {
    let home = Home::new().with_cuda();
    home.package(PACKAGE, "[90]");
    home.ensure(&home.job());
    until_so("it is not healthy", || is_healthy(home.port));
    assert_ne!(chat(home.port, ""), 200);
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Exited);
    assert!(failure.text.contains("no kernel image is available"), "{failure:?}");

    home.model(loading(600));
    home.ensure(&home.job());
    let process = home.loading(&home.job());
    let failed = Verb::Failed { process: &process.identity, failure: &no_inference() };
    let report = home.run(&failed);
    assert_eq!((report.phase, report.failure.as_ref()), (Phase::Failed, Some(&no_inference())));
    // It is left for an operator who wants to see.
    assert_eq!(home.servers(), [process.pid]);
    home.hold_compile();
    let job = home.compiled();
    home.run(&Verb::Ensure(&Start { because: Some(&no_inference()), ..start(&home, &job) }));
    until_so("no compile", || home.compiles() == 1);
    assert_eq!(home.servers(), [0; 0]);
    // Said twice, it has no effect: the process is gone.
    assert_eq!(home.run(&failed).phase, Phase::Compile);
    home.release_compile();
    let report = home.look_until(Phase::Load);
    assert_eq!((report.because, report.build_used.as_deref()), (Some(no_inference()), Some("source")));
}

#[test]
fn source_comes_from_a_repository() {
    let home = Home::new().with_cuda();
    let repository = home.path("source");
    let commit = git(&repository);
    let file = home.text("workspace/.damodel/sources/reference");
    let from = |reference: &str, commit: &str| {
        let folder = format!("~/workspace/.damodel/sources/{commit}");
        let (commit, reference) = (commit.to_owned(), reference.to_owned());
        let url = format!("file://{}", repository.display());
        let from = Supply::Git { url, reference, commit: commit.clone(), file: file.clone() };
        let provided = Some(Provided { folder: folder.clone(), from });
        Binary::Source(Box::new(Recipe { source: Tree { folder, name: commit, provided }, ..home.recipe() }))
    };
    begin(&home, &from("b6000", "b6000"));
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert!(failure.kind == FailureKind::NoSource && failure.text.contains("could not be fetched"), "{failure:?}");
    let source = from("b5000", &commit);
    serve(&home, &source);
    assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), commit);
    // It is fetched once.
    fs::rename(&repository, home.path("gone")).unwrap();
    home.destroy();
    serve(&home, &source);
    assert_eq!(home.compiles(), 1);
}

#[test]
fn archives_are_unpacked() {
    let home = Home::new().with_cuda();
    let unpacked = |name: &str, from: &str, what: &str| {
        home.pack(name, from, what);
        let folder = format!("~/workspace/.damodel/unpacked/{what}");
        (format!("{folder}/{what}"), Some(Provided { folder, from: Supply::Archive(home.text(name)) }))
    };
    let (folder, provided) = unpacked("a server.tgz", "public-storage/package", "llama-cuda");
    fs::remove_dir_all(home.path(PACKAGE)).unwrap();
    let path = format!("{folder}/llama-server");
    let report = serve(&home, &Binary::Prebuilt(Prebuilt { path, provided, hardware: String::new() }));
    assert_eq!(report.build_used.as_deref(), Some("prebuilt"));
    assert!(binary_of(report.process).contains("/workspace/.damodel/unpacked/"));
    let (folder, provided) = unpacked("src of llama.tar.gz", "", "source");
    fs::remove_dir_all(home.path("source")).unwrap();
    let source = Tree { folder, name: "archive-1".to_owned(), provided };
    serve(&home, &Binary::Source(Box::new(Recipe { source, ..home.recipe() })));
    assert_eq!(home.compiles(), 1);
}

/// The kernel kills a compiler, and what it printed is all that is known of it: the compile goes on with half the jobs.
#[test]
fn compile_that_fails_says_why() {
    let home = Home::new().with_cuda();
    let cuda = fs::read(home.path(CUDA)).unwrap();
    fs::write(home.path(CUDA), "no program\n").unwrap();
    let failure = home.fails(&home.compiled()).failure.unwrap();
    assert!(failure.kind == FailureKind::Compile && failure.text.contains("does not name a type"), "{failure:?}");
    assert!(failure.text.contains("CUDA architecture 89"), "{failure:?}");
    fs::write(home.path(CUDA), cuda).unwrap();

    let nvcc = fs::read_to_string(home.path("bin/nvcc")).unwrap();
    let killed = "#!/bin/sh\ncase $* in */ggml-cuda.cu*) if [ -e ~/kills ]; then\n\
                  [ \"$(wc -c <~/kills)\" -gt 1 ] && printf x >~/kills || rm ~/kills\n\
                  echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1; fi ;; esac\n";
    home.script("bin/nvcc", &nvcc.replacen("#!/bin/sh\n", killed, 1));
    let with_jobs = |jobs: u32, kills: &str| {
        fs::write(home.path("kills"), kills).unwrap();
        begin(&home, &Binary::Source(Box::new(Recipe { jobs, key: format!("jobs-{jobs}"), ..home.recipe() })));
    };
    with_jobs(1, "x");
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::Compile);
    with_jobs(5, "xx");
    home.until_ready(&home.compiled());
    let log = home.work_log();
    assert!(log.contains("continuing with 2 files at once") && log.contains("continuing with 1 files"), "{log}");
}
