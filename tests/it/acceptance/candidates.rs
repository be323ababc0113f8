//! Candidates: what a plan shows of them, which one a create buys, and that the choice is kept.

use damodel::sandbox::{Code, FaultAction, When};
use rstest::rstest;
use serde_json::json;

use crate::support::terraform::{
    Diagnostic, Instance, Severity, Site, Started, Workspace, config, config_with, each_workspace, refusal, says,
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
        workspace.write(&config_with(provider, choice("[{ spec_id = 101 }, { spec_id = 999 }]")));
        let said = workspace.try_plan(&[]);
        let error = refusal(
            &said,
            &["No candidate", "1 \u{d7} spec_id 101 in cn-east-1", "max_hourly_price is 5", "spec_id 999"],
        );
        assert_eq!(error.attribute.as_deref(), Some("candidates"));
        workspace.write(&config_with(provider, choice("[]")));
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &["No candidates"]).attribute.as_deref(), Some("candidates"));
        // One candidate is above the budget and one has no stock: the error is about the missing stock.
        let sold_out = |list| choice(list).set("image_id", "901");
        workspace.write(&config_with(provider, sold_out("[{ spec_id = 101 }, { spec_id = 106 }]")));
        let said = workspace.try_plan(&[]);
        refusal(&said, &["has stock now", "max_hourly_price is 5", "has no stock now", "wait_for_capacity"]);
        workspace.write(&config_with(provider, sold_out("[{ spec_id = 106 }]").text("wait_for_capacity", "1m")));
        let said = workspace.try_plan(&[]);
        assert!(!said.iter().any(Diagnostic::is_error), "{said:#?}");
        assert!(says(&said, Severity::Warning, "will wait for capacity"), "{said:#?}");
        assert_eq!(site.changes(), 0);
    });
}

#[test]
fn the_cuda_label_and_the_images_region_rule_out() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("builder")));
        // 105 supports CUDA 12.2, and the image's label says 12.4.
        let plan = {
            workspace.write(&config(format!(
                "{}{}",
                Instance::new("builder"),
                choice("[{ spec_id = 105 }, { spec_id = 103 }]")
            )));
            workspace.plan(&[])
        };
        assert_eq!(plan.change(X).after("spec_id"), &json!(103));
        assert_eq!(site.balance().created, 1);
        // The private image 951 is in cn-east-1.
        let list = "[{ spec_id = 202, region = \"cn-north-2\" }, { spec_id = 103, region = \"cn-east-1\" }]";
        let of_an_image = choice(list).set("image_id", 951).text("image_type", "private");
        workspace.write(&config(format!("{}{of_an_image}", Instance::new("builder"))));
        let plan = workspace.plan(&[]);
        assert_eq!(
            (plan.change(X).after("spec_id"), plan.change(X).after("region")),
            (&json!(103), &json!("cn-east-1"))
        );
        workspace.finish();
    });
}

#[test]
fn the_first_choice_that_sells_out_after_the_plan_leads_to_the_next() {
    each_workspace(|site, workspace| {
        workspace.write(&config(
            choice("[{ spec_id = 103 }, { spec_id = 105 }, { spec_id = 104 }, { spec_id = 101 }, { spec_id = 102 }]")
                .set("image_id", "901"),
        ));
        workspace.plan(&[]);
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
        workspace.plan(&[]);
        set(site, 103, None, Some(2.5));
        workspace.apply_plan();
        workspace.settled();
        assert_eq!(spec_of(workspace), 101, "the next one is still at its quote");
        workspace.destroy_ok();
        // Spot prices too.
        workspace.write(&config(choice("[{ spec_id = 104 }, { spec_id = 101 }]").text("name", "other")));
        workspace.plan(&[]);
        set(site, 104, None, Some(0.9));
        set(site, 101, None, Some(13.0));
        let (created, run) = (site.balance().created, workspace.run(&["apply", "-no-color", "-input=false", "plan"]));
        assert_eq!(run.code, Some(1));
        let said = run.stderr.replace('\n', " ");
        for word in ["The price has risen", "0.89", "0.9", "12.8", "13", "Nothing was created"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(site.balance().created, created);
        // The quotes are removed.
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
        workspace.plan(&[]);
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
            assert_eq!(workspace.plan(&[]).actions(), [], "{list}");
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
        let specs = "data \"damodel_specs\" \"x\" {\n  gpu_name = \"4090\"\n  sort_by = \"price\"\n  \
                     max_hourly_price = 2\n  available_only = true\n}\n";
        let whole = config(format!("{specs}{}", choice("data.damodel_specs.x.specs").without("gpu_num")));
        workspace.apply_ok(&whole);
        assert_eq!(spec_of(workspace), 104);
        let (bought, changes) = (workspace.state(), site.changes());
        let keeps = |list: &str| {
            workspace.write(list);
            let said = workspace.try_plan(&[]);
            assert!(names_the_card(&said, "1 \u{d7} spec_id 104 in cn-east-1"), "{list}: {said:#?}");
            workspace.settled();
            workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
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
        assert_eq!((site.changes(), site.balance().created), (changes, 1));

        // The next change stores the list.
        let named = |list: &str| choice(list).without("gpu_num").text("name", "other");
        workspace.apply_ok(&config(named("[{ spec_id = 101 }]")));
        assert_eq!(workspace.state().resource(X).value("candidates")[0]["spec_id"], json!(101));
        assert_eq!(site.balance().created, 1);
        // The instance's own arguments and another form are no candidates.
        for other in [
            named("[{ spec_id = 101 }]").set("gpu_num", 2),
            named("[{ spec_id = 101 }]").text("region", "cn-north-2"),
            Instance::new("x").without("spec_id").text("name", "other").text("spec_type", "gpu.a100-80g.1"),
        ] {
            workspace.write(&config(other));
            let said = workspace.try_plan(&[]);
            assert!(says(&said, Severity::Warning, "deletes the instance's disks"), "{said:#?}");
            assert!(!names_the_card(&said, ""), "{said:#?}");
        }
        workspace.apply_ok(&config(named("[{ spec_id = 101 }]")));
        workspace.finish();
    });
}

/// Where the state has no list, the list is stored, whatever it holds.
#[rstest]
#[case("[{ spec_id = 101 }]")]
#[case("[]")]
fn a_first_list_without_the_specification_is_an_update_that_sends_nothing(#[case] list: &str) {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let (changes, uid) = (site.changes(), site.live().remove(0));
        for is_imported in [false, true] {
            if is_imported {
                workspace.run_ok(&["state", "rm", X]);
                workspace.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
            }
            workspace.write(&config(choice(list)));
            let said = workspace.try_plan(&[]);
            assert!(names_the_card(&said, "1 \u{d7} spec_id 103 in cn-east-1 (gpu.rtx4090.1)"), "{said:#?}");
            let plan = workspace.plan_and_apply_ok(&config(choice(list)));
            assert_eq!(plan.change(X).actions(), "update", "{is_imported}");
            assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
            assert_eq!((spec_of(workspace), site.changes()), (103, changes));
        }
        workspace.write(&config(choice("[]")));
        let said = workspace.try_plan(&[&format!("-replace={X}")]);
        refusal(&said, &["No candidates", "at least one specification"]);
        workspace.finish();
    });
}

#[test]
fn moving_between_the_forms_sends_nothing() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config(Instance::new("x")));
        let changes = site.changes();
        let plan = workspace.plan_and_apply_ok(&config(choice(THREE)));
        assert_eq!(plan.change(X).actions(), "update");
        assert_eq!(plan.change(X).unknown(), Vec::<String>::new());
        workspace.apply_ok(&config(Instance::new("x").without("spec_id").text("spec_type", "gpu.rtx4090.1")));
        assert_eq!(site.changes(), changes);
        // After an import, too.
        let uid = site.live().remove(0);
        workspace.run_ok(&["state", "rm", X]);
        workspace.write(&config(choice(THREE)));
        workspace.run_ok(&["import", "-no-color", "-input=false", X, &uid]);
        let plan = workspace.plan_and_apply_ok(&config(choice(THREE)));
        assert_eq!(plan.change(X).actions(), "update");
        assert_eq!((site.changes(), site.balance().created), (changes, 1));
        workspace.finish();
    });
}

#[test]
fn a_create_goes_round_all_candidates_while_it_waits() {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE).text("wait_for_capacity", "5m")));
        sell_out(site, &[101, 103, 104]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                site.await_ledger("a round of refused creates", |ledger| {
                    ledger.requests_to("instance_create").count() == 3
                });
                set(site, 101, Some(1), None);
            });
            let (done, said) = workspace.try_apply(&[]);
            assert!(done, "{said:#?}");
        });
        workspace.settled();
        assert_eq!((spec_of(workspace), site.requests("instance_create"), site.balance().created), (101, 5, 1));
        workspace.finish();
    });
}

#[rstest]
#[case::the_answer_is_lost(FaultAction::DropAfter, true)]
#[case::nothing_was_made(
    FaultAction::Error { code_n: Code::CreateInstanceFailedCudaNotMatch, processed: false },
    false
)]
fn whatever_becomes_of_a_candidate_there_is_one_instance(#[case] action: FaultAction, #[case] is_made: bool) {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE)));
        workspace.plan(&[]);
        sell_out(site, &[103]);
        site.arm("instance_create", When::Nth(2), action.clone());
        workspace.apply_plan();
        workspace.settled();
        assert_eq!((spec_of(workspace), site.balance().created), (if is_made { 101 } else { 104 }, 1));
        workspace.finish();
    });
}

#[test]
fn a_run_killed_after_its_second_candidate_was_accepted_is_resumed() {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE)));
        workspace.plan(&[]);
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

#[test]
fn a_run_killed_between_two_candidates_goes_on_with_the_next_at_once() {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE).text("wait_for_capacity", "10m")));
        sell_out(site, &[103, 101, 104]);
        let mut started = Started::apply(workspace);
        let is_refused = || workspace.notes().iter().any(|note| note.content["refused"] == true);
        let round = || site.requests("instance_create") == 3 && is_refused();
        started.until("a round of refusals", round);
        started.kill();
        started.ended(true);
        set(site, 103, Some(1), None);
        set(site, 104, Some(1), None);
        let begun = std::time::Instant::now();
        workspace.apply_ok(&config(choice(THREE)));
        assert!(begun.elapsed().as_secs() < 60, "it waited for an instance that was refused");
        assert_eq!((spec_of(workspace), site.balance().created), (103, 1));
        workspace.finish();
    });
}

#[test]
fn other_errors_end_the_create() {
    each_workspace(|site, workspace| {
        workspace.write(&config(choice(THREE)));
        site.arm(
            "instance_create",
            When::Next(1),
            FaultAction::Error { code_n: Code::BalanceNotEnough, processed: false },
        );
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        refusal(&said, &["100038", "Nothing was created"]);
        assert_eq!(site.requests("instance_create"), 1);
        workspace.apply_ok(&config(choice(THREE)));
        workspace.finish();
    });
}

#[test]
fn lists_of_the_data_source_are_candidates_as_they_are() {
    each_workspace(|site, workspace| {
        let specs = "data \"damodel_specs\" \"x\" {\n  gpu_name = \"4090\"\n  sort_by = \"price\"\n}\n";
        let machine = choice("data.damodel_specs.x.specs");
        let whole = config(format!("{specs}{machine}"));
        workspace.apply_ok(&whole);
        assert_eq!(spec_of(workspace), 104, "the cheapest");
        // Another order and other prices.
        set(site, 103, None, Some(0.1));
        workspace.settled();
        workspace.destroy_ok();
        workspace.apply_ok(&whole);
        assert_eq!(spec_of(workspace), 103, "the cheapest of now");
        workspace.finish();
    });
}

#[rstest]
#[case("candidates = [{ spec_id = 103 }]\n  gpu_num = 1\n  spec_id = 103", "spec_id")]
#[case("candidates = [{ spec_id = 103, gpu_num = 1 }, { spec_id = 104 }]", "candidates")]
#[case("candidates = [{ spec_id = 103, gpu_num = 1 }]\n  gpu_num = 1", "candidates")]
#[case("candidates = [{ spec_id = 103, region = \"r\" }]\n  gpu_num = 1\n  region = \"r\"", "candidates")]
#[case("candidates = [{ gpu_num = 1 }]", "candidates")]
fn what_makes_no_sense_is_refused_at_once(#[case] arguments: &str, #[case] attribute: &str) {
    each_workspace(|site, workspace| {
        let body = format!(
            "resource \"damodel_instance\" \"x\" {{\n  image_id = 902\n  image_type = \"public\"\n  {arguments}\n}}\n"
        );
        workspace.write(&config(body));
        let said = Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout);
        let error = refusal(&said, &[]);
        assert_eq!(error.attribute.as_deref(), Some(attribute), "{error:#?}");
        assert_eq!(site.ledger().requests.len(), 0);
    });
}
