//! Imports by identity, and the identity in states, with the versions that support it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::terraform::{Instance, Site, State, Workspace, config, each_cli_since, each_workspace_since};

/// The identity of a resource, from the state file: OpenTofu's `show -json` does not have it.
fn identity_of(workspace: &Workspace<'_>, kind: &str) -> Value {
    let state = std::fs::read(workspace.directory().join("terraform.tfstate")).unwrap();
    let state: Value = serde_json::from_slice(&state).unwrap();
    let resources = state["resources"].as_array().unwrap();
    let resource = resources.iter().find(|resource| resource["type"] == kind && resource["mode"] == "managed").unwrap();
    resource["instances"][0]["identity"].clone()
}

/// The attributes of all resources, without the cost at the time of the create.
fn shown(state: &State) -> Vec<BTreeMap<String, String>> {
    let flat = |address| {
        let mut flat = state.resource(address).flat();
        flat.retain(|name, _| !name.starts_with("estimated_cost") && name != "price_ceiling");
        flat
    };
    ["damodel_instance.x", "damodel_cloud_disk.x"].map(flat).into()
}

const DISK: &str = "resource \"damodel_cloud_disk\" \"x\" {\n  name = \"x\"\n  size_gb = 20\n  spec_id = 31\n}\n";
const IMAGE: &str =
    "resource \"damodel_private_image\" \"x\" {\n  name = \"x\"\n  instance_id = damodel_instance.x.id\n}\n";

#[test]
fn what_is_made_is_imported_by_its_identity() {
    each_cli_since(12, 12, |cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let config = config(format!("{}{DISK}{IMAGE}", Instance::new("x")));
        workspace.apply_ok(&config);
        let state = workspace.state();
        let mut blocks = String::new();
        for (kind, expected) in [
            ("damodel_instance", json!({ "instance_uid": state.resource("damodel_instance.x").id() })),
            ("damodel_cloud_disk", json!({ "id": state.resource("damodel_cloud_disk.x").id() })),
            (
                "damodel_private_image",
                json!({ "image_id": state.resource("damodel_private_image.x").value("image_id") }),
            ),
        ] {
            assert_eq!(identity_of(&workspace, kind), expected, "{kind}");
            let identity = expected.to_string().replace("\":", "\" = ");
            blocks.extend(["import {\n  to = ", kind, ".x\n  identity = ", &identity, "\n}\n"]);
        }
        let before = shown(&state);

        // A new state, which imports all three.
        let fresh = Workspace::new(cli, &site);
        fresh.write(&format!("{config}{blocks}"));
        let plan = fresh.plan(&[]);
        for address in ["damodel_instance.x", "damodel_cloud_disk.x", "damodel_private_image.x"] {
            assert!(plan.change(address).is_import(), "{address}");
        }
        assert_eq!(plan.change("damodel_instance.x").actions(), "no-op");
        fresh.apply_plan();
        fresh.settled();
        // An import keeps no credentials; the next refresh does.
        fresh.run_ok(&["apply", "-refresh-only", "-auto-approve", "-input=false", "-no-color"]);
        assert_eq!(shown(&fresh.state()), before);
        workspace.finish();
    });
}

#[test]
fn an_identity_that_nothing_has_is_an_error() {
    each_workspace_since(12, 12, |_, workspace| {
        let block = "import {\n  to = damodel_cloud_disk.x\n  identity = { id = \"4711\" }\n}\n";
        workspace.write(&config(format!("{DISK}{block}")));
        let said = workspace.try_plan(&[]);
        assert!(said.iter().any(|said| said.is_error() && said.text().contains("4711")), "{said:?}");
    });
}

#[test]
fn a_state_from_before_identities_gets_one() {
    each_workspace_since(12, 12, |_, workspace| {
        workspace.apply_ok(&config(DISK));
        let file = workspace.directory().join("terraform.tfstate");
        let mut state: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let instance = state["resources"][0]["instances"][0].as_object_mut().unwrap();
        assert!(instance.remove("identity").is_some());
        instance.remove("identity_schema_version");
        std::fs::write(&file, state.to_string()).unwrap();
        workspace.run_ok(&["apply", "-auto-approve", "-refresh-only"]);
        workspace.settled();
        assert_eq!(
            identity_of(workspace, "damodel_cloud_disk")["id"],
            workspace.state().resource("damodel_cloud_disk.x").id()
        );
        workspace.finish();
    });
}
