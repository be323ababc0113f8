//! When a server is compiled, from what, and when not again.

use std::{fs, path::Path, process::Command};

use rstest::rstest;

use super::{
    super::{
        super::decide::Step, Binary, Build, FailureKind, Job, JobReport, Phase, Recipe, ServerPlace, SourceOrigin,
        Start, Verb,
    },
    home::{Gpu, Home, PACKAGE, RTX, V100, no_inference, start, until},
    model,
    ports::free_port,
    stand_in::CUDA,
};

/// Waits until the server of this build loads.
fn until_build(home: &Home, place: &ServerPlace, build: &str) -> JobReport {
    until("the build does not serve", || {
        let report = home.run_at(place, &Verb::Look);
        assert_ne!(report.phase, Phase::Failed, "{report:#?}\n{}", home.work_log());
        let is_it = report.build_used.as_deref() == Some(build) && report.phase == Phase::Load;
        is_it.then_some(report)
    })
}

fn from_source(home: &Home) -> Job {
    Job { build: Build::Source, ..home.job() }
}

#[rstest]
#[case("dash")]
#[case("bash")]
#[case("busybox")]
fn v100_is_served_by_a_compile_at_once(#[case] shell: &'static str) {
    let Some(home) = Home::with_shell(shell) else { return };
    let home = home.with_cuda(V100);
    let report = home.serve(&home.job());
    assert_eq!(report.build_used.as_deref(), Some("source"));
    assert_eq!(report.server_version.as_deref(), Some("0.5.0-dev (build 0, commit f1e2d3c4b)"));
    assert_eq!(home.compiles(), ["70"]);
    assert!(home.recorded("job", "job_record").contains("(tree-"));
    assert_eq!(report.compile.unwrap().percent, Some(100));
    assert_eq!(report.notes, [""; 0]);
}

#[test]
fn p40_is_known_by_the_services_name_where_the_driver_says_nothing() {
    let home = Home::new().with_cuda(Gpu { name: "Tesla P40", architecture: 61, driver: "" });
    let mut job = home.job();
    job.gpu_name = Some("NVIDIA-P40".to_owned());
    assert_eq!(home.serve(&job).build_used.as_deref(), Some("source"));
    assert_eq!(home.compiles(), ["61"]);
}

#[test]
fn prebuilt_that_aborts_at_the_first_chat_is_followed_by_a_compile() {
    let home = Home::new().with_cuda(RTX);
    home.package(PACKAGE, &[90]);
    let report = home.serve(&home.job());
    let because = report.because.unwrap();
    assert_eq!((because.kind, report.build_used.as_deref()), (FailureKind::Exited, Some("source")));
    assert!(because.text.contains("no kernel image is available"), "{}", because.text);
    assert_eq!(home.servers(), [report.process.unwrap().pid]);
    assert_eq!(home.compiles(), ["89"]);
}

/// The next apply does not end a server to see that again, until the driver is another.
#[test]
fn prebuilt_that_the_card_rules_out_is_not_tried_again() {
    let home = Home::new().with_cuda(RTX);
    home.package(PACKAGE, &[90]);
    let because = home.serve(&home.job()).because;
    let tries = |home: &Home| home.work_log().matches("starting ").count();
    let report = home.serve(&Job { context_size: 4096, ..home.job() });
    assert_eq!((report.build_used.as_deref(), &report.because), (Some("source"), &because));
    assert!(!home.work_log().contains("public-storage"), "{}", home.work_log());
    assert_eq!(tries(&home), 1);
    // Once more: what is remembered is not forgotten by the apply that heeds it.
    let report = home.serve(&Job { context_size: 2048, ..home.job() });
    assert_eq!((report.build_used.as_deref(), &report.because), (Some("source"), &because));
    home.machine(Gpu { driver: "570.86.15", ..RTX }, "12.4");
    home.ensure(&Job { context_size: 1024, ..home.job() });
    assert_eq!(home.look().begun, Some(Build::Prebuilt));
}

#[test]
fn prebuilt_that_does_not_start_is_followed_by_a_compile() {
    let home = Home::new().with_cuda(RTX);
    home.script(&format!("{PACKAGE}/llama-server"), "#!/no/such/interpreter\n");
    let report = home.serve(&home.job());
    assert_eq!(report.build_used.as_deref(), Some("source"));
    assert!(report.because.unwrap().text.contains("ended with 127"));
}

#[test]
fn no_prebuilt_at_all_is_followed_by_a_compile() {
    let home = Home::new().with_cuda(RTX);
    fs::remove_dir_all(home.path(PACKAGE)).unwrap();
    assert_eq!(home.serve(&home.job()).build_used.as_deref(), Some("source"));
}

#[test]
fn prebuilt_that_the_caller_saw_not_infer_is_followed_by_a_compile_that_is_resumed() {
    let home = Home::new().with_cuda(RTX);
    home.model(model::loading(600));
    let job = home.job();
    home.ensure(&job);
    let process = home.look_until(Phase::Load).process.unwrap();
    home.hold_compile();
    let failed = Verb::Failed { process: &process.identity, failure: &no_inference("no answer within 10m") };
    let failure = home.run(&failed).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::NoInference);
    home.begin(&job, Build::Source, Some(&failure));
    until("no compile", || (home.compiles().len() == 1).then_some(()));
    assert_eq!(home.servers(), [0; 0]);
    // Said twice, it has no effect: the process is gone.
    assert_eq!(home.run(&failed).phase, Phase::Compile);
    // As after a killed run: the same job goes on with the compile, and the reason is known.
    assert_eq!(home.ensure(&job).phase, Phase::Compile);
    home.release_compile();
    let report = until_build(&home, &home.place(), "source");
    assert_eq!(report.because, Some(failure));
    assert_eq!(home.compiles(), ["89"]);
}

#[test]
fn build_from_source_that_does_not_infer_is_the_end() {
    let home = Home::new().with_cuda(RTX);
    let job = from_source(&home);
    home.ensure(&job);
    let process = home.look_until(Phase::Load).process.unwrap();
    let report = home.run(&Verb::Failed { process: &process.identity, failure: &no_inference("it says nonsense") });
    let failure = report.failure.unwrap();
    assert_eq!(
        (report.phase, failure.kind, failure.text.as_str()),
        (Phase::Failed, FailureKind::NoInference, "it says nonsense")
    );
    // It is left for whoever wants to see, and the next apply tries again.
    assert_eq!(home.servers(), [process.pid]);
    let again = home.serve(&job).process.unwrap();
    assert_eq!(home.servers(), [again.pid]);
    assert_ne!(again.identity, process.identity);
}

#[test]
fn finished_build_is_used_again_after_destroy() {
    let home = Home::new().with_cuda(RTX);
    let job = from_source(&home);
    home.serve(&job);
    let first = home.binary();
    home.run(&Verb::Destroy { owner: "owner" });
    home.serve(&job);
    assert_eq!(home.binary(), first);
    assert_eq!(home.compiles(), ["89"]);
}

#[test]
fn changed_source_is_compiled_again() {
    let home = Home::new().with_cuda(RTX);
    let mut job = from_source(&home);
    home.serve(&job);
    let first = home.binary();
    let server = home.path("source/tools/server/server.cpp");
    let changed = fs::read_to_string(&server).unwrap().replace("COMMIT", "\"changed\"");
    fs::write(server, changed).unwrap();
    job.triggers.insert("source".to_owned(), "2".to_owned());
    let second = home.serve(&job);
    assert_eq!(second.server_version.as_deref(), Some("0.5.0-dev (build 0, commit changed)"));
    assert_ne!(home.binary(), first);
    assert_eq!(home.compiles(), ["89", "89"]);
}

#[test]
fn other_architecture_is_another_build() {
    let home = Home::new().with_cuda(RTX);
    let mut job = from_source(&home);
    home.serve(&job);
    job.source.cuda_architectures = vec!["80".to_owned()];
    home.serve(&job);
    assert_eq!(home.compiles(), ["89", "80"]);
}

/// A private image brings a finished build to another machine.
#[test]
fn build_for_another_cpu_or_compiler_and_one_that_does_not_run_are_made_anew() {
    let home = Home::new().with_cuda(RTX);
    let job = from_source(&home);
    let again = || {
        home.run(&Verb::Destroy { owner: "owner" });
        home.serve(&job);
        (home.binary(), home.compiles().len())
    };
    home.serve(&job);
    let (binary, compiles) = again();
    assert_eq!(compiles, 1);
    home.script("bin/c++", "#!/bin/sh\n[ \"$1\" != --version ] || exec echo another\nexec /usr/bin/c++ \"$@\"\n");
    let (other, compiles) = again();
    assert_eq!((other == binary, compiles), (false, 2));
    fs::remove_file(&other).unwrap();
    fs::write(&other, "#!/bin/sh\nexit 132\n").unwrap();
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(again(), (other.clone(), 3));
    if home.with_systemd() {
        fs::write(home.path("cpuinfo"), "flags : fpu of another\n").unwrap();
        let (there, compiles) = again();
        assert_eq!((there == other, compiles), (false, 4));
    }
}

#[test]
fn progress_of_a_compile_can_be_followed() {
    let home = Home::new().with_cuda(RTX);
    home.hold_compile();
    home.ensure(&from_source(&home));
    let compile = until("no progress", || home.look().compile.filter(|compile| compile.percent.is_some()));
    assert!((1..100).contains(&compile.percent.unwrap()), "{compile:?}");
    assert!(compile.line.starts_with('['), "{compile:?}");
    assert!(fs::read_to_string(&compile.log_path).unwrap().contains("+ cmake --build"));
    home.release_compile();
    home.until_ready(&home.place());
}

#[test]
fn make_will_do_where_there_is_no_ninja() {
    let home = Home::new().with_cuda(RTX).without(&["ninja"]);
    let report = home.serve(&from_source(&home));
    assert_eq!(report.compile.unwrap().percent, Some(100));
}

#[test]
fn two_servers_of_one_instance_share_a_compile() {
    let home = Home::new().with_cuda(RTX);
    home.hold_compile();
    let one = from_source(&home);
    let mut other = one.clone();
    other.place.port = free_port();
    home.ensure(&one);
    home.ensure(&other);
    until("no compile", || (home.compiles().len() == 1).then_some(()));
    for job in [&one, &other] {
        home.look_until_at(&job.place, Phase::Compile);
    }
    home.release_compile();
    let binary = |report: &JobReport| report.process.as_ref().unwrap().command_line[0].clone();
    let first = home.until_ready(&one.place);
    let second = home.until_ready(&other.place);
    assert_eq!(binary(&first), binary(&second));
    assert_eq!(home.compiles(), ["89"]);
    assert_eq!(home.servers().len(), 2);
    // One ends, the other goes on.
    home.run_at(&one.place, &Verb::Destroy { owner: "owner" });
    assert_eq!(home.servers(), [second.process.unwrap().pid]);
    assert_eq!(home.run_at(&other.place, &Verb::Look).phase, Phase::Ready);
}

fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn source_comes_from_a_repository() {
    let home = Home::new().with_cuda(RTX);
    let repository = home.path("source");
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "-qm", "one"]);
    git(&repository, &["tag", "-am", "tag", "b5000"]);
    let commit = git(&repository, &["rev-parse", "HEAD"]);
    git(&repository, &["commit", "-q", "--allow-empty", "-m", "two"]);
    let mut job = from_source(&home);
    let url = format!("file://{}", repository.display());
    let from = |reference: &str| SourceOrigin::Git { url: url.clone(), reference: reference.to_owned() };
    job.source.origin = from("b5000");
    let source = |job: &Job| {
        let report = home.serve(job);
        let record: serde_json::Value = serde_json::from_str(&home.recorded("job", "job_record")).unwrap();
        let source = record["source"].as_str().unwrap().to_owned();
        let (_, named) = source.split_once('(').unwrap();
        (named.split(')').next().unwrap().to_owned(), report.notes)
    };
    assert_eq!(source(&job).0, commit);
    // The commit by its name is the same source, and the same build.
    job.source.origin = from(&commit);
    home.serve(&job);
    assert_eq!(home.compiles(), ["89"]);
    job.source.origin = from("main");
    assert_eq!(source(&job).0, git(&repository, &["rev-parse", "HEAD"]));
    job.source.origin = from("b6000");
    let (kind, text) = failure(&home, &job);
    assert_eq!(kind, FailureKind::NoSource);
    assert!(text.ends_with("has no reference b6000"), "{text}");
    // What a reference meant is remembered for when the repository is out of reach.
    fs::rename(repository, home.path("gone")).unwrap();
    job.source.origin = from("b5000");
    let (source, notes) = source(&job);
    assert_eq!(source, commit);
    assert!(notes.join("\n").contains("could not be reached"), "{notes:?}");
}

#[test]
fn archive_in_the_package_folder_is_the_default_source() {
    let home = Home::new().with_cuda(RTX);
    let archive = home.path("public-storage/package/src of llama.tar.gz");
    let packed =
        Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(home.path("")).arg("source").status().unwrap();
    assert!(packed.success());
    let mut job = from_source(&home);
    job.source.origin = SourceOrigin::Default;
    home.serve(&job);
    assert!(home.recorded("job", "job_record").contains("(archive-"));
    // By its path, it is the same.
    job.source.origin = SourceOrigin::Path(archive.to_str().unwrap().to_owned());
    home.serve(&job);
    assert_eq!(home.compiles(), ["89"]);
}

#[test]
fn prebuilt_server_in_an_archive_is_unpacked() {
    let home = Home::new();
    let packages = home.path("public-storage/package");
    let packed = Command::new("tar").args(["-czf", "llama.tgz", "llama-cuda"]).current_dir(&packages).status().unwrap();
    assert!(packed.success());
    fs::remove_dir_all(packages.join("llama-cuda")).unwrap();
    let report = home.serve(&home.job());
    assert_eq!(report.build_used.as_deref(), Some("prebuilt"));
    assert!(report.package.unwrap().contains("/workspace/.damodel/packages/"));
}

/// Ensures a job that is to fail.
fn failure(home: &Home, job: &Job) -> (FailureKind, String) {
    let begun = home.ensure(job);
    let report = if begun.is_refused { begun } else { home.look_until(Phase::Failed) };
    let failure = report.failure.unwrap();
    (failure.kind, failure.text)
}

#[test]
fn compile_that_fails_says_what_the_compiler_said() {
    let home = Home::new().with_cuda(RTX);
    let cuda = fs::read(home.path(CUDA)).unwrap();
    fs::write(home.path(CUDA), "no program\n").unwrap();
    let (kind, text) = failure(&home, &from_source(&home));
    assert_eq!(kind, FailureKind::Compile);
    assert!(text.contains("does not name a type") && text.contains("CUDA architecture 89"), "{text}");
    assert_eq!(home.compiles(), ["89"]);
    // Mended, it is compiled.
    fs::write(home.path(CUDA), cuda).unwrap();
    home.serve(&from_source(&home));
}

/// The kernel kills a compiler, and what it printed is all that is known of it.
#[rstest]
#[case::with_half_the_jobs(5, true)]
#[case::not_with_one(1, false)]
fn compile_that_runs_out_of_memory_goes_on_with_half_the_jobs(#[case] jobs: u32, #[case] goes_on: bool) {
    let home = Home::new().with_cuda(RTX);
    let job = from_source(&home);
    let nvcc = fs::read_to_string(home.path("bin/nvcc")).unwrap();
    let killed = "#!/bin/sh\ncase $* in */ggml-cuda.cu*) if [ -e ~/kills ]; then\n\
                  [ \"$(wc -c <~/kills)\" -gt 1 ] && printf x >~/kills || rm ~/kills\n\
                  echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1; fi ;; esac\n";
    home.script("bin/nvcc", &nvcc.replacen("#!/bin/sh\n", killed, 1));
    fs::write(home.path("kills"), "xx").unwrap();
    let binary = Binary::Source(Box::new(Recipe { jobs, ..home.recipe(&job).unwrap() }));
    home.run(&Verb::Ensure(&Start { binary: &binary, ..start(&home, &job) }));
    if goes_on {
        home.until_ready(&home.place());
        let log = home.work_log();
        assert!(log.contains("going on with 2 files at once") && log.contains("going on with 1 files"), "{log}");
        assert_eq!(home.compiles(), ["89"]);
    } else {
        assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::Compile);
    }
}

#[test]
fn compile_that_cannot_be_says_also_why_it_was_to_be() {
    let home = Home::new().with_cuda(RTX);
    fs::remove_file(home.path("bin/nvcc")).unwrap();
    home.model(model::truncated());
    let (report, step) = home.apply(&home.job());
    assert_eq!(step, Step::Fail);
    assert_eq!(report.failure.unwrap().kind, FailureKind::MissingToolkit);
    let because = report.because.unwrap();
    assert_eq!(because.kind, FailureKind::BrokenModel);
    assert!(because.text.contains("not within the file bounds"), "{}", because.text);
}
