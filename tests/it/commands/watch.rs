//! `watch` beside a real apply on the sandbox.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use damodel::sandbox::{Code, FaultAction, Options, When};

use crate::support::{
    plugin::BINARY,
    terraform::{Instance, Run, Site, Started, Workspace, config, each_cli, each_program},
};

/// `watch` in a folder, and its output.
pub(crate) struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
    said: Vec<String>,
}

impl Watching {
    pub(crate) fn start(workspace: &Workspace<'_>) -> Self {
        let mut command = command(&["--pending-dir", "", "--data-dir", ""]);
        let mut child = command.arg(workspace.directory()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, said: Vec::new() }
    }

    /// Reads until a line contains this. `watch` ends by itself, so this does, too.
    pub(crate) fn says(&mut self, what: &str) {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "{what:?} was never said: {:#?}", self.said);
            let is_it = line.contains(what);
            self.said.push(line);
            if is_it {
                return;
            }
        }
    }

    /// Reads until `watch` ends by itself.
    pub(crate) fn ended(mut self) -> String {
        self.says("The apply has finished.");
        assert!(self.child.wait().unwrap().success());
        self.said.concat()
    }
}

#[test]
fn it_shows_which_candidate_is_asked_for_and_which_were_refused() {
    each_cli(|cli| {
        let site = slow(2);
        let workspace = Workspace::with_program(cli, &site);
        let list = "[{ spec_id = 101 }, { spec_id = 103 }]";
        workspace.write(&config(Instance::new("x").without("spec_id").set("candidates", list)));
        let refusal = FaultAction::Error { code_n: Code::ResourceInsufficient, processed: false };
        site.arm("instance_create", When::Nth(1), refusal);
        let mut watching = Watching::start(&workspace);
        watching.says("No apply is waiting in this folder yet");
        let said = Started::apply(&workspace).ended(true);
        assert!(said.contains("1 added"), "{said}");
        let said = watching.ended();
        assert!(said.contains("requesting 1 \u{d7} spec_id 101 in cn-east-1"), "{said}");
        let refused = "requesting 1 \u{d7} spec_id 103 in cn-east-1 (refused: 1 \u{d7} spec_id 101 in cn-east-1";
        assert!(said.contains(refused), "{said}");
    });
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("watch").args(arguments);
    for name in ["TF_DATA_DIR", "DAMODEL_PENDING_DIR"] {
        command.env_remove(name);
    }
    command
}

/// A sandbox whose changes take this long.
fn slow(seconds: u64) -> Site {
    let while_ = Duration::from_secs(seconds);
    Site::with(Options { creation: while_, image_push: while_, ..Site::options() })
}

#[test]
fn it_shows_what_an_apply_waits_for_and_ends_with_it() {
    each_cli(|cli| {
        let site = slow(2);
        let workspace = Workspace::with_program(cli, &site);
        let image = "resource \"damodel_private_image\" \"saved\" {\n  instance_id = damodel_instance.a.id\n  name = \
                     \"saved\"\n}\n";
        workspace.write(&config(format!("{}{image}", Instance::new("a"))));
        workspace.set_env("TF_LOG_PROVIDER", "INFO");
        let mut watching = Watching::start(&workspace);
        watching.says("No apply is waiting in this folder yet");
        let (applied, diagnostics) = workspace.try_apply(&[]);
        assert!(applied, "{diagnostics:?}");
        let said = watching.ended();
        let uid = &site.live()[0];
        for part in [
            format!(" instance {uid} \"a-"),
            "\": Creating, 0s\n".to_owned(),
            "\": Running, done after ".to_owned(),
            " private image ".to_owned(),
            " \"saved\": creating ".to_owned(),
            " %, ".to_owned(),
            " \"saved\": ready, done after ".to_owned(),
        ] {
            assert!(said.contains(&part), "{part:?} in {said}");
        }
        assert!(!site.secrets().iter().any(|secret| said.contains(secret)));
        // The log of the apply has them, too.
        let log = fs::read_to_string(workspace.beside("log")).unwrap();
        let waited = log.lines().find(|line| line.contains("waited:") && line.contains(uid));
        let waited = waited.unwrap_or_else(|| panic!("{log}"));
        assert!(["[INFO]", "waited_ms=", "kind=instance"].iter().all(|part| waited.contains(part)), "{waited}");
        let folder = workspace.directory().join(".terraform/damodel-pending-progress");
        let told: String =
            fs::read_dir(&folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        assert!(!site.secrets().iter().any(|secret| told.contains(secret)));
        // The waits of an earlier run are not shown again, and a plan without waits leaves nothing.
        workspace.settled();
        let run = Run::of(command(&["--no-wait"]).arg(workspace.directory()).output().unwrap());
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "No apply is waiting in this folder.\n"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        workspace.finish();
    });
}

#[test]
fn it_ends_with_a_provider_that_is_killed() {
    each_cli(|cli| {
        let site = slow(600);
        let workspace = Workspace::with_program(cli, &site);
        workspace.write(&config(Instance::new("a")));
        let started = Started::apply(&workspace);
        let mut watching = Watching::start(&workspace);
        watching.says(": Creating, ");
        started.kill_provider();
        started.ended(true);
        watching.says(", interrupted: its run ended after ");
        watching.ended();
    });
}

#[test]
fn an_apply_does_not_fail_where_nothing_can_be_told() {
    each_program(|_, workspace| {
        fs::create_dir(workspace.directory().join(".terraform")).unwrap();
        fs::write(workspace.directory().join(".terraform/damodel-pending-progress"), "no folder").unwrap();
        workspace.apply_ok(&config(Instance::new("a")));
        workspace.finish();
    });
}

#[test]
fn a_folder_that_is_none_is_told() {
    let run = Run::of(command(&["/nowhere"]).output().unwrap());
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_eq!(run.stderr, "error: cannot read the folder /nowhere: it does not exist\n");
}

#[test]
fn what_is_not_there_is_no_all_clear() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().canonicalize().unwrap();
    let watch = |arguments: &[&str]| {
        Run::of(command(&["--no-wait"]).args(arguments).env("HOME", &here).arg(&here).output().unwrap())
    };
    let run = watch(&[]);
    let directory = here.join(".terraform/damodel-pending");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with(&format!("No pending directory at {}: ", directory.display())), "{}", run.stdout);
    let run = watch(&["--pending-dir", "~/notes"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let expected = format!("error: no pending directory at {}. ", here.join("notes").display());
    assert!(run.stderr.starts_with(&expected), "{}", run.stderr);
    fs::create_dir(here.join("notes-progress")).unwrap();
    let run = watch(&["--pending-dir", "~/notes"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "No apply is waiting in this folder.\n"));
}
