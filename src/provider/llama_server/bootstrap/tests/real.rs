//! The real server, where one is at hand: what it accepts and answers is decided by no stand-in.
//!
//! The tests are skipped unless a variable is set when they are built:
//! - `DAMODEL_LLAMA_SERVER`: a llama-server with its libraries beside it;
//! - `DAMODEL_LLAMA_SOURCE`: a tree of llama.cpp.
//!
//! PyPI's source package of llama-cpp-python has such a tree in `vendor/llama.cpp`: `pip download --no-binary :all:
//! --no-deps llama-cpp-python`, then `tar -xf`. Its build takes 15 minutes on two cores.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use secrecy::SecretString;

use super::{
    home::{Home, PACKAGE, RTX, chat, copy, http, kill, processes, until, until_in},
    model,
};
use crate::provider::llama_server::{
    bootstrap::{Build, Job, JobReport, Phase, Verb},
    decide::Step,
};

/// How long a build may take on a busy machine.
const BUILD: Duration = Duration::from_secs(90 * 60);

/// Whether a variable was set.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn given(variable: Option<&'static str>, name: &str) -> Option<&'static Path> {
    if variable.is_none() {
        eprintln!("SKIPPED: {name} is not set: see the head of this file");
    }
    variable.map(Path::new)
}

/// Asks for a token, and says that the server is ready.
fn proved(home: &Home, report: &JobReport) -> JobReport {
    until("it is not healthy", || (http(home.port, "GET /health", "").0 == 200).then_some(()));
    assert_eq!(chat(home.port, ""), 200, "{:#?}", home.look().log_tail);
    let identity = report.process.as_ref().unwrap().identity.clone();
    let ready = home.run(&Verb::Ready { process: &identity });
    assert_eq!((ready.phase, &ready.failure), (Phase::Ready, &None), "{ready:#?}");
    ready
}

#[test]
fn real_server_serves_as_prebuilt_with_its_libraries_beside_it() {
    let Some(binary) = given(option_env!("DAMODEL_LLAMA_SERVER"), "DAMODEL_LLAMA_SERVER") else { return };
    let home = Home::new();
    home.model(model::computable());
    fs::remove_dir_all(home.path(PACKAGE)).unwrap();
    copy(binary.parent().unwrap(), &home.path("public-storage/package/llama-real/bin"));
    let job = Job { build: Build::Prebuilt, context_size: 512, ..home.job() };
    home.ensure(&job);
    let report = proved(&home, &home.look_until(Phase::Load));
    assert!(report.server_version.unwrap().contains("commit"), "{:?}", report.log_tail);
    assert!(report.notes.iter().any(|note| note.contains("uses no GPU")), "{:?}", report.notes);
    // What the real one says of its options is understood.
    let (report, _) = home.apply(&Job { extra_args: vec!["--no-such-option".to_owned()], ..job });
    assert_eq!(report.phase, Phase::Ready, "{report:#?}");
}

/// All files of the computer, on disks and in memory, that were written since this one.
fn changed_since(begun: &Path) -> Vec<PathBuf> {
    let mut find = Command::new("find");
    find.args(["/", "/tmp", "/run", "/dev/shm", "-xdev", "-type", "f", "-size", "-16M", "-newer"]).arg(begun);
    let found = find.arg("-print0").output().unwrap().stdout;
    found.split(|byte| *byte == 0).map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

fn contains(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn real_server_embeds_only_if_it_is_told_to() {
    let Some(binary) = given(option_env!("DAMODEL_LLAMA_SERVER"), "DAMODEL_LLAMA_SERVER") else { return };
    let home = Home::new();
    home.model(model::computable());
    fs::remove_dir_all(home.path(PACKAGE)).unwrap();
    copy(binary.parent().unwrap(), &home.path("public-storage/package/llama-real/bin"));
    let job = Job { build: Build::Prebuilt, context_size: 512, ..home.job() };
    let post = |path: &str, body: &str| {
        let header = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        http(home.port, &format!("POST {path}"), &header)
    };
    let embeddings = || post("/v1/embeddings", r#"{"input": "Say hello."}"#);
    home.serve(&job);
    for (status, body) in [embeddings(), post("/v1/rerank", r#"{"query": "a", "documents": ["a"]}"#)] {
        assert!(status == 501 && body.contains("does not support"), "{status} {body}");
    }
    let words = ["--embeddings", "--pooling", "mean"].map(str::to_owned);
    home.ensure(&Job { extra_args: words.into(), ..job });
    proved(&home, &home.look_until(Phase::Load));
    let (status, body) = embeddings();
    assert!(status == 200 && body.contains("\"embedding\":["), "{status} {body}");
}

#[test]
fn real_server_asks_for_its_key_after_a_crash_and_after_a_rollback() {
    // Its text is in no file of this test.
    let plain = format!("{:032x}", rand::random::<u128>());
    let Some(binary) = given(option_env!("DAMODEL_LLAMA_SERVER"), "DAMODEL_LLAMA_SERVER") else { return };
    let home = Home::new();
    home.model(model::computable());
    fs::remove_dir_all(home.path(PACKAGE)).unwrap();
    copy(binary.parent().unwrap(), &home.path("public-storage/package/llama-real/bin"));
    let begun = home.path("begun");
    fs::write(&begun, "").unwrap();
    let key = Some(SecretString::from(plain.clone()));
    let job = Job { build: Build::Prebuilt, context_size: 512, api_key: key, restarts: true, ..home.job() };
    let header = format!("Authorization: Bearer {plain}\r\n");
    let asks = |report: &JobReport| {
        assert_eq!((chat(home.port, ""), chat(home.port, &header)), (401, 200), "{:?}", report.log_tail);
        for (pid, words) in processes() {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            assert!(!contains(&environment, &plain) && !words.join(" ").contains(&plain), "{words:?}");
        }
        for file in changed_since(&begun) {
            assert!(!fs::read(&file).is_ok_and(|content| contains(&content, &plain)), "{}", file.display());
        }
        report.process.as_ref().unwrap().pid
    };
    home.ensure(&job);
    let first = asks(&home.until_ready_with(&job.place, &header));
    kill(first, "KILL");
    let second = asks(&home.until_ready_with(&job.place, &header));
    assert_ne!(first, second);
    let (_, step) = home.apply(&Job { model: home.model_named("other", model::truncated()), ..job.clone() });
    assert_eq!(step, Step::RollBack);
    assert_ne!(asks(&home.until_ready_with(&job.place, &header)), second);
}

#[test]
fn real_server_is_compiled_from_its_source_and_serves() {
    let Some(source) = given(option_env!("DAMODEL_LLAMA_SOURCE"), "DAMODEL_LLAMA_SOURCE") else { return };
    let home = Home::new().with_cuda(RTX);
    home.model(model::computable());
    fs::remove_dir_all(home.path("source")).unwrap();
    copy(source, &home.path("source"));
    // No card and no toolkit are at hand: all but the code for the card is compiled.
    let lists = home.path("source/CMakeLists.txt");
    let text = fs::read_to_string(&lists).unwrap();
    fs::write(&lists, format!("set(GGML_CUDA OFF CACHE BOOL \"\" FORCE)\n{text}")).unwrap();
    let job = Job { build: Build::Source, context_size: 512, ..home.job() };
    home.ensure(&job);
    let report = until_in(BUILD, "no server", || {
        let report = home.look();
        assert_ne!(report.phase, Phase::Failed, "{report:#?}");
        (report.phase == Phase::Load).then_some(report)
    });
    let report = proved(&home, &report);
    assert_eq!(report.build_used.as_deref(), Some("source"));
    let log = fs::read_to_string(report.compile.unwrap().log_path).unwrap();
    assert!(!log.contains("is deprecated"), "{log}");
}
