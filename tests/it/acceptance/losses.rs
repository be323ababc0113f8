//! What a destroy or a replacement deletes with an instance, shown in the plan.

use std::{fs, process::Command};

use damodel::sandbox::{Balance, Mutation, StateList};
use serde_json::{Value, json};

use crate::support::{
    plugin::BINARY,
    terraform::{Diagnostic, Instance, Run, Severity, Site, Workspace, config, each_cli, each_workspace, refusal},
};

/// An instance with a disk that stays, one that is released with it though another resource manages it, and new ones.
fn whole(machine: &Instance) -> String {
    let disk = |label: &str| {
        format!(
            "resource \"damodel_cloud_disk\" {label:?} {{\n  name = {label:?}\n  size_gb = 20\n  spec_id = 31\n}}\n"
        )
    };
    let existing = "[\n    { disk_id = tonumber(damodel_cloud_disk.stays.id) },\n    { disk_id = \
                    tonumber(damodel_cloud_disk.dies.id), release_with_instance = true },\n  ]";
    let new = "[\n    { size_gb = 25, spec_id = 31 },\n    { size_gb = 26, spec_id = 31, release_with_instance = \
               false },\n  ]";
    let machine = machine.clone().set("exist_disks", existing).set("new_disks", new);
    config(format!("{}{}{machine}", disk("stays"), disk("dies")))
}

/// The warning with this summary; panics if it is missing.
fn warning<'a>(said: &'a [Diagnostic], summary: &str) -> &'a Diagnostic {
    let found = said.iter().find(|said| said.severity == Severity::Warning && said.summary.contains(summary));
    found.unwrap_or_else(|| panic!("{summary:?}: {said:#?}"))
}

#[test]
fn disks_that_die_and_disks_that_stay_are_named() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&whole(&Instance::new("x")));
        let state = workspace.state();
        let id = |label: &str| state.resource(&format!("damodel_cloud_disk.{label}")).id();
        let uid = state.resource("damodel_instance.x").id();
        let die = format!("{} \"dies\" (20 GB), ", id("dies"));
        let sentences = |said: &Diagnostic| {
            assert!(said.detail.contains("system disk") && said.detail.contains("/root/damodel-tmp"), "{said:?}");
            let (_, rest) = said.detail.split_once("and their data are deleted with it: ").unwrap();
            let (dying, rest) = rest.split_once(". ").unwrap();
            let (_, rest) =
                rest.split_once("not deleted with it, and are billed until they are destroyed themselves: ").unwrap();
            (dying.to_owned(), rest.split_once('.').unwrap().0.to_owned())
        };

        let said = workspace.try_plan(&["-destroy"]);
        let all: String = said.iter().map(Diagnostic::text).collect();
        for name in ["\"stays\" (", "\"dies\" (", &format!("\"{uid}-disk-1\""), &format!("\"{uid}-disk-2\"")] {
            assert_eq!(all.matches(name).count(), 1, "{name}: {all}");
        }
        let (dying, staying) = sentences(warning(&said, "disks are deleted with it"));
        assert!(dying.starts_with(&die) && dying.contains(&format!("\"{uid}-disk-1\" (25 GB)")), "{dying}");
        assert!(staying.starts_with(&format!("{} \"stays\" (20 GB), ", id("stays"))), "{staying}");
        assert!(staying.contains(&format!("\"{uid}-disk-2\" (26 GB)")) && !staying.contains("dies"), "{staying}");

        workspace.write(&whole(&Instance::new("x").set("gpu_num", 2)));
        let said = workspace.try_plan(&[]);
        // A disk that is released with the old instance cannot be mounted in the new one.
        refusal(&said, &["(dies)", "released with the replaced instance", "-replace"]);
        let warning = warning(&said, "The replacement deletes");
        assert_eq!(warning.attribute.as_deref(), Some("gpu_num"));
        assert!(warning.detail.contains("Without lifecycle { create_before_destroy = true } the old"), "{warning:?}");
        let told = sentences(warning);
        assert_eq!(told, (dying, staying), "the same in a replacement");

        // The destroy does what the plan showed.
        let stays = site.sandbox().state();
        let disks = stays["disks"].as_array().unwrap();
        let kept = disks.iter().find(|disk| disk["name"] == format!("{uid}-disk-2")).unwrap()["id"].as_i64().unwrap();
        workspace.write(&whole(&Instance::new("x")));
        workspace.finish();
        let after = site.sandbox().state();
        let status = |id: i64| {
            let disks = after["disks"].as_array().unwrap();
            disks.iter().find(|disk| disk["id"] == id).unwrap()["status"].clone()
        };
        assert_eq!(status(kept), "available");
        assert_eq!(status(id("dies").parse().unwrap()), "released");
    });
}

/// The state of the instance does not have the mark.
#[test]
fn a_mark_of_the_service_alone_counts_in_each_place() {
    each_workspace(|site, workspace| {
        let disk = "resource \"damodel_cloud_disk\" \"d\" {\n  name = \"d\"\n  size_gb = 20\n  spec_id = 31\n}\n";
        let mounted = |gpus: u32| {
            let machine = Instance::new("x").set("gpu_num", gpus);
            config(format!("{disk}{}", machine.set("exist_disks", "[{ disk_id = tonumber(damodel_cloud_disk.d.id) }]")))
        };
        workspace.apply_ok(&mounted(1));
        let number = workspace.state().resource("damodel_cloud_disk.d").id();
        site.set(StateList::Disks, &number, &json!({ "release_with_instance": true }));
        // The warning of a destroy, its review, and the check of a replacement; `expire` has a test of its own.
        let said = workspace.save_plan(&["-destroy"]);
        let detail = &warning(&said, "disks are deleted with it").detail;
        assert!(detail.contains(&format!("and their data are deleted with it: {number} \"d\" (20 GB)")), "{detail}");
        let shown = workspace.command(&["show", "-json", "plan"]).output().unwrap().stdout;
        fs::write(workspace.directory().join("shown.json"), shown).unwrap();
        let mut review = Command::new(BINARY);
        review.args(["review", "shown.json", "--format", "json"]).current_dir(workspace.directory());
        let report: Value = serde_json::from_str(&Run::of(review.output().unwrap()).stdout).unwrap();
        let changes = report["plans"][0]["changes"].as_array().unwrap();
        let instance = changes.iter().find(|change| change["address"] == "damodel_instance.x").unwrap();
        let lost = instance["loss"]["data"].as_array().unwrap();
        assert!(lost.iter().any(|item| item["managed_by"] == "damodel_cloud_disk.d"), "{instance:#}");
        workspace.write(&mounted(2));
        refusal(&workspace.try_plan(&[]), &["(d)", "released with the replaced instance", "-replace"]);
        workspace.write(&mounted(1));
        workspace.finish();
    });
}

#[test]
fn a_disk_moves_into_the_machine_that_replaces_its_own() {
    each_workspace(|site, workspace| {
        let disk = "resource \"damodel_cloud_disk\" \"x\" {\n  size_gb = 20\n  spec_id = 31\n}\n";
        let mounted = |label: &str, gpus: u32| {
            let machine = Instance::new(label).set("gpu_num", gpus);
            machine.set("exist_disks", "[{ disk_id = tonumber(damodel_cloud_disk.x.id) }]").to_string()
        };
        // A disk without `name` is ready as soon as it is available.
        workspace.apply_ok(&config(format!("{disk}{}", mounted("x", 1))));
        let replaced = workspace.applied(&config(format!("{disk}{}", mounted("x", 2))));
        assert_eq!(replaced, [("damodel_instance.x".to_owned(), "replace".to_owned())]);
        assert!(workspace.try_apply(&["-replace=damodel_instance.x"]).0);
        workspace.settled();
        assert_eq!(site.balance(), Balance { created: 3, released: 2, removed: 0, live: 1 });

        // A second instance for the same disk: a warning of the plan, an error of the service, and no purchase.
        workspace.write(&config(format!("{disk}{}{}", mounted("x", 2), mounted("y", 1))));
        let said = workspace.try_plan(&[]);
        let warning = warning(&said, "The cloud disk is mounted");
        assert_eq!((warning.attribute.as_deref(), warning.is_error()), (Some("exist_disks"), false));
        assert!(warning.detail.contains(&site.live()[0]), "the holder is named: {warning:?}");
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        refusal(&said, &["180007 MountCloudDiskFailed", "This instance was not created"]);
        assert_eq!(site.balance().created, 3);
        workspace.finish();
    });
}

#[test]
fn a_create_waits_for_a_disk_that_is_about_to_be_available() {
    each_workspace(|site, workspace| {
        for status in [1, 4] {
            site.mutate(Mutation::SetDiskStatus { id: 801, status });
            workspace.write(&config(Instance::new("x").set("exist_disks", "[{ disk_id = 801 }]")));
            workspace.save_plan(&[]);
            let looks = site.requests("cloud_disk_list");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    site.await_ledger("looks at the disk", |ledger| {
                        ledger.requests_to("cloud_disk_list").count() > looks + 2
                    });
                    site.mutate(Mutation::SetDiskStatus { id: 801, status: 2 });
                });
                workspace.apply_plan();
            });
            workspace.settled();
            assert_eq!(workspace.state().resource("damodel_instance.x").value("exist_disks")[0]["disk_id"], json!(801));
            workspace.finish();
        }
    });
}

#[test]
fn a_prepaid_machine_is_warned_of() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let monthly = |gpus: u32| {
            let machine = Instance::new("x").set("gpu_num", gpus).text("payment_type", "Monthly");
            config(machine.set("purchase_duration", 2).text("on_unreleasable", "abandon"))
        };
        workspace.apply_ok(&monthly(1));
        let until = workspace
            .state()
            .resource("damodel_instance.x")
            .value("reported.release_time")
            .as_str()
            .unwrap()
            .to_owned();
        for (gpus, arguments) in [(1, &["-destroy"][..]), (2, &[])] {
            workspace.write(&monthly(gpus));
            let said = workspace.try_plan(arguments);
            let warning = warning(&said, "The service may refuse to release the prepaid instance");
            let left = format!(
                "refuses the release, the instance is left with its disks until {until}; otherwise it is released. Its \
                 system disk"
            );
            let title = format!("nstance \"x\" ({})", site.live()[0]);
            assert_eq!(warning.detail.matches(&title).count(), 1, "{warning:?}");
            for word in ["prepaid (Monthly)", &left, "160012", "on_unreleasable", "\"abandon\"", "system disk"] {
                assert!(warning.detail.contains(word), "{word}: {warning:?}");
            }
            assert!(said.iter().all(|said| !said.summary.contains("disks")), "deleted for certain: {said:#?}");
        }
        let hourly = Workspace::new(cli, &site);
        hourly.apply_ok(&config(Instance::new("y")));
        let said = hourly.try_plan(&["-destroy"]);
        assert!(said.iter().all(|said| !said.text().contains("prepaid")), "{said:?}");
    });
}
