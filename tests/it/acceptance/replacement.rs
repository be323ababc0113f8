//! Arguments of a create, whose change needs a new instance, and the plan of such a change.

use damodel::sandbox::Balance;

use crate::support::terraform::{Diagnostic, Instance, Severity, config, each_workspace, refusal, says, unchecked};

const X: &str = "damodel_instance.x";

#[test]
fn an_argument_that_only_a_create_takes_replaces() {
    each_workspace(|site, workspace| {
        let base = |label: &str| Instance::new(label).text("hostname", "gpu-0");
        let text = |name: &str, value: &str| base(name).text(name, value);
        let changed = [
            base("gpu_num").set("gpu_num", 2),
            base("spec_id").set("spec_id", 101),
            text("spec_type", "gpu.a100-80g.1").without("spec_id"),
            base("image_id").set("image_id", 903),
            text("region", "cn-north-2").set("spec_id", 201),
            text("payment_type", "Daily").set("purchase_duration", 1),
            base("data_disk_expand_size_gb").set("data_disk_expand_size_gb", 10),
            text("data_disk_mount_path", "/data/here"),
            text("hostname", "gpu-1"),
            text("external_ip", "203.0.113.9"),
            base("auto_renew").set("auto_renew", true),
            text("image", "registry.damodel.test/model_library/ubuntu:22.04").without("image_id").without("image_type"),
        ];
        let attributes = changed.each_ref().map(Instance::label);
        let before = |attributes: &[&str]| attributes.iter().map(|label| base(label).to_string()).collect::<String>();
        workspace.apply_ok(&config(before(&attributes)));
        workspace.write(&config(changed.each_ref().map(ToString::to_string).concat()));
        let plan = workspace.plan(&[]);
        for attribute in attributes {
            let change = plan.change(&format!("damodel_instance.{attribute}"));
            assert_eq!(change.actions(), "delete, create", "{attribute}");
            let paths = change.replace_paths();
            assert!(paths.iter().any(|path| path == attribute), "{attribute}: {paths:?}");
            assert!(change.is_unknown("id"), "{attribute}");
        }
        let change = plan.change("damodel_instance.gpu_num");
        assert_eq!(change.replace_paths(), ["gpu_num"]);
        assert_eq!(change.reason(), "replace_because_cannot_update");
        let replaced = workspace.applied(&config(format!("{}{}", changed[0], before(&attributes[1..]))));
        assert_eq!(replaced, [("damodel_instance.gpu_num".to_owned(), "replace".to_owned())]);
        assert_eq!(site.balance(), Balance { created: 13, released: 1, removed: 0, live: 12 });
        workspace.finish();
    });
}

#[test]
fn a_code_beside_the_number_of_another_specification_replaces_nothing() {
    each_workspace(|site, workspace| {
        let coded = |code: &str| unchecked(Instance::new("x").text("spec_type", code));
        let refused = |said: &[Diagnostic]| {
            let error = refusal(said, &["Specification 103 is \"gpu.rtx4090.1\"", "\"gpu.p40.1\"", "spec_id wins"]);
            assert_eq!(error.attribute.as_deref(), Some("spec_type"), "{said:?}");
        };
        // Without checks of the plan the create itself reports it.
        workspace.write(&coded("gpu.p40.1"));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        refused(&said);
        assert_eq!(site.balance().created, 0);

        // An existing instance stays.
        workspace.apply_ok(&coded("gpu.rtx4090.1"));
        workspace.write(&coded("gpu.p40.1"));
        refused(&workspace.try_plan(&[]));
        workspace.write(&config(Instance::new("x").text("spec_type", "gpu.p40.1")));
        refused(&workspace.try_plan(&[]));
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(site.balance(), Balance { created: 1, released: 0, removed: 0, live: 1 });
        workspace.finish();
    });
}

#[test]
fn a_term_that_means_nothing_replaces_nothing() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x").set("purchase_duration", 3)));
        let changes = site.changes();
        for machine in [Instance::new("x").set("purchase_duration", 2), Instance::new("x")] {
            assert_eq!(workspace.applied(&config(machine)), [(X.to_owned(), "update".to_owned())]);
        }
        assert_eq!(site.changes(), changes, "nothing was sent");
        workspace.write(&config(Instance::new("x").text("payment_type", "Daily").set("purchase_duration", 2)));
        assert_eq!(workspace.plan(&[]).change(X).actions(), "delete, create");
        workspace.finish();
    });
}

#[test]
fn what_a_replacement_deletes_is_said() {
    each_workspace(|_, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.write(&config(Instance::new("x").set("gpu_num", 2)));
        let warned = |diagnostics: &[Diagnostic], words: &[&str]| {
            diagnostics.iter().any(|diagnostic| {
                diagnostic.severity == Severity::Warning && words.iter().all(|word| diagnostic.text().contains(word))
            })
        };
        let said = workspace.try_plan(&[]);
        assert!(warned(&said, &["gpu_num", "system disk", "create_before_destroy"]), "{said:?}");
        let said = workspace.try_plan(&["-destroy"]);
        assert!(warned(&said, &["system disk", "/root/damodel-tmp"]), "{said:?}");
        workspace.finish();
    });
}

/// Terraform plans the create of a replacement itself, and shows its warnings only beside an error.
#[test]
fn a_replacement_that_waits_for_stock_says_so() {
    each_workspace(|site, workspace| {
        let waiting = |gpus: u32| config(Instance::new("x").set("gpu_num", gpus).text("wait_for_capacity", "5m"));
        workspace.apply_ok(&waiting(1));
        workspace.write(&waiting(2));
        assert!(!workspace.try_plan(&[]).iter().any(|said| said.text().contains("wait for capacity")), "has stock");
        site.set_spec(103, None, Some(0));
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "The apply will wait for capacity."), "{said:#?}");
        // An error of the create is said once, by its own plan.
        workspace.write(&config(Instance::new("x").set("gpu_num", 2)));
        refusal(&workspace.try_plan(&[]), &["This instance was not bought. To wait, set wait_for_capacity."]);
        site.set_spec(103, None, Some(8));
        workspace.plan_and_apply_ok(&waiting(2));
        workspace.finish();
    });
}

/// The plan within the apply of a replacement has neither the state nor, in most versions, the first plan's data.
#[test]
fn a_replacement_without_a_number_of_gpus_has_one() {
    each_workspace(|_, workspace| {
        let open = Instance::new("x").without("gpu_num");
        let plan = workspace.plan_and_apply_ok(&config(open.clone()));
        assert_eq!(plan.change(X).after("gpu_num"), 1);
        assert_eq!(plan.change(X).after("estimated_cost")["unit_price"], 1.98);

        workspace.apply_ok(&config(open.clone().set("gpu_num", 4)));
        let renewed = config(open.text("hostname", "renewed"));
        workspace.write(&renewed);
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "gpu_num is not set, so the new instance has 1 GPU"), "{said:#?}");
        let plan = workspace.plan_and_apply_ok(&renewed);
        assert_eq!([plan.change(X).before("gpu_num"), plan.change(X).after("gpu_num")], [4, 1]);
        assert_eq!(workspace.state().resource(X).value("gpu_num"), 1);
        workspace.finish();
    });
}

#[test]
fn the_new_one_comes_first_where_that_is_wanted() {
    each_workspace(|site, workspace| {
        let sized = |gpus: u32| {
            config(Instance::new("x").set("gpu_num", gpus).block("lifecycle { create_before_destroy = true }"))
        };
        workspace.apply_ok(&sized(1));
        let plan = workspace.plan_and_apply_ok(&sized(2));
        assert_eq!(plan.change(X).actions(), "create, delete");
        let kinds: Vec<_> = site.ledger().requests.into_iter().filter_map(|request| request.endpoint).collect();
        let position = |name: &str| kinds.iter().rposition(|endpoint| endpoint == name).unwrap();
        assert!(position("instance_create") < position("instance_release"), "{kinds:?}");
        assert_eq!(site.balance(), Balance { created: 2, released: 1, removed: 0, live: 1 });
        workspace.finish();
    });
}

#[test]
fn a_move_from_another_type_names_what_to_use_instead() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config("resource \"terraform_data\" \"x\" {}"));
        let moved = "moved {\n  from = terraform_data.x\n  to   = damodel_instance.x\n}";
        workspace.write(&config(format!("{}\n{moved}", Instance::new("x"))));
        refusal(&workspace.try_plan(&[]), &["cannot be moved to damodel_instance", "removed block", "import block"]);
        assert_eq!(site.balance().created, 0);
    });
}
