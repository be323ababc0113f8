//! Imports of existing instances.

use serde_json::json;

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli, each_workspace};

const X: &str = "damodel_instance.x";

#[test]
fn an_imported_machine_plans_nothing() {
    each_workspace(|site, workspace| {
        let by_address = Instance::new("x")
            .without("image_id")
            .without("image_type")
            .text("image", &format!("{}/model_library/pytorch:2.5.1-cuda12.4", site.registry_host()))
            .without("spec_id")
            .text("spec_type", "gpu.rtx4090.1");
        for instance in [Instance::new("x"), by_address] {
            workspace.apply_ok(&config(&instance));
            workspace.import_ok(&config(instance), X, &[]).settled();
        }
        if workspace.cli.has(5, 6) {
            let (fresh, plan) = workspace.import_block(&config(Instance::new("x")), X);
            assert!(plan.change(X).is_import());
            assert_eq!(plan.change(X).actions(), "no-op");
            fresh.apply_plan();
            fresh.settled();
        }
        workspace.finish();
    });
}

#[test]
fn a_number_of_gpus_that_no_configuration_names_is_that_of_the_machine() {
    each_workspace(|site, workspace| {
        let open = Instance::new("x").without("gpu_num");
        workspace.apply_ok(&config(open.clone().set("gpu_num", 4)));
        workspace.import_ok(&config(open.clone()), X, &[]).settled();
        workspace.write(&config(open.clone()));
        workspace.settled();
        let choice = open.without("spec_id").set("candidates", "[{ spec_id = 103 }]");
        workspace.import_ok(&config(choice), X, &["candidates"]);
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn arguments_that_are_never_reported_are_set_after_an_import_without_a_call() {
    each_workspace(|site, workspace| {
        let config = config(
            Instance::new("x")
                .text("hostname", "gpu-1")
                .text("wait_for_capacity", "10m")
                .text("login_method", "ssh_key")
                .set("ssh_pubkey_id", 17)
                .text("ssh_pubkey_name", "laptop"),
        );
        workspace.apply_ok(&config);
        let fresh = workspace.import_ok(&config, X, &["hostname", "wait_for_capacity", "ssh_pubkey_id"]);
        let changes = site.changes();
        let plan = fresh.plan(&[]);
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
        fresh.apply_plan();
        fresh.settled();
        assert_eq!(site.changes(), changes, "nothing was sent");
        assert_eq!(fresh.state().resource(X).value("hostname"), &json!("gpu-1"));
        workspace.finish();
    });
}

#[test]
fn what_an_import_cannot_know_is_filled_by_defaults() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        // Values that the service never reports and that differ from the defaults: the import assumes the defaults, and
        // the configuration corrects them in place.
        let config = config(
            Instance::new("x")
                .text("payment_type", "Daily")
                .set("purchase_duration", 3)
                .set("data_disk_expand_size_gb", 20)
                .text("data_disk_mount_path", "/data/fast")
                .set("store_credentials", true)
                .set("deletion_protection", true),
        );
        workspace.apply_ok(&config);
        let fresh = Workspace::new(cli, &site);
        fresh.write(&config);
        fresh.run_ok(&["import", "-no-color", "-input=false", X, &site.live()[0]]);
        let changes = site.changes();
        let plan = fresh.plan(&[]);
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())], "{:?}", plan.change(X).replace_paths());
        fresh.apply_plan();
        fresh.settled();
        assert_eq!(site.changes(), changes, "nothing was sent");
        let state = fresh.state();
        assert_eq!(state.resource(X).value("data_disk_mount_path"), &json!("/data/fast"));
        assert!(state.resource(X).value("ssh_password").is_string());
    });
}

#[test]
fn what_cannot_be_imported_is_said() {
    each_workspace(|_, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let uid = workspace.state().resource(X).id();
        workspace.destroy_ok();
        for (id, words) in
            [(uid.as_str(), "released"), ("ins-unknown", "does not exist"), ("5001", "database_id"), (" ", "empty")]
        {
            let run = workspace.run(&["import", "-no-color", "-input=false", X, id]);
            assert_eq!(run.code, Some(1));
            assert!(run.stderr.contains(words), "{id}: {}", run.stderr);
        }
        assert!(workspace.state().addresses().is_empty());
    });
}
