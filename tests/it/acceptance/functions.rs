//! The provider's functions, called by configurations.

use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::support::terraform::{Cli, Site, Workspace, config, each_cli, refusal};

fn calls(cli: &Cli) -> bool {
    cli.has(8, 7)
}

/// Calls of the functions and their results, with the data source `damodel_specs.all`.
fn known() -> [(&'static str, &'static str, Value); 2] {
    let spec = "one([for s in data.damodel_specs.all.specs : s if s.spec_id == 103])";
    let estimate = |arguments: &str| -> &'static str {
        Box::leak(format!("provider::damodel::estimate_cost({spec}, {arguments})").into_boxed_str())
    };
    [
        ("hourly", estimate("2, null, null, null"), json!({ "unit_price": 3.96, "period_total": 3.96 })),
        ("weekly", estimate("1, 0, \"Weekly\", 1"), json!({ "unit_price": null, "payment_type": "Weekly" })),
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
fn a_wrong_argument_is_named() {
    each_cli(|cli| {
        if !calls(cli) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let spec = "one([for s in data.damodel_specs.all.specs : s if s.spec_id == 103])";
        let estimate = |arguments: &str| format!("estimate_cost({spec}, {arguments})");
        // An error that needs no data source hides those that do.
        let alone = [
            (estimate("null, 0, null, null"), ["gpu_num", "null"]),
            ("estimate_cost({}, 1, 0, null, null)".to_owned(), ["spec", "price"]),
        ];
        let of_specs = [
            (estimate("0, 0, null, null"), ["gpu_num", "whole number, at least 1"]),
            (estimate("1.5, 0, null, null"), ["gpu_num", "whole number"]),
            (estimate("1, -1, null, null"), ["data_disk_expand_size_gb", "at least 0"]),
            (estimate("1, 0, \"Yearly\", 1"), ["payment_type", "Monthly"]),
            (estimate("1, 0, \"Daily\", null"), ["purchase_duration", "Hourly"]),
            (estimate("1, 0, \"Daily\", 0"), ["purchase_duration", "at least 1"]),
        ];
        for calls in [&alone[..], &of_specs] {
            let output = |(number, (call, _)): (usize, &(String, [&str; 2]))| {
                format!("output \"x{number}\" {{ value = provider::damodel::{call} }}")
            };
            let outputs: Vec<String> = calls.iter().enumerate().map(output).collect();
            let text = config(format!("data \"damodel_specs\" \"all\" {{}}\n{}\n", outputs.join("\n")));
            workspace.write(&text);
            let said = workspace.try_plan(&[]);
            for ((_, words), output) in calls.iter().zip(&outputs) {
                let line = text.lines().position(|line| line == output).map(|line| line as u64 + 1);
                let at_it: Vec<_> = said.iter().filter(|said| said.line == line).cloned().collect();
                refusal(&at_it, words);
            }
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
