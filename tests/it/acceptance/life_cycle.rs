//! From create to destroy.

use damodel::sandbox::{Balance, LifeKind, StateList};
use serde_json::json;

use crate::support::terraform::{Installation, Instance, Site, Workspace, config, each_cli, each_workspace};

const X: &str = "damodel_instance.x";

/// The catalogue's data sources, and an instance made from their results.
const CATALOGUE: &str = r#"
data "damodel_specs" "cheap" {
  gpu_name_regex = "4090"
  capacity_type  = "ondemand"
  available_only = true
  sort_by        = "price"
}
data "damodel_public_images" "pytorch" {
  label      = "pytorch"
  name_regex = "2\\.5"
}
resource "damodel_instance" "x" {
  name       = "trainer"
  spec_id    = data.damodel_specs.cheap.specs[0].spec_id
  gpu_num    = 2
  image      = data.damodel_public_images.pytorch.images[0].image_url
}
output "address" { value = "${damodel_instance.x.ssh_host}:${damodel_instance.x.ssh_port}" }
output "services" { value = damodel_instance.x.reported.services }
"#;

#[test]
fn the_whole_life_from_a_mirror() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::installed(cli, &site, Installation::Mirror);
        workspace.write(&config(CATALOGUE));
        workspace.init();
        let plan = workspace.plan_and_apply_ok(&config(CATALOGUE));
        let change = plan.change(X);
        assert_eq!(change.actions(), "create");
        let parts = change.unknown().into_iter().filter(|name| name.starts_with("reported"));
        assert_eq!((change.is_unknown("id"), parts.collect::<Vec<_>>()), (true, vec!["reported".to_owned()]));
        assert_eq!([change.after("spec_id"), change.after("gpu_num")], [&json!(103), &json!(2)]);
        assert_eq!([change.after("region"), change.after("payment_type")], [&json!("cn-east-1"), &json!("Hourly")]);

        let state = workspace.state();
        let machine = state.resource(X);
        assert_eq!(vec![machine.id()], site.live());
        assert_eq!([machine.value("status"), machine.value("name")], [&json!("Running"), &json!("trainer")]);
        assert_eq!([machine.value("image_id"), machine.value("image_type")], [&json!(902), &json!("public")]);
        assert_eq!(machine.value("spec_type"), &json!("gpu.rtx4090.1"));
        let shown = workspace.shown_state();
        assert_eq!(shown.resource(X).sensitive(), ["jupyter_token", "object_mounts", "ssh_password"]);
        assert_eq!(state.output("services"), machine.value("reported.services"));
        assert!(machine.value("reported.services").as_array().is_some_and(|services| !services.is_empty()));
        assert_eq!(state.output("address"), &json!(format!("127.0.0.1:{}", machine.value("ssh_port"))));
        workspace.finish();
        assert_eq!(site.balance(), Balance { created: 1, released: 1, removed: 0, live: 0 });
    });
}

#[test]
fn a_create_carries_a_marker_until_it_is_accepted() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x").text("name", "trainer")));
        let life = site.ledger().life.into_iter().filter(|event| event.uid.starts_with("ins-"));
        let names: Vec<_> = life.map(|event| (event.kind, event.name)).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(names[0].0, LifeKind::Created);
        assert!(names[0].1.starts_with("trainer-") && names[0].1.len() == "trainer-".len() + 12, "{names:?}");
        assert_eq!(names[1], (LifeKind::Renamed, "trainer".to_owned()));
        workspace.finish();
    });
}

#[test]
fn a_rename_is_in_place_and_everything_else_stays_known() {
    each_workspace(|site, workspace| {
        let named = |name: &str| {
            config(format!(
                "{}\nresource \"terraform_data\" \"dependent\" {{\n  triggers_replace = [damodel_instance.x.id, \
                 damodel_instance.x.ssh_host]\n}}\noutput \"id\" {{ value = damodel_instance.x.id }}",
                Instance::new("x").text("name", name)
            ))
        };
        workspace.apply_ok(&named("before"));
        let uid = workspace.state().resource(X).id();
        // Meanwhile it was renamed in the console too.
        site.set(StateList::Instances, &uid, &json!({ "alias": "by-hand" }));
        let plan = workspace.plan_and_apply_ok(&named("after"));
        assert_eq!(plan.change(X).before("name"), &json!("by-hand"));
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
        assert_eq!(plan.output("id"), "no-op");
        let state = workspace.state();
        assert_eq!((state.resource(X).id(), state.resource(X).value("name")), (uid, &json!("after")));
        assert_eq!(site.requests("instance_rename"), 2, "one of the create and one of the update");
        workspace.finish();
    });
}

#[test]
fn what_is_not_sent_changes_in_place_and_sends_nothing() {
    each_workspace(|site, workspace| {
        let monthly = || Instance::new("x").text("payment_type", "Monthly").set("purchase_duration", 1);
        workspace.apply_ok(&config(monthly()));
        let changes = site.changes();
        let instance = monthly()
            .text("wait_for_capacity", "1m")
            .text("on_unreleasable", "abandon")
            .block("timeouts { create = \"7m\" }");
        let plan = workspace.plan_and_apply_ok(&config(instance));
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
        assert_eq!(site.changes(), changes);
    });
}

#[test]
fn arguments_may_be_unknown_until_the_apply() {
    each_workspace(|_, workspace| {
        let body = |name: &str| {
            config(format!(
                "resource \"terraform_data\" \"later\" {{\n  input = {{ name = {name:?}, gpus = 1, spec = 103, image \
                 = 902, kind = \"public\", path = \"/data\", wait = \"5m\", keep = true }}\n}}\n{}",
                Instance::new("x")
                    .set("name", "terraform_data.later.output.name")
                    .set("gpu_num", "terraform_data.later.output.gpus")
                    .set("spec_id", "terraform_data.later.output.spec")
                    .set("image_id", "terraform_data.later.output.image")
                    .set("image_type", "terraform_data.later.output.kind")
                    .set("data_disk_mount_path", "terraform_data.later.output.path")
                    .set("wait_for_capacity", "terraform_data.later.output.wait")
                    .set("store_credentials", "terraform_data.later.output.keep")
            ))
        };
        let plan = workspace.plan_and_apply_ok(&body("first"));
        for argument in
            ["name", "gpu_num", "spec_id", "image_id", "image_type", "data_disk_mount_path", "store_credentials"]
        {
            assert!(plan.change(X).is_unknown(argument), "{argument}");
        }
        assert_eq!(workspace.state().resource(X).value("name"), &json!("first"));
        // An update of terraform_data makes every output unknown, and so the arguments of the create.
        workspace.write(&body("second"));
        let plan = workspace.plan(&[]);
        assert_eq!(plan.change(X).actions(), "delete, create");
        assert!(plan.change(X).replace_paths().contains(&"gpu_num".to_owned()), "{:?}", plan.change(X).replace_paths());
        workspace.apply_plan();
        workspace.settled();
        workspace.finish();
    });
}
