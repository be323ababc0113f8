//! Prices in plans, and what happens when they change.

use std::fs;

use damodel::sandbox::{Code, FaultAction, When};
use serde_json::json;

use crate::support::terraform::{
    Instance, Severity, Site, Started, Workspace, config, config_with, each_workspace, refusal, refusal_of, says,
};

const X: &str = "damodel_instance.x";

/// Sets the hourly price of the specification 103, which is 1.98 in the seed.
fn set_price(site: &Site, price: f64) {
    site.set_spec(103, Some(price), None);
}

fn machine() -> Instance {
    Instance::new("x").set("gpu_num", 2).set("data_disk_expand_size_gb", 100)
}

fn budget(most: &str, more: &str) -> String {
    format!("region = \"cn-east-1\"\nmax_hourly_price = {most}\n{more}")
}

#[test]
fn the_price_is_in_the_plan() {
    let costs = [
        (
            "Hourly",
            json!({"unit_price": 3.96, "data_disk_price": 0.06, "period_total": 4.02, "hourly_equivalent": 4.02,
            "discount": 0.95, "discount_status": "not_yet_effective"}),
        ),
        (
            "Daily",
            json!({"unit_price": 89.1, "data_disk_price": 1.2, "period_total": 270.9, "hourly_equivalent": 3.7625,
            "discount": 0.9, "discount_status": "voided"}),
        ),
        (
            "Monthly",
            json!({"unit_price": 2376, "data_disk_price": 33, "period_total": 7227, "hourly_equivalent": 3.3,
            "discount": 0.85, "discount_status": "none"}),
        ),
        (
            "Weekly",
            json!({"unit_price": null, "data_disk_price": null, "period_total": null, "hourly_equivalent": null,
            "discount": null, "discount_status": null}),
        ),
    ];
    each_workspace(|site, workspace| {
        let machine = |payment: &str| {
            let machine = machine().named(payment).text("payment_type", payment);
            match payment {
                "Hourly" => machine,
                // Its code and its number have the same effect.
                "Daily" => machine.without("spec_id").text("spec_type", "gpu.rtx4090.1").set("purchase_duration", 3),
                _ => machine.set("purchase_duration", 3),
            }
        };
        let machines: String = costs.iter().map(|(payment, _)| machine(payment).to_string()).collect();
        let plan = workspace.plan_and_apply_ok(&config(machines));
        let state = workspace.state();
        for (payment, cost) in &costs {
            let address = format!("damodel_instance.{payment}");
            let change = plan.change(&address);
            let mut expected = cost.clone();
            expected["payment_type"] = json!(payment);
            assert_eq!(change.after("estimated_cost"), &expected);
            assert_eq!([change.after("spec_id"), change.after("spec_type")], [&json!(103), &json!("gpu.rtx4090.1")]);
            assert_eq!(state.resource(&address).value("estimated_cost"), &expected);
        }
        // The state keeps the price of the create, whatever it costs later.
        set_price(site, 9.5);
        workspace.settled();
    });
}

#[test]
fn spot_capacity_has_no_price_before_it_is_bought() {
    each_workspace(|_, workspace| {
        let plan = workspace.plan_and_apply_ok(&config(Instance::new("x").set("spec_id", 104)));
        assert!(plan.change(X).is_unknown("estimated_cost"));
        let state = workspace.state();
        assert_eq!(state.resource(X).value("estimated_cost")["period_total"], json!(0.89));
        assert_eq!(state.resource(X).value("capacity_type"), "spot");
        workspace.finish();
    });
}

#[test]
fn a_price_that_rose_after_a_saved_plan_buys_nothing() {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        workspace.save_plan(&[]);
        set_price(site, 2.5);
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert_eq!(run.code, Some(1));
        for word in ["The price has risen", "1.98", "2.5", "This instance was not bought"] {
            assert!(run.stderr.replace('\n', " ").contains(word), "{word}: {}", run.stderr);
        }
        assert_eq!((site.changes(), site.balance().created), (0, 0));
        assert!(workspace.state().addresses().is_empty());
        // A new plan shows the new price, and may be bought.
        let plan = workspace.plan_and_apply_ok(&config(Instance::new("x")));
        assert_eq!(plan.change(X).after("estimated_cost")["period_total"], json!(2.5));
        workspace.finish();
    });
}

#[test]
fn a_price_that_fell_after_a_saved_plan_goes_on() {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        workspace.save_plan(&[]);
        set_price(site, 1.5);
        workspace.apply_plan();
        let cost = || {
            let state = workspace.state();
            let instance = state.resource(X);
            let ceiling = instance.value("price_ceiling").clone();
            (instance.value("estimated_cost")["period_total"].clone(), ceiling)
        };
        assert_eq!(cost(), (json!(1.98), json!(1.98)), "the result of a create equals its plan");
        set_price(site, 1.2);
        workspace.settled();
        assert_eq!(site.balance().created, 1);
        workspace.run_ok(&["apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false"]);
        assert_eq!(cost(), (json!(1.5), json!(1.98)), "what it was bought at");
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn a_check_that_fails_inside_the_apply_leaves_the_plan_as_it_was() {
    each_workspace(|site, workspace| {
        // With a code, only the list has the number.
        let machine = Instance::new("x").without("spec_id").text("spec_type", "gpu.rtx4090.1");
        let machine = machine.set("exist_disks", "[{ disk_id = 801 }]");
        workspace.write(&config_with("region = \"cn-east-1\"\nmax_retries = 0", machine));
        let plan = workspace.plan(&[]);
        assert_eq!(plan.change(X).after("estimated_cost")["period_total"], json!(1.98));
        for endpoint in ["spec_list", "cloud_disk_list"] {
            site.arm(endpoint, When::Next(1), FaultAction::Error { code_n: Code::InternalError, processed: false });
        }
        workspace.apply_plan();
        let state = workspace.state();
        assert_eq!(state.resource(X).value("estimated_cost")["period_total"], json!(1.98));
        workspace.settled();
        workspace.finish();
    });
}

/// The second plan showed the price of the first for an hour, and its apply had to fail.
#[test]
fn a_fresh_plan_shows_the_live_price() {
    each_workspace(|site, workspace| {
        workspace.run_program();
        workspace.write(&config(Instance::new("x")));
        for (price, file) in [(1.98, &[][..]), (2.5, &[]), (2.6, &["-out", "plan"]), (2.7, &["-out", "plan"])] {
            set_price(site, price);
            let run = workspace.run_ok(&[&["plan", "-no-color", "-input=false"], file].concat());
            let words: Vec<_> = run.stdout.split_whitespace().collect();
            let is_live = words.windows(3).any(|shown| shown == ["price_ceiling", "=", &price.to_string()]);
            assert!(is_live && !run.stdout.contains("price has"), "{price}: {}", run.stdout);
        }
        workspace.apply_plan();
        assert_eq!(workspace.state().resource(X).value("estimated_cost")["period_total"], json!(2.7));
        workspace.destroy_ok();
        set_price(site, 2.8);
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(workspace.state().resource(X).value("estimated_cost")["period_total"], json!(2.8));
        workspace.finish();
    });
}

const LOST: &str = "The price that the plan showed is not certain here";

const QUOTES: &str = ".terraform/damodel-pending-quotes.jsonl";

/// Applies the saved plan, which must not buy: the price has risen from this quote.
fn refused(workspace: &Workspace<'_>, quote: &str) {
    let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
    let said = (run.stdout + &run.stderr).replace('\n', " ");
    let words = ["The price has risen", &format!("quoted {quote} an hour"), "This instance was not bought"];
    assert!(run.code == Some(1) && words.iter().all(|word| said.contains(word)), "{said}");
    assert!(!said.contains(LOST) && !said.contains("Provider produced inconsistent"), "{said}");
}

/// The quotes of one workspace replaced those of the other.
#[test]
fn workspaces_of_a_folder_have_their_own_quotes() {
    each_workspace(|site, workspace| {
        workspace.run_program();
        workspace.write(&config(Instance::new("x")));
        workspace.save_plan(&[]);
        workspace.run_ok(&["workspace", "new", "other"]);
        set_price(site, 2.5);
        workspace.run_ok(&["plan", "-no-color", "-input=false"]);
        workspace.run_ok(&["workspace", "select", "default"]);
        refused(workspace, "1.98");
        assert_eq!(site.balance().created, 0);
    });
}

/// A quote was lost after an hour, so that an approval of the next morning ended in a "bug in the provider".
#[test]
fn a_plan_of_yesterday_has_its_quote() {
    each_workspace(|site, workspace| {
        workspace.run_program();
        workspace.write(&config(Instance::new("x")));
        workspace.save_plan(&[]);
        let file = workspace.directory().join(QUOTES);
        let mut quote: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        quote["quoted_at"] = json!(quote["quoted_at"].as_i64().unwrap() - 24 * 60 * 60);
        fs::write(&file, format!("{quote}\n")).unwrap();
        set_price(site, 2.5);
        refused(workspace, "1.98");
        assert_eq!(site.balance().created, 0);
    });
}

/// Plans in one folder and applies in another, as two jobs of a pipeline do.
#[test]
fn an_apply_that_lacks_the_quotes_says_so_once() {
    each_workspace(|site, workspace| {
        workspace.run_program();
        workspace.write(&config(Instance::new("x").set("count", 3)));
        workspace.save_plan(&[]);
        for (has_quotes, price, is_bought) in
            [(false, 1.98, true), (true, 1.5, true), (false, 2.5, false), (true, 2.5, false)]
        {
            set_price(site, price);
            let job = Workspace::with_program(workspace.cli, site);
            let copy = |name: &str| {
                let target = job.directory().join(name);
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                fs::copy(workspace.directory().join(name), target).unwrap();
            };
            copy("main.tf");
            copy("plan");
            if has_quotes {
                copy(QUOTES);
            }
            let before = site.balance().created;
            let run = job.run(&["apply", "-no-color", "-input=false", "plan"]);
            let said = run.stdout.clone() + &run.stderr;
            assert_eq!(run.code == Some(0), is_bought, "{has_quotes} {price}: {said}");
            assert_eq!(site.balance().created - before, if is_bought { 3 } else { 0 });
            assert_eq!(said.matches(LOST).count(), usize::from(!has_quotes), "{said}");
            assert_eq!(said.contains("Provider produced inconsistent"), !has_quotes && !is_bought, "{said}");
            if !has_quotes {
                assert!(said.replace('\n', " ").contains(QUOTES), "{said}");
            }
            job.finish();
        }
    });
}

/// Plans of other folders with this file differ, and this run stored no quote.
#[test]
fn quotes_that_differ_are_told() {
    each_workspace(|site, workspace| {
        workspace.run_program();
        workspace.write(&config(Instance::new("x")));
        workspace.save_plan(&[]);
        set_price(site, 2.5);
        workspace.run_ok(&["plan", "-no-color", "-input=false"]);
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert!(run.code == Some(1) && (run.stdout + &run.stderr).contains(LOST));
        assert_eq!(site.balance().created, 0);
    });
}

/// A price that the plan could not know is not lost.
#[test]
fn a_plan_without_a_price_leaves_its_apply_free() {
    each_workspace(|_, workspace| {
        workspace.run_program();
        let late = "resource \"terraform_data\" \"late\" {\n  input = 103\n}\n";
        let machine = Instance::new("x").set("spec_id", "terraform_data.late.output");
        workspace.write(&config(format!("{late}{machine}")));
        workspace.save_plan(&[]);
        assert!(!workspace.apply_plan().stdout.contains(LOST));
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn a_price_that_moves_inside_one_apply_is_told() {
    each_workspace(|site, workspace| {
        // The instance waits for its argument while the price rises: Terraform plans it again inside the apply.
        let slow = "resource \"terraform_data\" \"first\" {\n  input = \"x\"\n  provisioner \"local-exec\" {\n    \
                    command = \"until [ -e go ]; do sleep 0.05; done\"\n  }\n}\n";
        let machine = Instance::new("x").set("name", "terraform_data.first.output");
        workspace.write(&config(format!("{slow}{machine}")));
        let mut apply = workspace.command(&["apply", "-auto-approve", "-no-color", "-input=false"]);
        let apply = apply.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        site.await_ledger("the plan's look at the prices", |ledger| ledger.requests_to("spec_list").count() > 0);
        set_price(site, 2.5);
        fs::write(workspace.directory().join("go"), "").unwrap();
        let ended = apply.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && said.contains("The price has risen"), "{said}");
        assert_eq!(site.balance().created, 0);
    });
}

#[test]
fn the_budget_holds_in_the_plan_and_before_the_create() {
    each_workspace(|site, workspace| {
        let machines = || {
            let machine = |label: &str, spec: i64| Instance::new(label).set("spec_id", spec).set("gpu_num", 2);
            format!("{}{}", machine("x", 103), machine("spot", 104))
        };
        workspace.write(&config_with(&budget("1", ""), machines()));
        let said = workspace.try_plan(&[]);
        for address in [X, "damodel_instance.spot"] {
            let error = refusal_of(&said, address, &["Above the budget", "max_hourly_price is 1"]);
            assert_eq!(error.attribute.as_deref(), Some("spec_id"));
        }

        // Without checks in the plan, nothing is bought above the budget either.
        workspace.write(&config_with(&budget("1", "preflight = false"), machines()));
        let asked = site.ledger().requests.len();
        workspace.save_plan(&[]);
        assert_eq!(site.ledger().requests.len(), asked, "a plan without preflight asks nothing");
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert!(run.code == Some(1) && run.stderr.matches("Above the budget").count() == 2, "{}", run.stderr);
        assert_eq!((site.changes(), site.balance().created), (0, 0));

        workspace.apply_ok(&config_with(&budget("3.96", ""), machines()));
        workspace.finish();
    });
}

#[test]
fn a_quote_without_a_live_price_buys_nothing() {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x").text("wait_for_capacity", "60s")));
        let sold_out = FaultAction::Error { code_n: Code::ResourceInsufficient, processed: false };
        site.arm("instance_create", When::Always, sold_out);
        let started = Started::apply(workspace);
        site.await_ledger("the create", |ledger| ledger.requests_to("instance_create").next().is_some());
        site.withdraw_spec(103);
        let said = started.ended(true).replace('\n', " ");
        assert!(said.contains("The price is no longer known"), "{said}");
        assert_eq!((site.requests("instance_create"), site.balance().created), (1, 0));
    });
}

#[test]
fn a_term_above_the_budget_for_prepaid_ones_is_refused() {
    each_workspace(|site, workspace| {
        let term = |months: i64| {
            Instance::new("x").text("payment_type", "Monthly").set("purchase_duration", months).set("auto_renew", true)
        };
        let provider = |more: &str| format!("region = \"cn-east-1\"\nmax_prepaid_total = 20000\n{more}");
        // By the hour, 120 months cost no more than 12.
        workspace.write(&config_with(&provider(""), term(120)));
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &["Above the budget", "max_prepaid_total is 20000"]);
        assert_eq!(error.attribute.as_deref(), Some("spec_id"));
        assert!(says(&said, Severity::Warning, "auto_renew = true buys further ones"), "{said:?}");
        workspace.write(&config_with(&provider("preflight = false"), term(120)));
        refusal(&workspace.try_apply(&[]).1, &["max_prepaid_total is 20000", "This instance was not bought"]);
        let weekly = Instance::new("x").text("payment_type", "Weekly").set("purchase_duration", 1);
        workspace.write(&config_with(&provider(""), weekly));
        refusal(&workspace.try_plan(&[]), &["The price is unknown", "max_prepaid_total"]);
        assert_eq!((site.changes(), site.balance().created), (0, 0));

        workspace.apply_ok(&config_with(&provider(""), term(12)));
        workspace.apply_ok(&config_with(&provider(""), format!("{}{}", term(12), Instance::new("hourly"))));
    });
}

#[test]
fn a_price_that_the_service_does_not_name_cannot_be_guarded() {
    each_workspace(|site, workspace| {
        let weekly = Instance::new("x").text("payment_type", "Weekly").set("purchase_duration", 1);
        workspace.write(&config_with(&budget("100", ""), weekly));
        refusal(&workspace.try_plan(&[]), &["The price is unknown", "max_hourly_price"]);
        assert_eq!(site.changes(), 0);
    });
}

#[test]
fn without_preflight_a_plan_checks_nothing() {
    each_workspace(|site, workspace| {
        // Everything is wrong here, and a plan with preflight would report it.
        let wrong =
            Instance::new("x").set("spec_id", 106).set("exist_disks", "[{ disk_id = 999 }]").set("image_id", 77);
        workspace.write(&config(&wrong));
        assert!(workspace.try_plan(&[]).iter().filter(|said| said.is_error()).count() >= 3);
        let asked = site.ledger().requests.len();
        workspace.set_env("DAMODEL_PREFLIGHT", "false");
        assert!(workspace.plan(&[]).change(X).is_unknown("estimated_cost"), "no price is known");
        workspace.set_env("DAMODEL_PREFLIGHT", "true");
        workspace.write(&config_with("region = \"cn-east-1\"\npreflight = false", &wrong));
        workspace.save_plan(&[]);
        assert_eq!(site.ledger().requests.len(), asked, "the argument wins");
        workspace.set_env("DAMODEL_PREFLIGHT", "0");
        workspace.write(&config_with("region = \"cn-east-1\"\npreflight = true", wrong));
        assert!(workspace.try_plan(&[]).iter().filter(|said| said.is_error()).count() >= 3, "the argument wins");
        workspace.remove_env("DAMODEL_PREFLIGHT");
        // Without a price in the plan, a valid configuration is bought.
        workspace.apply_ok(&config_with("region = \"cn-east-1\"\npreflight = false", Instance::new("x")));
        workspace.finish();
    });
}
