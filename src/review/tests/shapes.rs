//! Plans of all versions. Those of cores that were not available are written by hand after the documentation of the
//! format.

use std::{fs, path::PathBuf};

use rstest::rstest;

use super::*;

/// A change of another type, with these sides.
fn change(kind: &str, actions: &[&str], before: Value, after: Value) -> Value {
    json!({"address": format!("{kind}.x"), "mode": "managed", "type": kind,
        "change": {"actions": actions, "before": before, "after": after}})
}

fn with(key: &str, value: Value) -> Value {
    let mut plan = plan_of(&[]);
    plan[key] = value;
    plan
}

#[test]
fn forgetting_first_is_a_replacement_too() {
    let plan = plan_of(&[machine(&["forget", "create"], Some(2.0), Some(1.0))]);
    let report = report(&plan);
    assert_eq!(
        (report.counts.replace, only(&report, |change| change.action.forgets()).len(), report.unreadable.len()),
        (1, 1, 0)
    );
    assert_eq!(report.cost.after.hourly.with_digits(2), "3.00");
    assert_eq!(found(&plan, &policy(Some("729"), &[])), ["max-monthly-increase -"]);
    assert_eq!(found(&plan, &policy(None, &[Deny::DestroyData])), Vec::<String>::new());
}

/// The form of Terraform 1.14 and later (JSON output format, action invocations).
#[test]
fn actions_are_told_with_what_sets_them_off() {
    let lifecycle = |event: &str| {
        json!({"address": "action.damodel_llama_server_restart.r", "type": "damodel_llama_server_restart", "name": "r",
            "config_values": {"instance_id": "ins-1", "password": "hunter2"}, "config_sensitive": {"password": true},
            "config_unknown": {}, "lifecycle_action_trigger": {"triggering_resource_address": "damodel_llama_server.s",
            "action_trigger_event": event, "action_trigger_block_index": 0, "actions_list_index": 0,
            "on_failure": "ActionOnFailureHalt"}})
    };
    let invoked = json!({"address": "action.damodel_llama_server_restart.c", "type": "damodel_llama_server_restart",
        "name": "c", "invoke_action_trigger": {}});
    let plan = with("action_invocations", json!([lifecycle("BeforeDestroy"), lifecycle("AfterUpdate"), invoked]));
    let review = review(&plan, &Policy::default());
    let text = write(&review, Format::Markdown);
    for part in [
        "3 actions to invoke",
        "| `action.damodel_llama_server_restart.r` | before the deletion of `damodel_llama_server.s` | `instance_id` = \
         `\"ins-1\"`",
        "after the update of `damodel_llama_server.s`",
        "| `action.damodel_llama_server_restart.c` | invoked directly (-invoke) |",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!FORMATS.iter().any(|format| write(&review, *format).contains("hunter2")));
    assert_eq!(
        only(&report(&plan), |change| change.trigger.is_some())[0].trigger,
        Some(Trigger::Lifecycle {
            resource: "damodel_llama_server.s".to_owned(),
            event: "before_destroy".to_owned(),
            on_failure: Some("halt".to_owned()),
        })
    );
}

#[test]
fn what_is_deferred_is_named_and_closes_the_gate() {
    let deferred = json!([{"reason": "provider_config_unknown",
        "resource_change": change("damodel_instance", &["create"], Value::Null, json!({}))}]);
    let mut plan = with("deferred_changes", deferred);
    plan["deferred_action_invocations"] =
        json!([{"reason": "deferred_prereq", "action_invocation": {"address": "action.a.b"}}]);
    let review = review(&plan, &policy(None, &[Deny::Prepaid]));
    assert_eq!(violations(&review), ["plan -"]);
    let text = write(&review, Format::Markdown);
    assert!(text.contains("| `damodel_instance.x` | the configuration of its provider is unknown so far |"), "{text}");
    assert!(text.contains("| `action.a.b` | a dependency is deferred |"), "{text}");
}

/// A plan that is unreadable in parts never passes, with or without limits.
#[test]
fn an_unknown_shape_closes_every_gate() {
    let whole = machine(&["update"], Some(1.0), Some(1.0));
    let set = |pointer: &str, value: Value| {
        let mut change = whole.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        change.pointer_mut(parent).unwrap()[key] = value;
        plan_of(&[change])
    };
    let odd = [7.into(), "x".into(), json!([1])];
    for odd in &odd {
        let mut plans = vec![with("resource_changes", json!([odd])), with("action_invocations", json!([odd]))];
        plans.extend(
            [
                "/change",
                "/address",
                "/mode",
                "/type",
                "/change/actions",
                "/change/before",
                "/change/after",
                "/change/importing",
                "/change/replace_paths",
            ]
            .map(|pointer| set(pointer, odd.clone())),
        );
        for plan in plans.iter().filter(|plan| !plan.to_string().contains("\"address\":\"x\"")) {
            if plan.to_string().contains("\"type\":\"x\"") {
                continue;
            }
            let review = review(plan, &Policy::default());
            assert_eq!(violations(&review), ["plan -"], "{plan}");
        }
    }
    for (key, odd) in [("checks", 7.into()), ("prior_state", "x".into()), ("deferred_changes", true.into())] {
        assert_eq!(violations(&review(&with(key, odd), &Policy::default())), ["plan -"], "{key}");
    }
    // The masks must be readable before any value is shown.
    for mask in ["after_sensitive", "before_sensitive", "after_unknown"] {
        let plan = set(&format!("/change/{mask}"), "everything".into());
        assert_eq!(report(&plan).unreadable, ["resource_changes[0] (damodel_instance.a)"]);
    }
    assert!(review(&set("/change/importing", Value::Null), &Policy::default()).gate.is_none());
}

#[test]
fn every_changed_object_is_named_with_what_changes() {
    let disk = |size: i64, tag: &str| json!({"size_gb": size, "name": "d", "labels": {"a": 1, "b": tag}, "token": tag});
    let mut grows = change("damodel_cloud_disk", &["update"], disk(30, "x"), disk(60, "y"));
    grows["change"]["before_sensitive"] = json!({"token": true});
    grows["change"]["after_sensitive"] = json!({"token": true});
    let mut moved = machine(&["no-op"], Some(1.0), Some(1.0));
    moved["previous_address"] = "module.old.damodel_instance.a".into();
    let mut imported = change("damodel_private_image", &["update"], json!({"name": "a"}), json!({"name": "b"}));
    imported["change"]["importing"] = json!({"identity": {"image_id": 7}});
    let text = write(&review(&plan_of(&[grows, moved, imported]), &Policy::default()), Format::Markdown);
    for part in [
        "| `damodel_cloud_disk.x` | `size_gb`: `30` → `60` GB<br>`labels.b`: `\"x\"` → `\"y\"`<br>`token`: \
         `(sensitive)` → `(sensitive)` |",
        "| `damodel_instance.a` | `module.old.damodel_instance.a` | no change |",
        "| `damodel_private_image.x` | `{\"image_id\":7}` | update in place |",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_created_is_told_with_its_disks() {
    let mut made = machine(&["create"], None, Some(1.0));
    made["change"]["after"]["new_disks"] = json!([
        {"size_gb": 100, "spec_id": 31, "mount_path": "/data", "release_with_instance": true},
        {"size_gb": 50, "spec_id": 31, "mount_path": "/more", "release_with_instance": false},
    ]);
    made["change"]["after"]["payment_type"] = "Monthly".into();
    let disk = change("damodel_cloud_disk", &["create"], Value::Null, json!({"size_gb": 200, "name": "d"}));
    let text = write(&review(&plan_of(&[made, disk]), &Policy::default()), Format::Markdown);
    for part in [
        "new cloud disk of 100 GB at `/data`, released with the instance",
        "new cloud disk of 50 GB at `/more`, stays when the instance is released",
        "`size_gb` = `200` GB",
        "### Prepaid (1)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn candidates_count_at_their_ceiling() {
    let mut made = machine(&["create"], None, None);
    made["change"]["after"] = json!({"payment_type": "Hourly", "price_ceiling": 2.5, "candidates": [
        {"spec_id": 101, "spec_type": null, "region": null, "gpu_num": 1},
        {"spec_id": null, "spec_type": "gpu.b", "region": "region-2", "gpu_num": 2}]});
    made["change"]["after_unknown"] =
        json!({"estimated_cost": true, "spec_id": true, "spec_type": true, "region": true});
    let plan = plan_of(&[made.clone()]);
    let text = write(&review(&plan, &Policy::default()), Format::Markdown);
    assert!(
        text.contains("2 candidates: `1 \u{d7} spec_id 101`, `2 \u{d7} gpu.b in region-2`; the apply chooses"),
        "{text}"
    );
    assert!(text.contains("at most: its price_ceiling") && text.contains("1825.00"), "{text}");
    assert_eq!(found(&plan, &policy(Some("1824.99"), &[])), ["max-monthly-increase -"]);
    assert_eq!(found(&plan, &policy(Some("1825"), &[])), Vec::<String>::new());
    // With one candidate left, the choice is known.
    made["change"]["after_unknown"] = json!({});
    made["change"]["after"]["spec_type"] = "gpu.b".into();
    made["change"]["after"]["region"] = "region-2".into();
    made["change"]["after"]["gpu_num"] = 2.into();
    let report = report(&plan_of(&[made]));
    let candidates = report.cost.resources[0].candidates.as_ref().unwrap();
    assert_eq!((candidates.count, candidates.choice.as_deref()), (2, Some("2 \u{d7} gpu.b in region-2")));
}

/// The type decides whether an object is judged: a mirror's source address does not open the gate.
#[test]
fn another_provider_s_destroy_is_a_note() {
    let bucket = change("aws_s3_bucket", &["delete"], json!({}), Value::Null);
    let mut password = change("random_password", &["delete", "create"], json!({}), json!({"result": "hunter2-"}));
    password["change"]["after_sensitive"] = json!({"result": true});
    let mut disk = change("damodel_cloud_disk", &["delete"], json!({"id": "7"}), Value::Null);
    disk["provider_name"] = "mirror.example.com/team/gpu".into();
    let mut plan = plan_of(&[bucket, password, disk]);
    plan["action_invocations"] = json!(["local_command", "damodel_llama_server_restart"].map(|kind| json!({
        "address": format!("action.{kind}.x"), "type": kind, "name": "x", "invoke_action_trigger": {}})));
    let all = policy(Some("0"), &[Deny::DestroyData, Deny::Prepaid, Deny::Unpriced, Deny::SecretsInState]);
    let review = review(&plan, &all);
    assert_eq!(violations(&review), ["destroy-data damodel_cloud_disk.x", "secrets-in-state random_password.x"]);
    let notes = review.findings.iter().filter(|finding| finding.rule == Rule::Note).map(ToString::to_string);
    assert_eq!(
        notes.collect::<Vec<_>>(),
        [
            "note: aws_s3_bucket.x: it is destroyed, and belongs to another provider: data loss not assessed",
            "note: action.local_command.x: it is an action of another provider: data loss not assessed",
        ]
    );
}

#[test]
fn a_plan_without_changes_tells_what_it_does_all_the_same() {
    let drifted = change("damodel_cloud_disk", &["update"], json!({"size_gb": 30}), json!({"size_gb": 60}));
    let refreshed = with("resource_drift", json!([drifted]));
    let text = write(&review(&refreshed, &Policy::default()), Format::Markdown);
    assert!(
        text.contains("no changes. 1 object changed outside of plans.") && text.contains("`30` → `60` GB"),
        "{text}"
    );
    let outputs = with("output_changes", json!({"a": {"actions": ["create"], "before": null, "after": 1}}));
    assert!(write(&review(&outputs, &Policy::default()), Format::Markdown).contains("1 output changes."));
}

/// The prefix of every sensitive value in the fixtures.
const SECRET: &str = "hunter2-";

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/review/cores"))
}

fn plan(name: &str) -> Value {
    let file = folder().join(format!("{name}.json"));
    serde_json::from_slice(&fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"))).unwrap()
}

fn all() -> Vec<(String, Value)> {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), plan(&name))).collect()
}

/// For every core and every format: complete, without secrets, the same bytes each time, and without the words that
/// tools search for.
#[test]
fn every_plan_of_every_core_is_read_whole() {
    let plans = all();
    assert!(plans.len() >= 10, "{}", plans.len());
    let denied = policy(Some("0"), &[Deny::DestroyData, Deny::Prepaid, Deny::SecretsInState]);
    for (name, plan) in &plans {
        assert_eq!(report(plan).unreadable, Vec::<String>::new(), "{name}");
        for gate in [Policy::default(), policy(Some("1000000"), &[]), denied.clone()] {
            let review = review(plan, &gate);
            let violations = review.gate.as_ref().map_or(0, |verdict| verdict.violations.len());
            assert_eq!(review.findings.iter().filter(|finding| finding.level == Level::Error).count(), violations);
            for format in FORMATS {
                let text = write(&review, format);
                assert_eq!(text, write(&review, format), "{name} {format:?}");
                assert!(!text.contains(SECRET), "{name} {format:?}");
                let mut text = text.to_lowercase();
                // Keys of JSON, names of attributes, and Terraform's status code of a check.
                for key in ["failed_checks", "\"status\": \"fail\"", "on_failure", "password", "\"passed\": "] {
                    text = text.replace(key, "");
                }
                let wrong = if violations > 0 { "pass" } else { "fail" };
                assert!(!text.contains(wrong), "{name} {format:?} {violations}: {text}");
            }
        }
    }
}

/// Texts in the comment of each plan.
#[rstest]
#[case("terraform-1.17-action-after-create", &["\n1 to create, 1 action to invoke.\n",
    "| `action.damodel_llama_server_restart.smoke` | after the creation of `damodel_instance.gpu`<br>an error is a \
     warning | `api_key` = `(sensitive)`"])]
#[case("terraform-1.17-action-before-destroy", &["\n1 to destroy, 1 action to invoke.\n",
    "| before the deletion of `damodel_instance.gpu`<br>an error is a warning |"])]
#[case("terraform-1.17-action-on-replace", &["\n1 to replace, 2 actions to invoke.\n", "| before the deletion of \
    `damodel_instance.gpu`",
    "| after the creation of `damodel_instance.gpu`"])]
#[case("terraform-1.17-action-on-update", &["\n1 to update in place, 2 actions to invoke.\n",
    "| before the update of `damodel_instance.gpu` |", "| after the update of `damodel_instance.gpu` |",
    "`name`: `\"gpu\"` → `\"renamed\"`"])]
#[case("terraform-1.17-action-invoked", &["\n1 action to invoke.\n", "| invoked directly (-invoke) |"])]
#[case("terraform-1.17-deferred", &["> The plan is incomplete: some changes are deferred to a later plan.",
    "| `damodel_cloud_disk.many[*]` | its count or for_each is unknown so far |"])]
#[case("opentofu-1.12-forget-create", &["\n1 to replace, 1 to forget, 1 unchanged.\n",
    "| `damodel_instance.a` | replace (the old one is forgotten) | `image_id`: `902` → `901`",
    "| `damodel_instance.b` | `damodel_instance`<br>destroy = false in the state |",
    "| **total** |  | **2890.80** | **4336.20** | **+1445.40** |"])]
fn a_core_s_plan_is_told(#[case] name: &str, #[case] parts: &[&str]) {
    let text = write(&review(&plan(name), &Policy::default()), Format::Markdown);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The same changes by each core: readers see no difference between cores.
#[test]
fn every_core_s_mixed_plan_is_told() {
    let mixed: Vec<_> = all().into_iter().filter(|(name, _)| name.ends_with("-mixed")).collect();
    assert!(mixed.len() >= 2);
    for (name, plan) in mixed {
        let text = write(&review(&plan, &policy(None, &[Deny::DestroyData, Deny::Prepaid])), Format::Markdown);
        for part in [
            "\n2 to create, 1 to update in place, 1 to replace, 1 to forget, 1 to import, 1 moved, 2 unchanged.\n",
            "### Gate: Failed: 2 violations",
            "| destroy-data | `damodel_instance.kept` |",
            "| prepaid | `damodel_instance.paid` |",
            "`image_id`: `902` → `901`",
            "### Removed from the state, not destroyed (still billed) (1)\n\n| object | type |\n| --- | --- |\n| \
             `damodel_instance.gone` |",
            "| `damodel_instance.pick` | create<br>at most: its price_ceiling<br>2 candidates: ",
            "| `damodel_instance.paid` | 2 months |",
            "new cloud disk of 100 GB at `/data`, released with the instance",
            "| `damodel_cloud_disk.grows` | `size_gb`: `30` → `60` GB |",
            "### Imported (1)",
            "| `damodel_instance.new` | `damodel_instance.old` | no change |",
            "| `check.small` | does not hold | `The disk is too large \\| \\u0060really\\u0060.` |",
        ] {
            assert!(text.contains(part), "{name}: {part}: {text}");
        }
    }
}

#[test]
fn every_core_s_refresh_is_told() {
    let refreshed: Vec<_> = all().into_iter().filter(|(name, _)| name.ends_with("-refresh-only")).collect();
    assert!(refreshed.len() >= 2);
    for (name, plan) in refreshed {
        let text = write(&review(&plan, &Policy::default()), Format::Markdown);
        assert!(text.contains("\nno changes. 1 object changed outside of plans.\n"), "{name}: {text}");
        assert!(text.contains("| `damodel_cloud_disk.d` | `size_gb`: `20` → `40` GB |"), "{name}: {text}");
    }
}

/// The keys of a map that is sensitive as a whole are sensitive too.
#[test]
fn nothing_below_a_mask_is_told() {
    let map = |key: &str| json!({"environment": {key: "v"}, "plain": {"shown": key}});
    let mut changed = change("damodel_llama_server", &["update"], map("hunter2-a"), map("hunter2-b"));
    for mask in ["before_sensitive", "after_sensitive"] {
        changed["change"][mask] = json!({"environment": true});
    }
    changed["change"]["after"]["plain"] = json!({"shown": "x"});
    changed["change"]["before"]["plain"] = json!({"shown": "y"});
    let mut replaced = changed.clone();
    replaced["address"] = "damodel_llama_server.replaced".into();
    replaced["change"]["actions"] = json!(["delete", "create"]);
    replaced["change"]["replace_paths"] = json!([["environment", "hunter2-a"], ["environment", "hunter2-b"]]);
    let mut plan = plan_of(&[changed, replaced]);
    plan["action_invocations"] = json!([{"address": "action.x.y", "type": "x", "name": "y", "config_sensitive": true,
        "config_values": {"hunter2-c": 1}, "invoke_action_trigger": {}}]);
    let review = review(&plan, &policy(None, &[Deny::SecretsInState]));
    for format in FORMATS {
        assert!(!write(&review, format).contains("hunter2"), "{format:?}");
    }
    let text = write(&review, Format::Markdown);
    assert_eq!(text.matches("`environment`: `(sensitive)` → `(sensitive)`").count(), 2, "{text}");
    assert!(text.contains("`plain.shown`: `\"y\"` → `\"x\"`"), "{text}");
}

/// A binding is read, so that ins-1 is not found in ins-12.
#[test]
fn a_disk_goes_with_the_machine_that_it_is_bound_to() {
    let mut machine = machine(&["delete"], Some(1.0), None);
    machine["change"]["before"]["id"] = "ins-1".into();
    let disk = |id: &str, binding: &str| {
        let values = json!({"id": id, "release_with_instance": true, "binding_instances": [binding]});
        let mut disk = change("damodel_cloud_disk", &["no-op"], values.clone(), values);
        disk["address"] = format!("damodel_cloud_disk.d{id}").into();
        disk
    };
    let disks = [
        disk("1", "ins-1"),
        disk("2", "ins-12"),
        disk("3", r#"{"instance": {"uid": "ins-1"}, "device": 1}"#),
        disk("4", r#"{"uid": "ins-12"}"#),
        disk("5", r#"["x", "ins-1"]"#),
    ];
    let plan = plan_of(&[&[machine][..], &disks].concat());
    let report = report(&plan);
    let loss = report.changes.iter().find_map(|change| change.loss.clone()).unwrap();
    let disks: Vec<&str> = loss.data.iter().filter_map(|item| item.managed_by.as_deref()).collect();
    assert_eq!(disks, ["damodel_cloud_disk.d1", "damodel_cloud_disk.d3", "damodel_cloud_disk.d5"]);
}

#[test]
fn a_machine_whose_change_is_unreadable_is_unknown() {
    let mut plan = plan_of(&[machine(&["transmogrify"], Some(1.0), Some(1.0))]);
    let values = machine(&[], Some(1.0), None)["change"]["before"].clone();
    plan["prior_state"] = json!({"values": {"root_module": {"resources": [
        {"address": "damodel_instance.a", "mode": "managed", "type": "damodel_instance", "values": values},
        {"address": "damodel_instance.b", "mode": "managed", "type": "damodel_instance", "values": values}]}}});
    let text = write(&review(&plan, &Policy::default()), Format::Markdown);
    let unknown = "| `damodel_instance.a` | unknown<br>its change in the plan is unreadable | 730.00 | unknown |";
    assert!(text.contains(unknown), "{text}");
    assert!(text.contains("| `damodel_instance.b` | not in this plan | 730.00 | 730.00 | 0.00 |"), "{text}");
}

/// A cell takes ten lines; the size is always among them.
#[test]
fn growth_is_told_beside_many_changes() {
    let disk = |size: i64| {
        let mut disk = json!({"id": "7", "size_gb": size});
        (0..20).for_each(|index| disk[format!("a{index}")] = size.into());
        disk
    };
    let grows = change("damodel_cloud_disk", &["update"], disk(30), disk(60));
    let text = write(&review(&plan_of(&[grows]), &Policy::default()), Format::Markdown);
    assert!(text.contains("| `damodel_cloud_disk.x` | `size_gb`: `30` → `60` GB<br>`a0`: "), "{text}");
    assert!(text.contains("| `damodel_cloud_disk.x` | a cloud disk grows: 30 GB → 60 GB |"), "{text}");
}
