//! `adopt`: the objects of an account as a configuration that the real command line imports without a change.

use std::{fs, path::Path, process::Command};

use damodel::sandbox::{Code, FaultAction, Mutation, Options, StateList, When};
use proptest::{
    prelude::*,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::json;

use crate::support::{
    plugin::BINARY,
    terraform::{Cli, Instance, Run, Site, Workspace, config, each_cli},
};

/// Pieces of random names, which need escaping or care.
const PIECES: [&str; 18] = [
    "${", "%{", "$", "%", "{", "}", "\"", "\\", "\n", "\r", "#", "//", "<<EOT", "e\u{301}", "\u{202e}", "\0",
    "\u{feff}", "~}",
];

/// Runs the command in the workspace's folder.
fn adopt(workspace: &Workspace<'_>, arguments: &[&str]) -> Run {
    let site = workspace.site;
    adopt_with(workspace, &[("DAMODEL_BASE_URL", site.base_url()), ("DAMODEL_API_TOKEN", site.token())], arguments)
}

fn adopt_with(workspace: &Workspace<'_>, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = Command::new(BINARY);
    command.arg("adopt").args(arguments).current_dir(workspace.directory()).env_clear().envs(variables.iter().copied());
    workspace.note(arguments, Run::of(command.output().unwrap()))
}

fn adopt_ok(workspace: &Workspace<'_>, arguments: &[&str]) -> String {
    let run = adopt(workspace, arguments);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    run.stdout
}

/// Plans and applies the adopted configuration, which imports this many objects and changes none.
fn imports(workspace: &Workspace<'_>, number: usize) {
    workspace.run_ok(&["fmt", "-check", "-diff", "-no-color"]);
    workspace.run_ok(&["plan", "-no-color", "-input=false", "-out=plan"]);
    let expected = format!("Plan: {number} to import, 0 to add, 0 to change, 0 to destroy.");
    assert!(workspace.transcript().contains(&expected), "{expected}\n{}", workspace.transcript());
    let changes = workspace.site.changes();
    workspace.apply_plan();
    workspace.settled();
    fs::remove_file(workspace.directory().join("imports.tf")).unwrap();
    workspace.settled();
    assert_eq!(workspace.site.changes(), changes);
    assert_eq!(workspace.state().addresses().len(), number);
}

/// All files of a folder, by name.
fn files(directory: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned())
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort();
    files
}

fn each(test: impl Fn(&Cli, &Site, &Workspace<'_>)) {
    each_cli(|cli| {
        if cli.has(5, 6) {
            let site = Site::start();
            test(cli, &site, &Workspace::new(cli, &site));
        }
    });
}

#[test]
fn the_plan_of_an_adoption_imports_everything_and_changes_nothing() {
    each(|cli, site, workspace| {
        let machines = [
            Instance::new("plain")
                .set("data_disk_expand_size_gb", 50)
                .text("data_disk_mount_path", "/data")
                .text("hostname", "box"),
            Instance::new("monthly").text("payment_type", "Monthly").set("purchase_duration", 3),
            Instance::new("daily").text("payment_type", "Daily").set("purchase_duration", 1).set("auto_renew", true),
            Instance::new("disks")
                .set("exist_disks", "[{ disk_id = 801, mount_path = \"/a\", release_with_instance = true }]")
                .set(
                    "new_disks",
                    "[{ size_gb = 20, spec_id = 31, mount_path = \"/b\" }, { size_gb = 30, spec_id = 32, \
                 release_with_instance = false }]",
                ),
            Instance::new("by_key")
                .text("login_method", "ssh_key")
                .set("ssh_pubkey_id", 17)
                .text("ssh_pubkey_name", "laptop"),
            Instance::new("by_password").text("login_method", "password").text("external_ip", "203.0.113.7"),
            Instance::new("spot").without("spec_id").text("spec_type", "gpu.rtx4090.spot"),
            Instance::new("by_address")
                .without("image_id")
                .without("image_type")
                .set("image", format_args!("\"{}/model_library/pytorch:2.5.1-cuda12.4\"", site.registry_host())),
            Instance::new("of_private")
                .set("image_id", "damodel_private_image.x.image_id")
                .text("image_type", "private")
                .set("store_credentials", true),
            Instance::new("released"),
            Instance::new("failed"),
        ];
        let machines = machines.map(|machine| machine.to_string()).concat();
        let disks = "resource \"damodel_cloud_disk\" \"x\" {\n  count = 3\n  name = \"disk\"\n  size_gb = 20 + \
                     count.index\n  spec_id = 31 + count.index\n  mount_path = \"/x/${count.index}\"\n}\n";
        let image = "resource \"damodel_private_image\" \"x\" {\n  name = \"img\"\n  instance_id = \
                     damodel_instance.plain.id\n}\n";
        workspace.apply_ok(&config(format!("{machines}{disks}{image}")));
        let state = workspace.state();
        let uid = |label: &str| state.resource(&format!("damodel_instance.{label}")).id();
        let number = |address: &str| state.resource(address).id().parse::<i64>().unwrap();
        for (label, name) in [
            ("plain", "a\"b"),
            ("monthly", "${oops}"),
            ("daily", "%{if}"),
            ("spot", "two\nlines 🙂\u{1b}[2J"),
            ("by_key", "训练机"),
        ] {
            site.set(StateList::Instances, uid(label), &json!({ "alias": name }));
        }
        let image = number("damodel_private_image.x");
        site.set(StateList::PrivateImages, image, &json!({ "name": "${file(\"/etc/passwd\")}" }));
        site.mutate(Mutation::SetInstanceStatus { uid: uid("failed"), status: "Failed".to_owned() });
        site.mutate(Mutation::ReleaseInstance { uid: uid("released") });
        site.mutate(Mutation::ReleaseDisk { id: number("damodel_cloud_disk.x[2]") });
        // Four disks are the seed's, two were created with an instance.
        let (instances, all_disks) = (site.live().len(), 4 + 2 + 2);

        let fresh = Workspace::new(cli, site);
        let said = adopt_ok(&fresh, &["--out", "."]);
        let written = files(&fresh.directory());
        let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["cloud_disks.tf", "imports.tf", "instances.tf", "private_images.tf", "versions.tf"]);
        let text: String = written.iter().map(|(_, text)| text.as_str()).collect();
        let images = text.matches("\"damodel_private_image\"").count();
        assert!(
            said.contains(&format!("{instances} instances, {all_disks} cloud disks, {images} private images")),
            "{said}"
        );
        assert!(
            said.contains("damodel_instance.oops: the service does not report purchase_duration")
                && !said.contains('\u{1b}')
        );
        for gone in [uid("released"), "released".to_owned(), "\u{1b}".to_owned()] {
            assert!(!text.contains(&gone), "{gone:?} in {text}");
        }
        assert!(text.contains("ignore_changes = [purchase_duration]"), "{text}");

        // A second run writes nothing.
        let refused = adopt(&fresh, &["--out", "."]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
        assert!(refused.stderr.contains("already contains a configuration"), "{}", refused.stderr);
        assert_eq!(files(&fresh.directory()), written);

        let leaks: Vec<_> =
            site.secrets().into_iter().filter(|secret| text.contains(secret) || said.contains(secret)).collect();
        assert_eq!(leaks, Vec::<String>::new());
        imports(&fresh, instances + all_disks + images);
    });
}

#[test]
fn a_name_of_any_characters_is_read_back_as_it_is() {
    each(|cli, site, workspace| {
        const NUMBER: usize = 48;
        workspace.apply_ok(&config(format!(
            "resource \"damodel_cloud_disk\" \"x\" {{\n  count = {NUMBER}\n  name = \"disk-${{count.index}}\"\n  \
             size_gb = 20\n  spec_id = 31\n}}\n"
        )));
        let state = workspace.state();
        let piece = prop_oneof![3 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from)];
        let name = prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat());
        let mut runner = TestRunner::deterministic();
        for index in 0..NUMBER {
            let id = state.resource(&format!("damodel_cloud_disk.x[{index}]")).id();
            let name = name.new_tree(&mut runner).unwrap().current();
            site.set(StateList::Disks, id, &json!({ "name": name }));
        }
        let fresh = Workspace::new(cli, site);
        adopt_ok(&fresh, &["--out", ".", "--kind", "cloud_disk"]);
        let text = fs::read_to_string(fresh.directory().join("cloud_disks.tf")).unwrap();
        // A blank name cannot be configured.
        assert!(text.matches("  name ").count() > NUMBER, "{text}");
        imports(&fresh, NUMBER + 4);
    });
}

#[test]
fn filters_choose_and_flags_reach_the_configuration() {
    each(|_, _, workspace| {
        workspace.apply_ok(&config(Instance::new("web")));
        let counts = |arguments: &[&str]| {
            let folder = workspace.beside("out");
            let said = adopt_ok(workspace, &[&["--out", folder.to_str().unwrap()], arguments].concat());
            if folder.exists() {
                fs::remove_dir_all(folder).unwrap();
            }
            said
        };
        let first = |arguments: &[&str]| counts(arguments).lines().next().unwrap().to_owned();
        assert!(first(&["--kind", "instance"]).contains("Wrote 1 instance to"));
        assert!(first(&["--kind", "cloud_disk", "--kind", "instance"]).contains("Wrote 1 instance, 4 cloud disks to"));
        assert!(first(&["--name", "^(web|scratch)$"]).contains("Wrote 1 instance, 1 cloud disk to"));
        let here = counts(&["--region", "cn-east-1", "--kind", "instance", "--kind", "cloud_disk"]);
        assert!(
            here.contains("Wrote 1 instance to") && here.contains("Left out 4 objects: their region is unknown"),
            "{here}"
        );
        for nothing in [&["--name", "^nobody$"][..], &["--region", "elsewhere", "--kind", "instance"]] {
            let said = counts(nothing);
            assert!(said.starts_with("Nothing to adopt") && said.contains("No file was written"), "{said}");
        }
        for wrong in [&["--name", "("][..], &["--kind", "llama_server"]] {
            assert_eq!(adopt(workspace, wrong).code, Some(2), "{wrong:?}");
        }

        let refused = adopt(workspace, &["--ca-certificate-file", "missing.pem"]);
        assert!(refused.code == Some(1) && refused.stderr.contains("missing.pem"), "{}", refused.stderr);
        adopt_ok(workspace, &["--kind", "cloud_disk", "--allow-http"]);
        let versions = fs::read_to_string(workspace.directory().join("adopted/versions.tf")).unwrap();
        assert!(versions.contains("provider \"damodel\" {\n  allow_http = true\n}"), "{versions}");
    });
}

#[test]
fn what_goes_wrong_is_told_and_nothing_is_written() {
    each(|_, site, workspace| {
        let address = ("DAMODEL_BASE_URL", site.base_url());
        let token = ("DAMODEL_API_TOKEN", site.token());
        for (variables, words) in [
            (vec![address], "DAMODEL_API_TOKEN"),
            (vec![token], "DAMODEL_BASE_URL"),
            (vec![address, ("DAMODEL_API_TOKEN", "wrong")], "100006"),
            (vec![("DAMODEL_BASE_URL", "nonsense"), token], "base_url"),
        ] {
            let run = adopt_with(workspace, &variables, &["--out", "new"]);
            assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{words}");
            assert!(run.stderr.contains(words) && run.stderr.contains("Nothing was written"), "{}", run.stderr);
        }
        site.arm(
            "cloud_disk_list",
            When::Always,
            FaultAction::Error { code_n: Code::PermissionDenied, processed: false },
        );
        let run = adopt(workspace, &["--out", "new"]);
        let request = run.stderr.split("request_id").nth(1).unwrap();
        assert!(run.stderr.contains("--kind") && request.contains(char::is_alphanumeric), "{}", run.stderr);
        assert!(!workspace.directory().join("new").exists());
        let home = workspace.beside("home");
        let run = adopt_with(
            workspace,
            &[address, token, ("HOME", home.to_str().unwrap())],
            &["--out", "~/new", "--kind", "private_image"],
        );
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        assert!(home.join("new").exists() && !workspace.directory().join("~").exists());
    });
}

#[test]
fn an_incomplete_list_writes_nothing() {
    each_cli(|cli| {
        let form = "order=shuffled_across_pages,page_cap=1,page_cap_for_all".parse().unwrap();
        let site = Site::with(Options { form, generate_instances: 40, ..Site::options() });
        let workspace = Workspace::new(cli, &site);
        let run = adopt(&workspace, &["--kind", "instance"]);
        assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains("the list is incomplete"), "{}", run.stderr);
        assert!(!workspace.directory().join("adopted").exists());
    });
}
