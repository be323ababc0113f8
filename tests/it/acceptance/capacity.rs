//! No stock, and waiting for stock.

use std::thread;

use rstest::rstest;
use serde_json::json;

use crate::support::terraform::{Diagnostic, Instance, Site, Workspace, config, config_with, each_workspace, refusal};

fn set_stock(site: &Site, stock: i64) {
    site.set_spec(103, None, Some(stock));
}

/// The only error, which contains everything that support needs.
fn error<'a>(site: &Site, said: &'a [Diagnostic]) -> &'a Diagnostic {
    let errors: Vec<_> = said.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    assert_eq!(errors.len(), 1, "{said:?}");
    let request = errors[0].id("request_id").and_then(|id| site.request(&id));
    assert!(request.is_some() && errors[0].id("trace_id").is_some(), "{said:?}");
    errors[0]
}

#[test]
fn a_create_waits_for_stock_that_comes_back() {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x").text("wait_for_capacity", "5m")));
        set_stock(site, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                site.await_ledger("a refused create", |ledger| {
                    ledger.requests_to("instance_create").any(|request| request.code_n == Some(160_014))
                });
                set_stock(site, 4);
            });
            let (done, said) = workspace.try_apply(&[]);
            let count = said.iter().filter(|said| said.text().contains("The apply will wait for capacity.")).count();
            // From Terraform 1.9 on, the plan within the apply repeats nothing.
            assert_eq!((done, count), (true, if workspace.cli.has(9, u64::MAX) { 1 } else { 2 }), "{said:?}");
        });
        workspace.settled();
        assert!(site.requests("instance_create") >= 2);
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

/// Applies with this specification sold out, and sets its stock and price once a create was refused.
fn apply_while_stock_returns(site: &Site, workspace: &Workspace<'_>, spec: i64, price: f64) -> (bool, Vec<Diagnostic>) {
    site.set_spec(spec, None, Some(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            site.await_ledger("a refused create", |ledger| {
                ledger.requests_to("instance_create").any(|request| request.code_n == Some(160_014))
            });
            site.set_spec(spec, Some(price), Some(4));
        });
        workspace.try_apply(&[])
    })
}

#[rstest]
#[case::hourly("region = \"cn-east-1\"", 103, ["The price has risen", "1.98", "8", "This instance was not bought"])]
// Spot has a ceiling, and the budget applies to it.
#[case::spot("region = \"cn-east-1\"", 104, ["The price has risen", "0.89", "8", "This instance was not bought"])]
#[case::budget(
    "region = \"cn-east-1\"\nmax_hourly_price = 5",
    104,
    ["Above the budget", "8", "max_hourly_price is 5", "This instance was not bought"]
)]
fn stock_that_comes_back_dearer_is_not_bought(#[case] provider: &str, #[case] spec: i64, #[case] words: [&str; 4]) {
    each_workspace(|site, workspace| {
        let machine = Instance::new("x").set("spec_id", spec).text("wait_for_capacity", "5m");
        workspace.write(&config_with(provider, machine));
        let (done, said) = apply_while_stock_returns(site, workspace, spec, 8.0);
        assert!(!done);
        refusal(&said, &words);
        assert_eq!((site.requests("instance_create"), site.balance().created), (1, 0));
        assert!(workspace.state().addresses().is_empty());
    });
}

#[test]
fn the_price_after_a_wait_is_the_one_that_the_state_keeps() {
    each_workspace(|site, workspace| {
        let machine = Instance::new("x").set("spec_id", 104).text("wait_for_capacity", "5m");
        // The first wait alone is as long as the create timeout, and does not count against it.
        workspace.write(&config(machine.block("timeouts { create = \"5s\" }")));
        let (done, said) = apply_while_stock_returns(site, workspace, 104, 0.5);
        assert!(done, "{said:?}");
        let state = workspace.state();
        assert_eq!(state.resource("damodel_instance.x").value("estimated_cost")["period_total"], json!(0.5));
        assert_eq!(state.resource("damodel_instance.x").value("price_ceiling"), &json!(0.89), "what was planned");
        workspace.finish();
    });
}

#[test]
fn waiting_for_stock_ends_with_the_refusal() {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x").text("wait_for_capacity", "1s")));
        set_stock(site, 0);
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && error(site, &said).detail.contains("160014"), "{said:?}");
        assert_eq!(site.requests("instance_create"), 2, "once more after a first wait");
        assert!(workspace.state().addresses().is_empty());
        // No pending record is left for the next create to adopt.
        set_stock(site, 4);
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.finish();
    });
}
