//! Cloud disks, from create to destroy.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use damodel::sandbox::{Code, FaultAction, LedgerObject, Mutation, Options, StateList, When};
use serde_json::json;

use crate::support::terraform::{
    Instance, Severity, Site, Workspace, config, config_with, each_workspace, each_workspace_on, refusal, refusal_of,
    says,
};

const X: &str = "damodel_cloud_disk.x";

/// A disk named `corpus` of 40 GB on the block storage, with these arguments added or changed.
fn disk(arguments: &[(&str, &str)]) -> String {
    let defaults = [("name", "\"corpus\""), ("size_gb", "40"), ("spec_id", "31"), ("mount_path", "\"/data/corpus\"")];
    let given = |name: &str| arguments.iter().any(|(other, _)| *other == name);
    let kept = defaults.iter().filter(|(name, _)| !given(name));
    let lines: String = kept.chain(arguments).map(|(name, value)| format!("  {name} = {value}\n")).collect();
    format!("resource \"damodel_cloud_disk\" \"x\" {{\n{lines}}}\n")
}

/// The database id of the disk in the state.
fn number(workspace: &Workspace<'_>) -> i64 {
    workspace.state().resource(X).id().parse().unwrap()
}

/// Destroys, and checks that only the disks of the seed are left and none was created twice.
fn finish(workspace: &Workspace<'_>) {
    workspace.finish();
    let ledger = workspace.site.ledger();
    assert_eq!(
        ledger.balance(LedgerObject::CloudDisk).live,
        Site::start().ledger().balance(LedgerObject::CloudDisk).live
    );
    assert_eq!(ledger.duplicates(LedgerObject::CloudDisk), Vec::<Vec<String>>::new());
}

#[test]
fn it_grows_in_place_and_the_apply_waits() {
    let options = Options { disk_change: Duration::from_millis(1500), ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        let begun = Instant::now();
        workspace.apply_ok(&config(disk(&[])));
        assert!(begun.elapsed() >= options.disk_change, "the create waits");
        let before = workspace.state();
        assert_eq!(before.resource(X).value("status"), "available");

        for (form, size) in [("resize=starting", 70), ("resize=size_first", 80), ("resize=unchanged", 90)] {
            site.sandbox().set_form(form.parse().unwrap());
            workspace.write(&config(disk(&[("size_gb", &size.to_string())])));
            workspace.save_plan(&[]);
            if form == "resize=starting" {
                let plan = workspace.saved_plan();
                assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
                assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
            }
            let begun = Instant::now();
            workspace.apply_plan();
            assert!(begun.elapsed() >= options.disk_change, "{form}: the apply waits for the size");
            workspace.settled();
            let after = workspace.state();
            let after = after.resource(X);
            assert_eq!((after.value("size_gb"), after.value("status")), (&json!(size), &json!("available")), "{form}");
            assert_eq!(after.id(), before.resource(X).id());
        }
        assert_eq!(site.requests("cloud_disk_resize"), 3);
        finish(workspace);
    });
}

#[test]
fn it_does_not_shrink() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(disk(&[])));
        let changes = site.changes();
        workspace.write(&config(disk(&[("size_gb", "30")])));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &["40 GB", "30 GB", "shrink"]).attribute.as_deref(), Some("size_gb"));
        assert_eq!(site.changes(), changes);

        // A disk that was grown by hand is not shrunk either.
        site.set(StateList::Disks, number(workspace), &json!({ "size_gb": 90 }));
        workspace.write(&config(disk(&[])));
        refusal(&workspace.try_plan(&[]), &["90 GB", "40 GB"]);
        workspace.apply_ok(&config(disk(&[("size_gb", "90")])));

        // A destroy plans the configuration first, to refresh; without a refresh it succeeds.
        workspace.write(&config(disk(&[])));
        refusal(&workspace.try_destroy().1, &["90 GB", "40 GB", "terraform destroy -refresh=false"]);
        let (done, said) = workspace.try_apply(&["-destroy", "-refresh=false"]);
        assert!(done, "{said:?}");
        finish(workspace);
    });
}

#[test]
fn what_the_service_forbids_is_told_in_the_plan() {
    each_workspace(|site, workspace| {
        let rows = [
            ("size_gb", "4001", "at most 4000 GB; 4001 GB are requested"),
            ("spec_id", "77", "damodel_cloud_disk_specs"),
        ];
        let labelled = |row: (&str, &str, &str)| disk(&[(row.0, row.1)]).replacen("\"x\"", &format!("{:?}", row.0), 1);
        workspace.write(&config(rows.map(labelled).concat()));
        let said = workspace.try_plan(&[]);
        for (name, _, words) in rows {
            let error = refusal_of(&said, &format!("damodel_cloud_disk.{name}"), &[words]);
            assert_eq!(error.attribute.as_deref(), Some(name));
        }
        assert_eq!(site.changes(), 0);

        // A path below a forbidden one is allowed, and a growth has the same limit.
        workspace.apply_ok(&config(disk(&[("mount_path", "\"/root/data\"")])));
        workspace.write(&config(disk(&[("mount_path", "\"/root/data\""), ("size_gb", "4001")])));
        refusal(&workspace.try_plan(&[]), &["at most 4000 GB; 4001 GB are requested"]);
        workspace.write(&config(disk(&[])));
        finish(workspace);
    });
}

#[test]
fn a_rename_is_in_place_and_everything_else_stays_known() {
    each_workspace(|site, workspace| {
        let named = |name: &str| {
            config(format!(
                "{}resource \"terraform_data\" \"dependent\" {{\n  triggers_replace = [{X}.id, {X}.uid]\n}}\n\
                 output \"id\" {{ value = {X}.id }}\n",
                disk(&[("name", &format!("{name:?}"))])
            ))
        };
        workspace.apply_ok(&named("before"));
        let id = number(workspace);
        // Meanwhile it was renamed in the console too.
        site.set(StateList::Disks, id, &json!({ "name": "by-hand" }));
        let plan = workspace.plan_and_apply_ok(&named("after"));
        assert_eq!(plan.change(X).before("name"), &json!("by-hand"));
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!((plan.change(X).unknown(), plan.output("id")), (Vec::new(), "no-op".to_owned()));
        assert_eq!(number(workspace), id);

        // A name and a size at once.
        let both = disk(&[("name", "\"both\""), ("size_gb", "50")]);
        assert!(workspace.applied(&config(both)).contains(&(X.to_owned(), "update".to_owned())));
        let state = workspace.state();
        assert_eq!((state.resource(X).value("name"), state.resource(X).value("size_gb")), (&json!("both"), &json!(50)));
        finish(workspace);
    });
}

#[test]
fn a_destroy_waits_until_the_disk_is_let_go() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(disk(&[]).replace("}\n", "  timeouts { delete = \"1s\" }\n}\n")));
        let id = number(workspace);
        // An instance of another state mounts it.
        let other = Workspace::new(workspace.cli, site);
        let holder = config(Instance::new("holder").set("exist_disks", format!("[{{ disk_id = {id} }}]")));
        other.apply_ok(&holder);
        let releases = site.requests("cloud_disk_release");
        let (done, said) = workspace.try_destroy();
        assert!(!done);
        let longer = "uses the timeouts in the state. To wait longer set timeouts { delete = \"…\" }, apply only this";
        refusal(&said, &["still mounted", &site.live()[0], "stays in the state", longer]);
        assert_eq!(workspace.state().addresses(), [X]);
        assert_eq!(site.requests("cloud_disk_release"), releases, "a mounted disk is not even tried");

        // The longer time is applied, as the advice says. The instance is removed while the destroy waits.
        workspace.apply_ok(&config(disk(&[])));
        assert_eq!(workspace.state().resource(X).value("status"), "mounted");
        let looks = site.requests("cloud_disk_list");
        let mut destroy = workspace.command(&["destroy", "-auto-approve", "-no-color", "-input=false"]);
        let destroy = destroy.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        site.await_ledger("a destroy that waits", |ledger| ledger.requests_to("cloud_disk_list").count() > looks + 2);
        other.destroy_ok();
        let ended = destroy.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        finish(workspace);
    });
}

#[test]
fn a_destroy_that_cannot_see_the_disk_does_not_call_it_mounted() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(disk(&[]).replace("}\n", "  timeouts { delete = \"1s\" }\n}\n")));
        site.arm("cloud_disk_list", When::Always, FaultAction::Status { status: 503, processed: false });
        let (done, said) = workspace.try_apply(&["-destroy", "-refresh=false"]);
        assert!(!done);
        let words =
            ["was not released", "its status could not be read in time", "stays in the state", "only this change"];
        let error = refusal(&said, &words);
        assert!(!error.text().contains("still mounted"), "{error:?}");
        assert_eq!(site.requests("cloud_disk_release"), 0);
        site.sandbox().clear_faults();
        workspace.apply_ok(&config(disk(&[])));
        finish(workspace);
    });
}

/// The resources in the state file, with what only the provider reads.
fn stored(workspace: &Workspace<'_>) -> serde_json::Value {
    let file = fs::read_to_string(workspace.directory().join("terraform.tfstate")).unwrap();
    let mut state: serde_json::Value = serde_json::from_str(&file).unwrap();
    state["resources"].take()
}

#[test]
fn a_refused_change_leaves_the_whole_entry_of_the_state() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(disk(&[])));
        let before = stored(workspace);
        let refused = FaultAction::Error { code_n: Code::InvalidParameter, processed: false };
        site.arm("cloud_disk_resize", When::Next(1), refused.clone());
        workspace.write(&config(disk(&[("size_gb", "60")])));
        refusal(&workspace.try_apply(&["-refresh=false"]).1, &["InvalidParameter"]);
        assert_eq!(stored(workspace), before);
        site.arm("cloud_disk_release", When::Next(1), refused);
        refusal(&workspace.try_apply(&["-destroy", "-refresh=false"]).1, &["InvalidParameter"]);
        assert_eq!(stored(workspace), before);
        finish(workspace);
    });
}

#[test]
fn a_protected_disk_is_neither_destroyed_nor_replaced() {
    each_workspace(|site, workspace| {
        let protected = ("deletion_protection", "true");
        workspace.apply_ok(&config(disk(&[protected])));
        let changes = site.changes();
        refusal(&workspace.try_plan(&["-destroy"]), &["deletion_protection = true", "corpus"]);
        workspace.write(&config(disk(&[protected, ("spec_id", "32")])));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &["deletion_protection = true"]).attribute.as_deref(), Some("spec_id"));
        assert!(!says(&said, Severity::Warning, "deletes data"), "{said:#?}");
        // A taint does not bypass it.
        workspace.run_ok(&["taint", X]);
        workspace.write(&config(disk(&[protected])));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        refusal(&said, &["deletion_protection = true"]);
        workspace.run_ok(&["untaint", X]);
        assert_eq!(site.changes(), changes, "nothing was sent");
        // It may still grow and be renamed.
        workspace.apply_ok(&config(disk(&[protected, ("size_gb", "41"), ("name", "\"other\"")])));
        workspace.apply_ok(&config(disk(&[("size_gb", "41")])));
        workspace.write(&config(disk(&[("size_gb", "41"), ("mount_path", "\"/data/other\"")])));
        let said = workspace.try_plan(&[]);
        let lost = said.iter().find(|said| said.summary == "The replacement deletes data").expect("a warning");
        assert_eq!(lost.attribute.as_deref(), Some("mount_path"));
        assert!(
            lost.detail.contains("cloud disk \"corpus\"") && lost.detail.contains("the new disk is empty"),
            "{lost:?}"
        );
        workspace.apply_ok(&config(disk(&[("size_gb", "41")])));
        finish(workspace);
    });
}

#[test]
fn a_create_whose_answer_is_lost_makes_one_disk() {
    each_workspace(|site, workspace| {
        let created = site.balance_of(LedgerObject::CloudDisk).created;
        let losses = [
            FaultAction::DropAfter,
            FaultAction::Status { status: 502, processed: true },
            FaultAction::LateVisibility { ms: 300, reads: 2 },
        ];
        for (position, action) in (1..).zip(losses) {
            site.arm("cloud_disk_create", When::Nth(position), action);
        }
        workspace.apply_ok(&config(["a", "b", "c"].map(crate::support::terraform::disk).concat()));
        assert_eq!(
            (site.balance_of(LedgerObject::CloudDisk).created, site.requests("cloud_disk_create")),
            (created + 3, 3)
        );
        finish(workspace);
    });
}

#[test]
fn it_is_imported_by_id_and_by_uid() {
    each_workspace(|site, workspace| {
        let config = config(disk(&[("spec_id", "32")]));
        workspace.apply_ok(&config);
        let fresh = workspace.import_ok(&config, X, &[]);
        fresh.settled();
        let state = workspace.state();
        let by_uid = Workspace::new(workspace.cli, site);
        by_uid.write(&config);
        let uid = state.resource(X).value("uid").as_str().unwrap();
        by_uid.run_ok(&["import", "-no-color", "-input=false", X, uid]);
        by_uid.settled();
        assert_eq!(by_uid.state().resource(X).flat(), state.resource(X).flat());
        for id in ["corpus", "999999", " "] {
            let run = Workspace::new(workspace.cli, site);
            run.write(&config);
            let run = run.run(&["import", "-no-color", "-input=false", X, id]);
            assert_eq!(run.code, Some(1), "{id:?}");
            assert!(run.stderr.contains("Cannot import"), "{id:?}: {}", run.stderr);
        }
        finish(workspace);
    });
}

#[test]
fn a_disk_in_arrears_is_told_and_can_be_destroyed() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config_with("region = \"cn-east-1\"\nmax_retries = 0", disk(&[])));
        site.mutate(Mutation::SetDiskStatus { id: number(workspace), status: 8 });
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color"]);
        assert_eq!(workspace.state().resource(X).value("status"), "in_arrears");
        // It does not grow: the service refuses, and the error is on the size.
        workspace.write(&config_with("region = \"cn-east-1\"\nmax_retries = 0", disk(&[("size_gb", "50")])));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        assert_eq!(refusal(&said, &["keeps its size"]).attribute.as_deref(), Some("size_gb"));
        assert_eq!(workspace.state().resource(X).value("size_gb"), &json!(40));
        finish(workspace);
    });
}
