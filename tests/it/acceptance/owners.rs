//! The owner of a pending record: another resource of the run, another run, or a process that has ended.

use std::{fs, process, time::Duration};

use damodel::sandbox::{FaultAction, LedgerObject, Options, When};

use crate::support::terraform::{Instance, Site, Started, config, each_program, each_workspace_on, refusal, unchecked};

const X: &str = "damodel_instance.x";
/// How long another process's create is waited for.
const WAIT_MS: i64 = 15_000;

fn alike(count: u32) -> String {
    config(Instance::new("x").set("count", count).text("name", "same"))
}

#[test]
fn alike_creates_of_one_apply_do_not_wait_for_each_other() {
    each_program(|site, workspace| {
        let alias = "provider \"damodel\" {\n  alias = \"again\"\n  region = \"cn-east-1\"\n}\n";
        let one = |label: &str| Instance::new(label).text("name", "same");
        let aliases = config(format!("{alias}{}{}", one("x"), one("y").set("provider", "damodel.again")));
        for config in [aliases, alike(3)] {
            let before = site.requests("instance_create");
            workspace.apply_ok(&config);
            assert_eq!(site.balance().created, site.requests("instance_create"));
            let moments: Vec<i64> =
                site.ledger().requests_to("instance_create").map(|it| it.at_ms).skip(before).collect();
            assert!(moments.iter().max().unwrap() - moments.iter().min().unwrap() < WAIT_MS, "{moments:?}");
            workspace.destroy_ok();
        }
        workspace.finish();
    });
}

#[test]
fn a_create_that_another_run_is_at_is_not_made_again() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x").block("timeouts { create = \"60s\" }")));
        site.stick();
        let started = Started::apply(workspace);
        workspace.await_notes("accepted", 1);
        let processes: Vec<String> = started.providers().iter().map(ToString::to_string).collect();
        let (core, owner) = (started.core().to_string(), workspace.notes()[0].content["process"].to_string());
        assert!(processes.contains(&owner), "{owner} {processes:?}");

        let (done, said) = workspace.try_apply(&["-lock=false"]);
        assert!(!done, "{said:#?}");
        let error = refusal(&said, &[]);
        assert!(error.text().contains(&owner) || error.text().contains(&core), "{owner}, {core}: {error:#?}");
        assert_eq!((site.balance().created, site.requests("instance_create")), (1, 1), "{said:#?}");

        site.sandbox().clear_faults();
        site.unstick();
        started.ended(true);
        workspace.settled();
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn a_provider_whose_core_was_killed_sends_no_create() {
    each_program(|site, workspace| {
        workspace.write(&unchecked(Instance::new("x").text("name", "same")));
        // The provider is about to send the create, and looks for leftovers first.
        site.arm("instance_list", When::Always, FaultAction::Slow { ms: 1_500 });
        let mut started = Started::apply(workspace);
        site.await_ledger("a list", |ledger| ledger.requests_to("instance_list").count() > 0);
        started.kill_core();
        started.ended(true);
        assert_eq!((site.requests("instance_create"), workspace.notes().len()), (0, 0));
    });
}

#[test]
fn ten_alike_creates_of_a_killed_core_are_made_once() {
    each_workspace_on(&Options { creation: Duration::from_secs(4), ..Site::options() }, |site, workspace| {
        workspace.run_program();
        workspace.write(&alike(10));
        let mut started = Started::apply(workspace);
        site.await_ledger("ten creates", |ledger| ledger.balance(LedgerObject::Instance).created == 10);
        started.kill_core();
        // The provider of the killed Terraform still runs.
        let (done, said) = workspace.try_apply(&["-lock=false"]);
        started.ended(true);
        assert!(done, "{said:#?}");
        assert_eq!((site.balance().created, site.requests("instance_create")), (10, 10), "{said:#?}");
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn a_note_whose_process_is_another_one_by_now_is_adopted() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        Started::killed_when_accepted(workspace, 1);
        let mut note = workspace.notes().remove(0);
        // A running process that is no provider: this one.
        note.content["process"] = process::id().into();
        fs::write(&note.path, note.content.to_string()).unwrap();
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn an_answer_that_nobody_is_left_to_hear_is_adopted() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        // The rename is the last request before the answer.
        site.arm("instance_rename", When::Next(1), FaultAction::Slow { ms: 2500 });
        let mut started = Started::apply(workspace);
        site.await_ledger("the rename", |ledger| ledger.requests_to("instance_rename").next().is_some());
        started.kill_core();
        started.ended(true);
        assert!(workspace.run(&["state", "list"]).stdout.is_empty());
        assert_eq!(workspace.notes().iter().map(|note| note.phase()).collect::<Vec<_>>(), ["accepted"]);
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!((site.balance().created, workspace.state().resource(X).id()), (1, site.live()[0].clone()));
        workspace.finish();
    });
}

/// Terraform is ended with an answer in its socket: the provider cannot detect it, so the record has a phase for it.
#[test]
fn an_answer_that_was_not_read_is_never_lost_without_a_word() {
    each_program(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        site.stick();
        let mut started = Started::apply(workspace);
        workspace.await_notes("accepted", 1);
        started.freeze_core();
        site.sandbox().clear_faults();
        site.unstick();
        site.await_ledger("the rename", |ledger| ledger.requests_to("instance_rename").next().is_some());
        // The provider decides which phase the record gets after an answer that was sent and not read.
        started.until("the answer is sent", || workspace.notes()[0].phase() == "finished");
        started.kill_core();
        started.ended(true);
        let uid = site.live()[0].clone();
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        refusal(&said, &[&uid, "terraform import damodel_instance."]);
        workspace.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(site.balance().created, 1);
    });
}
