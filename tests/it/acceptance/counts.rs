//! Numbers of requests.

use std::time::{Duration, Instant};

use damodel::sandbox::{Form, LedgerObject, Options};
use rstest::rstest;
use serde_json::Value;

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli_since, each_workspace, each_workspace_on};

const DISKS: u32 = 200;
const IMAGES: u32 = 20;

/// The ids of the generated objects of a kind.
fn generated(site: &Site, kind: &str) -> Vec<String> {
    let state = site.sandbox().state();
    let objects = state[kind].as_array().unwrap().iter();
    let generated = objects.filter(|it| it["name"].as_str().is_some_and(|name| name.starts_with("generated-")));
    generated.map(|object: &Value| object["id"].to_string()).collect()
}

/// Imports these and ignores all differences.
fn taken_over(kind: &str, ids: &[String], arguments: &str) -> String {
    format!(
        "import {{\n  for_each = toset({ids:?})\n  to = {kind}.x[each.key]\n  id = each.key\n}}\n\
         resource {kind:?} \"x\" {{\n  for_each = toset({ids:?})\n\
         {arguments}  lifecycle {{\n    ignore_changes = all\n  }}\n}}\n"
    )
}

#[rstest]
#[case(Form::default(), 1, 1)]
// A page of size 0 has all objects, even if other pages are capped.
#[case(Form { page_cap: Some(100), ..Form::default() }, 1, 1)]
// If that page is capped too: 200 and the seed's four, a hundred on a page.
#[case(Form { page_cap: Some(100), page_cap_for_all: true, ..Form::default() }, 3, 1)]
fn a_refresh_of_many_things_is_a_few_lists(#[case] form: Form, #[case] disk_pages: usize, #[case] image_pages: usize) {
    each_cli_since(7, 7, |cli| {
        let options = Options { form: form.clone(), generate_disks: DISKS, generate_images: IMAGES, ..Site::options() };
        let site = Site::with(options);
        let workspace = Workspace::new(cli, &site);
        let disks = taken_over("damodel_cloud_disk", &generated(&site, "disks"), "  size_gb = 20\n  spec_id = 31\n");
        let images = taken_over("damodel_private_image", &generated(&site, "private_images"), "  name = each.key\n");
        workspace.write(&config(format!("{disks}{images}")));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false", "-parallelism=50"]);
        assert_eq!(workspace.state().addresses().len(), (DISKS + IMAGES) as usize);
        let before = site.ledger().requests.len();
        let begun = Instant::now();
        let run = workspace.run_ok(&["plan", "-no-color", "-input=false", "-detailed-exitcode"]);
        assert!(run.stdout.contains("No changes"), "{}", run.stdout);
        // A list is used for half a minute; on a busy computer a plan may take longer.
        let lists = 1 + begun.elapsed().as_secs() as usize / 30;
        let requests = site.ledger().requests.split_off(before);
        let count = |name: &str| requests.iter().filter(|request| request.endpoint.as_deref() == Some(name)).count();
        let (disks, images) = (count("cloud_disk_list"), count("private_image_list"));
        assert!((disk_pages..=disk_pages * lists).contains(&disks), "{lists}: {requests:?}");
        assert!((image_pages..=image_pages * lists).contains(&images), "{lists}: {requests:?}");
        assert_eq!(requests.len(), disks + images, "{requests:?}");
    });
}

#[test]
fn fifty_disks_that_are_made_at_once_are_waited_for_together() {
    each_workspace_on(&Options { disk_change: Duration::from_secs(3), ..Site::options() }, |site, workspace| {
        let created = site.balance_of(LedgerObject::CloudDisk).created;
        workspace.write(&config(
            "resource \"damodel_cloud_disk\" \"x\" {\n  count = 50\n  name = \"x-${count.index}\"\n  size_gb = 20\n  \
             spec_id = 31\n}\n",
        ));
        workspace.save_plan(&["-parallelism=50"]);
        let begun = Instant::now();
        workspace.run_ok(&["apply", "-no-color", "-input=false", "-parallelism=50", "plan"]);
        // The pauses of one poller: ten of 50 ms, then each a tenth longer.
        let ticks = 30 + begun.elapsed().as_secs();
        assert_eq!(site.balance_of(LedgerObject::CloudDisk).created, created + 50);
        let lists = site.requests("cloud_disk_list");
        assert!(lists as u64 <= 2 * ticks, "{lists} lists in {ticks} ticks");
        workspace.settled();
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false", "-parallelism=50"]);
        assert_eq!(site.ledger().duplicates(LedgerObject::CloudDisk), Vec::<Vec<String>>::new());
    });
}

#[test]
fn all_checks_of_a_plan_ask_each_list_once() {
    each_workspace(|site, workspace| {
        let east = Instance::new("east").set("count", 5).set("exist_disks", "[{ disk_id = 802 }]");
        let north = Instance::new("north")
            .set("count", 5)
            .text("region", "cn-north-2")
            .set("spec_id", 201)
            .set("new_disks", "[{ size_gb = 20, spec_id = 31 }]");
        let private = Instance::new("private").set("image_id", 951).text("image_type", "private");
        let disks = "resource \"damodel_cloud_disk\" \"x\" {\n  count = 5\n  size_gb = 20\n  spec_id = 31\n}\n";
        let images = "resource \"damodel_private_image\" \"x\" {\n  count = 5\n  name = \"x-${count.index}\"\n  \
                      instance_id = damodel_instance.east[0].id\n}\n";
        workspace.write(&config(format!("{east}{north}{private}{disks}{images}")));
        workspace.save_plan(&[]);
        let count = |name: &str| site.requests(name);
        assert_eq!(count("spec_list"), 2, "one a region");
        for list in
            ["cloud_disk_spec_list", "public_image_list", "private_image_list", "cloud_disk_list", "instance_list"]
        {
            assert_eq!(count(list), 1, "{list}");
        }
        assert_eq!(site.ledger().requests.len(), 7);
    });
}

#[test]
fn a_plan_of_everything_over_what_exists_asks_each_list_once() {
    each_workspace(|site, workspace| {
        let whole = |disks: u32, size: u32, gpus: u32| {
            let machine = Instance::new("x")
                .set("count", 3)
                .set("gpu_num", gpus)
                .set("exist_disks", "[{ disk_id = tonumber(damodel_cloud_disk.x[count.index].id) }]");
            let new = Instance::new("new")
                .set("count", disks - 3)
                .set("new_disks", "[{ size_gb = 20, spec_id = 31 }]")
                .set("exist_disks", "[{ disk_id = 802 }]");
            let disks = format!(
                "resource \"damodel_cloud_disk\" \"x\" {{\n  count = {disks}\n  size_gb = {size}\n  spec_id = 31\n}}\n"
            );
            let image = "resource \"damodel_private_image\" \"x\" {\n  name = \"one\"\n  instance_id = \
                         damodel_instance.x[0].id\n}\n";
            let sources = ["cloud_disks", "cloud_disk_specs", "instances", "private_images", "public_images", "specs"]
                .map(|source| format!("data \"damodel_{source}\" \"all\" {{}}\n"))
                .concat();
            config(format!("{machine}{new}{disks}{image}{sources}"))
        };
        workspace.write(&whole(3, 20, 1));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
        // Refreshes, data sources, disks that grow and are created, and instances that are created or replaced.
        workspace.write(&whole(5, 30, 2));
        let before = site.ledger().requests.len();
        workspace.save_plan(&[]);
        let requests = site.ledger().requests.split_off(before);
        let count = |name: &str| requests.iter().filter(|request| request.endpoint.as_deref() == Some(name)).count();
        for list in [
            "cloud_disk_list",
            "cloud_disk_spec_list",
            "instance_list",
            "private_image_list",
            "public_image_list",
            "spec_list",
        ] {
            assert_eq!(count(list), 1, "{list}");
        }
        assert_eq!((count("instance_detail"), requests.len()), (3, 9), "{requests:?}");
        workspace.write(&whole(3, 20, 1));
        workspace.run_ok(&["destroy", "-auto-approve", "-no-color", "-input=false"]);
    });
}
