//! The README's first command.

use std::{fs, path::Path, process::Stdio, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Command,
    runtime::Runtime,
    time::timeout,
};

use crate::support::{plugin::BINARY, program, terraform::each_cli};

const DEADLINE: Duration = Duration::from_secs(120);

/// The demo, with an empty folder for temporary files.
fn demo(temporary: &TempDir) -> Command {
    let mut command = Command::new(BINARY);
    command
        .arg("demo")
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Makes a program that replaces Terraform.
fn program(folder: &Path, script: &str) -> std::path::PathBuf {
    let path = folder.join("stand-in");
    program::put(&path, &format!("#!/bin/sh\n{script}\n"));
    path
}

fn is_empty(folder: &TempDir) -> bool {
    fs::read_dir(folder.path()).unwrap().next().is_none()
}

#[test]
fn it_takes_a_served_model_from_nothing_and_back() {
    each_cli(|cli| Runtime::new().unwrap().block_on(demonstrate(&cli.program)));
}

async fn demonstrate(cli: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let output = timeout(DEADLINE, demo(&temporary).args(["--verbose", "--cli"]).arg(cli).output());
    let output = output.await.unwrap().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    for line in [
        "Plan: 2 to add, 0 to change, 0 to destroy.",
        "an hour; the apply buys at no higher price.",
        ": Running, done after ",
        "is Running with 1 x ",
        "A stand-in for llama-server answers, which computes nothing: \"You said: Say hello to Terraform.\"",
        "No changes.",
        "Warning: Llama server ",
        "Plan: 0 to add, 1 to change, 0 to destroy.",
        "1 created, 1 released, 0 left.",
        "[8/8]",
    ] {
        assert!(stdout.contains(line), "{line:?} in {stdout}");
    }
    assert_eq!(stderr, "");
    assert!(is_empty(&temporary));
}

#[tokio::test]
async fn without_terraform_it_says_what_to_install() {
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(&temporary).env("PATH", temporary.path()).output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: neither terraform nor tofu is on PATH. Install Terraform (https://"),
        "{stderr}"
    );
    assert!(is_empty(&temporary));
}

#[tokio::test]
async fn a_step_that_fails_shows_what_the_tool_said() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stand_in = program(
        folder.path(),
        r#"case "$1" in version) echo 'Stand-in v1';; init) echo 'said on stdout'; echo 'said on stderr' >&2; exit 3;; esac"#,
    );
    let output = demo(&temporary).arg("--cli").arg(stand_in).output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout.contains("with Stand-in v1") && stdout.trim_end().ends_with("[3/8] stand-in init"), "{stdout}");
    assert!(stderr.contains("stand-in init -no-color failed (exit status: 3)"), "{stderr}");
    assert!(stderr.contains("said on stdout\nsaid on stderr"), "{stderr}");
    assert!(is_empty(&temporary));
}

#[tokio::test]
async fn an_interrupt_ends_the_tool_and_leaves_nothing_behind() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ended = folder.path().join("ended");
    // Reports its start, and ends in an orderly way when it is interrupted.
    let script = format!(
        r#"case "$1" in version) echo 'Stand-in v1';; init) trap 'echo interrupted > {ended}; exit 0' INT; : > {begun}; while :; do read line < {pipe}; done;; esac"#,
        ended = ended.display(),
        begun = folder.path().join("begun").display(),
        pipe = folder.path().join("pipe").display(),
    );
    nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let stand_in = program(folder.path(), &script);
    let mut child = demo(&temporary).arg("--cli").arg(stand_in).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    timeout(DEADLINE, async {
        while !stdout.next_line().await.unwrap().unwrap().contains("init") {}
        while !folder.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGINT).unwrap();
    let status = timeout(DEADLINE, child.wait()).await.unwrap().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(stderr, "error: stand-in init -no-color was interrupted\n");
    assert_eq!(fs::read_to_string(ended).unwrap(), "interrupted\n");
    assert!(is_empty(&temporary));
}
