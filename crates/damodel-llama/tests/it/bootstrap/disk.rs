//! A workspace that does not answer, and one that is full.

use std::{fs, path::PathBuf, process::Command};

use damodel_llama::{FailureKind, Phase, Verb};

use super::home::{Home, no_inference, start, until_so};
use crate::support::record::skipped;

/// The stand-in for a stale mount: `ls` does not return for the workspace.
#[test]
fn verb_touches_nothing_in_a_workspace_that_does_not_answer() {
    let home = Home::new();
    let served = home.serve(&home.job());
    home.script("bin/ls", "#!/bin/sh\ncase $* in *workspace*) exec /bin/sleep 600 ;; esac\nexec /bin/ls \"$@\"\n");
    home.hurry();
    let job = home.changed();
    let ensure = &start(&home, &job);
    for verb in [
        Verb::Look,
        Verb::Stop { owner: "owner" },
        Verb::Destroy { owner: "owner" },
        Verb::RollBack,
        Verb::Ensure(ensure),
    ] {
        let report = home.run(&verb);
        let failure = report.failure.unwrap();
        assert_eq!((report.is_refused, failure.kind), (true, FailureKind::NoAnswer), "{verb:?}");
        assert!(failure.text.contains("workspace does not answer"), "{}", failure.text);
    }
    for file in ["bin/ls", "bin/sleep"] {
        fs::remove_file(home.path(file)).unwrap();
    }
    assert_eq!(home.look().process, served.process);
}

/// A small file system for the workspace; only root may mount one.
struct Small<'a>(&'a Home);

impl<'a> Small<'a> {
    fn mount(home: &'a Home, size: &str) -> Option<Self> {
        let folder = home.path("workspace");
        fs::create_dir_all(&folder).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&folder).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(home));
        }
        skipped("only root may mount a small file system");
        None
    }

    fn fill(&self) {
        let mut fill = Command::new("sh");
        fill.args(["-c", "cat /dev/zero >\"$1\" 2>/dev/null", "sh"]).arg(self.filler());
        assert!(!fill.status().unwrap().success());
    }

    fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.path("workspace/filler")
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        // Lazily: a server may still have its log there.
        let _ = Command::new("umount").arg("-l").arg(self.0.path("workspace")).status();
    }
}

#[test]
fn full_disk_harms_no_server() {
    let home = Home::new();
    let Some(small) = Small::mount(&home, "4m") else { return };
    let refusal = |verb: &Verb<'_>| {
        let report = home.run(verb);
        assert!(report.is_refused, "{verb:?} {report:#?}");
        (report.failure.unwrap(), report.phase, report.process)
    };
    let job = home.job();
    small.fill();
    let (failure, ..) = refusal(&Verb::Ensure(&start(&home, &job)));
    assert_eq!(failure.kind, FailureKind::DiskFull);
    assert!(failure.text.starts_with("no space is left in the workspace"), "{}", failure.text);
    assert!(failure.text.contains("tmpfs"), "{}", failure.text);
    small.clear();
    home.ensure(&job);
    let process = home.loading(&job);
    small.fill();
    let failed = &no_inference();
    for verb in
        [Verb::Ready { process: &process.identity }, Verb::Failed { process: &process.identity, failure: failed }]
    {
        let (failure, phase, seen) = refusal(&verb);
        assert_eq!((failure.kind, phase, seen.as_ref()), (FailureKind::DiskFull, Phase::Load, Some(&process)));
    }
    assert_eq!(home.servers(), [process.pid]);
    small.clear();
    assert_eq!(home.until_ready(&job).process.as_ref(), Some(&process));
    small.fill();
    let changed = home.changed();
    for verb in [Verb::Ensure(&start(&home, &changed)), Verb::Restart { process: &process.identity }] {
        assert_eq!(refusal(&verb).0.kind, FailureKind::DiskFull, "{verb:?}");
    }
    let seen = home.look();
    assert_eq!((seen.phase, seen.process, seen.failure), (Phase::Ready, Some(process.clone()), None));
    small.clear();
    assert_eq!(home.run(&Verb::Restart { process: &process.identity }).failure, None);
    assert_ne!(home.until_ready(&job).process, Some(process));
    small.fill();
    home.stop();
    assert_eq!(home.servers(), [0; 0]);
}

#[test]
fn compile_goes_on_after_a_full_disk() {
    let home = Home::new().with_cuda();
    let Some(small) = Small::mount(&home, "6m") else { return };
    home.hold_compile();
    home.ensure(&home.compiled());
    until_so("no compile", || home.compiles() == 1);
    small.fill();
    home.release_compile();
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::DiskFull, "{failure:?}");
    small.clear();
    home.serve(&home.compiled());
}
