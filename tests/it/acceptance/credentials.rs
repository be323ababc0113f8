//! The secrets of an instance in the state.

use crate::support::terraform::{Instance, config, each_workspace};

const X: &str = "damodel_instance.x";

#[test]
fn credentials_are_kept_or_not_as_wanted() {
    each_workspace(|site, workspace| {
        let storing = |store: bool| config(Instance::new("x").set("store_credentials", store));
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

#[test]
fn a_machine_with_a_key_has_no_password() {
    each_workspace(|_, workspace| {
        let keyed = Instance::new("x").text("login_method", "ssh_key");
        workspace.write(&config(keyed.clone()));
        let said = workspace.try_plan(&[]);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).map(|said| said.detail.as_str()).collect();
        assert_eq!(errors.len(), 2, "{said:?}");
        assert!(errors[0].contains("ssh_pubkey_id") && errors[1].contains("ssh_pubkey_name"), "{said:?}");

        workspace.apply_ok(&config(keyed.set("ssh_pubkey_id", 17).text("ssh_pubkey_name", "laptop")));
        let state = workspace.state();
        assert!(state.resource(X).value("ssh_password").is_null());
        assert!(state.resource(X).value("jupyter_token").is_string());
        assert_eq!(state.resource(X).value("login_method"), "ssh_key");
        workspace.finish();
    });
}
