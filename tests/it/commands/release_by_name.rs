//! `release`: instances, cloud disks and private images by their names, on the sandbox.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use damodel::sandbox::{Code, FaultAction, Mutation, Options, When};
use serde_json::Value;

use super::{
    expire::{STATE, expect, locking},
    hostile::{command as asking, recorded},
};
use crate::support::{
    plugin::BINARY,
    record::skipped,
    terraform::{Instance, Run, Site, Workspace, config, each_cli, each_workspace, each_workspace_on},
};

const X: &str = "damodel_instance.x";
const D: &str = "damodel_cloud_disk.d";

/// The command in a folder, not yet run, with Terraform on PATH.
fn command(site: &Site, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("release").args(arguments).current_dir(folder).env_clear();
    command.env("DAMODEL_BASE_URL", site.base_url()).env("DAMODEL_API_TOKEN", site.token());
    command.env("PATH", env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn release(site: &Site, workspace: &Workspace<'_>, arguments: &[&str]) -> Run {
    Run::of(command(site, &workspace.directory(), arguments).output().unwrap())
}

fn disk(protected: bool) -> String {
    format!(
        "resource \"damodel_cloud_disk\" \"d\" {{\n  name = \"data\"\n  size_gb = 20\n  spec_id = 31\n  \
         deletion_protection = {protected}\n}}\n"
    )
}

#[test]
fn a_target_is_shown_with_its_holder_and_disks_then_released() {
    each_workspace(|site, workspace| {
        let disks = "[{ size_gb = 20, spec_id = 31 }, { size_gb = 30, spec_id = 31, release_with_instance = false }]";
        workspace.apply_ok(&config(Instance::new("x").set("new_disks", disks)));
        let uid = workspace.state().resource(X).id();
        site.started_hours_ago(&uid, 9);
        let changes = site.changes();
        for arguments in [&[uid.as_str()][..], &[&uid, "--state", STATE], &[&uid, &uid]] {
            let shown = release(site, workspace, arguments);
            expect(&shown, 3, &format!("left: instance {uid} ({X} in "));
            for cell in ["Running", "  9h  ", "1.9800", "system disk (", "local disk (", "cloud disk ", " (20 GB)", X] {
                assert!(shown.stdout.contains(cell), "{cell}: {}", shown.stdout);
            }
            assert!(!shown.stdout.contains("30 GB"), "{}", shown.stdout);
            assert_eq!(shown.stdout.lines().count(), 2, "one row: {}", shown.stdout);
        }
        assert_eq!(site.changes(), changes, "nothing was sent");
        let run = release(site, workspace, &[&uid, "--yes"]);
        expect(&run, 0, &format!("releasing instance {uid}"));
        assert!(run.stdout.contains("  released  "), "{}", run.stdout);
        assert_eq!(site.live(), Vec::<String>::new());
        let changes = site.changes();
        let again = release(site, workspace, &[&uid, "--yes"]);
        expect(&again, 0, "");
        assert!(again.stdout.contains("  released  "), "{}", again.stdout);
        assert_eq!(site.changes(), changes, "nothing was sent");
    });
}

/// Disks and images of the account, by number and UID; the disk is also one that no state has.
#[test]
fn disks_and_images_in_no_state_are_released() {
    let site = Site::start();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], programs: bool| {
        let mut command = command(&site, folder.path(), arguments);
        if !programs {
            command.env("PATH", "/nowhere");
        }
        Run::of(command.output().unwrap())
    };
    for programs in [true, false] {
        let shown = run(&["804", "disk-seedscratch4", "image:951"], programs);
        expect(&shown, 3, "left: private image 951: --yes is not set");
        assert_eq!(shown.stdout.lines().count(), 3, "a duplicate: {}", shown.stdout);
        assert!(shown.stdout.contains("unknown: no state was looked at"), "{}", shown.stdout);
    }
    let done = run(&["disk:804", "951", "--yes"], false);
    expect(&done, 0, "releasing cloud disk 804");
    assert_eq!(done.stdout.matches("  released  ").count(), 2, "{}", done.stdout);
    // A deleted image is not listed any more. The others are handled all the same.
    let changes = site.changes();
    let again = run(&["image:951", "disk:804", "ins-none", "--yes"], false);
    expect(&again, 1, "failed: image:951: no object of the account has this UID or id");
    expect(&again, 1, "failed: ins-none: no object of the account has this UID or id");
    assert_eq!(site.changes(), changes, "nothing was sent");
}

/// Disks and images have numbers of their own.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_two_kinds_is_wrong_usage() {
    let service = recorded(|answer| {
        for record in answer.pointer_mut("/result/data").and_then(Value::as_array_mut).into_iter().flatten() {
            for (mark, id) in [("binding_instances", "id"), ("image_uuid", "image_id")] {
                if record.get(mark).is_some() {
                    record[id] = 951.into();
                }
            }
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let run = |target: &str| Run::of(asking(folder.path(), &service, BINARY, &["release", target]).output().unwrap());
    expect(&run("951"), 2, "error: 951 names several objects: give disk:951 or image:951");
    expect(&run("disk:951"), 3, "left: cloud disk 951: ");
    expect(&run("image:951"), 3, "left: private image 951: --yes is not set");
}

#[test]
fn what_must_not_be_released_is_left_with_the_reason_and_the_others_are_released() {
    each_cli(|cli| {
        let site = Site::start();
        let (workspace, other) = (Workspace::new(cli, &site), Workspace::new(cli, &site));
        let protected = Instance::new("protected").set("deletion_protection", true);
        let daily = Instance::new("daily").text("payment_type", "Daily").set("purchase_duration", 3);
        let mounting = Instance::new("mounting").set("exist_disks", format!("[{{ disk_id = {D}.id }}]"));
        let twice = Instance::new("twice");
        let free = Instance::new("free");
        workspace.apply_ok(&config(format!("{}{protected}{daily}{mounting}{twice}{free}", disk(false))));
        let id = |name: &str| workspace.state().resource(&format!("damodel_instance.{name}")).id();
        let number = workspace.state().resource(D).id();
        other.write(&config(Instance::new("x")));
        other.run_ok(&["import", "-no-color", "-input=false", X, &id("twice")]);
        let path = other.directory().join(STATE);
        let states = ["--state", STATE, "--state", path.to_str().unwrap(), "--yes"];
        let uids = ["protected", "daily", "twice", "free", "mounting"].map(id);
        let [protected, daily, twice, free, mounting] = uids.each_ref().map(String::as_str);
        let targets = [protected, daily, twice, &number, free];
        let run = release(&site, &workspace, &[&targets[..], &states].concat());
        for (uid, reason) in [
            (protected, "deletion_protection is true in the state"),
            (daily, "it is prepaid"),
            (twice, "it is managed more than once"),
        ] {
            let line = run.stderr.lines().find(|line| line.starts_with(&format!("left: instance {uid} (")));
            assert!(line.is_some_and(|line| line.ends_with(reason)), "{reason}: {}", run.stderr);
        }
        let mounted =
            format!("left: cloud disk {number} ({D} in {STATE}): it is mounted by {{\"instance_uid\":\"{mounting}\"");
        expect(&run, 3, &mounted);
        assert_eq!(run.stdout.matches("  released  ").count(), 1, "{}", run.stdout);
        let mut living = vec![protected, daily, twice, mounting];
        living.sort_unstable();
        let mut live = site.live();
        live.sort();
        assert_eq!(live, living, "{free}");
        // Once its instance is gone, the disk can go.
        expect(&release(&site, &workspace, &[mounting, "--yes"]), 0, "");
        expect(&release(&site, &workspace, &[&number, "--yes"]), 0, "releasing cloud disk");
    });
}

/// The state of the folder does not have the instance, and the mark is in the service alone.
#[test]
fn an_instance_in_no_state_is_kept_while_a_protected_disk_would_be_deleted_with_it() {
    each_workspace(|site, workspace| {
        let mounted =
            Instance::new("x").set("exist_disks", format!("[{{ disk_id = {D}.id, release_with_instance = true }}]"));
        workspace.apply_ok(&config(format!("{}{mounted}", disk(true))));
        let uid = workspace.state().resource(X).id();
        let number = workspace.state().resource(D).id();
        workspace.run_ok(&["state", "rm", X]);
        let deletes = format!("cloud disk {number} \"data\" (20 GB)");
        let run = release(site, workspace, &[&uid, "--yes"]);
        expect(
            &run,
            3,
            &format!("left: instance {uid}: its release deletes {deletes}, and {D} has deletion_protection"),
        );
        assert!(run.stdout.contains(&deletes) && run.stdout.trim_end().ends_with("  unmanaged"), "{}", run.stdout);
        assert_eq!(site.live(), [&*uid]);
        // Without the state nothing forbids it, and the list says that no state was looked at.
        let elsewhere = tempfile::tempdir().unwrap();
        let run = Run::of(command(site, elsewhere.path(), &[&uid]).output().unwrap());
        expect(&run, 3, "--yes is not set");
        assert!(run.stdout.contains(&deletes) && run.stdout.contains("no state was looked at"), "{}", run.stdout);
    });
}

#[test]
fn a_target_in_a_locked_state_is_left() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(format!("{}{}", disk(false), Instance::new("x"))));
        let (uid, number) = (workspace.state().resource(X).id(), workspace.state().resource(D).id());
        let changes = site.changes();
        let Some(mut holder) = locking(&workspace.directory().join(STATE)) else {
            skipped("python3 is not on PATH");
            return;
        };
        // The state of the folder is read by Terraform, and its file is found.
        for states in [&["--state", STATE][..], &[]] {
            let run = release(site, workspace, &[&[uid.as_str(), &number, "--yes"], states].concat());
            expect(&run, 3, "another process has locked ");
            assert_eq!(run.stderr.matches("another process has locked ").count(), 2, "{}", run.stderr);
        }
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(site.changes(), changes, "nothing was sent");
        expect(&release(site, workspace, &[&uid, &number, "--yes"]), 0, "");
        assert!(site.live().is_empty());
    });
}

#[test]
fn what_the_service_refuses_is_said_and_a_later_run_releases_it() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(format!("{}{}", disk(false), Instance::new("x"))));
        let (uid, number) = (workspace.state().resource(X).id(), workspace.state().resource(D).id());
        let refused = FaultAction::Error { code_n: Code::InstanceCanNotBeReleased, processed: false };
        site.arm("instance_release", When::Next(1), refused);
        let run = release(site, workspace, &[&uid, &number, "--yes"]);
        expect(&run, 1, &format!("failed: instance {uid} ({X} in the state of this folder): the release failed: "));
        assert!(run.stderr.contains("160012"), "{}", run.stderr);
        assert_eq!(run.stdout.matches("  released  ").count(), 1, "{}", run.stdout);
        expect(&release(site, workspace, &[&uid, &number, "--yes"]), 0, "");
    });
}

#[test]
fn a_release_whose_run_was_killed_is_waited_for_and_not_sent_again() {
    let form = "undocumented_statuses".parse().unwrap();
    let options = Options { release: Duration::from_secs(3600), form, ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        let mut killed = command(site, &workspace.directory(), &[&uid, "--yes"]).spawn().unwrap();
        site.await_ledger("the release", |_| site.requests("instance_release") > 0);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let changes = site.changes();
        let shown = release(site, workspace, &[&uid]);
        expect(&shown, 0, "");
        assert!(shown.stdout.contains("  releasing  "), "{}", shown.stdout);
        let before = site.requests("instance_detail");
        let child = command(site, &workspace.directory(), &[&uid, "--yes"]).spawn().unwrap();
        site.await_ledger("a look at the instance", |_| site.requests("instance_detail") > before);
        site.sandbox().advance(Duration::from_secs(3600));
        expect(&Run::of(child.wait_with_output().unwrap()), 0, "");
        assert_eq!(site.changes(), changes, "nothing was sent");
        workspace.finish();
    });
}

/// The account is looked at again after the list.
#[test]
fn a_disk_that_is_mounted_after_the_list_is_kept() {
    let site = Site::start();
    let folder = tempfile::tempdir().unwrap();
    // The list of images comes after that of disks.
    site.arm("private_image_list", When::Next(1), FaultAction::Slow { ms: 1500 });
    let child = command(&site, folder.path(), &["disk:804", "--yes"]).spawn().unwrap();
    site.await_ledger("the list of images", |_| site.requests("private_image_list") > 0);
    site.mutate(Mutation::SetDiskStatus { id: 804, status: 6 });
    let run = Run::of(child.wait_with_output().unwrap());
    expect(&run, 3, "left: cloud disk 804: it is mounted by an object that the service does not name");
    assert_eq!(site.changes(), 0, "nothing was sent");
}

#[test]
fn a_state_that_cannot_be_read_releases_nothing() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        let changes = site.changes();
        expect(&release(site, workspace, &[&uid, "--yes", "--state", "gone"]), 2, "error: cannot read gone: ");
        std::fs::write(workspace.directory().join(STATE), "oops").unwrap();
        expect(&release(site, workspace, &[&uid, "--yes"]), 1, "error: cannot read the state of this folder");
        assert_eq!(site.changes(), changes, "nothing was sent");
    });
}
