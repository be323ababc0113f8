//! What a plan checks before anything is bought, and the errors of the service if no plan could check.

use std::{fmt::Write, thread, time::Duration};

use damodel::sandbox::{FaultAction, Mutation, Options, When};
use serde_json::json;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, config, each_workspace, each_workspace_on, refusal, refusal_of, says,
    unchecked,
};

const X: &str = "damodel_instance.x";

#[test]
fn what_the_service_would_refuse_is_told_on_its_argument() {
    let private = |id: u32| Instance::new("").set("image_id", id).text("image_type", "private");
    let image = |address: &str| Instance::new("").without("image_id").without("image_type").text("image", address);
    let address = |path: &str| image(&format!("registry.damodel.test/{path}"));
    let public = |id: u32| Instance::new("").set("image_id", id);
    let with = |name: &str, value: &str| Instance::new("").set(name, value);
    let cases: Vec<(Instance, &str, &[&str])> = vec![
        (private(952), "image_id", &["\"half-pushed\" is still being created (42 % pushed). Run again"]),
        (private(954), "image_id", &["image_id 954 is not a private image of this account", "damodel_private_images"]),
        (private(902), "image_id", &["not a private image"]),
        (public(951), "image_id", &["image_id 951 is not a public image", "damodel_public_images"]),
        (public(907), "image_id", &["disabled"]),
        (
            address("model_library/pytorch:0.1"),
            "image",
            &["model_library/pytorch:0.1\" is not the address", "The nearest is", "model_library/pytorch:2"],
        ),
        (image("elsewhere.example.com/model_library/ubuntu:22.04"), "image", &["is not the address of a public"]),
        (address("ubuntu:22.04"), "image", &["ubuntu:22.04\" is not the address", "model_library/ubuntu:22.04"]),
        (address("model_library/user_private/ubuntu"), "image", &["is not the address", "damodel_private_images"]),
        (address("user_private/main/half-pushed:v952"), "image", &["still being created"]),
        (public(902).set("spec_id", 105), "image_id", &["CUDA 12.4", "at most 12.2"]),
        (public(901).set("spec_id", 106), "spec_id", &["sold out", "Available now", "103"]),
        (
            with("spec_id", "999"),
            "spec_id",
            &["spec_id 999 does not exist in region cn-east-1", "gpu.rtx4090.1 (spec_id 103"],
        ),
        (with("spec_id", "107"), "spec_id", &["spec_id 107 does not exist"]),
        (
            public(901).without("spec_id").text("spec_type", "gpu.p40.1"),
            "spec_type",
            &["sold out", "Available now", "103"],
        ),
        (with("spec_type", "\"gpu.none\""), "spec_type", &["103", "\"gpu.rtx4090.1\"", "\"gpu.none\"", "spec_id wins"]),
        (
            with("spec_type", "\"gpu.rtx409.1\"").without("spec_id"),
            "spec_type",
            &["spec_type \"gpu.rtx409.1\" does not exist", "The nearest is \"gpu.rtx4090.1\"", "with 1 GPU: gpu."],
        ),
        (with("gpu_num", "7"), "gpu_num", &["at most 6 GPUs", "gpu_num is 7"]),
        (
            with("region", "\"mars\""),
            "region",
            &["Region \"mars\" has no specifications", "DAMODEL_REGION", "images: cn-"],
        ),
        (with("data_disk_expand_size_gb", "1501"), "data_disk_expand_size_gb", &["at most 1500 additional GB"]),
        (
            with("exist_disks", "[{ disk_id = 803 }]"),
            "exist_disks",
            &["Disk 803 (unpaid)", "status is \"in_arrears\", expected \"available\""],
        ),
        (with("exist_disks", "[{ disk_id = 805 }]"), "exist_disks", &["Cloud disk 805 does not exist"]),
        (with("new_disks", "[{ size_gb = 4001, spec_id = 31 }]"), "new_disks", &["at most 4000 GB", "4001 GB"]),
        (
            with("new_disks", "[{ size_gb = 20, spec_id = 77 }]"),
            "new_disks",
            &["Cloud disk specification 77 does not exist"],
        ),
    ];
    each_workspace(|site, workspace| {
        let mut machines = String::new();
        for (number, (machine, ..)) in cases.iter().enumerate() {
            write!(machines, "{}", machine.clone().named(&format!("x{number}"))).unwrap();
        }
        workspace.write(&config(machines));
        let said = workspace.try_plan(&[]);
        for (number, (machine, attribute, words)) in cases.iter().enumerate() {
            let error = refusal_of(&said, &format!("damodel_instance.x{number}"), words);
            assert_eq!(error.attribute.as_deref(), Some(*attribute), "{machine}{error:?}");
        }
        assert_eq!(said.iter().filter(|said| said.is_error()).count(), cases.len());
        assert_eq!(site.changes(), 0);
        for list in ["cloud_disk_spec_list", "public_image_list", "private_image_list", "cloud_disk_list"] {
            assert_eq!(site.requests(list), 1, "{list}");
        }
        assert_eq!(site.requests("spec_list"), 2, "one a region, and mars");
    });
}

#[test]
fn an_image_of_another_region_is_the_services_to_refuse() {
    each_workspace(|_, workspace| {
        workspace.write(&config(Instance::new("x").set("image_id", 953).text("image_type", "private")));
        let said = workspace.try_plan(&[]);
        assert!(!said.iter().any(Diagnostic::is_error), "{said:?}");
        let warning = said.iter().find(|said| said.attribute.as_deref() == Some("image_id")).unwrap();
        for word in ["in region cn-north-2", "the instance in cn-east-1"] {
            assert!(warning.text().contains(word), "{word:?}: {warning:?}");
        }
    });
}

#[test]
fn a_shared_disk_may_be_mounted_by_others() {
    each_workspace(|_, workspace| {
        workspace.apply_ok(&config(Instance::new("x").set("exist_disks", "[{ disk_id = 802 }]")));
        let disks = workspace.state().resource(X).value("exist_disks").clone();
        let mounted = json!([{ "disk_id": 802, "mount_path": null, "release_with_instance": false }]);
        assert_eq!(disks, mounted);
        workspace.finish();
    });
}

#[test]
fn too_many_disks_are_refused_early_and_late() {
    let new = |count: usize| format!("[{}]", vec!["{ size_gb = 20, spec_id = 31 }"; count].join(", "));
    each_workspace(|site, workspace| {
        let nine = Instance::new("nine").set("new_disks", new(8)).set("exist_disks", "[{ disk_id = 801 }]");
        let twice = Instance::new("twice").set("exist_disks", "[{ disk_id = 801 }, { disk_id = 801 }]");
        workspace.write(&config(format!("{nine}{twice}")));
        let said = Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout);
        let error = refusal_of(&said, "damodel_instance.nine", &["at most 8", "1 existing and 8 new ones"]);
        assert_eq!(error.attribute.as_deref(), Some("new_disks"));
        let error = refusal_of(&said, "damodel_instance.twice", &["Disk 801 is listed twice"]);
        assert_eq!(error.attribute.as_deref(), Some("exist_disks"), "{said:?}");
        assert_eq!(site.ledger().requests.len(), 0);

        // Values that are unknown until the apply are refused there, before a request is sent.
        let later = |disks: &str| {
            format!(
                "resource \"terraform_data\" \"later\" {{\n  input = {disks}\n}}\n{}",
                Instance::new("x").set("new_disks", "terraform_data.later.output")
            )
        };
        workspace.write(&config(later(&new(9))));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        assert_eq!(refusal(&said, &["at most 8", "9 new ones"]).attribute.as_deref(), Some("new_disks"));
        assert_eq!(site.changes(), 0);
        workspace.write(&unchecked(Instance::new("x").set("exist_disks", "[{ disk_id = 803 }]")));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        let error = refusal(&said, &["180007 MountCloudDiskFailed", "disk 803", "request_id"]);
        assert_eq!(error.attribute.as_deref(), Some("exist_disks"));
        assert_eq!(site.balance().created, 0);
    });
}

#[test]
fn object_mounts_are_passed_on_as_they_are() {
    each_workspace(|site, workspace| {
        let mounted = |bucket: &str| {
            let mount = format!("[jsonencode({{ bucket = {bucket:?}, path = \"/data/o\", depth = [1, 2.5] }})]");
            Instance::new("x").set("object_mounts", mount)
        };
        let whole = config(mounted("b"));
        workspace.apply_ok(&whole);
        let sent = site.sandbox().state()["instances"][0]["object_mounts"].clone();
        assert_eq!(sent, json!([{ "bucket": "b", "path": "/data/o", "depth": [1, 2.5] }]));
        assert!(workspace.shown_state().resource(X).sensitive().contains(&"object_mounts".to_owned()));
        assert!(!workspace.transcript().contains("/data/o"), "what may hold credentials is not shown");

        workspace.write(&config(mounted("c")));
        let plan = workspace.plan(&[]);
        assert_eq!(plan.change(X).replace_paths(), ["object_mounts"]);
        let fresh = workspace.import_ok(&whole, X, &["object_mounts"]);
        let changes = site.changes();
        assert_eq!(fresh.applied(&whole), [(X.to_owned(), "update".to_owned())]);
        assert_eq!(site.changes(), changes, "nothing was sent");

        workspace.write(&config(Instance::new("x").set("object_mounts", "[\"no json\"]")));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &["a JSON document"]).attribute.as_deref(), Some("object_mounts"));
        workspace.write(&whole);
        workspace.finish();
    });
}

#[test]
fn a_disk_that_comes_up_in_arrears_is_told_and_kept() {
    each_workspace_on(&Options { disk_change: Duration::from_secs(3600), ..Site::options() }, |site, workspace| {
        let disk = "resource \"damodel_cloud_disk\" \"x\" {\n  name = \"x\"\n  size_gb = 20\n  spec_id = 31\n}\n";
        workspace.write(&config(disk));
        site.arm("cloud_disk_create", When::Next(1), FaultAction::StickCreation);
        let newest = || {
            let state = site.sandbox().state();
            let disks = state["disks"].as_array().unwrap();
            let made = disks.iter().find(|disk| disk["name"].as_str().unwrap().starts_with("x-"));
            made.map(|disk| disk["id"].as_i64().unwrap())
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                site.await_ledger("the create", |ledger| ledger.requests_to("cloud_disk_create").count() == 1);
                site.mutate(Mutation::SetDiskStatus { id: newest().unwrap(), status: 8 });
            });
            let (done, said) = workspace.try_apply(&[]);
            assert!(done, "{said:?}");
            assert!(says(&said, Severity::Warning, "is in_arrears"), "{said:?}");
        });
        let state = workspace.state();
        let disk = state.resource("damodel_cloud_disk.x");
        assert_eq!((disk.value("status"), disk.value("name")), (&json!("in_arrears"), &json!("x")));
        assert!(!disk.is_tainted());
        site.sandbox().clear_faults();
        workspace.destroy_ok();
    });
}
