//! The first configurations of README, unedited.

use std::process::{Command, Stdio};

use damodel::sandbox::Options;
use serde_json::Value;

use crate::{
    house::docs::first_configurations,
    support::{
        plugin::BINARY,
        terraform::{Site, Workspace, each_workspace_on, refusal},
    },
};

/// The hourly price of the sandbox's cheapest on-demand GPU that has stock.
const CHEAPEST: f64 = 1.98;

/// The provider's `max_hourly_price` in the configuration.
const BUDGET: f64 = 3.0;

fn each(test: impl Fn(&Site, &Workspace<'_>)) {
    let options = Options { executable: Some(BINARY.into()), ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        workspace.set_env("DAMODEL_REGION", "cn-east-1");
        test(site, workspace);
    });
}

/// The monthly cost that `review` shows of the plan.
fn reviewed(workspace: &Workspace<'_>) -> f64 {
    workspace.run_ok(&["plan", "-no-color", "-out=tfplan"]);
    let mut show = workspace.command(&["show", "-json", "tfplan"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut review = Command::new(BINARY);
    review.args(["review", "-", "--format", "json", "--deny", "no-max-age"]).stdin(show.stdout.take().unwrap());
    let review = review.output().unwrap();
    assert!(review.status.success(), "{}", String::from_utf8_lossy(&review.stderr));
    let report: Value = serde_json::from_slice(&review.stdout).unwrap();
    assert!(show.wait().unwrap().success());
    report["plans"][0]["cost"]["after"]["monthly"].as_f64().unwrap()
}

#[test]
fn the_first_instance_costs_at_most_twice_the_cheapest() {
    let [first, _] = first_configurations("README.md");
    each(|_, workspace| {
        workspace.write(&first);
        let monthly = reviewed(workspace);
        assert!(monthly > 0.0 && monthly <= 2.0 * CHEAPEST * 730.0, "{monthly}");
        workspace.run_ok(&["apply", "-no-color", "tfplan"]);
        workspace.settled();
        workspace.destroy_ok();
    });
}

/// The cheapest is sold out: a dearer one is bought within the budget, and nothing above it.
#[test]
fn the_first_instance_stays_within_the_budget() {
    let [first, _] = first_configurations("README.md");
    each(|site, workspace| {
        site.set_spec(103, None, Some(0));
        workspace.write(&first);
        refusal(&workspace.try_plan(&[]), &["No candidate", "max_hourly_price is 3", "3.21 an hour"]);
        assert_eq!(site.changes(), 0);

        site.set_spec(105, Some(2.5), None);
        assert!(reviewed(workspace) <= BUDGET * 730.0);
        workspace.run_ok(&["apply", "-no-color", "tfplan"]);
        let instance = workspace.state();
        let instance = instance.resource("damodel_instance.first");
        assert_eq!(instance.value("gpu_price").as_f64(), Some(2.5));
        workspace.settled();
        workspace.destroy_ok();
    });
}

#[test]
fn one_apply_leads_from_a_file_to_an_endpoint() {
    let both = first_configurations("README.md").join("\n");
    each(|site, workspace| {
        workspace.set_env("TF_VAR_model_url", &format!("{}/files/tiny.gguf", site.base_url()));
        workspace.apply_ok(&both);
        assert_eq!(workspace.state().output("endpoint"), "http://127.0.0.1:8000/v1");
        workspace.destroy_ok();
    });
}
