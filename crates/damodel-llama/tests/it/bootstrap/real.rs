//! The real server, where one is at hand: what it accepts and answers is decided by no stand-in.
//!
//! The tests are skipped unless a variable is set when they are built:
//! - `DAMODEL_LLAMA_SERVER`: a llama-server with its libraries beside it;
//! - `DAMODEL_LLAMA_SOURCE`: a tree of llama.cpp.
//!
//! PyPI's source package of llama-cpp-python has such a tree in `vendor/llama.cpp`: `pip download --no-binary :all:
//! --no-deps llama-cpp-python`, then `tar -xf`. Its build takes 15 minutes on two cores.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::PathBuf, process::Command, time::Duration};

use damodel_llama::{Job, JobReport, Phase, Verb};
use nix::sys::signal::Signal;

use super::{
    home::{Home, chat, copy, header, http, with_option},
    process::{environment, kill},
    stand_in::truncated,
};
use crate::support::{gguf::Size, wait::found_within};

/// How long a build may take on a busy computer.
const BUILD: Duration = Duration::from_secs(90 * 60);

/// A home with a model that llama.cpp computes with, if a variable was set; and its path.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn given(path: Option<&'static str>, variable: &str) -> Option<(Home, PathBuf)> {
    if path.is_none() {
        eprintln!("SKIPPED: {variable} is not set: see the head of this file");
    }
    let home = Home::new();
    Size::dense().model().write(&home.path("public-storage/model/tiny.gguf")).unwrap();
    Some((home, PathBuf::from(path?)))
}

/// The same with a real server, and its job.
fn served() -> Option<(Home, Job)> {
    let (home, binary) = given(option_env!("DAMODEL_LLAMA_SERVER"), "DAMODEL_LLAMA_SERVER")?;
    copy(binary.parent()?, &home.path("public-storage/package/llama-real/bin"));
    let package = Some("~/public-storage/package/llama-real/bin/llama-server".to_owned());
    let job = with_option("context_size", "512", Job { package, ..home.job() });
    Some((home, job))
}

#[test]
fn real_server_serves_as_prebuilt_with_its_libraries_beside_it() {
    let Some((home, job)) = served() else { return };
    let report = home.serve(&job);
    assert!(report.server_version.unwrap().contains("commit"), "{:?}", report.log_tail);
    assert!(report.notes.iter().any(|note| note.contains("uses no GPU")), "{:?}", report.notes);
    // What the real one says of its options is understood.
    home.fails(&Job { extra_args: vec!["--no-such-option".to_owned()], ..job });
    assert_eq!(home.run(&Verb::RollBack).phase, Phase::Ready);
}

#[test]
fn real_server_embeds_only_with_the_option() {
    let Some((home, job)) = served() else { return };
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
    home.serve(&Job { extra_args: words.into(), ..job });
    let (status, body) = embeddings();
    assert!(status == 200 && body.contains("\"embedding\":["), "{status} {body}");
}

/// All files of the computer, on disks and in memory, that were written since this one.
fn changed_since(begun: &PathBuf) -> Vec<PathBuf> {
    let mut find = Command::new("find");
    find.args(["/", "/tmp", "/run", "/dev/shm", "-xdev", "-type", "f", "-size", "-16M", "-newer"]).arg(begun);
    let found = find.arg("-print0").output().unwrap().stdout;
    found.split(|byte| *byte == 0).map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

#[test]
fn real_server_asks_for_its_key_after_a_crash_and_after_a_rollback() {
    // Its text is in no file of this test.
    let plain = format!("{:032x}", rand::random::<u128>());
    let Some((home, job)) = served() else { return };
    let begun = home.path("begun");
    fs::write(&begun, "").unwrap();
    let job = Job { api_key: Some(plain.as_str().into()), restarts: true, ..job };
    let asks = |report: &JobReport| {
        assert_eq!((chat(home.port, ""), chat(home.port, &header(&job))), (401, 200), "{:?}", report.log_tail);
        for (pid, words) in home.processes() {
            assert!(!environment(pid).contains(&plain) && !words.join(" ").contains(&plain), "{words:?}");
        }
        for file in changed_since(&begun) {
            let content = fs::read(&file).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&content).contains(&plain), "{}", file.display());
        }
        report.process.as_ref().unwrap().pid
    };
    let first = asks(&home.serve(&job));
    kill(first, Signal::SIGKILL);
    let second = asks(&home.until_ready(&job));
    assert_ne!(first, second);
    home.fails(&Job { model: home.model_named("other", truncated()), ..job.clone() });
    home.run(&Verb::RollBack);
    assert_ne!(asks(&home.until_ready(&job)), second);
}

#[test]
fn real_server_is_compiled_from_its_source_and_serves() {
    let Some((home, source)) = given(option_env!("DAMODEL_LLAMA_SOURCE"), "DAMODEL_LLAMA_SOURCE") else { return };
    let home = home.with_cuda();
    fs::remove_dir_all(home.path("source")).unwrap();
    copy(&source, &home.path("source"));
    // No card and no toolkit are at hand: all but the code for the card is compiled.
    let lists = home.path("source/CMakeLists.txt");
    let text = fs::read_to_string(&lists).unwrap();
    fs::write(&lists, format!("set(GGML_CUDA OFF CACHE BOOL \"\" FORCE)\n{text}")).unwrap();
    let job = with_option("context_size", "512", home.compiled());
    home.ensure(&job);
    let compiled = found_within(BUILD, || {
        let report = home.look();
        assert_ne!(report.phase, Phase::Failed, "{report:#?}");
        (report.phase == Phase::Load).then_some(report)
    });
    let report = compiled.map(|_| home.until_ready(&job)).unwrap();
    assert_eq!(report.build_used.as_deref(), Some("source"));
    let log = fs::read_to_string(report.compile.unwrap().log_path).unwrap();
    assert!(!log.contains("is deprecated"), "{log}");
}
