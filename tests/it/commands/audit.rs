//! `audit`: the objects of an account and their holders, on the sandbox.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use damodel::sandbox::{FaultAction, Mutation, Options, StateList, When};
use serde_json::{Value, json};

use crate::support::{
    plugin::BINARY,
    program,
    terraform::{Instance, Run, Site, Workspace, config, each_cli, each_cli_since, each_workspace},
};

const DISK: &str = "resource \"damodel_cloud_disk\" \"data\" {\n  name = \"data\"\n  size_gb = 20\n  spec_id = 31\n}\n";

/// Runs the command in a folder, with a document on its standard input.
fn audit_with(site: &Site, folder: &Path, token: &str, arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new(BINARY);
    command.arg("audit").args(arguments).current_dir(folder).env_clear();
    command.env("DAMODEL_BASE_URL", site.base_url()).env("DAMODEL_API_TOKEN", token);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Run::of(child.wait_with_output().unwrap())
}

fn audit(site: &Site, folder: &Path, arguments: &[&str]) -> Run {
    audit_with(site, folder, site.token(), arguments, "")
}

/// The objects of the JSON output as `kind id`, with their holders.
fn held(run: &Run) -> Vec<(String, String)> {
    let audit: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let objects = audit["objects"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects
        .map(|object| {
            let holder = format!("{} {}", text(&object["holder"]), text(&object["address"]));
            (format!("{} {}", text(&object["kind"]), text(&object["id"])), holder.trim_end().to_owned())
        })
        .collect()
}

fn holder<'a>(held: &'a [(String, String)], object: &str) -> &'a str {
    let found = held.iter().find(|(known, _)| known == object);
    found.map_or_else(|| panic!("{object} in {held:?}"), |(_, holder)| holder)
}

#[test]
fn what_is_billed_is_held_by_a_state_or_unmanaged() {
    each_cli(|cli| {
        let site = Site::start();
        let (workspace, other) = (Workspace::new(cli, &site), Workspace::new(cli, &site));
        let machine = Instance::new("a").set("new_disks", "[{ size_gb = 20, spec_id = 31, mount_path = \"/b\" }]");
        workspace.apply_ok(&config(format!("{machine}{DISK}")));
        other.apply_ok(&config(Instance::new("orphan")));
        let uid = workspace.state().resource("damodel_instance.a").id();
        let disk = workspace.state().resource("damodel_cloud_disk.data").id();
        let orphan = other.state().resource("damodel_instance.orphan").id();
        let folder = workspace.directory();
        let json = ["terraform.tfstate", "--format", "json"];
        let run = audit(&site, &folder, &json);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let known = held(&run);
        assert_eq!(holder(&known, &format!("instance {uid}")), "state damodel_instance.a");
        assert_eq!(holder(&known, &format!("cloud_disk {disk}")), "state damodel_cloud_disk.data");
        assert_eq!(holder(&known, &format!("instance {orphan}")), "unmanaged");
        // The disk that was created with the instance belongs to it; the others are the seed's.
        let of_machine = known
            .iter()
            .filter(|(kind, holder)| kind.starts_with("cloud_disk") && holder == "state damodel_instance.a");
        assert_eq!(of_machine.count(), 1, "{known:?}");
        let all: Value = serde_json::from_str(&run.stdout).unwrap();
        let machine = all["objects"].as_array().unwrap().iter().find(|object| object["id"] == *uid).unwrap();
        assert_eq!((machine["hourly"].as_f64(), machine["monthly"].as_f64()), (Some(1.98), Some(1445.4)));
        assert_eq!((&machine["source"], &machine["region"]), (&"terraform.tfstate".into(), &"cn-east-1".into()));
        let mut keys: Vec<&String> = machine.as_object().unwrap().keys().collect();
        keys.sort();
        let expected = "address age_seconds holder hourly id kind monthly name region so_far source status";
        assert_eq!(keys.into_iter().cloned().collect::<Vec<_>>().join(" "), expected);
        // The same by `show -json`, from standard input.
        let output = workspace.command(&["show", "-json"]).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(held(&audit_with(&site, &folder, site.token(), &["-", "--format", "json"], &shown)), known);
        // The same as Windows PowerShell 5 redirects it.
        let redirected: Vec<u8> = format!("\u{feff}{shown}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write(folder.join("shown.json"), redirected).unwrap();
        assert_eq!(held(&audit(&site, &folder, &["shown.json", "--format", "json"])), known);
        // Both states together hold both instances.
        let path = other.directory().join("terraform.tfstate");
        let both = audit(&site, &folder, &["terraform.tfstate", path.to_str().unwrap(), "--format", "json"]);
        assert_eq!(holder(&held(&both), &format!("instance {orphan}")), "state damodel_instance.orphan");
        // One file under two names is one state.
        let once = audit(&site, &folder, &["terraform.tfstate", "./terraform.tfstate"]);
        assert!(!once.stderr.contains("managed more than once"), "{}", once.stderr);
        // In two states at once: reported, and counted once.
        fs::copy(folder.join("terraform.tfstate"), folder.join("copy.tfstate")).unwrap();
        let twice = audit(&site, &folder, &["terraform.tfstate", "copy.tfstate", "--format", "json"]);
        assert!(twice.stderr.contains(&format!("instance {uid} is managed more than once")), "{}", twice.stderr);
        assert_eq!(held(&twice).len(), known.len());
        for format in ["table", "json"] {
            let run = audit(&site, &folder, &["terraform.tfstate", "--format", format, "--fail-on", "unmanaged"]);
            assert_eq!(run.code, Some(3), "{}", run.stderr);
            assert!(run.stdout.contains(&orphan) && !site.secrets().iter().any(|secret| run.stdout.contains(secret)));
        }
        let young = audit(&site, &folder, &["terraform.tfstate", "--format", "json", "--older-than", "87600h"]);
        assert!(!held(&young).iter().any(|(object, _)| object.ends_with(&orphan)), "{}", young.stdout);
        // An object of a state that the account lacks.
        site.mutate(Mutation::ReleaseInstance { uid: uid.clone() });
        let all: Value = serde_json::from_str(&audit(&site, &folder, &json).stdout).unwrap();
        let missing =
            json!({"kind": "instance", "id": uid, "address": "damodel_instance.a", "source": "terraform.tfstate"});
        assert!(all["missing"].as_array().unwrap().contains(&missing), "{}", all["missing"]);
    });
}

/// Generates the configuration of import blocks, whose plan imports this many objects and changes no object.
fn imports(workspace: &Workspace<'_>, number: usize) {
    workspace.run_ok(&["plan", "-no-color", "-input=false", "-generate-config-out=generated.tf", "-out=plan"]);
    let expected = format!("Plan: {number} to import, 0 to add, 0 to change, 0 to destroy.");
    assert!(workspace.transcript().contains(&expected), "{expected}\n{}", workspace.transcript());
    let changes = workspace.site.changes();
    workspace.apply_plan();
    fs::remove_file(workspace.directory().join("imports.tf")).unwrap();
    workspace.settled();
    assert_eq!(workspace.site.changes(), changes);
    assert_eq!(workspace.state().addresses().len(), number);
}

/// Every kind, status and form of a purchase, with names that need care.
#[test]
fn the_configuration_that_a_core_generates_changes_nothing() {
    each_cli_since(5, 6, |cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let machines = [
            Instance::new("plain")
                .set("data_disk_expand_size_gb", 50)
                .text("data_disk_mount_path", "/data")
                .text("hostname", "box"),
            Instance::new("monthly").text("payment_type", "Monthly").set("purchase_duration", 3),
            Instance::new("disks")
                .set("exist_disks", "[{ disk_id = 801, mount_path = \"/a\", release_with_instance = true }]")
                .set("new_disks", "[{ size_gb = 20, spec_id = 31, mount_path = \"/b\" }]"),
            Instance::new("by_key")
                .text("login_method", "ssh_key")
                .set("ssh_pubkey_id", 17)
                .text("ssh_pubkey_name", "laptop"),
            Instance::new("by_password").text("login_method", "password").text("external_ip", "203.0.113.7"),
            Instance::new("spot").without("spec_id").text("spec_type", "gpu.rtx4090.spot"),
            Instance::new("of_private")
                .set("image_id", "damodel_private_image.x.image_id")
                .text("image_type", "private")
                .set("store_credentials", true),
            Instance::new("released"),
            Instance::new("failed"),
        ];
        let machines = machines.map(|machine| machine.to_string()).concat();
        let disks = "resource \"damodel_cloud_disk\" \"x\" {\n  count = 2\n  name = \"disk\"\n  size_gb = 20\n  \
                     spec_id = 31\n  mount_path = \"/x/${count.index}\"\n}\n";
        let image = "resource \"damodel_private_image\" \"x\" {\n  name = \"img\"\n  instance_id = \
                     damodel_instance.plain.id\n}\n";
        workspace.apply_ok(&config(format!("{machines}{disks}{image}")));
        let state = workspace.state();
        let uid = |label: &str| state.resource(&format!("damodel_instance.{label}")).id();
        for (label, name) in
            [("plain", "a\"b"), ("monthly", "${oops}"), ("spot", "two\nlines 🙂"), ("by_key", "训练机")]
        {
            site.set(StateList::Instances, uid(label), &json!({ "alias": name }));
        }
        site.mutate(Mutation::SetInstanceStatus { uid: uid("failed"), status: "Failed".to_owned() });
        site.mutate(Mutation::ReleaseInstance { uid: uid("released") });
        let fresh = Workspace::new(cli, &site);
        fresh.write(&config(""));
        let run = audit(&site, &fresh.directory(), &["--imports", "imports.tf"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        for (label, status) in [("failed", "Failed"), ("released", "Released")] {
            let said = format!("Left out instance {}: it is {status}.\n", uid(label));
            assert_eq!(run.stderr.matches(&said).count(), 1, "{}", run.stderr);
        }
        let blocks = fs::read_to_string(fresh.directory().join("imports.tf")).unwrap();
        for gone in [uid("released"), uid("failed")] {
            assert!(!blocks.contains(&gone), "{blocks}");
        }
        imports(&fresh, blocks.matches("import {").count());
    });
}

#[test]
fn import_blocks_of_what_is_unmanaged_go_to_a_new_file() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("a")));
        let uid = workspace.state().resource("damodel_instance.a").id();
        let folder = workspace.directory();
        let run = audit(site, &folder, &["terraform.tfstate", "--imports", "imports.tf"]);
        assert!(run.code == Some(0) && run.stderr.starts_with("Wrote "), "{}", run.stderr);
        let imports = fs::read_to_string(folder.join("imports.tf")).unwrap();
        assert!(imports.contains("to       = damodel_cloud_disk.") && !imports.contains(&uid), "{imports}");
        // The file is checked first: this token would be refused.
        let run = audit_with(site, &folder, "wrong", &["--imports", "imports.tf"], "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains("imports.tf exists and is not overwritten"), "{}", run.stderr);
        assert_eq!(fs::read_to_string(folder.join("imports.tf")).unwrap(), imports);
        let run = audit(site, &folder, &["--older-than", "87600h", "--imports", "none.tf"]);
        assert!(run.code == Some(0) && run.stderr.contains("No file was written"), "{}", run.stderr);
        assert!(!folder.join("none.tf").exists());
    });
}

/// What identifies an object: disks and images may have the same number.
fn key(object: &Value) -> String {
    format!("{} {}", object["kind"].as_str().unwrap(), object["id"].as_str().unwrap())
}

/// A state file with the objects that an audit without states found, except some.
fn state_without(objects: &[Value], left_out: &BTreeSet<String>) -> String {
    let held = objects.iter().filter(|object| !left_out.contains(&key(object)));
    let resource = |object: &Value| {
        let kind = format!("damodel_{}", object["kind"].as_str().unwrap());
        json!({"mode": "managed", "type": kind, "name": "x", "provider": "p", "instances": [
            {"index_key": object["id"], "attributes": {"id": object["id"], "ssh_password": "hunter2"}}]})
    };
    let resources: Vec<Value> = held.map(resource).collect();
    json!({"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "x", "outputs": {},
        "resources": resources})
    .to_string()
}

/// 10,000 objects with 300 orphans of each kind, found exactly in a handful of lists.
#[test]
fn orphans_are_found_among_ten_thousand() {
    let site = Site::with(Options {
        generate_instances: 3_400,
        generate_disks: 3_300,
        generate_images: 3_300,
        ..Site::options()
    });
    let folder = tempfile::tempdir().unwrap();
    let first = audit(&site, folder.path(), &["--format", "json"]);
    let all: Value = serde_json::from_str(&first.stdout).unwrap();
    let objects = all["objects"].as_array().unwrap();
    assert!(objects.len() >= 10_000, "{}", objects.len());
    let planted = ["instance", "cloud_disk", "private_image"].map(|kind| {
        let of_kind = objects.iter().filter(|object| object["kind"] == kind).enumerate();
        let some = of_kind.filter(|(number, _)| number % 11 == 7).map(|(_, object)| key(object));
        some.take(300).collect::<BTreeSet<String>>()
    });
    assert!(planted.iter().all(|some| some.len() == 300));
    let orphans: BTreeSet<String> = planted.into_iter().flatten().collect();
    fs::write(folder.path().join("state.json"), state_without(objects, &orphans)).unwrap();
    let before: usize = site.ledger().requests.len();
    let begun = Instant::now();
    let run = audit(&site, folder.path(), &["state.json", "--format", "json", "--fail-on", "unmanaged"]);
    let _ = writeln!(std::io::stderr(), "audit of {} objects: {:?}", objects.len(), begun.elapsed());
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let unmanaged = found["objects"].as_array().unwrap().iter().filter(|object| object["holder"] == "unmanaged");
    assert_eq!(unmanaged.map(key).collect::<BTreeSet<String>>(), orphans);
    assert_eq!(found["missing"], json!([]));
    assert!(!run.stdout.contains("hunter2"));
    let requests = site.ledger().requests.len() - before;
    assert!(requests <= 4 * 5, "{requests} requests");
}

#[test]
fn what_cannot_be_read_whole_is_no_all_clear() {
    let site = Site::start();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("encrypted.tfstate", r#"{"meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}"#);
    write(
        "other.tfstate",
        r#"{"version":4,"resources":[{"mode":"managed","type":"damodel_cloud_disk","name":"d","instances":[{"attributes":{"id":"99999"}}]}]}"#,
    );
    let long = "DAMODEL_BASE_URL and DAMODEL_API_TOKEN";
    for (arguments, reason) in [
        (&["encrypted.tfstate"][..], "error: cannot read encrypted.tfstate as a state: it is encrypted by OpenTofu"),
        (
            &["other.tfstate"],
            "error: none of the 1 objects of other.tfstate is in the account: it belongs to another account",
        ),
        (&["-"], "error: cannot read standard input as a state: it is empty"),
        (&["/nowhere.tfstate"], "error: cannot read /nowhere.tfstate: "),
        (&["--pending-dir", "nowhere"], "error: no pending directory at nowhere"),
    ] {
        let run = audit(&site, folder.path(), arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(run.stderr.starts_with(reason), "{}", run.stderr);
    }
    assert!(audit(&site, folder.path(), &["other.tfstate"]).stderr.contains(long));
    assert_eq!(audit(&site, folder.path(), &["--older-than", "soon"]).code, Some(2));
    let wrong = audit_with(&site, folder.path(), "wrong", &[], "");
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""));
    assert!(wrong.stderr.starts_with("error: cannot list the instances of the account: "), "{}", wrong.stderr);
    let strange = r#"{"version":1,"kind":"instance"}"#;
    fs::create_dir(folder.path().join("pending")).unwrap();
    write("pending/instance-1.json", strange);
    let notes = audit(&site, folder.path(), &["--pending-dir", "pending"]);
    assert!(notes.stderr.starts_with("error: cannot read the pending directory "), "{}", notes.stderr);
    // Lists that are cut off, or are not JSON.
    for (endpoint, action) in [
        ("instance_list", FaultAction::Html { status: 200, processed: false }),
        ("cloud_disk_list", FaultAction::Truncated),
        ("private_image_list", FaultAction::Html { status: 200, processed: false }),
    ] {
        let site = Site::start();
        site.arm(endpoint, When::Always, action);
        let run = audit(&site, folder.path(), &[]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{endpoint}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}

/// The pending record of a killed run holds its create, at the address that it was sent to and until it is finished.
#[test]
fn a_note_holds_what_it_made() {
    let site = Site::start();
    let folder = tempfile::tempdir().unwrap();
    let all: Value = serde_json::from_str(&audit(&site, folder.path(), &["--format", "json"]).stdout).unwrap();
    let disk = &all["objects"].as_array().unwrap().iter().find(|object| object["kind"] == "cloud_disk").unwrap()["id"];
    fs::create_dir(folder.path().join("notes")).unwrap();
    let file = |ending: &str| folder.path().join(format!("notes/cloud_disk-1{ending}"));
    let holder = |base_url: &str, ending: &str| {
        let scope = json!({"stack": "s", "workspace": "default", "directory": "d", "backend": "b", "is_local": true});
        let note = json!({"version": 1, "kind": "cloud_disk", "phase": "accepted", "scope": scope, "request": "r",
            "marker": "data-1a2b", "base_url": base_url, "account": "another token", "begun_at": 1, "updated_at": 1,
            "process": 1, "ids": {"id": disk}});
        fs::write(file(ending), note.to_string()).unwrap();
        let run = audit(&site, folder.path(), &["--pending-dir", "notes", "--format", "json"]);
        // The folder of the provider's variable counts as well.
        let mut command = Command::new(BINARY);
        command.args(["audit", "--format", "json"]).current_dir(folder.path()).env_clear();
        command.env("DAMODEL_BASE_URL", site.base_url()).env("DAMODEL_API_TOKEN", site.token());
        let by_variable = Run::of(command.env("DAMODEL_PENDING_DIR", "notes").output().unwrap());
        fs::remove_file(file(ending)).unwrap();
        let holder_in = |run: &Run| {
            let found: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
            let object = found["objects"].as_array().unwrap().iter().find(|object| object["id"] == *disk).unwrap();
            json!([object["holder"], object["source"], object["address"]])
        };
        assert_eq!((holder_in(&by_variable), &by_variable.stderr), (holder_in(&run), &run.stderr));
        (holder_in(&run), run.stderr)
    };
    let unmanaged = json!(["unmanaged", null, null]);
    assert_eq!(holder(site.base_url(), ".json"), (json!(["pending", "notes", null]), String::new()));
    assert_eq!(holder(site.base_url(), ".done.json"), (unmanaged.clone(), String::new()));
    let told = "warning: 1 pending record is for another base address and not counted\n";
    assert_eq!(holder("https://elsewhere.example", ".json"), (unmanaged, told.to_owned()));
}

/// Sums are those of the account, whatever is listed; a price that is unknown is named.
#[test]
fn sums_are_made_before_filters() {
    let site = Site::with(Options { generate_instances: 2, ..Site::options() });
    let folder = tempfile::tempdir().unwrap();
    let last = |run: &Run| run.stdout.lines().last().unwrap_or_default().to_owned();
    let whole = audit(&site, folder.path(), &[]);
    let old = audit(&site, folder.path(), &["--older-than", "87600h"]);
    assert!(!last(&whole).contains("objects (0.00 a month"), "{}", whole.stdout);
    assert_eq!(last(&old), last(&whole));
    let closed = audit(&site, folder.path(), &["--fail-on", "unmanaged"]);
    assert_eq!(closed.code, Some(3));
    assert!(closed.stderr.contains("in no state and no pending record: instance ins-"), "{}", closed.stderr);
}

/// The age times today's price of the whole instance, as text and as a number; a prepaid term has none.
#[test]
fn an_instance_has_cost_its_age_at_todays_price() {
    each_workspace(|site, workspace| {
        let daily = Instance::new("daily").text("payment_type", "Daily").set("purchase_duration", 3);
        workspace.apply_ok(&config(format!("{}{daily}{DISK}", Instance::new("x").set("gpu_num", 2))));
        let [uid, prepaid] =
            ["x", "daily"].map(|name| workspace.state().resource(&format!("damodel_instance.{name}")).id());
        let disk = workspace.state().resource("damodel_cloud_disk.data").id();
        for uid in [&uid, &prepaid] {
            site.started_hours_ago(uid, 9);
        }
        let folder = workspace.directory();
        let run = audit(site, &folder, &["terraform.tfstate", "--format", "json"]);
        let all: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
        let find = |id: &str| all["objects"].as_array().unwrap().iter().find(|object| object["id"] == *id).unwrap();
        // 9 hours, and the seconds of this test.
        let of_state = all["so_far_by_holder"].as_array().unwrap().iter().find(|sum| sum["holder"] == "state").unwrap();
        for so_far in [&find(&uid)["so_far"], &of_state["so_far"]] {
            let so_far = so_far.as_f64().unwrap();
            assert!((35.64..35.80).contains(&so_far), "{so_far}");
        }
        assert_eq!((&find(&prepaid)["so_far"], &find(&disk)["so_far"]), (&Value::Null, &Value::Null));
        assert_eq!(of_state["source"], "terraform.tfstate");
        assert_eq!(of_state["lacks"], json!([prepaid, format!("disk:{disk}")]));

        let table = audit(site, &folder, &["terraform.tfstate"]).stdout;
        let row = table.lines().find(|line| line.contains(&uid)).unwrap();
        assert!(row.contains("  9h  ") && row.contains("  35."), "{table}");
        assert!(table.contains("\n- terraform.tfstate: 35."), "{table}");
        assert!(table.contains(&format!(", without {prepaid}, disk:{disk}\n")), "{table}");
        assert!(table.contains("today's hourly price, and not the bill"), "{table}");
    });
}

/// `--fail-on expired` judges as `expire` does without --yes.
#[test]
fn an_instance_that_is_too_old_fails_the_audit() {
    each_workspace(|site, workspace| {
        let aged = |name: &str| Instance::new(name).text("max_age", "8h");
        let protected = aged("protected").set("deletion_protection", true);
        workspace.apply_ok(&config(format!("{}{protected}{}", aged("old"), aged("released"))));
        let folder = workspace.directory();
        let run = |arguments: &[&str]| audit(site, &folder, &[&["terraform.tfstate"], arguments].concat());
        assert_eq!(run(&["--fail-on", "expired"]).code, Some(0));
        for uid in site.live() {
            site.started_hours_ago(&uid, 9);
        }
        site.mutate(Mutation::ReleaseInstance { uid: workspace.state().resource("damodel_instance.released").id() });
        for fail_on in ["expired", "unmanaged,expired"] {
            let found = run(&["--fail-on", fail_on]);
            assert_eq!(found.code, Some(3), "{}", found.stderr);
            for name in ["old", "protected"] {
                let told = format!("damodel_instance.{name} in terraform.tfstate) is older than its max_age (8h)");
                assert!(found.stderr.contains(&told), "{}", found.stderr);
            }
            assert!(!found.stderr.contains("damodel_instance.released in"), "{}", found.stderr);
            assert_eq!(found.stderr.contains("unmanaged: "), fail_on != "expired", "{}", found.stderr);
        }
        let shown = String::from_utf8(workspace.command(&["show", "-json"]).output().unwrap().stdout).unwrap();
        let wrong = audit_with(site, &folder, site.token(), &["-", "--fail-on", "expired"], &shown);
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{}", wrong.stderr);
        let none = audit(site, &folder, &["--fail-on", "expired"]);
        assert!(none.code == Some(2) && none.stderr.contains("needs a STATE"), "{}", none.stderr);
    });
}

/// The token of each command comes from a variable, or from the program that a variable names.
#[test]
fn the_token_is_that_of_the_environment_or_of_its_program() {
    let site = Site::start();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("print token");
    program::put(&program, &format!("#!/bin/sh\necho {}\n", site.token()));
    let program = program.to_str().unwrap();
    let (address, by_program) = (("DAMODEL_BASE_URL", site.base_url()), ("DAMODEL_API_TOKEN_COMMAND", program));
    for (variables, code, words) in [
        (vec![], 1, "(DAMODEL_BASE_URL, and DAMODEL_API_TOKEN or DAMODEL_API_TOKEN_COMMAND)"),
        (vec![("DAMODEL_API_TOKEN", "t")], 1, "no base address of the service is set (DAMODEL_BASE_URL)"),
        (vec![address], 1, "no API token is set (DAMODEL_API_TOKEN or DAMODEL_API_TOKEN_COMMAND)"),
        (
            vec![address, ("DAMODEL_API_TOKEN", "t"), by_program],
            1,
            "error: DAMODEL_API_TOKEN and DAMODEL_API_TOKEN_COMMAND are both set",
        ),
        (vec![address, by_program], 0, ""),
    ] {
        let mut command = Command::new(BINARY);
        command.arg("audit").current_dir(folder.path()).env_clear().envs(variables);
        let run = Run::of(command.output().unwrap());
        assert_eq!((run.code, run.stdout.is_empty()), (Some(code), code == 1), "{}", run.stderr);
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}
