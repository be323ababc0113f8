//! `expire`: instances that are older than the max_age in their state, on the sandbox.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use damodel::sandbox::{Code, FaultAction, Mutation, Options, StateList, When};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use crate::support::{
    plugin::BINARY,
    record::skipped,
    terraform::{Instance, Run, Site, Workspace, config, each_cli, each_workspace, each_workspace_on},
};

const X: &str = "damodel_instance.x";
pub(super) const STATE: &str = "terraform.tfstate";

/// The command in a folder, not yet run.
fn command(site: &Site, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("expire").args(arguments).current_dir(folder).env_clear();
    command.env("DAMODEL_BASE_URL", site.base_url()).env("DAMODEL_API_TOKEN", site.token());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn expire(site: &Site, workspace: &Workspace<'_>, arguments: &[&str]) -> Run {
    Run::of(command(site, &workspace.directory(), arguments).output().unwrap())
}

/// The command with a document on its standard input.
fn expire_with(site: &Site, workspace: &Workspace<'_>, arguments: &[&str], input: &str) -> Run {
    let mut child = command(site, &workspace.directory(), arguments).stdin(Stdio::piped()).spawn().unwrap();
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Run::of(child.wait_with_output().unwrap())
}

fn aged() -> Instance {
    Instance::new("x").text("max_age", "8h")
}

/// Applies an instance that is older than its max_age, and returns its uid.
fn overdue(site: &Site, workspace: &Workspace<'_>, instance: &Instance) -> String {
    workspace.apply_ok(&config(instance));
    let uid = workspace.state().resource(X).id();
    site.started_hours_ago(&uid, 9);
    uid
}

/// Runs it, and checks the code and a part of standard error.
pub(super) fn expect(run: &Run, code: i32, told: &str) {
    assert!(run.code == Some(code) && run.stderr.contains(told), "{:?}\n{}{}", run.code, run.stdout, run.stderr);
}

#[test]
fn what_is_too_old_is_listed_then_released_and_created_again_by_the_next_apply() {
    each_workspace(|site, workspace| {
        let disks = "[{ size_gb = 20, spec_id = 31 }, { size_gb = 30, spec_id = 31, release_with_instance = false }]";
        workspace.apply_ok(&config(aged().set("new_disks", disks)));
        let uid = workspace.state().resource(X).id();
        let changes = site.changes();
        let young = expire(site, workspace, &[STATE, "--yes"]);
        assert_eq!((young.code, young.stdout.as_str()), (Some(0), "1 instance has a max_age; 0 listed.\n"));

        site.started_hours_ago(&uid, 9);
        // Tainted instances count too.
        workspace.run_ok(&["taint", X]);
        let table = expire(site, workspace, &[STATE]);
        expect(&table, 3, &format!("left: instance {uid} ({X} in {STATE}): --yes is not set"));
        for cell in ["9h", "8h", "1.9800", "system disk (", "local disk (", "cloud disk ", " (20 GB)", X] {
            assert!(table.stdout.contains(cell), "{cell}: {}", table.stdout);
        }
        assert!(!table.stdout.contains("30 GB"), "{}", table.stdout);
        let pulled = workspace.run_ok(&["state", "pull"]).stdout;
        let run = expire_with(site, workspace, &["-", "--format", "json"], &pulled);
        expect(&run, 3, "--yes is not set");
        let list: Value = serde_json::from_str(&run.stdout).unwrap();
        let instance = &list["instances"][0];
        assert_eq!((&list["format_version"], &instance["id"]), (&json!("1.0"), &json!(uid)));
        assert_eq!(instance["holders"], json!([{"source": "standard input", "address": X}]));
        assert_eq!((&instance["max_age"], &instance["hourly"]), (&json!("8h"), &json!(1.98)));
        assert_eq!((&instance["result"], &instance["reason"]), (&json!("left"), &json!("--yes is not set")));
        assert!((32_400..32_500).contains(&instance["age_seconds"].as_i64().unwrap()), "{instance}");
        assert_eq!(site.changes(), changes, "nothing was sent");

        // A lock file beside the state says nothing, and the same state counts once.
        fs::write(workspace.directory().join(".terraform.tfstate.lock.info"), "{}").unwrap();
        fs::copy(workspace.directory().join(STATE), workspace.directory().join("copy")).unwrap();
        let run = expire(site, workspace, &[STATE, "copy", "--yes"]);
        expect(&run, 0, &format!("releasing instance {uid}"));
        assert!(run.stdout.contains("  released  "), "{}", run.stdout);
        assert_eq!(site.live(), Vec::<String>::new());
        assert!(!site.secrets().iter().any(|secret| format!("{}{}", run.stdout, run.stderr).contains(secret)));
        fs::remove_file(workspace.directory().join(".terraform.tfstate.lock.info")).unwrap();

        // A Released one is 0, and the next apply creates another one.
        expect(&expire(site, workspace, &[STATE, "--yes"]), 0, "");
        let created = workspace.applied(&config(aged().set("new_disks", disks)));
        assert_eq!(created, [(X.to_owned(), "create".to_owned())]);
        assert_ne!(workspace.state().resource(X).id(), uid);
    });
}

/// The mark may be in the service alone, and the disk is another resource's.
#[test]
fn a_disk_that_only_the_service_marks_is_named_and_a_protected_one_keeps_its_instance() {
    each_workspace(|site, workspace| {
        let disk = |protected: bool| {
            format!(
                "resource \"damodel_cloud_disk\" \"d\" {{\n  name = \"data\"\n  size_gb = 20\n  spec_id = 31\n  \
                 deletion_protection = {protected}\n}}\n"
            )
        };
        let mounted = |release: bool| {
            aged().set(
                "exist_disks",
                format!("[{{ disk_id = damodel_cloud_disk.d.id, release_with_instance = {release} }}]"),
            )
        };
        workspace.apply_ok(&config(format!("{}{}", disk(true), mounted(true))));
        let uid = workspace.state().resource(X).id();
        let number = workspace.state().resource("damodel_cloud_disk.d").id();
        site.started_hours_ago(&uid, 9);
        // As after an import: the instance's state does not have the disk.
        workspace.run_ok(&["state", "rm", X]);
        workspace.write(&config(format!("{}{}", disk(true), aged())));
        workspace.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        workspace.run_ok(&["apply", "-no-color", "-input=false", "-auto-approve"]);
        assert!(workspace.state().resource(X).value("exist_disks").is_null());
        let deletes = format!("cloud disk {number} \"data\" (20 GB)");
        let run = expire(site, workspace, &[STATE, "--yes"]);
        let reason = format!("its release deletes {deletes}, and damodel_cloud_disk.d has deletion_protection = true");
        expect(&run, 3, &reason);
        assert!(run.stdout.contains(&deletes), "{}", run.stdout);
        assert_eq!(site.live(), [uid]);

        workspace.apply_ok(&config(format!("{}{}", disk(false), aged())));
        let run = expire(site, workspace, &[STATE, "--yes"]);
        expect(&run, 0, "releasing instance ");
        assert!(run.stdout.contains(&deletes), "{}", run.stdout);
        assert!(site.live().is_empty());
    });
}

/// The mark may come after the list.
#[test]
fn a_disk_that_is_marked_after_the_list_keeps_its_instance() {
    each_workspace(|site, workspace| {
        let disk = "resource \"damodel_cloud_disk\" \"d\" {\n  name = \"data\"\n  size_gb = 20\n  spec_id = 31\n}\n";
        let mounted = aged().set("exist_disks", "[{ disk_id = damodel_cloud_disk.d.id }]");
        workspace.apply_ok(&config(format!("{disk}{mounted}")));
        site.started_hours_ago(&workspace.state().resource(X).id(), 9);
        let number = workspace.state().resource("damodel_cloud_disk.d").id();
        let deletes = format!("cloud disk {number} \"data\" (20 GB)");
        let (before, changes) = (site.requests("instance_detail"), site.changes());
        site.arm("instance_detail", When::Next(1), FaultAction::Slow { ms: 2000 });
        let child = command(site, &workspace.directory(), &[STATE, "--yes"]).spawn().unwrap();
        site.await_ledger("the last look", |_| site.requests("instance_detail") > before);
        site.set(StateList::Disks, &number, &json!({ "release_with_instance": true }));
        let run = Run::of(child.wait_with_output().unwrap());
        expect(&run, 3, &format!("its release deletes {deletes} now, which is not in the list: run the command again"));
        assert_eq!((site.changes(), site.live().len()), (changes, 1));

        let run = expire(site, workspace, &[STATE, "--yes"]);
        expect(&run, 0, "releasing instance ");
        assert!(run.stdout.contains(&deletes), "{}", run.stdout);
    });
}

/// One clock that is wrong releases nothing.
#[test]
fn the_age_is_over_by_both_clocks() {
    for skew in [86_400, -86_400] {
        let options = Options { form: format!("clock_skew={skew}").parse().unwrap(), ..Site::options() };
        each_workspace_on(&options, |site, workspace| {
            workspace.apply_ok(&config(aged()));
            // Only one of the clocks is 8 hours later.
            site.started_hours_ago(&site.live()[0], if skew > 0 { 1 } else { 9 });
            let run = expire(site, workspace, &[STATE, "--yes"]);
            expect(&run, 0, "");
            assert_eq!(site.live().len(), 1, "{}", run.stdout);
            workspace.finish();
        });
    }
}

#[test]
fn protected_and_prepaid_instances_and_those_in_two_states_are_left() {
    each_cli(|cli| {
        let site = Site::start();
        let daily = aged().text("payment_type", "Daily").set("purchase_duration", 3);
        for (instance, reason) in [
            (aged().set("deletion_protection", true), "deletion_protection is true in the state"),
            (daily, "it is prepaid"),
        ] {
            let workspace = Workspace::new(cli, &site);
            overdue(&site, &workspace, &instance);
            expect(&expire(&site, &workspace, &[STATE, "--yes"]), 3, reason);
        }
        let (workspace, other) = (Workspace::new(cli, &site), Workspace::new(cli, &site));
        let uid = overdue(&site, &workspace, &aged());
        // The other state has no max_age.
        other.write(&config(Instance::new("x")));
        other.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        let path = other.directory().join(STATE);
        let run = expire(&site, &workspace, &[STATE, path.to_str().unwrap(), "--yes"]);
        expect(&run, 3, "it is managed more than once");
        assert_eq!(site.live().len(), 3);
    });
}

/// A process that holds the lock of a file as Terraform does, until its standard input ends.
pub(super) fn locking(path: &Path) -> Option<Child> {
    const PROGRAM: &str = "import fcntl,sys;f=open(sys.argv[1],'r+');fcntl.lockf(f,fcntl.LOCK_EX);\
                           print('locked',flush=True);sys.stdin.read()";
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "locked\n");
    Some(child)
}

#[test]
fn an_instance_in_a_locked_state_is_left() {
    each_workspace(|site, workspace| {
        overdue(site, workspace, &aged());
        let changes = site.changes();
        let Some(mut holder) = locking(&workspace.directory().join(STATE)) else {
            skipped("python3 is not on PATH");
            return;
        };
        let run = expire(site, workspace, &[STATE, "--yes"]);
        holder.kill().unwrap();
        holder.wait().unwrap();
        expect(&run, 3, "another process has locked ");
        assert_eq!(site.changes(), changes, "nothing was sent");
        expect(&expire(site, workspace, &[STATE, "--yes"]), 0, "");
    });
}

#[test]
fn a_release_that_goes_on_is_waited_for_and_not_sent_again() {
    let form = "undocumented_statuses".parse().unwrap();
    let options = Options { release: Duration::from_secs(3600), form, ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        let uid = overdue(site, workspace, &aged().block("timeouts { delete = \"1s\" }"));
        assert!(!workspace.try_destroy().0);
        let changes = site.changes();
        let run = expire(site, workspace, &[STATE]);
        expect(&run, 0, "");
        assert!(run.stdout.contains("  releasing  "), "{}", run.stdout);
        let before = site.requests("instance_detail");
        let child = command(site, &workspace.directory(), &[STATE, "--yes"]).spawn().unwrap();
        site.await_ledger("a look at the instance", |_| site.requests("instance_detail") > before);
        site.sandbox().advance(Duration::from_secs(3600));
        let run = Run::of(child.wait_with_output().unwrap());
        expect(&run, 0, "");
        assert!(run.stdout.contains(&uid) && run.stdout.contains("  released  "), "{}", run.stdout);
        assert_eq!(site.changes(), changes, "nothing was sent");
    });
}

#[test]
fn what_cannot_be_judged_or_released_is_named() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let uid = overdue(&site, &workspace, &aged());
        let refused = FaultAction::Error { code_n: Code::InstanceCanNotBeReleased, processed: false };
        site.arm("instance_release", When::Next(1), refused);
        let run = expire(&site, &workspace, &[STATE, "--yes"]);
        expect(&run, 1, &format!("failed: instance {uid} ({X} in {STATE}): the release failed: "));
        assert!(run.stderr.contains("160012"), "{}", run.stderr);
        // An account that shows none of the objects proves nothing.
        site.mutate(Mutation::RemoveInstance { uid });
        expect(&expire(&site, &workspace, &[STATE, "--yes"]), 1, "the account lists neither it");
    });
}

#[test]
fn a_state_that_cannot_be_locked_releases_nothing() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        overdue(&site, &workspace, &aged());
        // A file that cannot be opened for writing cannot be locked. Root can write to every file, but not to a mount
        // for reading.
        let folder = workspace.directory();
        fs::copy(folder.join(STATE), folder.join("kept")).unwrap();
        if !geteuid().is_root() {
            skipped("a mount that cannot be written takes root");
            return;
        }
        let mount = "mount --bind kept kept && mount -o remount,bind,ro kept && exec \"$0\" expire kept --yes";
        let like = command(&site, &folder, &[]);
        let mut mounted = Command::new("unshare");
        mounted.args(["--mount", "sh", "-c", mount, BINARY]).current_dir(&folder).stdin(Stdio::null());
        mounted.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run = Run::of(mounted.output().unwrap());
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains("cannot lock "), "{}", run.stderr);
    });
}

#[test]
fn an_instance_that_the_account_lacks_is_gone_beside_another_one() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(format!("{}{}", aged(), Instance::new("other"))));
        let uid = workspace.state().resource(X).id();
        site.mutate(Mutation::RemoveInstance { uid });
        let run = expire(site, workspace, &[STATE, "--yes"]);
        expect(&run, 0, "");
        assert!(run.stdout.contains("  gone  "), "{}", run.stdout);
    });
}

#[test]
fn only_state_files_are_accepted() {
    each_workspace(|site, workspace| {
        overdue(site, workspace, &aged());
        let folder = workspace.directory();
        let state: Value = serde_json::from_slice(&fs::read(folder.join(STATE)).unwrap()).unwrap();
        let mut newer = state.clone();
        newer["serial"] = (state["serial"].as_u64().unwrap() + 1).into();
        fs::write(folder.join("newer"), newer.to_string()).unwrap();
        fs::write(folder.join("old"), r#"{"version": 3, "modules": []}"#).unwrap();
        let shown = String::from_utf8(workspace.command(&["show", "-json"]).output().unwrap().stdout).unwrap();
        let requests = site.ledger().requests.len();
        for (arguments, reason) in [
            (&["."][..], "error: cannot read .: "),
            (&["nowhere"], "error: cannot read nowhere: "),
            (&["old"], "error: cannot read old as a state: its format is version 3"),
            (&["-"], "error: standard input is the output of show -json"),
            (&[STATE, "newer"], "are versions of one state"),
            (&["--yes"], "required arguments were not provided"),
        ] {
            let run = expire_with(site, workspace, arguments, &shown);
            expect(&run, 2, reason);
            assert_eq!(run.stdout, "");
        }
        assert_eq!(site.ledger().requests.len(), requests, "the service was not asked");
    });
}
