//! Creates that fail or take too long.

use std::time::Duration;

use damodel::sandbox::{Balance, FaultAction, Options, When};
use serde_json::json;

use crate::support::terraform::{Diagnostic, Instance, Site, config, each_workspace, each_workspace_on};

const X: &str = "damodel_instance.x";

fn error(said: &[Diagnostic]) -> &Diagnostic {
    let errors: Vec<_> = said.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    assert_eq!(errors.len(), 1, "{said:?}");
    errors[0]
}

#[test]
fn a_machine_that_is_created_failed_is_tainted_and_replaced() {
    each_workspace(|site, workspace| {
        site.arm("instance_create", When::Next(1), FaultAction::FailCreation);
        workspace.write(&config(Instance::new("x")));
        let (done, said) = workspace.try_apply(&[]);
        let uid = site.live()[0].clone();
        let error = error(&said);
        assert!(!done);
        for word in ["Failed", uid.as_str(), "tainted", "request_id", "trace_id"] {
            assert!(error.text().contains(word), "{word}: {error:?}");
        }
        let state = workspace.state();
        assert!(state.resource(X).is_tainted());
        assert_eq!((state.resource(X).id(), state.resource(X).value("status")), (uid.clone(), &json!("Failed")));

        let plan = workspace.plan_and_apply_ok(&config(Instance::new("x")));
        assert_eq!(
            (plan.change(X).actions().as_str(), plan.change(X).reason()),
            ("delete, create", "replace_because_tainted")
        );
        assert_ne!(workspace.state().resource(X).id(), uid);
        assert_eq!(site.balance(), Balance { created: 2, released: 1, removed: 0, live: 1 });
        workspace.finish();
    });
}

#[test]
fn a_failed_machine_that_cannot_be_released_leaves_the_state() {
    let options = Options { form: "failed_unreleasable".parse().unwrap(), ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        site.arm("instance_create", When::Next(1), FaultAction::FailCreation);
        workspace.write(&config(Instance::new("x")));
        assert!(!workspace.try_apply(&[]).0);
        let old = workspace.state().resource(X).id();
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && said.iter().any(|said| said.text().contains("160012")), "{said:?}");
        // This run has replaced it: the advice must not end the new one.
        let warning = said.iter().find(|said| said.summary.ends_with("has failed")).unwrap();
        let only = format!("If the state still contains {old} after this run, replace it");
        assert!(warning.detail.contains(&only), "{warning:?}");
        workspace.settled();
        assert_eq!(site.balance(), Balance { created: 2, released: 0, removed: 0, live: 2 });
        workspace.destroy_ok();
        assert_eq!(site.live().len(), 1, "the failed one is the service's to clear");
    });
}

/// An instance that takes longer than the apply waits.
fn slow() -> String {
    config(Instance::new("x").block("timeouts { create = \"2s\" }"))
}

#[test]
fn a_wait_that_runs_out_is_told_with_the_advice_that_works() {
    each_workspace_on(&Options { creation: Duration::from_secs(3600), ..Site::options() }, |site, workspace| {
        workspace.write(&slow());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        assert!(said.iter().all(|said| said.is_error() || !said.text().contains("after the create")), "{said:?}");
        let error = error(&said);
        for word in ["ready in time", "Creating", "terraform untaint", "would replace it", "timeouts"] {
            assert!(error.text().contains(word), "{word}: {error:?}");
        }
        let state = workspace.state();
        assert!(state.resource(X).is_tainted());
        assert_eq!(
            (state.resource(X).value("status"), state.resource(X).value("name")),
            (&json!("Creating"), &json!("x"))
        );

        site.sandbox().advance(Duration::from_secs(3600));
        workspace.run_ok(&["untaint", X]);
        workspace.apply_ok(&slow());
        assert_eq!(workspace.state().resource(X).value("status"), &json!("Running"));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn a_release_that_takes_too_long_leaves_the_machine_in_the_state() {
    each_workspace_on(&Options { release: Duration::from_secs(3600), ..Site::options() }, |site, workspace| {
        workspace.apply_ok(&config(Instance::new("x").block("timeouts { delete = \"1s\" }")));
        let (done, said) = workspace.try_destroy();
        assert!(!done && error(&said).text().contains("is not released yet"), "{said:?}");
        assert!(error(&said).detail.ends_with("apply only this change, and destroy again."), "{said:?}");
        assert_eq!(workspace.state().addresses(), [X]);
        site.sandbox().advance(Duration::from_secs(3600));
        workspace.finish();
    });
}

#[test]
fn a_rename_that_fails_after_the_create_is_repaired_by_the_next_plan() {
    each_workspace(|site, workspace| {
        let refused = FaultAction::Error { code_n: damodel::sandbox::Code::InvalidParameter, processed: false };
        site.arm("instance_rename", When::Next(1), refused);
        workspace.write(&config(Instance::new("x").text("name", "trainer")));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:?}");
        assert!(said.iter().any(|said| !said.is_error() && said.text().contains("rename")), "{said:?}");
        assert!(!workspace.state().resource(X).is_tainted());
        let plan = workspace.plan_and_apply_ok(&config(Instance::new("x").text("name", "trainer")));
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert!(plan.change(X).before("name").as_str().unwrap().starts_with("trainer-"));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}
