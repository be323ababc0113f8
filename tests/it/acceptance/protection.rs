//! Instances that must not be destroyed, and instances that cannot be.

use damodel::sandbox::{Code, FaultAction, Options, StateList, When};
use serde_json::json;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, Workspace, config, each_cli, each_workspace, says,
};

const X: &str = "damodel_instance.x";

fn protected(instance: Instance) -> String {
    config(instance.set("deletion_protection", true))
}

fn refusal(diagnostics: &[Diagnostic]) -> &Diagnostic {
    let errors: Vec<_> = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    assert_eq!(errors.len(), 1, "{diagnostics:?}");
    assert!(errors[0].text().contains("deletion_protection = true"), "{diagnostics:?}");
    errors[0]
}

#[test]
fn a_protected_machine_is_neither_destroyed_nor_replaced() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&protected(Instance::new("x")));
        let changes = site.changes();

        refusal(&workspace.try_plan(&["-destroy"]));
        workspace.write(&config(""));
        refusal(&workspace.try_plan(&[]));
        workspace.write(&protected(Instance::new("x").set("gpu_num", 2)));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said).attribute.as_deref(), Some("gpu_num"));
        // The state decides: removing the protection and replacing in one step is refused, too, and the text says so.
        workspace.write(&config(Instance::new("x").set("gpu_num", 2)));
        let said = workspace.try_plan(&[]);
        assert!(refusal(&said).detail.contains("First apply only deletion_protection = false"), "{said:#?}");
        workspace.write(&protected(Instance::new("x")));
        let (done, said) = workspace.try_apply(&["-replace", X]);
        refusal(&said);
        assert!(!done);

        workspace.run_ok(&["taint", X]);
        let (done, said) = workspace.try_apply(&[]);
        refusal(&said);
        assert!(!done);
        workspace.run_ok(&["untaint", X]);
        workspace.settled();
        assert_eq!((site.changes(), site.live().len()), (changes, 1), "nothing was sent");

        workspace.apply_ok(&config(Instance::new("x")));
        workspace.finish();
    });
}

#[test]
fn a_protected_disk_does_not_go_with_its_instance() {
    each_workspace(|site, workspace| {
        let disk = |protected: bool| {
            format!(
                "resource \"damodel_cloud_disk\" \"d\" {{\n  size_gb = 20\n  spec_id = 31\n  deletion_protection = \
                 {protected}\n}}\n"
            )
        };
        let mounts = "[{ disk_id = tonumber(damodel_cloud_disk.d.id), release_with_instance = true }]";
        let both = config(format!("{}{}", disk(true), Instance::new("x").set("exist_disks", mounts)));
        workspace.apply_ok(&config(disk(true)));
        workspace.write(&both);
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "release_with_instance = true: while it is protected"), "{said:#?}");
        workspace.apply_ok(&both);
        let (uid, changes) = (workspace.state().resource(X).id(), site.changes());

        let refused = |arguments: &[&str]| {
            let (done, said) = workspace.try_apply(arguments);
            let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
            let names = |said: &Diagnostic| {
                said.summary.starts_with("Cloud disk ") && said.summary.ends_with("has deletion_protection = true")
            };
            assert!(!done && errors.iter().all(|said| names(said)), "{arguments:?}: {said:#?}");
            assert!(errors.iter().any(|said| said.detail.contains(&uid)), "{arguments:?}: {errors:#?}");
            assert!(errors.iter().all(|said| said.detail.contains("irst apply only")), "{arguments:?}: {errors:#?}");
            assert_eq!((site.changes(), site.live().len()), (changes, 1), "{arguments:?}: nothing was sent");
        };
        // The plans of the two have no order without a reference.
        workspace.write(&config(disk(true)));
        refused(&[]);
        refused(&["-refresh=false"]);
        // The state decides: removing the protection in the same step is refused, too.
        workspace.write(&config(disk(false)));
        refused(&[]);
        workspace.write(&config(format!("{}{}", disk(true), Instance::new("x"))));
        refused(&[]);
        workspace.write(&both);
        workspace.run_ok(&["taint", X]);
        refused(&[]);
        workspace.run_ok(&["untaint", X]);
        workspace.settled();

        workspace.apply_ok(&both.replace("protection = true", "protection = false"));
        workspace.write(&config(""));
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && site.live().is_empty(), "{said:#?}");
    });
}

fn monthly(instance: Instance) -> String {
    config(instance.text("payment_type", "Monthly").set("purchase_duration", 1))
}

#[test]
fn a_prepaid_machine_that_cannot_be_released_stays() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&monthly(Instance::new("x")));
        let (done, said) = workspace.try_destroy();
        assert!(!done);
        let error = said.iter().find(|diagnostic| diagnostic.is_error()).unwrap();
        for word in ["160012", "DAMODEL_ON_UNRELEASABLE=abandon", "stays in the state", "request_id"] {
            assert!(error.detail.contains(word), "{word}: {error:?}");
        }
        assert!(says(&said, Severity::Warning, "This plan destroys instance \"x\""), "{said:#?}");
        assert!(!says(&said, Severity::Warning, "is destroyed."), "nothing was: {said:#?}");
        assert_eq!(workspace.state().addresses(), [X]);
        assert!(!workspace.state().resource(X).is_tainted());
        workspace.settled();
        // A replacement reads the state too, where an apply that replaces cannot set on_unreleasable.
        workspace.write(&monthly(Instance::new("x").set("gpu_num", 2).text("on_unreleasable", "abandon")));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "DAMODEL_ON_UNRELEASABLE=abandon"), "{said:#?}");
        assert!(!says(&said, Severity::Error, "on_unreleasable = "), "the advice did not help: {said:#?}");
        workspace.write(&monthly(Instance::new("x")));

        // The variable takes precedence over the state.
        workspace.set_env("DAMODEL_ON_UNRELEASABLE", "abandon");
        let (done, said) = workspace.try_destroy();
        assert!(done, "{said:?}");
        let warned =
            |word: &str| said.iter().any(|said| said.severity == Severity::Warning && said.text().contains(word));
        assert!(warned("abandoned"), "{said:?}");
        assert!(workspace.state().addresses().is_empty());
        assert_eq!(site.live().len(), 1);
    });
}

#[test]
fn a_prepaid_machine_is_abandoned_where_that_is_wanted() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&monthly(Instance::new("x").text("on_unreleasable", "abandon")));
        workspace.set_env("DAMODEL_ON_UNRELEASABLE", "fail");
        let (done, said) = workspace.try_destroy();
        assert!(!done, "the variable wins over the state");
        let text = said.iter().map(Diagnostic::text).collect::<String>();
        assert!(text.contains("DAMODEL_ON_UNRELEASABLE is \"fail\" and decides"), "{text}");
        workspace.remove_env("DAMODEL_ON_UNRELEASABLE");
        workspace.destroy_ok();
        assert!(workspace.state().addresses().is_empty());
        assert_eq!(site.live().len(), 1);
    });
}

#[test]
fn what_renews_itself_is_not_abandoned() {
    each_workspace(|_, workspace| {
        workspace.apply_ok(&monthly(Instance::new("x").set("auto_renew", true)));
        workspace.set_env("DAMODEL_ON_UNRELEASABLE", "abandon");
        let said = workspace.try_plan(&["-destroy"]);
        assert!(says(&said, Severity::Warning, "is ignored for instances with auto_renew = true"), "{said:#?}");
        let (done, said) = workspace.try_destroy();
        assert!(!done && said.iter().any(|said| said.text().contains("billed indefinitely")), "{said:?}");
        assert_eq!(workspace.state().addresses(), [X]);
    });
}

#[test]
fn a_machine_that_is_being_created_is_released_when_it_can_be() {
    each_cli(|cli| {
        let site = Site::with(Options { form: "creating_unreleasable".parse().unwrap(), ..Site::options() });
        let workspace = Workspace::new(cli, &site);
        workspace.set_env("DAMODEL_ON_UNRELEASABLE", "abandon");
        workspace.write(&config(Instance::new("x")));
        site.arm("instance_create", When::Next(1), FaultAction::StickCreation);
        Started::stopped_while_creating(&workspace);
        let mut destroy = Started::apply_with(&workspace, &["-destroy"]);
        destroy.until("the service refuses the release", || site.requests("instance_release") == 1);
        site.unstick();
        let said = destroy.ended(true);
        assert!(site.live().is_empty(), "{said}");
    });
}

#[test]
fn a_machine_that_is_busy_is_released_later() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        let unreleasable = |busy: bool| site.set(StateList::Instances, &uid, &json!({ "unreleasable": busy }));
        unreleasable(true);
        // By the hour there is no end, so nothing is abandoned.
        workspace.set_env("DAMODEL_ON_UNRELEASABLE", "abandon");
        let ignored = "is ignored for hourly instances: they would be billed indefinitely";
        let said = workspace.try_plan(&["-destroy"]);
        assert!(says(&said, Severity::Warning, ignored), "{said:#?}");
        workspace.write(&config(Instance::new("x").set("gpu_num", 2)));
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, ignored), "a replacement releases it too: {said:#?}");
        workspace.write(&config(Instance::new("x")));
        let (done, said) = workspace.try_destroy();
        assert!(!done);
        let text = said.iter().map(Diagnostic::text).collect::<String>();
        assert!(text.contains("billed by the hour until it is released"), "{text}");
        assert_eq!(text.matches(ignored).count(), 2, "in the plan and at the refusal: {text}");
        assert!(!text.contains("paid for until"), "{text}");
        assert_eq!(workspace.state().addresses(), [X]);
        assert_eq!(site.requests("instance_release"), 2, "once more after a look that showed it Running");
        // Also if the status of the instance is unknown at the refusal.
        let error = FaultAction::Error { code_n: Code::PermissionDenied, processed: false };
        site.arm("instance_detail", When::Always, error);
        let (done, said) = workspace.try_apply(&["-destroy", "-refresh=false"]);
        let text = said.iter().map(Diagnostic::text).collect::<String>();
        assert!(!done && text.matches(ignored).count() == 2, "{text}");
        site.sandbox().clear_faults();
        unreleasable(false);
        workspace.finish();
    });
}
