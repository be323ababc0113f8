//! The budget of the whole account.

use damodel::sandbox::{Code, FaultAction, When};

use crate::support::terraform::{Instance, Workspace, config, config_with, each_workspace, refusal};

/// The configuration of a provider with this budget.
fn budget(most: &str, more: &str, body: impl std::fmt::Display) -> String {
    config_with(&format!("region = \"cn-east-1\"\nmax_account_hourly_price = {most}\n{more}"), body)
}

/// This many instances at 1.98 an hour.
fn machines(count: usize) -> String {
    Instance::new("m").set("count", count).set("name", "\"m-${count.index}\"").to_string()
}

#[test]
fn a_stack_above_the_budget_is_an_error_on_the_machine_that_goes_over_it() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x").set("data_disk_expand_size_gb", 100)));
        let dear = Instance::new("dear").set("spec_id", 101);
        let whole =
            |most: &str| budget(most, "", format!("{}{dear}", Instance::new("x").set("data_disk_expand_size_gb", 100)));
        // 1.98 and 0.06 for the disk, and 12.8.
        workspace.write(&whole("14.83"));
        let said = workspace.try_plan(&[]);
        let error = refusal(
            &said,
            &["Above the account's budget", "14.84", "is 14.83", "\"dear\" (12.8 an hour)", "(2.04 an hour)"],
        );
        assert_eq!(error.address.as_deref(), Some("damodel_instance.dear"));
        assert_eq!(error.attribute.as_deref(), Some("spec_id"));
        assert_eq!(site.balance().created, 1);
        workspace.apply_ok(&whole("14.84"));
        workspace.finish();
    });
}

#[test]
fn machines_of_one_plan_count_together() {
    each_workspace(|site, workspace| {
        workspace.write(&budget("5.94", "", machines(4)));
        let said = workspace.try_plan(&[]);
        refusal(&said, &["7.92", "is 5.94"]);
        workspace.apply_ok(&budget("5.94", "", machines(3)));
        assert_eq!(site.balance().created, 3);
        workspace.finish();
    });
}

#[test]
fn creates_at_once_reserve_one_after_the_other() {
    each_workspace(|site, workspace| {
        // The list shows accepted instances late. Without checks of the plan, the creates enforce the budget.
        site.arm("instance_create", When::Always, FaultAction::LateVisibility { ms: 0, reads: 3 });
        workspace.write(&budget("9.9", "preflight = false", machines(64)));
        let (done, said) = workspace.try_apply(&["-parallelism=64"]);
        assert!(!done);
        let refused =
            said.iter().filter(|said| said.is_error() && said.text().contains("This instance was not bought")).count();
        assert_eq!((refused, site.balance().created), (59, 5), "{said:#?}");
        site.sandbox().clear_faults();
        // What exists stays, and a plain apply works as before.
        workspace.apply_ok(&config(machines(8)));
        workspace.finish();
    });
}

#[test]
fn what_cannot_be_priced_is_named() {
    each_workspace(|site, workspace| {
        let weekly = Instance::new("weekly").text("payment_type", "Weekly").set("purchase_duration", 1);
        workspace.apply_ok(&config(&weekly));
        let uid = site.live().remove(0);
        let whole = |more| budget("100", more, format!("{weekly}{}", Instance::new("x")));
        workspace.write(&whole(""));
        refusal(&workspace.try_plan(&[]), &[&uid, "unknown", "payment type", "max_account_hourly_price", "alias"]);
        workspace.write(&whole("preflight = false"));
        refusal(&workspace.try_apply(&[]).1, &[&uid, "unknown", "This instance was not bought"]);
        assert_eq!(site.balance().created, 1);
    });
}

#[test]
fn what_is_billed_without_a_listed_specification_has_its_own_price() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("old").set("spec_id", 104).set("data_disk_expand_size_gb", 100)));
        site.withdraw_spec(104);
        let whole = |most| {
            let old = Instance::new("old").set("spec_id", 104).set("data_disk_expand_size_gb", 100);
            budget(most, "", format!("{old}{}", Instance::new("x")))
        };
        workspace.write(&whole("2.8"));
        refusal(&workspace.try_plan(&[]), &["Above the account's budget", "\"old\""]);
        workspace.apply_ok(&whole("3"));
        workspace.destroy_ok();
    });
}

#[test]
fn details_are_asked_for_once_and_what_went_meanwhile_is_no_obstacle() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(machines(3)));
        let before = site.requests("instance_detail");
        let other = Workspace::new(workspace.cli, site);
        let many = Instance::new("x").set("count", 10).set("name", "\"x-${count.index}\"");
        other.write(&budget("100", "", &many));
        other.save_plan(&[]);
        assert_eq!(site.requests("instance_detail") - before, 3);
        site.arm(
            "instance_detail",
            When::Next(1),
            FaultAction::Error { code_n: Code::InstanceNotExistOrNoPrivilege, processed: false },
        );
        other.apply_plan();
        other.destroy_ok();
        workspace.finish();
    });
}

#[test]
fn a_candidate_above_what_is_left_is_passed_over() {
    each_workspace(|site, workspace| {
        let choice = Instance::new("x").without("spec_id").set("candidates", "[{ spec_id = 101 }, { spec_id = 103 }]");
        workspace.write(&budget("5", "", &choice));
        assert_eq!(workspace.plan(&[]).change("damodel_instance.x").after("spec_id"), 103);
        // Between plan and apply another instance uses the remaining budget.
        workspace.write(&budget("20", "", &choice));
        workspace.save_plan(&[]);
        let other = Workspace::new(workspace.cli, site);
        other.apply_ok(&config(Instance::new("other").set("spec_id", 101)));
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(workspace.state().resource("damodel_instance.x").value("spec_id"), 103);
        workspace.destroy_ok();
        other.finish();
    });
}

#[test]
fn a_machine_and_its_successor_do_not_count_together() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&budget("2", "", Instance::new("x")));
        workspace.apply_ok(&budget("2", "", Instance::new("x").text("hostname", "other")));
        workspace.run_ok(&["taint", "damodel_instance.x"]);
        workspace.apply_ok(&budget("2", "", Instance::new("x").text("hostname", "other")));
        site.arm("instance_create", When::Next(1), FaultAction::FailCreation);
        workspace.write(&budget("2", "", Instance::new("x").text("hostname", "third")));
        assert!(!workspace.try_apply(&[]).0);
        workspace.apply_ok(&budget("2", "", Instance::new("x").text("hostname", "third")));
        workspace.finish();
    });
}

#[test]
fn a_price_that_moved_is_held_against_the_budget_before_the_create() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("other").set("spec_id", 104)));
        let whole = format!("{}{}", Instance::new("other").set("spec_id", 104), Instance::new("x"));
        workspace.write(&budget("3", "", &whole));
        workspace.save_plan(&[]);
        site.set_spec(104, Some(1.5), None);
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert!(run.code == Some(1) && run.stderr.contains("3.48"), "{}", run.stderr);
        assert_eq!(site.balance().created, 1);
    });
}
