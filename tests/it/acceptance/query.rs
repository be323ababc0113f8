//! `terraform query`, and generated configurations, with the versions that support them.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};

use super::secrets::leaks;
use crate::support::terraform::{Instance, Site, Workspace, config, each_cli, each_cli_since, each_workspace_since};

const DISKS: &str = "resource \"damodel_cloud_disk\" \"x\" {\n  count = 2\n  name = \"mine-${count.index}\"\n  \
                     size_gb = 20\n  spec_id = 31\n}\n";

/// The list blocks of a query.
fn query(workspace: &Workspace<'_>, blocks: &str) {
    fs::write(workspace.directory().join("all.tfquery.hcl"), blocks).unwrap();
}

fn list(kind: &str, arguments: &str, filters: &str) -> String {
    format!("list \"{kind}\" \"all\" {{\n  provider = damodel\n{arguments}\n  config {{\n{filters}\n  }}\n}}\n")
}

/// The results of `query -json`.
fn found(workspace: &Workspace<'_>) -> Vec<Value> {
    let run = workspace.run(&["query", "-json"]);
    let lines: Vec<Value> = run.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let errors: Vec<_> = lines.iter().filter(|line| line["@level"] == "error").collect();
    assert!(run.code == Some(0) && errors.is_empty(), "{errors:#?}{}", run.stderr);
    lines.into_iter().filter_map(|mut line| Some(line["list_resource_found"].take()).filter(Value::is_object)).collect()
}

#[test]
fn a_query_finds_what_there_is() {
    each_workspace_since(14, 99, |site, workspace| {
        let machines = format!("{}{}", Instance::new("x"), Instance::new("y"));
        let image =
            "resource \"damodel_private_image\" \"x\" {\n  name = \"img\"\n  instance_id = damodel_instance.x.id\n}\n";
        workspace.apply_ok(&config(format!("{machines}{DISKS}{image}")));
        let state = workspace.state();
        let uid = |name: &str| state.resource(&format!("damodel_instance.{name}")).id();

        // Names and identities; a released one is left out.
        workspace.apply_ok(&config(format!("{}{DISKS}{image}", Instance::new("x"))));
        query(workspace, &list("damodel_instance", "", ""));
        let all = found(workspace);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert_eq!(all[0]["display_name"], "x");
        assert_eq!(all[0]["identity"], json!({ "instance_uid": uid("x") }));
        assert!(all[0]["resource_object"].is_null());

        // Complete objects, without their secrets.
        query(workspace, &list("damodel_instance", "  include_resource = true", "    query = \"x\""));
        let whole = found(workspace);
        let object = &whole[0]["resource_object"];
        assert_eq!(
            (&object["id"], &object["gpu_num"], &object["status"]),
            (&json!(uid("x")), &json!(1), &json!("Running"))
        );
        assert_eq!((&object["ssh_password"], &object["jupyter_token"]), (&Value::Null, &Value::Null));
        assert_eq!(leaks("printed", workspace.transcript().as_bytes(), &site.secrets()), Vec::<String>::new());

        // Filters and limits.
        query(workspace, &list("damodel_instance", "", "    status = \"Failed\""));
        assert_eq!(found(workspace).len(), 0);
        query(workspace, &list("damodel_cloud_disk", "  limit = 1", ""));
        assert_eq!(found(workspace).len(), 1);
        query(workspace, &list("damodel_cloud_disk", "", "    name_or_uid = \"mine-\""));
        let disks = found(workspace);
        let names: BTreeSet<_> = disks.iter().map(|disk| disk["display_name"].as_str().unwrap()).collect();
        assert_eq!(names, ["mine-0", "mine-1"].into());
        query(workspace, &list("damodel_private_image", "  include_resource = true", "    name = \"img\""));
        let images = found(workspace);
        assert_eq!(images[0]["identity"]["image_id"], *state.resource("damodel_private_image.x").value("image_id"));
        assert_eq!(images[0]["resource_object"]["status"], "ready");

        query(workspace, &list("damodel_private_image", "", "    name_contains = \"IM\"\n    name_regex = \"g$\""));
        assert_eq!(found(workspace).len(), 1);

        // An invalid filter.
        query(workspace, &list("damodel_private_image", "", "    name_regex = \"(\""));
        let refused = workspace.run(&["query", "-no-color"]);
        assert!(refused.code != Some(0), "{}", refused.stdout);
        fs::remove_file(workspace.directory().join("all.tfquery.hcl")).unwrap();
        workspace.finish();
    });
}

#[test]
fn what_a_query_generates_imports_everything_and_changes_nothing() {
    each_cli_since(14, 99, |cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let by_key = Instance::new("y")
            .text("login_method", "ssh_key")
            .set("ssh_pubkey_id", 17)
            .text("ssh_pubkey_name", "laptop");
        workspace.apply_ok(&config(format!("{}{by_key}{DISKS}", Instance::new("x"))));

        let fresh = Workspace::new(cli, &site);
        fresh.write(&config(""));
        let named = |kind: &str, filters: &str| list(kind, "", filters);
        query(
            &fresh,
            &format!("{}{}", named("damodel_instance", ""), named("damodel_cloud_disk", "    name_or_uid = \"mine-\"")),
        );
        fresh.run_ok(&["query", "-no-color", "-generate-config-out=generated.tf"]);
        let generated = fs::read_to_string(fresh.directory().join("generated.tf")).unwrap();
        assert!(["instance_uid", "spec_id", "gpu_num"].iter().all(|name| generated.contains(name)), "{generated}");
        for noise in ["estimated_cost", "spec_type ", "ssh_password", "deletion_protection "] {
            let lines: Vec<_> =
                generated.lines().filter(|line| line.contains(noise) && !line.contains("= null")).collect();
            assert_eq!(lines, Vec::<&str>::new());
        }
        fs::remove_file(fresh.directory().join("all.tfquery.hcl")).unwrap();
        let plan = fresh.plan(&[]);
        assert_eq!(plan.actions(), Vec::<(String, String)>::new(), "{generated}");
        let changes = site.changes();
        fresh.apply_plan();
        fresh.settled();
        assert_eq!((site.changes(), fresh.state().addresses().len()), (changes, 4));
        workspace.finish();
    });
}

#[test]
fn an_import_block_generates_a_configuration_that_plans_nothing() {
    each_cli(|cli| {
        if cli.is_tofu || !cli.has(5, 99) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(format!("{}{DISKS}", Instance::new("x"))));
        let state = workspace.state();
        let fresh = Workspace::new(cli, &site);
        let blocks = |provider: &str| {
            let block =
                |address: &str, id: String| format!("import {{\n  to = {address}\n  id = {id:?}\n{provider}}}\n");
            let machine = block("damodel_instance.x", state.resource("damodel_instance.x").id());
            config(format!(
                "{machine}{}",
                block("damodel_cloud_disk.x", state.resource("damodel_cloud_disk.x[0]").id())
            ))
        };
        // The newest version needs the provider's name while the configuration is missing, and refuses it afterwards.
        fresh.write(&blocks(if cli.has(14, 99) { "  provider = damodel\n" } else { "" }));
        let planned = fresh.run(&["plan", "-no-color", "-generate-config-out=generated.tf"]);
        fresh.write(&blocks(""));
        let generated = fs::read_to_string(fresh.directory().join("generated.tf")).unwrap_or_default();
        // An older version generates from the state alone, including arguments that exclude each other.
        if cli.has(14, 99) {
            assert_eq!(planned.code, Some(0), "{generated}{}{}", planned.stdout, planned.stderr);
            let plan = fresh.plan(&[]);
            assert_eq!(plan.actions(), Vec::<(String, String)>::new(), "{generated}");
            assert!(plan.change("damodel_instance.x").is_import());
        } else {
            assert!(generated.contains("damodel_cloud_disk"), "{}{}", planned.stdout, planned.stderr);
        }
        workspace.finish();
    });
}

#[test]
fn the_examples_are_queries_that_work() {
    each_workspace_since(14, 99, |_, workspace| {
        workspace.apply_ok(&config(Instance::new("trainer")));
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/list-resources");
        let mut counts = Vec::new();
        for kind in ["damodel_cloud_disk", "damodel_instance", "damodel_private_image"] {
            let example = examples.join(kind).join("list-resource.tfquery.hcl");
            query(workspace, &fs::read_to_string(example).unwrap());
            counts.push((kind, found(workspace).len()));
        }
        assert!(counts.contains(&("damodel_instance", 1)), "{counts:?}");
        fs::remove_file(workspace.directory().join("all.tfquery.hcl")).unwrap();
        workspace.finish();
    });
}
