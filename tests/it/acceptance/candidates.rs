//! Candidates: what a plan shows of them, which one a create buys, and that the choice is kept.

use damodel::sandbox::{Code, FaultAction, When};
use serde_json::json;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, Workspace, config, config_with, each_workspace, refusal, refusal_of,
    says,
};

const X: &str = "damodel_instance.x";
/// In order: 103 (1.98 an hour), 101 (12.8), 104 (spot, 0.89), all in cn-east-1.
const THREE: &str = "[{ spec_id = 103 }, { spec_type = \"gpu.a100-80g.1\" }, { spec_id = 104 }]";

/// Sets stock and price of a specification.
fn set(site: &Site, spec_id: i64, stock: Option<i64>, hourly_price: Option<f64>) {
    site.set_spec(spec_id, hourly_price, stock);
}

fn sell_out(site: &Site, specs: &[i64]) {
    specs.iter().for_each(|spec| set(site, *spec, Some(0), None));
}

fn choice(candidates: &str) -> Instance {
    Instance::new("x").without("spec_id").set("candidates", candidates)
}

fn spec_of(workspace: &Workspace<'_>) -> i64 {
    workspace.state().resource(X).value("spec_id").as_i64().unwrap()
}

#[test]
fn what_differs_is_unknown_and_the_dearest_is_the_ceiling() {
    each_workspace(|site, workspace| {
        let plan = workspace.plan_and_apply_ok(&config(choice(THREE).without("gpu_num")));
        let change = plan.change(X);
        assert!(["spec_id", "spec_type", "estimated_cost"].iter().all(|name| change.is_unknown(name)));
        assert_eq!((change.after("region"), change.after("gpu_num")), (&json!("cn-east-1"), &json!(1)));
        assert_eq!(change.after("price_ceiling"), &json!(12.8));
        let state = workspace.state();
        let bought = state.resource(X);
        assert_eq!((bought.value("spec_id"), bought.value("spec_type")), (&json!(103), &json!("gpu.rtx4090.1")));
        assert_eq!(bought.value("estimated_cost")["period_total"], json!(1.98));
        assert_eq!(bought.value("price_ceiling"), &json!(12.8));
        assert_eq!(site.requests("instance_create"), 1);
        workspace.finish();
    });
}

#[test]
fn one_that_is_left_is_planned_wholly_known() {
    each_workspace(|_, workspace| {
        // 101 is above the budget, 999 does not exist, and 107 is withdrawn.
        let list = "[{ spec_id = 101 }, { spec_id = 999 }, { spec_id = 107 }, { spec_id = 103 }]";
        let provider = "region = \"cn-east-1\"\nmax_hourly_price = 5";
        let plan = workspace.plan_and_apply_ok(&config_with(provider, choice(list).set("gpu_num", 2)));
        let change = plan.change(X);
        for (name, expected) in [
            ("spec_id", json!(103)),
            ("spec_type", json!("gpu.rtx4090.1")),
            ("region", json!("cn-east-1")),
            ("price_ceiling", json!(3.96)),
        ] {
            assert_eq!(change.after(name), &expected, "{name}");
        }
        assert_eq!(change.after("estimated_cost")["period_total"], json!(3.96));
        workspace.finish();
    });
}

#[test]
fn candidates_of_several_regions_and_sizes() {
    each_workspace(|site, workspace| {
        let list = "[{ spec_id = 103, region = \"cn-east-1\", gpu_num = 4 }, { spec_id = 201, region = \
                    \"cn-north-2\", gpu_num = 1 }]";
        sell_out(site, &[103]);
        let plan = workspace.plan_and_apply_ok(&config(choice(list).without("gpu_num")));
        assert!(["region", "gpu_num", "spec_id"].iter().all(|name| plan.change(X).is_unknown(name)));
        let state = workspace.state();
        let bought = state.resource(X);
        assert_eq!((bought.value("region"), bought.value("gpu_num")), (&json!("cn-north-2"), &json!(1)));
        // Another default region of the provider changes nothing.
        workspace.apply_ok(&config_with("region = \"cn-north-2\"", choice(list).without("gpu_num")));
        assert_eq!(site.balance().created, 1);
        workspace.finish();
    });
}

#[test]
fn none_that_fits_is_an_error_with_each_reason() {
    each_workspace(|site, workspace| {
        let provider = "region = \"cn-east-1\"\nmax_hourly_price = 5";
        // One candidate is above the budget and one has no stock: the error is about the missing stock.
        let sold_out = |label, list| choice(list).named(label).set("image_id", "901");
        let y = sold_out("y", "[{ spec_id = 101 }, { spec_id = 106 }]");
        let waits = sold_out("z", "[{ spec_id = 106 }]").text("wait_for_capacity", "1m");
        let x = choice("[{ spec_id = 101 }, { spec_id = 999 }]");
        workspace.write(&config_with(provider, format!("{x}{y}{waits}")));
        let said = workspace.try_plan(&[]);
        let words = ["No candidate", "1 \u{d7} spec_id 101 in cn-east-1", "max_hourly_price is 5", "spec_id 999"];
        assert_eq!(refusal_of(&said, X, &words).attribute.as_deref(), Some("candidates"));
        let words = ["has stock now", "max_hourly_price is 5", "has no stock now", "wait_for_capacity"];
        refusal_of(&said, "damodel_instance.y", &words);
        assert!(says(&said, Severity::Warning, "will wait for capacity"), "{said:#?}");
        assert_eq!(said.iter().filter(|said| said.is_error()).count(), 2, "{said:#?}");
        workspace.write(&config_with(provider, choice("[]")));
        let said = workspace.try_plan(&[]);
        let words = ["No candidates", "region is cn-east-1. Available now with 1 GPU: ", "(spec_id 103, "];
        assert_eq!(refusal(&said, &words).attribute.as_deref(), Some("candidates"));
        assert_eq!(site.changes(), 0);
    });
}

#[test]
fn the_cuda_label_and_the_images_region_rule_out() {
    each_workspace(|_, workspace| {
        // 105 supports CUDA 12.2, and the image's label says 12.4. The private image 951 is in cn-east-1.
        let labelled = choice("[{ spec_id = 105 }, { spec_id = 103 }]");
        let list = "[{ spec_id = 202, region = \"cn-north-2\" }, { spec_id = 103, region = \"cn-east-1\" }]";
        let of_an_image = choice(list).named("y").set("image_id", 951).text("image_type", "private");
        workspace.write(&config(format!("{labelled}{of_an_image}")));
        let plan = workspace.plan(&[]);
        for address in [X, "damodel_instance.y"] {
            let change = plan.change(address);
            assert_eq!((change.after("spec_id"), change.after("region")), (&json!(103), &json!("cn-east-1")));
        }
    });
}

#[test]
fn the_first_choice_that_sells_out_after_the_plan_leads_to_the_next() {
    each_workspace(|site, workspace| {
        workspace.write(&config(
            choice("[{ spec_id = 103 }, { spec_id = 105 }, { spec_id = 104 }, { spec_id = 101 }, { spec_id = 102 }]")
                .set("image_id", "901"),
        ));
        workspace.save_plan(&[]);
        sell_out(site, &[103, 104]);
        let before = site.requests("spec_list");
        workspace.apply_plan();
        assert_eq!(site.requests("spec_list") - before, 2, "one by the plan inside the apply, one by the create");
        workspace.settled();
        let state = workspace.state();
        assert_eq!(state.resource(X).value("estimated_cost")["period_total"], json!(3.21));
        assert_eq!((spec_of(workspace), site.requests("instance_create"), site.balance().created), (105, 2, 1));
        workspace.finish();
    });
}

#[test]
fn a_candidate_is_bought_at_its_quote_or_not_at_all() {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE)));
        workspace.save_plan(&[]);
        set(site, 103, None, Some(2.5));
        workspace.apply_plan();
        workspace.settled();
        assert_eq!(spec_of(workspace), 101, "the next one is still at its quote");
        workspace.destroy_ok();
        // Spot prices too.
        workspace.write(&config(choice("[{ spec_id = 104 }, { spec_id = 101 }]").text("name", "other")));
        workspace.save_plan(&[]);
        set(site, 104, None, Some(0.9));
        set(site, 101, None, Some(13.0));
        let (created, run) = (site.balance().created, workspace.run(&["apply", "-no-color", "-input=false", "plan"]));
        assert_eq!(run.code, Some(1));
        let said = run.stderr.replace('\n', " ");
        for word in ["The price has risen", "0.89", "0.9", "12.8", "13", "This instance was not created"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(site.balance().created, created);
        // A new plan shows the new prices.
        workspace.apply_ok(&config(choice("[{ spec_id = 104 }, { spec_id = 101 }]").text("name", "other")));
        workspace.finish();
    });
}

#[test]
fn what_the_plan_ruled_out_is_not_bought() {
    each_workspace(|site, workspace| {
        let provider = "region = \"cn-east-1\"\nmax_hourly_price = 5";
        workspace.write(&config_with(provider, choice(THREE)));
        let plan = workspace.plan(&[]);
        assert_eq!(plan.change(X).after("price_ceiling"), &json!(1.98));
        site.arm(
            "instance_create",
            When::Always,
            FaultAction::Error { code_n: Code::ResourceInsufficient, processed: false },
        );
        set(site, 101, None, Some(0.5));
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        for word in ["gpu.a100-80g.1", "did not contain", "160001", "request_id"] {
            assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
        }
        assert_eq!((site.requests("instance_create"), site.balance().created), (2 * 6, 0));
        site.sandbox().clear_faults();
        workspace.apply_ok(&config_with(provider, choice(THREE)));
        workspace.finish();
    });
}

#[test]
fn one_that_is_left_and_sold_out_is_asked_for_once() {
    each_workspace(|site, workspace| {
        workspace.write(&config_with(
            "region = \"cn-east-1\"\nmax_hourly_price = 5",
            choice("[{ spec_id = 101 }, { spec_id = 103 }]"),
        ));
        workspace.save_plan(&[]);
        site.arm(
            "instance_create",
            When::Always,
            FaultAction::Error { code_n: Code::ResourceInsufficient, processed: false },
        );
        let run = workspace.run(&["apply", "-no-color", "-input=false", "plan"]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        assert_eq!((site.requests("instance_create"), site.balance().created), (1, 0));
    });
}

#[test]
fn the_choice_is_kept() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(choice("[{ spec_id = 103 }, { spec_id = 104 }]")));
        sell_out(site, &[103]);
        set(site, 103, None, Some(9.5));
        for list in [
            "[{ spec_id = 104 }, { spec_id = 103 }]",
            "[{ spec_id = 101 }, { spec_type = \"gpu.rtx4090.1\" }]",
            "[{ spec_id = 103, region = \"cn-east-1\" }]",
        ] {
            workspace.write(&config(choice(list)));
            workspace.settled();
        }
        workspace.apply_ok(&config(choice("[{ spec_id = 103, gpu_num = 1 }]").without("gpu_num")));
        assert_eq!((site.balance().created, site.requests("instance_rename")), (1, 1));
        workspace.finish();
    });
}

/// Whether a warning at `candidates` names the specification of the instance and the way to another one.
fn names_the_card(said: &[Diagnostic], card: &str) -> bool {
    let is_it = |said: &&Diagnostic| said.summary.contains("not among the candidates");
    let Some(warning) = said.iter().find(is_it) else { return false };
    assert_eq!((warning.severity, warning.attribute.as_deref()), (Severity::Warning, Some("candidates")));
    [card, "-replace=<address>"].iter().all(|word| warning.detail.contains(word))
}

/// A list by stock and price lost the card of a running instance, which was then replaced.
#[test]
fn a_list_that_loses_the_bought_specification_changes_nothing() {
    each_workspace(|site, workspace| {
        let specs = "data \"damodel_specs\" \"x\" {\n  gpu_name_regex = \"4090\"\n  sort_by = \"price\"\n  \
                     max_gpu_hourly_price = 2\n  available_only = true\n}\n";
        let whole = config(format!("{specs}{}", choice("data.damodel_specs.x.specs").without("gpu_num")));
        workspace.apply_ok(&whole);
        assert_eq!(spec_of(workspace), 104);
        let (bought, changes) = (workspace.state(), site.changes());
        let keeps = |list: &str| {
            workspace.write(list);
            let (done, said) = workspace.try_apply(&[]);
            assert!(done && names_the_card(&said, "1 \u{d7} spec_id 104 in cn-east-1"), "{list}: {said:#?}");
            assert_eq!(workspace.state().resource(X).flat(), bought.resource(X).flat(), "{list}");
        };
        set(site, 104, None, Some(3.0));
        keeps(&whole);
        sell_out(site, &[103]);
        keeps(&whole);
        site.withdraw_spec(104);
        keeps(&whole);
        for list in [
            "[]",
            "[{ spec_id = 101 }]",
            "[{ spec_id = 104, region = \"cn-north-2\" }]",
            "[{ spec_id = 104, gpu_num = 2 }]",
        ] {
            keeps(&config(choice(list).without("gpu_num").set("deletion_protection", "false")));
        }
        workspace.settled();
        // An element that is known only in the apply.
        let late = "resource \"terraform_data\" \"late\" {\n  input = 101\n}\n";
        let list = choice("[{ spec_id = terraform_data.late.output }]").without("gpu_num");
        workspace.apply_ok(&config(format!("{late}{}", list.set("deletion_protection", "false"))));
        assert_eq!(workspace.state().resource(X).flat(), bought.resource(X).flat());
        assert_eq!((site.changes(), site.balance().created), (changes, 1));

        // The next change stores the list.
        let named = |list: &str| choice(list).without("gpu_num").text("name", "other");
        workspace.apply_ok(&config(named("[{ spec_id = 101 }]")));
        assert_eq!(workspace.state().resource(X).value("candidates")[0]["spec_id"], json!(101));
        assert_eq!(site.balance().created, 1);
        // The instance's own arguments and another form are no candidates.
        for (argument, other) in [
            ("gpu_num", named("[{ spec_id = 101 }]").set("gpu_num", 2)),
            ("region", named("[{ spec_id = 101 }]").text("region", "cn-north-2")),
            (
                "spec_type",
                Instance::new("x").without("spec_id").text("name", "other").text("spec_type", "gpu.a100-80g.1"),
            ),
        ] {
            workspace.write(&config(other));
            let said = workspace.try_plan(&[]);
            let change = format!("The change of {argument} replaces");
            assert!(says(&said, Severity::Warning, &change), "{said:#?}");
            assert!(!names_the_card(&said, ""), "{said:#?}");
        }
        workspace.write(&config(named("[{ spec_id = 101 }]")));
        workspace.finish();
    });
}

/// If the state has no list, any list is stored: without the specification (`x` and `y`), and with it (`z`).
#[test]
fn a_first_list_is_an_update_that_sends_nothing() {
    const LISTS: [(&str, &str); 3] = [("x", "[{ spec_id = 101 }]"), ("y", "[]"), ("z", THREE)];
    each_workspace(|site, workspace| {
        let plain = LISTS.map(|(label, _)| Instance::new(label).to_string());
        workspace.apply_ok(&config(plain.concat()));
        let addresses = LISTS.map(|(label, _)| format!("damodel_instance.{label}"));
        let uids = addresses.each_ref().map(|address| workspace.state().resource(address).id());
        let changes = site.changes();
        let lists = |count: usize| {
            let listed = LISTS.map(|(label, list)| choice(list).named(label).to_string());
            config(listed[..count].concat() + &plain[count..].concat())
        };
        for is_imported in [false, true] {
            workspace.write(&lists(3));
            if is_imported {
                workspace.run_ok(&[&["state", "rm"], &addresses.each_ref().map(String::as_str)[..]].concat());
                for (address, uid) in addresses.iter().zip(&uids) {
                    workspace.run_ok(&["import", "-no-color", "-input=false", address, uid]);
                }
            }
            let said = workspace.save_plan(&[]);
            for (address, is_named) in addresses.iter().zip([true, true, false]) {
                let of_it: Vec<_> =
                    said.iter().filter(|said| said.address.as_ref() == Some(address)).cloned().collect();
                let card = "1 \u{d7} spec_id 103 in cn-east-1 (gpu.rtx4090.1)";
                assert_eq!(names_the_card(&of_it, card), is_named, "{address}: {said:#?}");
            }
            let plan = workspace.saved_plan();
            for address in &addresses {
                assert_eq!(plan.change(address).actions(), "update", "{address} {is_imported}");
                assert_eq!(plan.change(address).unknown(), Vec::<String>::new(), "{address}");
            }
            workspace.apply_plan();
            workspace.settled();
            assert_eq!((spec_of(workspace), site.changes()), (103, changes));
        }
        let said = workspace.try_plan(&["-replace=damodel_instance.y"]);
        refusal(&said, &["No candidates", "at least one specification"]);
        // And back.
        let coded = Instance::new("z").without("spec_id").text("spec_type", "gpu.rtx4090.1");
        workspace.apply_ok(&lists(2).replace(&plain[2], &coded.to_string()));
        assert_eq!((site.changes(), site.balance().created), (changes, 3));
        workspace.finish();
    });
}

#[test]
fn a_run_killed_after_its_second_candidate_was_accepted_is_resumed() {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE)));
        workspace.save_plan(&[]);
        site.arm(
            "instance_create",
            When::Nth(1),
            FaultAction::Error { code_n: Code::ResourceInsufficient, processed: false },
        );
        Started::killed_when_accepted(workspace, 1);
        assert_eq!(workspace.notes()[0].content["candidate"], "1 \u{d7} gpu.a100-80g.1 in cn-east-1");
        // Another list that contains it adopts it.
        let (done, said) = {
            workspace.write(&config(choice("[{ spec_id = 104 }, { spec_type = \"gpu.a100-80g.1\" }]")));
            workspace.try_apply(&[])
        };
        assert!(done, "{said:#?}");
        workspace.settled();
        assert_eq!((spec_of(workspace), site.requests("instance_create"), site.balance().created), (101, 2, 1));
        workspace.finish();
    });
}
