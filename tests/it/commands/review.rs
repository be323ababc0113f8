//! `review` on plans that Terraform made on the sandbox, and on recorded ones.

use std::{
    collections::BTreeSet,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use regex::Regex;
use serde_json::{Value, json};

use crate::support::{
    plugin::BINARY,
    program,
    record::skipped,
    terraform::{Instance, Run, Site, Workspace, config, each_cli_since, each_workspace},
};

const EVERYTHING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/review/everything.json");

/// Runs `review` with this standard input.
fn review(arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new(BINARY);
    command.arg("review").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Run::of(child.wait_with_output().unwrap())
}

/// Plans, and shows the plan in the form for `review`.
fn plan(workspace: &Workspace<'_>, config: &str, arguments: &[&str]) -> String {
    workspace.write(config);
    let mut all = vec!["plan", "-no-color", "-input=false", "-out=plan"];
    all.extend(arguments);
    workspace.run(&all);
    let output = workspace.command(&["show", "-json", "plan"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The only plan of the review as data.
fn data(plan: &str) -> Value {
    let run = review(&["-", "--format", "json"], plan);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&report["format_version"], &report["gate"]), (&"2.0".into(), &Value::Null));
    assert_eq!(report["plans"].as_array().unwrap().len(), 1);
    report["plans"][0].take()
}

const DISK: &str = "resource \"damodel_cloud_disk\" \"data\" {\n  name = \"data\"\n  size_gb = 20\n  spec_id = 31\n}\n";

#[test]
fn a_create_is_priced_by_its_quote() {
    each_workspace(|_, workspace| {
        let body = format!("{}{DISK}", Instance::new("a").set("count", 2).set("store_credentials", true));
        let planned = plan(workspace, &config(body), &[]);
        let report = data(&planned);
        assert_eq!(report["counts"]["create"], 3);
        assert_eq!(report["cost"]["now"]["monthly"].as_f64(), Some(0.0));
        assert_eq!(report["cost"]["after"]["monthly"].as_f64(), Some(2.0 * 1.98 * 730.0));
        assert_eq!(report["secrets"][0]["attributes"], json!(["jupyter_token", "ssh_password"]));
        for (gate, code) in [
            (&["--max-monthly-increase", "2890.79"][..], 3),
            (&["--max-monthly-increase", "2890.80"], 0),
            (&["--deny", "destroy-data,prepaid"], 0),
            (&["--deny", "secrets-in-state"], 3),
        ] {
            let run = review(&[&["-"], gate].concat(), &planned);
            assert_eq!(run.code, Some(code), "{gate:?}: {}", run.stderr);
            assert_eq!(run.stderr.contains("violation: "), code == 3, "{}", run.stderr);
            let headline = format!("## {} +2,890.80 a month (0.00 → 2,890.80)", if code == 3 { "❌" } else { "✅" });
            assert!(run.stdout.starts_with(&headline), "{}", run.stdout);
            assert!(run.stdout.contains("`damodel_instance.a[1]`"), "{}", run.stdout);
        }
        let run = review(&["-", "--currency", "CNY"], &planned);
        assert!(run.stdout.starts_with("## +2,890.80 CNY a month (0.00 → 2,890.80)\n"), "{}", run.stdout);
        let quiet = Instance::new("b").without("name");
        let planned = plan(workspace, &config(quiet), &[]);
        assert_eq!(review(&["-", "--deny", "secrets-in-state"], &planned).code, Some(0));
    });
}

#[test]
fn candidates_are_told_with_their_ceiling_and_the_choice_after_the_apply() {
    each_workspace(|_, workspace| {
        let list = "[{ spec_id = 101 }, { spec_type = \"gpu.rtx4090.1\" }]";
        let choice = config(Instance::new("a").without("spec_id").set("candidates", list));
        let planned = plan(workspace, &choice, &[]);
        let report = data(&planned);
        assert_eq!(report["cost"]["after"]["monthly"].as_f64(), Some(12.8 * 730.0));
        let candidates = &report["cost"]["instances"][0]["candidates"];
        assert_eq!((candidates["options"].as_array().unwrap().len(), &candidates["choice"]), (2, &Value::Null));
        let text = review(&["-"], &planned).stdout;
        assert!(text.starts_with("## at most +9,344.00 a month "), "{text}");
        assert!(text.contains("2 candidates: ") && text.contains("price_ceiling"), "{text}");
        workspace.apply_ok(&choice);
        let report = data(&plan(workspace, &choice, &[]));
        let instance = &report["cost"]["instances"][0];
        assert_eq!(instance["candidates"]["choice"], "1 \u{d7} gpu.a100-80g.1 in cn-east-1");
        assert_eq!(instance["now"]["hourly"].as_f64(), Some(12.8));
    });
}

#[test]
fn an_import_with_stored_credentials_puts_them_into_the_state() {
    each_cli_since(5, 6, |cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(Instance::new("a")));
        let uid = workspace.state().resource("damodel_instance.a").id();
        let fresh = Workspace::new(cli, &site);
        let import = format!("import {{\n  to = damodel_instance.a\n  id = \"{uid}\"\n}}\n");
        let body = |machine: Instance| config(format!("{machine}{import}"));
        let quiet = plan(&fresh, &body(Instance::new("a")), &[]);
        assert_eq!(review(&["-", "--deny", "secrets-in-state"], &quiet).code, Some(0));
        let body = body(Instance::new("a").set("store_credentials", true));
        let planned = plan(&fresh, &body, &[]);
        let run = review(&["-", "--deny", "secrets-in-state"], &planned);
        assert_eq!(run.code, Some(3), "{}", run.stdout);
        let expected = "damodel_instance.a: stores sensitive values in the state: jupyter_token, ssh_password";
        assert!(run.stderr.contains(expected), "{}", run.stderr);
        fresh.run_ok(&["apply", "-no-color", "-input=false", "plan"]);
        let state = std::fs::read_to_string(fresh.directory().join("terraform.tfstate")).unwrap();
        assert!(site.secrets().iter().any(|secret| state.contains(secret)));
        assert_eq!(review(&["-", "--deny", "secrets-in-state"], &plan(&fresh, &body, &[])).code, Some(0));
    });
}

#[test]
fn spot_machines_count_at_their_ceiling_and_weekly_ones_have_no_price() {
    each_workspace(|_, workspace| {
        let weekly = Instance::new("weekly").text("payment_type", "Weekly").set("purchase_duration", 2);
        let spot = Instance::new("spot").set("spec_id", 104);
        let planned = plan(workspace, &config(format!("{spot}{weekly}")), &[]);
        let run = review(&["-", "--max-monthly-increase", "1000000", "--deny", "prepaid"], &planned);
        assert_eq!(run.code, Some(3));
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("violation: max-monthly-increase: damodel_instance.weekly: price unknown: "));
        let planned = plan(workspace, &config(Instance::new("spot").set("spec_id", 104)), &[]);
        assert_eq!(review(&["-", "--max-monthly-increase", "649.69"], &planned).code, Some(3));
        assert_eq!(review(&["-", "--max-monthly-increase", "649.7"], &planned).code, Some(0));
        assert_eq!(lines[1], "violation: prepaid: damodel_instance.weekly: buys 2 weeks at an unknown price");
    });
}

#[test]
fn the_data_of_a_replaced_machine_is_told() {
    each_workspace(|site, workspace| {
        let disks = "[{ disk_id = damodel_cloud_disk.data.id, release_with_instance = true }]";
        let made = Instance::new("a").set("exist_disks", disks);
        workspace.write(&config(format!("{made}{DISK}")));
        workspace.run_ok(&["apply", "-auto-approve", "-no-color", "-input=false"]);
        let planned = plan(workspace, &config(format!("{}{DISK}", Instance::new("a").set("image_id", 901))), &[]);
        let report = data(&planned);
        let changes = report["changes"].as_array().unwrap();
        let replaced = changes.iter().find(|change| change["address"] == "damodel_instance.a").unwrap();
        let mut arguments = replaced["arguments"].as_array().unwrap().iter();
        assert!(arguments.any(|one| one["name"] == "image_id" && one["forces"] == true), "{replaced}");
        let data = replaced["loss"]["data"].as_array().unwrap();
        let disk = data.iter().find(|item| item["kind"] == "cloud-disk").unwrap();
        assert_eq!(disk["managed_by"], "damodel_cloud_disk.data");
        assert_eq!(disk["size_gb"], 20);
        // The refresh detected the mount of the disk.
        let drifted = changes.iter().find(|change| !change["drift"].is_null()).unwrap();
        assert_eq!(drifted["address"], "damodel_cloud_disk.data");
        let run = review(&["-", "--deny", "destroy-data"], &planned);
        assert_eq!(run.code, Some(3));
        assert!(
            run.stderr.contains("destroy-data: damodel_instance.a: replaced (image_id 902 → 901, "),
            "{}",
            run.stderr
        );
        let secrets = site.secrets();
        for format in ["markdown", "html", "json", "sarif", "text"] {
            let text = review(&["-", "--format", format], &planned).stdout;
            assert!(!secrets.iter().any(|secret| text.contains(secret)), "{format}");
        }
    });
}

#[test]
fn what_is_removed_without_destroy_is_forgotten() {
    each_cli_since(7, 7, |cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.apply_ok(&config(Instance::new("a")));
        let body = if cli.is_tofu {
            "removed {\n  from = damodel_instance.a\n}\n"
        } else {
            "removed {\n  from = damodel_instance.a\n  lifecycle {\n    destroy = false\n  }\n}\n"
        };
        let planned = plan(&workspace, &config(body), &[]);
        let run = review(&["-", "--deny", "destroy-data", "--max-monthly-increase", "0"], &planned);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let billed = "**Still billed afterwards:** forgotten: `damodel_instance.a` (1,445.40 a month)\n";
        assert!(run.stdout.contains(billed), "{}", run.stdout);
        let destroyed = plan(&workspace, &config(Instance::new("a")), &["-destroy"]);
        assert_eq!(review(&["-", "--deny", "destroy-data"], &destroyed).code, Some(3));
    });
}

#[test]
fn a_plan_with_errors_or_targets_is_not_judged_as_whole() {
    each_workspace(|_, workspace| {
        let both = format!("{}{DISK}", Instance::new("a"));
        if !workspace.cli.is_tofu {
            // Terraform reports the plan as incomplete.
            let planned = plan(workspace, &config(&both), &["-target=damodel_cloud_disk.data"]);
            let run = review(&["-", "--deny", "prepaid"], &planned);
            assert_eq!(run.code, Some(3));
            assert!(run.stderr.starts_with("violation: plan: another plan is needed after it"), "{}", run.stderr);
            assert_eq!(review(&["-"], &planned).code, Some(0));
        }
        let failing = format!("{DISK}{}", Instance::new("a").set("gpu_num", 99));
        let planned = plan(workspace, &config(failing), &[]);
        // A policy is a gate without limits too.
        let policy = workspace.directory().join("gate.toml");
        std::fs::write(&policy, "version = 1\n").unwrap();
        for gate in [["--deny", "prepaid"], ["--policy", policy.to_str().unwrap()]] {
            let run = review(&[&["-"], &gate[..]].concat(), &planned);
            assert_eq!(run.code, Some(3));
            assert!(run.stderr.starts_with("violation: plan: errored: the plan stopped early\n"), "{}", run.stderr);
            assert!(run.stdout.contains("\n**Cannot be judged:** errored: "), "{}", run.stdout);
        }
        assert_eq!(review(&["-"], &planned).code, Some(0));
    });
}

#[test]
fn a_file_is_read_too() {
    let run = review(&[EVERYTHING, "--format", "html", "--max-monthly-increase=1"], "");
    assert_eq!(run.code, Some(3));
    assert!(run.stdout.starts_with("<!doctype html>") && run.stdout.ends_with("</html>\n"), "{}", run.stdout);
}

/// A pipeline wants a comment, data and a log of the same plan, and each violation once.
#[test]
fn one_call_writes_several_reports() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let gate = [EVERYTHING, "--max-monthly-increase=1", "--id", "prod"];
    let run = |formats: &[&str]| {
        let formats = formats.iter().flat_map(|format| ["--format", *format]);
        review_in(folder.path(), &gate.into_iter().chain(formats).collect::<Vec<_>>())
    };
    let all = run(&["text", "json=report.json", "html=a=b.html", "sarif=report.sarif", "markdown=comment.md"]);
    assert_eq!((all.code, &all.stdout), (Some(3), &run(&["text"]).stdout), "{}", all.stderr);
    assert_eq!(all.stderr, run(&["text"]).stderr);
    assert_eq!(read("comment.md"), run(&["markdown"]).stdout);
    assert!(read("comment.md").starts_with("<!-- damodel-review: prod -->\n"), "{}", read("comment.md"));
    assert_eq!((read("report.json"), read("a=b.html")), (run(&["json"]).stdout, run(&["html"]).stdout));
    assert_eq!(read("report.sarif"), run(&["sarif"]).stdout);
    // Nothing is written to standard output without a form for it.
    let quiet = run(&["json=report.json"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (Some(3), ""), "{}", quiet.stderr);
    for (formats, words) in [
        (["json", "text"], "two reports for one place"),
        (["json=new", "text=new"], "two reports for one place"),
        (["json=new", "text="], "no file after ="),
        (["json=new", "xml"], "not markdown, text, html, json or sarif"),
    ] {
        let run = run(&formats);
        assert!(run.code == Some(2) && run.stderr.contains(words), "{formats:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !folder.path().join("new").exists());
    }
    // What is no plan leaves a report as it is.
    let none = review_in(folder.path(), &["report.json", "--format", "json=report.json", "--format", "text"]);
    assert!(none.code == Some(1) && read("report.json") == run(&["json"]).stdout, "{}", none.stderr);
    assert_eq!(run(&["text=no/such/folder"]).code, Some(1));
}

/// Two modules with each other's folder as source, twice each: every step doubles the calls.
#[test]
fn modules_that_name_each_other_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("infra/a")).unwrap();
    let calls = |source: &str| {
        format!("module \"x\" {{\n  source = {source:?}\n}}\n\nmodule \"y\" {{\n  source = {source:?}\n}}\n")
    };
    std::fs::write(path("infra/main.tf"), calls("./a")).unwrap();
    std::fs::write(path("infra/a/main.tf"), calls("../.")).unwrap();
    std::fs::write(path("infra/a/d.tf"), "\nresource \"damodel_cloud_disk\" \"d\" {}\n").unwrap();
    let change = |address: &str| {
        json!({"address": address, "mode": "managed", "type": "damodel_cloud_disk",
            "change": {"actions": ["delete"], "before": {"id": "1", "size_gb": 30}, "after": null}})
    };
    let changes = ["module.y.damodel_cloud_disk.d", "module.x.module.y.module.x.damodel_cloud_disk.d"].map(change);
    let plan = json!({"format_version": "1.2", "planned_values": {}, "resource_changes": changes});
    std::fs::write(path("plan.json"), plan.to_string()).unwrap();
    let run = review_in(folder.path(), &["plan.json", "--format", "json", "--config-dir", "infra"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["location"], json!({"file": "infra/a/d.tf", "line": 2}), "{finding}");
    }
}

/// `>` and Out-File of Windows PowerShell 5 write UTF-16.
#[test]
fn files_of_powershell_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let units = format!("\u{feff}{text}");
        std::fs::write(folder.path().join(name), units.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>())
            .unwrap();
    };
    write("plan.json", &std::fs::read_to_string(EVERYTHING).unwrap());
    write("gate.toml", "version = 1\r\n[limits]\r\ndeny = [\"prepaid\"]\r\n");
    let run = review_in(folder.path(), &["plan.json", "--policy", "gate.toml"]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert_eq!(run.stderr.matches("violation: prepaid: ").count(), 2, "{}", run.stderr);
    assert_eq!(review_in(folder.path(), &["."]).code, Some(0));
}

/// Findings have the file and line of their block, in modules too, whatever keys they have.
#[test]
fn findings_are_located_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("infra/mod")).unwrap();
    std::fs::write(
        path("infra/main.tf"),
        "# a comment\n\nmodule \"m\" {\n  source   = \"./mod\"\n  for_each = {}\n}\n",
    )
    .unwrap();
    // A byte order mark is skipped, and copies of editors are no configuration, as for Terraform.
    let disks = "\u{feff}\n\nresource \"damodel_cloud_disk\" \"d\" {\n  count = 2\n}\n";
    std::fs::write(path("infra/mod/disks.tf"), disks).unwrap();
    for copy in ["infra/.#main.tf", "infra/.hidden.tf", "infra/main.tf~", "infra/#main.tf#"] {
        std::fs::write(path(copy), "resource {{{").unwrap();
    }
    std::fs::write(path("infra/gone.tf"), "removed {\n  from = damodel_cloud_disk.old\n}\n").unwrap();
    let change = |address: &str| {
        json!({"address": address, "mode": "managed", "type": "damodel_cloud_disk",
            "change": {"actions": ["delete"], "before": {"id": "1", "size_gb": 30}, "after": null}})
    };
    let addresses = [
        ("module.m[\"x.y\"].damodel_cloud_disk.d[1]", "infra/mod/disks.tf", 3),
        ("damodel_cloud_disk.old", "infra/gone.tf", 1),
        ("module.m[\"x\"].damodel_cloud_disk.gone", "infra/mod/disks.tf", 1),
        ("damodel_cloud_disk.nowhere", "infra/main.tf", 1),
    ];
    let changes: Vec<Value> = addresses.iter().map(|(address, ..)| change(address)).collect();
    let plan = json!({"format_version": "1.2", "planned_values": {}, "resource_changes": changes});
    std::fs::write(path("plan.json"), plan.to_string()).unwrap();
    let run = |format: &str, directory: &str| {
        let mut command = Command::new(BINARY);
        command.args(["review", "plan.json", "--deny", "destroy-data", "--format", format, "--config-dir", directory]);
        Run::of(command.current_dir(folder.path()).output().unwrap())
    };
    let located = run("sarif", "infra");
    assert!(!located.stderr.contains("warning"), "{}", located.stderr);
    let sarif: Value = serde_json::from_str(&located.stdout).unwrap();
    for ((address, file, line), result) in addresses.iter().zip(sarif["runs"][0]["results"].as_array().unwrap()) {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(
            (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
            (&(*file).into(), &(*line).into())
        );
        assert_eq!(result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], *address);
    }
    // However the folder is named, files are relative to the working directory.
    let relative = "<br>`infra/mod/disks.tf:3` |";
    let elsewhere = run("markdown", path("infra").to_str().unwrap()).stdout;
    assert!(elsewhere.contains(relative), "{elsewhere}");
    assert!(run("markdown", "infra").stdout.contains(relative));
    // In a repository they are relative to its root.
    std::fs::create_dir_all(path("infra/.git")).unwrap();
    let whole = path("infra");
    for directory in ["infra", "./infra/../infra", whole.to_str().unwrap()] {
        let text = run("markdown", directory).stdout;
        assert!(text.contains("<br>`mod/disks.tf:3` |"), "{directory}: {text}");
    }
    std::fs::remove_dir(path("infra/.git")).unwrap();
    let missing = run("sarif", "nowhere");
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    // A file that cannot be parsed is reported, and does not affect other files.
    std::fs::write(path("infra/broken.tf"), "locals {}\nresource {{{").unwrap();
    let run = run("markdown", "infra");
    let warning =
        "warning: infra/broken.tf cannot be parsed, so findings have no line in it: line 2, invalid block body";
    assert!(run.stderr.contains(warning) && !run.stderr.contains('\u{fffd}'), "{}", run.stderr);
    assert!(run.stdout.contains(relative), "{}", run.stdout);
}

/// Runs `review` in a folder.
fn review_in(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(BINARY);
    Run::of(command.arg("review").args(arguments).current_dir(folder).output().unwrap())
}

/// A file that is found comes from the author of the plan.
#[test]
fn only_a_policy_that_is_named_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::copy(EVERYTHING, path("plan.json")).unwrap();
    let run = |arguments: &[&str]| review_in(folder.path(), arguments);
    let all = &["plan.json", "--max-monthly-increase", "0", "--deny", "destroy-data", "--deny", "prepaid"];
    let closed = run(all);
    assert_eq!(closed.code, Some(3));
    assert!(closed.stderr.contains(": destroy-data: ") && closed.stderr.contains(": prepaid: "), "{}", closed.stderr);
    let exception = "[[exception]]\nmatch = [\"**\"]\nowner = \"o\"\nreason = \"r\"\nexpires = 2999-01-01\n";
    std::fs::write(path("review.toml"), format!("version = 1\n{exception}")).unwrap();
    let beside = run(all);
    assert_eq!((beside.code, &beside.stderr), (Some(3), &closed.stderr));
    assert!(beside.stdout.contains("not used: pass it with --policy: `review.toml`"));
    // It is not even opened.
    std::fs::write(path("review.toml"), "not TOML").unwrap();
    assert_eq!(run(all).stderr, closed.stderr);
    // Exceptions of the named one hold for the options too.
    std::fs::write(path("other.toml"), format!("version = 1\n{exception}")).unwrap();
    let named = run(&[all, &["--policy", "other.toml"][..]].concat());
    assert_eq!((named.code, named.stderr.as_str()), (Some(0), ""));
    std::fs::write(path("other.toml"), "version = 1\n[limit]\n").unwrap();
    let wrong = run(&["plan.json", "--policy", "other.toml"]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""));
    assert!(wrong.stderr.starts_with("error: cannot read other.toml as a policy: "), "{}", wrong.stderr);
    for part in ["line 2, column 2", "unknown field `limit`", "did you mean \"limits\"?\n"] {
        assert!(wrong.stderr.contains(part), "{part}: {}", wrong.stderr);
    }
    for twice in [["--max-monthly-increase", "1"], ["--policy", "other.toml"]] {
        assert_eq!(run(&[&["plan.json"], &twice[..], &twice[..]].concat()).code, Some(2), "{twice:?}");
    }
}

#[test]
fn a_folder_means_every_plan_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let run = |arguments: &[&str]| review_in(folder.path(), arguments);
    for directory in ["plans/more", "empty"] {
        std::fs::create_dir_all(path(directory)).unwrap();
    }
    for name in ["plans/more/other.JSON", "plans/plan.json", "plans/prod.tf.json", "one.json"] {
        std::fs::copy(EVERYTHING, path(name)).unwrap();
    }
    std::fs::write(path("plans/main.tf.json"), "{\"resource\": {}}").unwrap();
    let names = |arguments: &[&str]| {
        let done = run(&[arguments, &["--format", "json"]].concat());
        let report: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
        let name = |plan: &Value| plan["name"].as_str().map_or_else(|| "-".to_owned(), str::to_owned);
        report["plans"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["plans"]), ["more/other.JSON", "plan.json", "prod.tf.json"]);
    assert_eq!(names(&["plans/more"]), ["other.JSON"]);
    assert_eq!(names(&["one.json"]), ["-"]);
    // The same path counts once.
    assert_eq!(names(&["one.json", "./one.json"]), ["-"]);
    assert_eq!(
        names(&["plans", "one.json", "plans/plan.json", "plans/"]),
        ["plans/more/other.JSON", "plans/plan.json", "plans/prod.tf.json", "one.json"]
    );
    assert_eq!(run(&["empty"]).stderr, "error: no plan in empty: it has no file that ends with .json\n");
    std::fs::write(path("plans/broken.json"), "{}").unwrap();
    let broken = run(&["plans"]);
    assert_eq!((broken.code, broken.stdout.as_str()), (Some(1), ""));
    assert!(
        broken.stderr.starts_with("error: cannot read plans/broken.json as a plan: it is JSON, but"),
        "{}",
        broken.stderr
    );
}

/// What is not read must have no plan, and one plan is not read twice.
#[cfg(unix)]
#[test]
fn no_plan_is_left_out_or_counted_twice() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("plans/.hidden/deep")).unwrap();
    std::fs::create_dir(path("elsewhere")).unwrap();
    std::fs::copy(EVERYTHING, path("plans/plan.json")).unwrap();
    let error = |arguments: &[&str]| {
        let run = review_in(folder.path(), arguments);
        assert!(matches!((run.code, run.stdout.as_str()), (Some(0), _) | (Some(1), "")), "{}", run.stderr);
        run.stderr
    };
    std::fs::write(path("plans/.hidden/settings.json"), "{}").unwrap();
    assert_eq!(error(&["plans"]), "");
    std::fs::copy(EVERYTHING, path("plans/.hidden/deep/a.json")).unwrap();
    assert_eq!(
        error(&["plans"]),
        "error: plans/.hidden is a hidden folder with plans, which is not read: name or move it\n"
    );
    std::fs::remove_dir_all(path("plans/.hidden")).unwrap();
    symlink(".", path("plans/itself")).unwrap();
    let linked = |name: &str| {
        format!("error: plans/{name} is a link to a folder with plans, which is not read: name or move it\n")
    };
    assert_eq!(error(&["plans"]), linked("itself"));
    std::fs::remove_file(path("plans/itself")).unwrap();
    symlink("../elsewhere", path("plans/linked")).unwrap();
    assert_eq!(error(&["plans"]), "");
    std::fs::copy(EVERYTHING, path("elsewhere/b.json")).unwrap();
    assert_eq!(error(&["plans"]), linked("linked"));
    std::fs::remove_file(path("plans/linked")).unwrap();
    symlink("/nowhere", path("plans/dangling")).unwrap();
    assert_eq!(error(&["plans"]), "");
    std::fs::hard_link(path("plans/plan.json"), path("again.json")).unwrap();
    assert_eq!(error(&["plans", "again.json"]), "error: plans/plan.json and again.json are one file: name it once\n");
    symlink("plan.json", path("plans/z.json")).unwrap();
    assert_eq!(error(&["plans"]), "error: plans/plan.json and plans/z.json are one file: name it once\n");
    symlink("nothing.json", path("elsewhere/c.json")).unwrap();
    assert!(error(&["elsewhere"]).starts_with("error: cannot read elsewhere/c.json: "));
}

/// A plan without changes.
const EMPTY: &str = r#"{"format_version": "1.2", "planned_values": {}}"#;

#[test]
fn what_is_no_plan_gives_no_report() {
    for (arguments, input, code, reason) in [
        (&["-"][..], "", 1, "error: cannot read standard input as a plan: it is empty"),
        (
            &["-", "--deny", "prepaid"],
            "{}",
            1,
            "error: cannot read standard input as a plan: it is JSON, but not the output",
        ),
        (&["-"], "Error: no plan", 1, "error: cannot read standard input as a plan: it is not JSON"),
        (&["/nowhere/plan.json"], "", 1, "error: cannot read /nowhere/plan.json: "),
        (&[], "", 2, "error: "),
        (&["-", "--deny", "everything"], "", 2, "error: "),
        (&["-", "--max-monthly-increase", "much"], "", 2, "error: "),
        (&["-", "--max-monthly-increase=-1"], "", 2, "error: "),
        (&["-", "--format", "pdf"], "", 2, "error: "),
        (&["-", "--id", "--> x"], "", 2, "error: "),
        (&["-", "--currency", ""], EMPTY, 2, "error: "),
        (&["-", "--currency", "EURO12345"], EMPTY, 2, "error: "),
        (&["-", "--currency", "<b>"], EMPTY, 2, "error: "),
        (&["-", "--currency", "€€"], EMPTY, 2, "error: "),
        (&["-", "--policy", "/nowhere.toml"], EMPTY, 1, "error: cannot read /nowhere.toml: "),
    ] {
        let run = review(arguments, input);
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{arguments:?}");
        assert!(run.stderr.starts_with(reason), "{}", run.stderr);
    }
}

/// Without `--config-dir` a finding is in its plan, whose path is relative to the working directory.
#[test]
fn a_finding_without_a_block_is_in_its_plan() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().canonicalize().unwrap();
    std::fs::create_dir(directory.join("out")).unwrap();
    for name in ["out/a.json", "out/b.json"] {
        std::fs::copy(EVERYTHING, directory.join(name)).unwrap();
    }
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let places = |plans: &[String]| {
        let mut command = Command::new(BINARY);
        command.args(["review", "--format", "sarif"]).args(plans).current_dir(&directory);
        let log: Value = serde_json::from_str(&Run::of(command.output().unwrap()).stdout).unwrap();
        let path = |result: &Value| result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone();
        let paths = log["runs"][0]["results"].as_array().unwrap().iter().map(path);
        let paths: BTreeSet<String> = paths.map(|path| path.as_str().unwrap().to_owned()).collect();
        paths.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(places(&[path("out/a.json")]), ["out/a.json"]);
    assert_eq!(places(&["./out/b.json".to_owned()]), ["out/b.json"]);
    assert_eq!(places(&[path("out/a.json"), path("out/b.json")]), ["out/a.json", "out/b.json"]);
    assert!(!places(&[EVERYTHING.to_owned()])[0].starts_with('/'));
}

/// The recorded plan with everything, in which all names are this one.
fn called(name: &str) -> Value {
    let mut plan: Value = serde_json::from_slice(&std::fs::read(EVERYTHING).unwrap()).unwrap();
    for list in ["resource_changes", "resource_drift"] {
        for change in plan[list].as_array_mut().unwrap() {
            let address = change["address"].as_str().unwrap().split('[').next().unwrap();
            change["address"] = format!("{address}{name}").into();
            change["action_reason"] = name.into();
            for part in ["/previous_address", "/change/importing/id"] {
                if let Some(text) = change.pointer_mut(part) {
                    *text = name.into();
                }
            }
        }
    }
    plan["checks"][0]["instances"][0]["problems"][0]["message"] = name.into();
    plan["deferred_changes"] = json!([{"reason": name, "resource_change": {"address": name}}]);
    plan["action_invocations"] = json!([{"address": name, "type": name, "config_values": {"model": name, name: 1},
        "lifecycle_action_trigger": {"triggering_resource_address": name, "action_trigger_event": "AfterCreate"}}]);
    plan
}

/// The tree of a Markdown text by GitHub's engine, with the extensions that GitHub uses; `None` without it.
fn tree(text: &str) -> Option<String> {
    let mut engine = Command::new("cmark-gfm");
    engine
        .args(["-t", "xml", "--unsafe"])
        .args(["table", "strikethrough", "autolink", "tagfilter"].map(|e| ["-e", e]).as_flattened());
    let Ok(mut child) = engine.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        skipped("cmark-gfm is not on PATH");
        return None;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The structure of a comment does not depend on names, for cmark-gfm, which GitHub uses.
#[cfg(unix)]
#[test]
fn names_do_not_change_the_structure_of_a_comment() {
    let comment = |name: &str| {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let plans = ["1", "2"].map(|number| format!("{}{number}.json", name.replace('/', "_")));
        plans.iter().for_each(|plan| write(plan, &called(name).to_string()));
        let text = Value::from(name);
        let exception = format!("match = [\"**\"]\nrule = [\"secrets-in-state\"]\nowner = {text}\nreason = {text}\n");
        let limits = "[limits]\nmax_monthly_increase = 0\ndeny = [\"destroy-data\", \"secrets-in-state\"]\n";
        write("gate.toml", &format!("version = 1\n{limits}[[exception]]\n{exception}expires = 2999-01-01\n"));
        std::fs::create_dir(folder.path().join("infra")).unwrap();
        write(&format!("infra/x{}.tf", name.replace('/', "_")), "");
        let options = ["--policy", "gate.toml", "--config-dir", "infra", "--format", "markdown", "--"];
        let run = review_in(folder.path(), &[&options[..], &plans.each_ref().map(|plan| plan.as_str())].concat());
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        run.stdout
    };
    // The text of the plan is in code spans, and only there.
    let structure =
        |text: &str| Some(Regex::new("<code [^>]*>[^<]*<").unwrap().replace_all(&tree(text)?, "<").into_owned());
    let text = comment("[\"plain\"]");
    let Some(plain) = structure(&text) else { return };
    let fold = r"(?s)<html_block [^>]*>&lt;details&gt;&lt;summary&gt;[^&]*&lt;/summary&gt;\n</html_block>\s*<table>";
    let folds = Regex::new(&format!(r"{fold}.*?</table>\s*<html_block [^>]*>&lt;/details&gt;\n</html_block>")).unwrap();
    let number = text.matches("<details>").count();
    assert!(number >= 9 && folds.find_iter(&plain).count() == number, "{number}: {plain}");
    assert_eq!(plain.matches("<table>").count(), 1 + number, "{plain}");
    let raw = structure(&text.replace("</summary>\n\n", "</summary>\n")).unwrap();
    assert_eq!(folds.find_iter(&raw).count(), 0, "{raw}");
    // They are short: what is long is cut.
    for hostile in [
        "[\"a|b`c<i>@team\"]",
        "[\"``` \\\\| -->\"]",
        "[\"<!-- </details>\"]",
        "[\"\n\n# x\n| a |\n\"]",
        "![x](http://x.y) **b** ~~s~~",
        "&lt; $1 #2 </sub> http://x.y",
        "`",
        "\\",
    ] {
        assert_eq!(structure(&comment(hostile)).unwrap(), plain, "{hostile}");
    }
}

/// All commands of the guide run; Terraform is replaced by a program that shows a recorded plan.
#[cfg(unix)]
#[test]
fn what_the_guide_shows_runs() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/reviews.md")).unwrap();
    let site = Site::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for directory in ["bin", "plans", ".terraform/damodel-pending"] {
        std::fs::create_dir_all(path(directory)).unwrap();
    }
    for plan in ["plan.json", "network.json", "compute.json", "plans/a.json", "plans/b.json"] {
        std::fs::copy(EVERYTHING, path(plan)).unwrap();
    }
    let show = "#!/bin/sh\ncase \"$1 $2\" in\n'show -json') cat plan.json ;;\n\
                'state pull') echo '{\"version\": 4}' ;;\nesac\n";
    program::put(&path("bin/terraform"), show);
    std::fs::write(path("main.tf"), "resource \"damodel_instance\" \"created\" {\n}\n").unwrap();
    std::fs::write(path("prod.tfstate"), "{\"version\": 4}").unwrap();
    let own = Path::new(BINARY).parent().unwrap().display();
    let search = format!("{}:{own}:/usr/bin:/bin", path("bin").display());
    let is_own = |line: &&str| {
        line.contains("terraform-provider-damodel review ") || line.contains("terraform-provider-damodel audit ")
    };
    let mut run = 0;
    for line in guide.lines().filter(is_own) {
        let command = line.trim_start().trim_start_matches("- run: ").trim_start_matches("- ");
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(folder.path()).env_clear().env("PATH", &search);
        shell.env("DAMODEL_BASE_URL", site.base_url()).env("DAMODEL_API_TOKEN", site.token());
        let done = Run::of(shell.output().unwrap());
        assert!(matches!(done.code, Some(0 | 3)), "{command}: {:?} {}", done.code, done.stderr);
        run += 1;
    }
    assert!(run >= 6, "{run}");
    // The policy on the page is valid.
    let policy = guide.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    std::fs::write(path("review.toml"), policy).unwrap();
    let judged = ["review", "plan.json", "--policy", "review.toml"];
    let judged = Command::new(BINARY).args(judged).current_dir(folder.path()).output().unwrap();
    assert_eq!(judged.status.code(), Some(3), "{}", String::from_utf8_lossy(&judged.stderr));
}
