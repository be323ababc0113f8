//! Options of operators and configurations that change a plan.

use serde_json::json;

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli_since, each_workspace};

const X: &str = "damodel_instance.x";
const Y: &str = "damodel_instance.y";

#[test]
fn without_refresh_nothing_is_asked() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let before = site.ledger().requests.len();
        workspace.write(&config(Instance::new("x").text("name", "renamed")));
        let plan = workspace.plan(&["-refresh=false"]);
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(site.ledger().requests.len(), before);
        assert_eq!(workspace.plan(&["-refresh-only"]).actions(), []);
        workspace.finish();
    });
}

#[test]
fn a_removed_block_forgets_without_a_release() {
    each_cli_since(7, 7, |cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(Instance::new("x")));
        let destroy = if cli.is_tofu { "" } else { "lifecycle { destroy = false }" };
        let plan = workspace.plan_and_apply_ok(&config(format!("removed {{\n  from = {X}\n  {destroy}\n}}")));
        assert_eq!(plan.change(X).actions(), "forget");
        assert!(workspace.state().addresses().is_empty());
        assert_eq!((site.live().len(), site.requests("instance_release")), (1, 0));
    });
}

#[test]
fn workspaces_are_apart() {
    each_workspace(|site, workspace| {
        let config = config(Instance::new("x").set("name", "\"trainer-${terraform.workspace}\""));
        workspace.apply_ok(&config);
        workspace.run_ok(&["workspace", "new", "-no-color", "other"]);
        assert_eq!(workspace.applied(&config), [(X.to_owned(), "create".to_owned())]);
        assert_eq!(workspace.state().resource(X).value("name"), &json!("trainer-other"));
        assert_eq!(site.live().len(), 2);
        workspace.destroy_ok();
        workspace.run_ok(&["workspace", "select", "-no-color", "default"]);
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn a_moved_machine_stays_the_same() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        let changes = site.changes();
        let moved = format!("{}moved {{\n  from = {X}\n  to = {Y}\n}}", Instance::new("y").text("name", "x"));
        let plan = workspace.plan_and_apply_ok(&config(moved));
        assert_eq!((plan.change(Y).actions().as_str(), plan.change(Y).previous_address()), ("no-op", Some(X)));
        assert_eq!(workspace.state().resource(Y).id(), uid);
        assert_eq!(site.changes(), changes);
        workspace.finish();
    });
}
