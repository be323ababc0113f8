//! Files that arrive whole, or not at all.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use damodel::ssh::{Error, Limits, Session, connect};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::sshd::Sshd;

async fn session(sshd: &Sshd) -> Session {
    let deadline = Instant::now() + Duration::from_secs(60);
    connect(&sshd.target(), &Limits::default(), deadline, &CancellationToken::new()).await.unwrap()
}

fn names(sshd: &Sshd) -> Vec<String> {
    let entries = fs::read_dir(sshd.home()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_arrives_with_its_content_and_its_mode() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd).await;
    let binary: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 256) as u8).collect();
    let absolute = sshd.home().join("absolute").display().to_string();
    for (path, name, content, mode) in [
        ("relative", "relative", &binary[..], 0o600),
        ("~/it's a $(name) \"with\" everything", "it's a $(name) \"with\" everything", b"x\n", 0o755),
        (&absolute, "absolute", b"", 0o640),
        ("-dashed", "-dashed", b"no newline", 0o444),
        // What was there before is replaced.
        ("relative", "relative", b"second", 0o644),
    ] {
        session.upload(path, content, mode).await.unwrap();
        let file = sshd.home().join(name);
        assert!(fs::read(&file).unwrap() == content, "{path}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, mode, "{path}");
    }
    assert_eq!(names(&sshd), ["-dashed", "absolute", "it's a $(name) \"with\" everything", "relative"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_nothing_and_says_why() {
    let Some(sshd) = Sshd::started() else { return };
    let session = session(&sshd).await;
    fs::create_dir(sshd.home().join("folder")).unwrap();
    for (path, why) in [("missing/file", "missing"), ("folder", "it is a folder")] {
        let error = session.upload(path, b"PLANTED", 0o600).await.unwrap_err();
        assert!(matches!(&error, Error::Upload { .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("{path} was not written: exit code ")) && text.contains(why), "{text}");
        assert!(!format!("{error:?}").contains("PLANTED"));
    }
    assert_eq!(names(&sshd), ["folder"]);
}

/// Puts a program before all others for the sessions of a server.
fn shadow(sshd: &Sshd, name: &str, script: &str) {
    let file = sshd.home().join("bin").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn content_that_changed_on_its_way_is_not_taken() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.session_line("PATH=$HOME/bin:/usr/bin:/bin");
    sshd.start();
    let session = session(&sshd).await;
    session.upload("file", b"old", 0o600).await.unwrap();
    shadow(&sshd, "cat", "/bin/cat; echo more");
    let error = session.upload("file", b"new", 0o600).await.unwrap_err();
    assert!(error.to_string().ends_with("what arrived is not what was sent"), "{error}");
    assert_eq!(fs::read(sshd.home().join("file")).unwrap(), b"old");
    assert_eq!(names(&sshd), ["bin", "file"]);
}

#[tokio::test]
async fn a_far_side_that_only_says_that_it_went_well_is_not_believed() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line("ForceCommand echo ssh-is-ready");
    sshd.start();
    let error = session(&sshd).await.upload("file", b"new", 0o600).await.unwrap_err();
    assert!(error.to_string().contains("the server did not confirm it"), "{error}");
}

#[tokio::test]
async fn neither_content_nor_hash_shows_in_the_command() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.session_line("PATH=$HOME/bin:/usr/bin:/bin");
    sshd.start();
    let arguments = sshd.home().join("arguments");
    let seen = arguments.display();
    shadow(
        &sshd,
        "cat",
        &format!("for p in /proc/[0-9]*/cmdline; do /bin/cat $p; echo; done >{seen} 2>/dev/null; exec /bin/cat"),
    );
    session(&sshd).await.upload("file", b"PLANTED", 0o600).await.unwrap();
    let seen = String::from_utf8_lossy(&fs::read(arguments).unwrap()).into_owned();
    assert!(seen.contains("upload"), "{seen}");
    let hash = "1d29ee7bedd603fd";
    assert!(!seen.contains("PLANTED") && !seen.contains(hash), "{seen}");
}
