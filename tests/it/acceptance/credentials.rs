//! The secrets of an instance in the state.

use crate::support::terraform::{Instance, config, each_workspace};

const X: &str = "damodel_instance.x";

#[test]
fn credentials_are_kept_or_not_as_wanted() {
    each_workspace(|site, workspace| {
        let storing = |store: bool| {
            let machine = Instance::new("x");
            config(if store { machine.set("store_credentials", true) } else { machine })
        };
        let stored = || {
            let state = workspace.state();
            ["ssh_password", "jupyter_token"].map(|name| state.resource(X).value(name).is_string())
        };
        let plan = workspace.plan_and_apply_ok(&storing(false));
        let change = plan.change(X);
        assert!(!change.is_unknown("ssh_password") && !change.is_unknown("jupyter_token"), "what is left out is known");
        assert_eq!(stored(), [false, false]);
        for (store, changed) in [(true, vec!["jupyter_token", "ssh_password"]), (false, vec![])] {
            let changes = site.changes();
            let plan = workspace.plan_and_apply_ok(&storing(store));
            assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
            assert_eq!(plan.change(X).unknown(), changed);
            assert_eq!(stored(), [store, store]);
            assert_eq!(site.changes(), changes);
        }
        workspace.finish();
    });
}

/// The plan names all but the credentials, and its apply reads the whole instance.
#[test]
fn what_changed_since_the_plan_is_left_to_the_next_refresh() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        workspace.write(&config(Instance::new("x").set("store_credentials", true)));
        assert_eq!(workspace.plan(&[]).change(X).unknown(), ["jupyter_token", "ssh_password"]);
        site.started_hours_ago(&uid, 5);
        workspace.apply_plan();
        let start = || workspace.state().resource(X).value("start_time").clone();
        let planned = start();
        assert!(workspace.state().resource(X).value("ssh_password").is_string());
        workspace.settled();
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        assert_ne!(start(), planned);
        workspace.finish();
    });
}

#[test]
fn a_data_source_stores_credentials_only_when_told() {
    each_workspace(|_, workspace| {
        let found = |name: &str, store: &str| {
            format!("data \"damodel_instance\" {name:?} {{\n  {store}\n  name = {X}.name\n  depends_on = [{X}]\n}}\n")
        };
        let by_id = format!("data \"damodel_instance\" \"by_id\" {{\n  id = {X}.id\n}}\n");
        let found = [found("without", ""), found("with", "store_credentials = true"), by_id].concat();
        workspace.apply_ok(&config(format!("{}{found}", Instance::new("x"))));
        let state = workspace.state();
        for (name, stored) in [("without", false), ("with", true), ("by_id", false)] {
            let data = state.resource(&format!("data.damodel_instance.{name}"));
            for secret in ["ssh_password", "jupyter_token"] {
                assert_eq!(data.value(secret).is_string(), stored, "{name} {secret}");
            }
        }
        workspace.finish();
    });
}

#[test]
fn a_machine_with_a_key_has_no_password() {
    each_workspace(|_, workspace| {
        let keyed = Instance::new("x").text("login_method", "ssh_key");
        workspace.write(&config(keyed.clone()));
        let said = workspace.try_plan(&[]);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).map(|said| said.detail.as_str()).collect();
        assert_eq!(errors.len(), 2, "{said:?}");
        assert!(errors[0].contains("ssh_pubkey_id") && errors[1].contains("ssh_pubkey_name"), "{said:?}");

        let keyed = keyed.set("store_credentials", true);
        workspace.apply_ok(&config(keyed.set("ssh_pubkey_id", 17).text("ssh_pubkey_name", "laptop")));
        let state = workspace.state();
        assert!(state.resource(X).value("ssh_password").is_null());
        assert!(state.resource(X).value("jupyter_token").is_string());
        assert_eq!(state.resource(X).value("login_method"), "ssh_key");
        workspace.finish();
    });
}
