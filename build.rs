//! Records the commit for `--version`.

use std::{path::Path, process::Command};

fn main() {
    println!("cargo::rustc-env=DAMODEL_COMMIT={}", commit().as_deref().unwrap_or("unknown"));
}

/// The commit of the build; `None` without git, or if the sources are a part of another repository.
fn commit() -> Option<String> {
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    // The files that change with the commit. A missing one would cause a rebuild every time.
    let head = git(&["rev-parse", "--symbolic-full-name", "HEAD"])?;
    for name in ["HEAD", head.as_str(), "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).is_file() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| !commit.is_empty())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
