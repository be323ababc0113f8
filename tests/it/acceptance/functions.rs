//! The provider's functions, called by configurations.

use std::{fs, io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::support::terraform::{Cli, Site, Workspace, config, each_cli, refusal};

const ADDRESS: &str = "registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4";

fn calls(cli: &Cli) -> bool {
    cli.has(8, 7)
}

/// Calls of the functions and their results, with the data source `damodel_specs.all`.
fn known() -> [(&'static str, &'static str, Value); 7] {
    let spec = "one([for s in data.damodel_specs.all.specs : s if s.spec_id == 103])";
    let estimate = |arguments: &str| -> &'static str {
        Box::leak(format!("provider::damodel::estimate_cost({spec}, {arguments})").into_boxed_str())
    };
    [
        (
            "public",
            "provider::damodel::parse_image_address(\"registry.damodel.test/model_library/pytorch:2.5.1-cuda12.4\")",
            json!({ "registry_host": "registry.damodel.test", "kind": "public", "repository": "model_library/pytorch",
                    "tag": "2.5.1-cuda12.4" }),
        ),
        (
            "private",
            "provider::damodel::parse_image_address(\"r/user_private/base\")",
            json!({ "registry_host": "r", "kind": "private", "repository": "user_private/base", "tag": null }),
        ),
        ("hourly", estimate("2, null, null, null"), json!({ "unit_price": 3.96, "period_total": 3.96 })),
        ("weekly", estimate("1, 0, \"Weekly\", 1"), json!({ "unit_price": null, "payment_type": "Weekly" })),
        ("cheapest", "provider::damodel::cheapest_spec(data.damodel_specs.all.specs, 1)", json!({ "spec_id": 104 })),
        (
            "cheapest_of_some",
            "provider::damodel::cheapest_spec([for s in data.damodel_specs.all.specs : s if s.capacity_type == \
             \"ondemand\"], 7)",
            json!({ "spec_id": 105 }),
        ),
        (
            "cheapest_of_objects",
            "provider::damodel::cheapest_spec([{ spec_id = 7, max_gpu_count = 2, hourly_price = 3, rack = \"a\" }], 2)",
            json!({ "spec_id": 7, "rack": "a" }),
        ),
    ]
}

fn outputs() -> String {
    let outputs: String =
        known().iter().map(|(name, call, _)| format!("output {name:?} {{\n  value = {call}\n}}\n")).collect();
    format!("data \"damodel_specs\" \"all\" {{}}\n{outputs}")
}

/// Whether a value has all these fields.
fn has(value: &Value, fields: &Value) -> bool {
    fields.as_object().unwrap().iter().all(|(name, field)| value[name] == *field)
}

#[test]
fn a_plan_and_its_apply_agree_on_the_results() {
    each_cli(|cli| {
        if !calls(cli) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(outputs()));
        let state = workspace.state();
        for (name, call, expected) in known() {
            assert!(has(state.output(name), &expected), "{call}: {:#}", state.output(name));
        }
        // The cost of the applied instance equals the result of the function.
        let machine = "resource \"damodel_instance\" \"x\" {\n  name = \"x\"\n  spec_id = 103\n  gpu_num = 2\n  \
                       image_id = 902\n  image_type = \"public\"\n}\n";
        let same = "output \"same\" {\n  value = damodel_instance.x.estimated_cost == \
                    provider::damodel::estimate_cost(\n    one([for s in data.damodel_specs.all.specs : s if \
                    s.spec_id == damodel_instance.x.spec_id]),\n    damodel_instance.x.gpu_num, \
                    damodel_instance.x.data_disk_expand_size_gb,\n    damodel_instance.x.payment_type, \
                    damodel_instance.x.purchase_duration)\n}\n";
        workspace.apply_ok(&config(format!("data \"damodel_specs\" \"all\" {{}}\n{machine}{same}")));
        assert_eq!(workspace.state().output("same"), &json!(true));
        workspace.finish();
    });
}

#[test]
fn what_is_unknown_stays_unknown() {
    each_cli(|cli| {
        if !calls(cli) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let address = format!("resource \"terraform_data\" \"a\" {{\n  input = {ADDRESS:?}\n}}\n");
        let body = format!(
            "{address}output \"kind\" {{\n  value = \
             provider::damodel::parse_image_address(terraform_data.a.output).kind\n}}\n"
        );
        workspace.write(&config(body));
        let shown = workspace.plan(&[]);
        assert_eq!(shown.output("kind"), "create");
        workspace.apply_plan();
        assert_eq!(workspace.state().output("kind"), &json!("public"));
    });
}

#[test]
fn a_wrong_argument_is_named() {
    each_cli(|cli| {
        if !calls(cli) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let spec = "one([for s in data.damodel_specs.all.specs : s if s.spec_id == 103])";
        let estimate = |arguments: &str| format!("estimate_cost({spec}, {arguments})");
        let cheapest = |arguments: &str| format!("cheapest_spec({arguments})");
        let all = "data.damodel_specs.all.specs";
        for (call, words) in [
            ("parse_image_address(\"nonsense\")".to_owned(), &["address", "host/repository[:tag]"][..]),
            ("parse_image_address(\"r/elsewhere/a:1\")".to_owned(), &["address", "model_library", "user_private"]),
            ("parse_image_address(null)".to_owned(), &["address", "null"]),
            ("parse_image_address([])".to_owned(), &["address", "string"]),
            (estimate("0, 0, null, null"), &["gpu_num", "whole number, at least 1"]),
            (estimate("1.5, 0, null, null"), &["gpu_num", "whole number"]),
            (estimate("null, 0, null, null"), &["gpu_num", "null"]),
            (estimate("1, -1, null, null"), &["data_disk_expand_size_gb", "at least 0"]),
            (estimate("1, 0, \"Yearly\", 1"), &["payment_type", "Monthly"]),
            (estimate("1, 0, \"Daily\", null"), &["purchase_duration", "Hourly"]),
            (estimate("1, 0, \"Daily\", 0"), &["purchase_duration", "at least 1"]),
            ("estimate_cost({}, 1, 0, null, null)".to_owned(), &["spec", "price"]),
            (cheapest("[], 1"), &["specs", "none of these"]),
            (cheapest(&format!("[for s in {all} : s if !s.available], 1")), &["specs", "available now"]),
            (cheapest(&format!("{all}, 64")), &["gpu_num", "at most 8"]),
            (cheapest(&format!("{all}, 1.5")), &["gpu_num", "whole number"]),
            (cheapest(&format!("{all}, null")), &["gpu_num", "null"]),
            (cheapest("null, 1"), &["specs", "null"]),
        ] {
            let body = format!(
                "data \"damodel_specs\" \"all\" {{}}\noutput \"x\" {{\n  value = provider::damodel::{call}\n}}\n"
            );
            workspace.write(&config(body));
            refusal(&workspace.try_plan(&[]), words);
        }
    });
}

#[test]
fn the_console_calls_them() {
    each_cli(|cli| {
        // OpenTofu's console cannot call provider functions.
        if cli.is_tofu || !calls(cli) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(outputs()));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color"]);
        for (_, call, expected) in known() {
            let mut command = workspace.command(&["console"]);
            let mut console =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            writeln!(console.stdin.take().unwrap(), "jsonencode({call})").unwrap();
            let output = console.wait_with_output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let answer = said.lines().find(|line| line.starts_with('"'));
            let answer = answer.unwrap_or_else(|| panic!("{call}: {said}{}", String::from_utf8_lossy(&output.stderr)));
            let json: String = serde_json::from_str(answer).unwrap();
            let value: Value = serde_json::from_str(&json).unwrap();
            assert!(has(&value, &expected), "{call}: {value:#}");
        }
    });
}

#[test]
fn a_test_of_the_core_calls_them() {
    each_cli(|cli| {
        // A call of a provider's function in a test's own expressions crashes OpenTofu 1.12.
        if cli.is_tofu || !calls(cli) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(outputs()));
        let test = "run \"functions\" {\n  command = plan\n  assert {\n    condition = output.public.kind == \
                    \"public\"\n    error_message = \"kind\"\n  }\n  assert {\n    condition = output.private == \
                    provider::damodel::parse_image_address(\"r/user_private/base\")\n    error_message = \"whole\"\n  \
                    }\n  assert {\n    condition = output.cheapest.spec_id == 104 && output.hourly.unit_price == \
                    3.96\n    error_message = \"price\"\n  }\n}\n";
        fs::write(workspace.directory().join("functions.tftest.hcl"), test).unwrap();
        let said = workspace.run_ok(&["test", "-no-color"]);
        assert!(said.stdout.contains("1 passed, 0 failed"), "{}", said.stdout);
    });
}
