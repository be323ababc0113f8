//! No stock, and waiting for some.

use std::thread;

use damodel::sandbox::{Mutation, When};

use crate::support::terraform::{Diagnostic, Instance, Site, Workspace, config, each_cli, unchecked};

fn stock(stock: i64, node_limit: Option<i64>) -> Mutation {
    Mutation::SetSpec {
        spec_id: 103,
        hourly_price: None,
        daily_price: None,
        monthly_price: None,
        stock: Some(stock),
        node_limit,
        highest_cuda: None,
        enabled: None,
    }
}

/// The one error, which has all that support asks for.
fn error<'a>(site: &Site, said: &'a [Diagnostic]) -> &'a Diagnostic {
    let errors: Vec<_> = said.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    assert_eq!(errors.len(), 1, "{said:?}");
    let request = errors[0].id("request_id").and_then(|id| site.request(&id));
    assert!(request.is_some() && errors[0].id("trace_id").is_some(), "{said:?}");
    errors[0]
}

#[test]
fn no_stock_is_said_where_it_was_asked_for() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let gpus = |gpus: u32| unchecked(Instance::new("x").set("gpu_num", gpus));
        for (mutation, gpu_num, code, attribute) in [
            (stock(1, None), 2, "160001", "gpu_num"),
            (stock(8, Some(2)), 4, "160004", "gpu_num"),
            (stock(0, None), 1, "160014", "spec_id"),
        ] {
            site.mutate(mutation);
            workspace.write(&gpus(gpu_num));
            let (done, said) = workspace.try_apply(&[]);
            let error = error(&site, &said);
            assert!(!done && error.detail.contains(code) && error.detail.contains("wait_for_capacity"), "{error:?}");
            assert_eq!(
                (error.attribute.as_deref(), error.address.as_deref()),
                (Some(attribute), Some("damodel_instance.x"))
            );
        }
        let by_type = Instance::new("x").without("spec_id").text("spec_type", "gpu.rtx4090.1");
        workspace.write(&unchecked(by_type));
        assert_eq!(error(&site, &workspace.try_apply(&[]).1).attribute.as_deref(), Some("spec_type"));
        assert!(workspace.state().addresses().is_empty());
        assert_eq!(site.balance().created, 0);
    });
}

#[test]
fn a_create_waits_for_stock_that_comes_back() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x").text("wait_for_capacity", "5m")));
        site.mutate(stock(0, None));
        thread::scope(|scope| {
            scope.spawn(|| {
                site.await_ledger("a refused create", |ledger| {
                    ledger.requests_to("instance_create").any(|request| request.code_n == Some(160_014))
                });
                site.mutate(stock(4, None));
            });
            let (done, said) = workspace.try_apply(&[]);
            assert!(done, "{said:?}");
        });
        workspace.settled();
        assert!(site.requests("instance_create") >= 2);
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn waiting_for_stock_ends_with_the_refusal() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x").text("wait_for_capacity", "1s")));
        site.mutate(stock(0, None));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && error(&site, &said).detail.contains("160014"), "{said:?}");
        assert_eq!(site.requests("instance_create"), 2, "once more after a first wait");
        assert!(workspace.state().addresses().is_empty());
        // Nothing is left that the next create would take up.
        site.mutate(stock(4, None));
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.finish();
    });
}

#[test]
fn a_busy_service_is_asked_again() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let busy = damodel::sandbox::Action::TooManyRequests { retry_after_seconds: Some(1) };
        site.arm("*", When::Next(2), busy);
        workspace.apply_ok(&config(Instance::new("x")));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}
