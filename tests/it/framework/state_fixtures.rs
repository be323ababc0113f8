//! States of earlier versions, which must stay readable without a change.
//!
//! Each folder of `tests/fixtures/state` is named for the version that wrote it, and holds a configuration, its state,
//! and the world of the sandbox in which it was applied. To write the one of this version, put its `main.tf` there and
//! run `cargo test --test it state_fixtures::written -- --ignored`. With the release it is frozen: [`FROZEN`].

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use damodel::sandbox::Options;
use regex::Regex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{
    plugin::BINARY,
    terraform::{Cli, Site, Workspace, each_cli},
};

/// The state of a folder, as Terraform names it and as a fixture does.
const STATE: &str = "terraform.tfstate";
const KEPT: &str = "state.json";
const WORLD: &str = "sandbox.json";

/// The states of released versions, with their digests. A later schema reads them as they are. New attributes go into a
/// folder of their own, for a new version in Cargo.toml.
const FROZEN: [(&str, &str); 1] = [("0.1.0", "ae85fe6ca215a67997b2850b692e5dff80933298f701b1d3ae0fc169fe614916")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state")
}

fn fixtures() -> Vec<PathBuf> {
    let mut fixtures: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    fixtures.sort();
    fixtures
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The managed resources of a state file: address, attributes.
fn resources(state: &Value) -> Vec<(String, &Value)> {
    let managed = state["resources"].as_array().unwrap().iter().filter(|resource| resource["mode"] == "managed");
    let address = |it: &Value| format!("{}.{}", it["type"].as_str().unwrap(), it["name"].as_str().unwrap());
    managed.map(|resource| (address(resource), &resource["instances"][0]["attributes"])).collect()
}

/// Servers that run in an instance. A restarted sandbox has new machines, in which no server runs.
const IN_A_MACHINE: &str = "damodel_llama_server.";

/// Attributes of the state file that the state lacks or has with another value: addresses and names.
fn lost(state: &Value, read: &Value) -> Vec<String> {
    let read = read["values"]["root_module"]["resources"].as_array().unwrap();
    let mut lost = Vec::new();
    for (address, attributes) in resources(state) {
        let found = read.iter().find(|resource| resource["address"] == address.as_str());
        for (name, value) in attributes.as_object().unwrap() {
            if found.is_none_or(|found| found["values"].get(name) != Some(value)) {
                lost.push(format!("{address}.{name}"));
            }
        }
    }
    lost
}

/// The prior state of the last plan.
fn prior_state(workspace: &Workspace<'_>) -> Value {
    let plan: Value = serde_json::from_str(&workspace.run_ok(&["show", "-json", "plan"]).stdout).unwrap();
    plan["prior_state"].clone()
}

/// A sandbox with the fixture's world, and a workspace with its configuration and a state.
fn restored(cli: &Cli, fixture: &Path, state: &Value, test: impl FnOnce(&Workspace<'_>)) {
    let world = tempfile::tempdir().unwrap();
    fs::copy(fixture.join(WORLD), world.path().join(WORLD)).unwrap();
    let site = Site::with(Options { state: Some(world.path().join(WORLD)), ..Site::options() });
    let workspace = Workspace::new(cli, &site);
    workspace.write(&fs::read_to_string(fixture.join("main.tf")).unwrap());
    fs::write(workspace.directory().join(STATE), state.to_string()).unwrap();
    test(&workspace);
}

#[test]
fn every_state_reads_on_without_a_change() {
    each_cli(|cli| {
        for fixture in fixtures() {
            let state = json(&fixture.join(KEPT));
            restored(cli, &fixture, &state, |workspace| {
                let place = fixture.display();
                assert_eq!(workspace.plan(&["-refresh=false"]).actions(), vec![], "{place}");
                assert_eq!(lost(&state, &prior_state(workspace)), Vec::<String>::new(), "{place}");

                // A server that does not run is started again in place; no resource is replaced.
                let refreshed = workspace.plan(&["-refresh=true"]);
                let (servers, others): (Vec<_>, Vec<_>) =
                    refreshed.actions().into_iter().partition(|(address, _)| address.starts_with(IN_A_MACHINE));
                assert_eq!(others, vec![], "{place}");
                assert!(servers.iter().all(|(_, actions)| actions == "update"), "{place}: {servers:?}");
                // An instance has another port if the old one is in use. Its services have it too.
                let of_ports = [".ssh_port", ".services"];
                let mut lost = lost(&state, &prior_state(workspace));
                lost.retain(|it| !it.starts_with(IN_A_MACHINE) && !of_ports.iter().any(|end| it.ends_with(end)));
                assert_eq!(lost, Vec::<String>::new(), "{place}");
            });
        }
    });
}

/// The test above can fail: a value of another type cannot be read, and a removed attribute is lost.
#[test]
fn what_can_no_longer_be_read_is_seen() {
    each_cli(|cli| {
        let fixture = fixtures().pop().unwrap();
        let changed = |name: &str, value: Value| {
            let mut state = json(&fixture.join(KEPT));
            let resources = state["resources"].as_array_mut().unwrap();
            let instance = resources.iter_mut().find(|resource| resource["type"] == "damodel_instance").unwrap();
            instance["instances"][0]["attributes"][name] = value;
            state
        };
        let of_another_type = changed("gpu_num", json!("several"));
        restored(cli, &fixture, &of_another_type, |workspace| {
            assert_ne!(workspace.run(&["plan", "-no-color", "-refresh=false"]).code, Some(0));
        });
        let with_more = changed("former", json!("value"));
        restored(cli, &fixture, &with_more, |workspace| {
            workspace.plan(&["-refresh=false"]);
            assert_eq!(lost(&with_more, &prior_state(workspace)), ["damodel_instance.full.former"]);
        });
    });
}

/// Each resource has its example in a folder of its type, as the tests of the examples check.
#[test]
fn every_resource_has_a_state() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/resources");
    let offered: BTreeSet<String> =
        fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let states: Vec<Value> = fixtures().iter().map(|fixture| json(&fixture.join(KEPT))).collect();
    let kept = states.iter().flat_map(|state| state["resources"].as_array().unwrap());
    let kept: BTreeSet<String> = kept.map(|resource| resource["type"].as_str().unwrap().to_owned()).collect();
    assert!(offered.is_subset(&kept), "offered: {offered:?}, kept: {kept:?}");
}

/// The digest of a fixture's configuration and state. Its world belongs to the sandbox, whose form may change.
fn digest(fixture: &Path) -> String {
    let content = ["main.tf", KEPT].map(|name| fs::read(fixture.join(name)).unwrap()).concat();
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn states_of_shipped_versions_are_frozen() {
    for (version, shipped) in FROZEN {
        assert_eq!(digest(&folder().join(version)), shipped, "the fixture of {version} was shipped and has changed");
    }
}

#[test]
#[ignore = "writes the fixture of this version, which is done once"]
fn written() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(FROZEN.iter().all(|(shipped, _)| *shipped != version), "{version} was shipped: raise it in Cargo.toml");
    let fixture = folder().join(version);
    let world = tempfile::tempdir().unwrap();
    each_cli(|cli| {
        let _ = fs::remove_file(world.path().join(WORLD));
        let options =
            Options { state: Some(world.path().join(WORLD)), executable: Some(BINARY.into()), ..Site::options() };
        let site = Site::with(options);
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&fs::read_to_string(fixture.join("main.tf")).unwrap());
        // A refresh stores later changes, such as a slow mount.
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color"]);
        // The home of an instance is a folder of this computer.
        let state = fs::read_to_string(workspace.directory().join(STATE)).unwrap();
        let home = Regex::new(r#"[^"\s=]*/sandbox-\w+/ins-\w+/root"#).unwrap();
        fs::write(fixture.join(KEPT), home.replace_all(&state, "/root").as_ref()).unwrap();
        fs::copy(world.path().join(WORLD), fixture.join(WORLD)).unwrap();
    });
}
