//! What the page says, in the order in which it is read.

use std::collections::BTreeSet;

use super::*;

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A change of another type, with these sides.
fn change(address: &str, actions: &[&str], before: Value, after: Value) -> Value {
    let kind = address.split('.').next().unwrap();
    json!({"address": address, "mode": "managed", "type": kind,
        "change": {"actions": actions, "before": before, "after": after}})
}

fn at(address: &str, mut change: Value) -> Value {
    change["address"] = address.into();
    change
}

/// The places of all values, as `plans[].changes[].loss.data[].kind`.
fn places(value: &Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|element| places(element, &format!("{place}[]"), found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                places(field, &if place.is_empty() { name.clone() } else { format!("{place}.{name}") }, found);
            }
        }
        _ => drop(found.insert(place.to_owned())),
    }
}

#[test]
fn the_form_for_programs_is_a_contract() {
    let gate = policy_of(
        "[limits]\ndeny = [\"destroy-data\"]\n[[exception]]\nmatch = [\"damodel_instance.replaced[*]\"]\n\
         owner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01",
    );
    let review = review(&everything(), &gate.unwrap());
    let mut found = BTreeSet::new();
    places(&serde_json::from_str(&write(&review, Format::Json)).unwrap(), "", &mut found);
    insta::assert_snapshot!(found.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_headline_has_verdict_name_and_sums() {
    let first = |plans: &[&Value], policy: &Policy, style: Style| {
        let text = render(&review_all(plans, policy), &Style { format: Format::Text, ..style }).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    let plan = plan_of(&[instance(&["create"], None, Some(2.0))]);
    let open = Policy::default();
    assert_eq!(first(&[&plan], &open, Style::default()), "+1,460.00 a month (0.00 → 1,460.00)");
    let style = || Style { id: Some("prod".to_owned()), currency: Some("CNY".to_owned()), ..Style::default() };
    let gate = policy(Some("2000"), &[]);
    assert_eq!(first(&[&plan], &gate, style()), "✅ prod: +1,460.00 CNY a month (0.00 → 1,460.00)");
    let closed = "❌ 2 plans: +2,920.00 CNY a month (0.00 → 2,920.00), 1 rule violated";
    assert_eq!(first(&[&plan, &plan], &gate, style()), closed);
    let kept = plan_of(&[instance(&["update"], None, None)]);
    assert_eq!(first(&[&kept], &open, Style::default()), "0.00 a month (0.00 → 0.00, without 1 unknown price)");
    let mut pick = instance(&["create"], None, None);
    pick["change"]["after"] = json!({"payment_type": "Hourly", "price_ceiling": 2.5, "candidates": [
        {"spec_id": 101, "spec_type": null, "region": null, "gpu_num": 1},
        {"spec_id": null, "spec_type": "gpu.b", "region": "region-2", "gpu_num": 2}]});
    pick["change"]["after_unknown"] =
        json!({"estimated_cost": true, "spec_id": true, "spec_type": true, "region": true});
    let most = plan_of(&[pick.clone()]);
    assert_eq!(first(&[&most], &open, Style::default()), "at most +1,825.00 a month (0.00 → 1,825.00)");
    contains(
        &comment(&most),
        &["at most: its price_ceiling<br>2 candidates: `1 × spec_id 101`, `2 × gpu.b in region-2`; \
           chosen during the apply"],
    );
    // With one candidate left, the choice is known.
    pick["change"]["after_unknown"] = json!({});
    for (name, value) in [("spec_type", json!("gpu.b")), ("region", json!("region-2")), ("gpu_num", json!(2))] {
        pick["change"]["after"][name] = value;
    }
    contains(&comment(&plan_of(&[pick])), &["; chosen: `2 × gpu.b in region-2`"]);
    let disk = plan_of(&[change("damodel_cloud_disk.d", &["create"], Value::Null, json!({"size_gb": 20}))]);
    assert_eq!(first(&[&disk], &open, Style::default()), "no instances");
}

#[test]
fn a_line_says_what_must_not_be_missed() {
    let protected = |name: &str| {
        let values = json!({"id": "7", "deletion_protection": true});
        change(&format!("damodel_cloud_disk.{name}"), &["delete"], values, Value::Null)
    };
    let mut changes: Vec<Value> = "abcdefg".chars().map(|name| protected(&name.to_string())).collect();
    changes.push(change("aws_s3_bucket.x", &["delete"], json!({}), Value::Null));
    changes.push(change("terraform_data.x", &["delete"], json!({}), Value::Null));
    let mut plan = plan_of(&changes);
    plan["errored"] = true.into();
    plan["action_invocations"] = json!([{"address": "action.a.b", "type": "a", "name": "b", "config_values":
        {"key": "hunter2"}, "config_sensitive": {"key": true},
        "lifecycle_action_trigger": {"triggering_resource_address": "x.y",
        "action_trigger_event": "BeforeDestroy", "on_failure": "ActionOnFailureContinue"}}]);
    contains(
        &comment(&plan),
        &[
            "\n**Cannot be judged:** errored: the plan stopped early\n",
            "\n**Refused by deletion_protection:** `damodel_cloud_disk.a`, `damodel_cloud_disk.b`, \
             `damodel_cloud_disk.c`, `damodel_cloud_disk.d`, `damodel_cloud_disk.e` and 2 more\n",
            "\n**Destroyed by other providers (data loss not assessed):** `aws_s3_bucket.x`\n",
            "\n**Run by the apply:** `action.a.b` before the deletion of `x.y` (an error is a warning)\n",
        ],
    );
    // A disk that stays, and is destroyed by itself, is not billed any more.
    let values = |id: &str| json!({"id": id, "name": "d", "size_gb": 9, "binding_instances": ["ins-1"]});
    let mut instance = instance(&["delete"], Some(1.0), None);
    instance["change"]["before"]["id"] = "ins-1".into();
    let gone = change("damodel_cloud_disk.gone", &["delete"], values("7"), Value::Null);
    let stays = change("damodel_cloud_disk.stays", &["no-op"], values("8"), values("8"));
    let text = comment(&plan_of(&[instance, gone, stays]));
    contains(&text, &["\n**Still billed afterwards:** cloud disk `8 \"d\"` (9 GB) of `damodel_instance.a`\n"]);
}

#[test]
fn an_exception_is_named_with_what_it_lets_through() {
    let fleet =
        (0..50).map(|index| at(&format!("damodel_instance.db[{index}]"), instance(&["create"], None, Some(10.0))));
    let fleet = plan_of(&fleet.collect::<Vec<_>>());
    let exception = |pattern: &str, day: &str| {
        format!("[[exception]]\nmatch = [\"{pattern}\"]\nowner = \"team\"\nreason = \"why\"\nexpires = {day}\n")
    };
    let gate = |exceptions: &str| policy_of(&format!("[limits]\nmax_monthly_increase = 100\n{exceptions}")).unwrap();
    let open = review(&fleet, &gate(&exception("damodel_instance.db[*]", "2027-01-01")));
    assert_eq!(violations(&open), Vec::<String>::new());
    let line =
        "\n**Excepted:** `damodel_instance.db[*]` by `team` until 2027-01-01, 50 objects, 365,000.00 a month: `why`\n";
    contains(&write(&open, Format::Markdown), &[line]);
    let json: Value = serde_json::from_str(&write(&open, Format::Json)).unwrap();
    assert_eq!((&json["gate"]["exceptions"][0]["objects"], &json["gate"]["passed"]), (&50.into(), &true.into()));
    // What is broad, out of date or useless is noted.
    let broad = messages(&review(&fleet, &gate(&exception("damodel_instance.*[*]", "2027-01-01"))));
    assert_eq!(
        broad.last().unwrap(),
        "exception: the exception damodel_instance.*[*] by team covers objects of any name: why"
    );
    let over = messages(&review(&fleet, &gate(&exception("output.x", "2026-11-21"))));
    assert_eq!(over.last().unwrap(), "exception: the exception output.x by team expired on 2026-11-21: why");
    let useless = messages(&review(&fleet, &gate(&exception("output.x", "2027-11-21"))));
    assert_eq!(useless.last().unwrap(), "exception: the exception output.x by team matches no object: why");
    let many: String = (0..30).map(|index| exception(&format!("damodel_instance.db[{index}]"), "2027-01-01")).collect();
    let text = write(&review(&fleet, &gate(&many)), Format::Markdown);
    assert_eq!(text.matches("**Excepted:**").count(), 21);
    contains(&text, &["\n**Excepted:** by 10 more exceptions\n"]);
}

#[test]
fn moves_and_rules_without_an_object_are_noted() {
    let mut moved = instance(&["delete"], Some(1.0), None);
    moved["previous_address"] = "module.prod.damodel_instance.db".into();
    let gate = policy_of(
        "[[rule]]\nmatch = [\"module.prod.**\"]\ndeny = [\"destroy-data\"]\n[[rule]]\n\
         match = [\"module.x.**\"]\n[[exception]]\nmatch = [\"damodel_instance.a\"]\n\
         owner = \"o\"\nreason = \"r\"\nexpires = 2027-01-01\n",
    );
    let judged = review(&plan_of(&[moved]), &gate.unwrap());
    assert_eq!(violations(&judged), ["destroy-data damodel_instance.a"]);
    let notes = messages(&judged).split_off(1);
    assert_eq!(
        notes,
        [
            "note: a rule of the policy matches no object: module.x.**",
            "note: moves out of a rule: module.prod.**",
            "note: moves into an exception: damodel_instance.a",
        ]
    );
    contains(&write(&judged, Format::Markdown), &["<summary>3 notes</summary>", "| the policy | a rule of the policy"]);
}

/// Data first, by size, then money; each violated rule has a row, and the others are folded.
#[test]
fn a_row_is_an_object_with_all_its_rules() {
    let disk = |index: i64| {
        let values = json!({"id": index.to_string(), "size_gb": index});
        change(&format!("damodel_cloud_disk.d[{index}]"), &["delete"], values, Value::Null)
    };
    let mut changes: Vec<Value> = (0..40).map(disk).collect();
    let mut term = instance(&["delete", "create"], Some(1.0), Some(2.0));
    term["change"]["after"]["payment_type"] = "Monthly".into();
    term["change"]["after"]["purchase_duration"] = 1.into();
    changes.push(term);
    let plan = plan_of(&changes);
    let gate = policy(Some("0"), &[Rule::DestroyData, Rule::Prepaid]);
    let text = write(&review(&plan, &gate), Format::Markdown);
    let rows: Vec<&str> =
        text.split("\n\n").find(|part| part.starts_with("| object")).unwrap().lines().skip(2).collect();
    assert_eq!(rows.len(), 20);
    assert!(rows[0].starts_with("| `damodel_cloud_disk.d[39]` | destroy-data | destroyed: cloud disk `39` (39 GB) |"));
    assert!(
        rows[18].starts_with("| `damodel_instance.a` | destroy-data, prepaid | replaced: destroys its system disk and")
    );
    assert!(rows[19].starts_with(
        "| the plan | max-monthly-increase | increases of 730.00 a month, limit 0.00: `damodel_instance.a`"
    ));
    contains(&text, &["<summary>22 more violations</summary>"]);
    // What is destroyed for good follows without a gate too.
    let text = comment(&plan);
    contains(
        &text,
        &["| object | why |", "| `damodel_cloud_disk.d[39]` | destroyed: ", "<summary>21 more losses</summary>"],
    );
}

#[test]
fn changes_are_told_with_what_was_set() {
    let mut made = instance(&["create"], None, Some(1.0));
    made["change"]["after"]["payment_type"] = "Monthly".into();
    made["change"]["after"]["auto_renew"] = false.into();
    made["change"]["after"]["new_disks"] = json!([{"size_gb": 100, "mount_path": "/data"}]);
    let disk = |size: i64| {
        let mut disk = json!({"id": "7", "size_gb": size});
        (0..20).for_each(|index| disk[format!("a{index}")] = size.into());
        disk
    };
    let grows = change("damodel_cloud_disk.x", &["update"], disk(30), disk(60));
    let mut plan = plan_of(&[made, grows]);
    let cell = "| `damodel_instance.a` | created | `new_disks` = `[{\"mount_path\":\"/data\",\"size_gb\":100}]`<br>\
                `payment_type` = `\"Monthly\"` |";
    let text = comment(&plan);
    // A cell takes ten lines; the size is always among them.
    contains(&text, &[cell, "| `damodel_cloud_disk.x` | changed | `size_gb`: `30` → `60`<br>`a0`: "]);
    // What the configuration sets is shown, a default too.
    plan["configuration"] = json!({"root_module": {"resources": [{"address": "damodel_instance.a",
        "expressions": {"auto_renew": {}}, "provisioners": [{"type": "local-exec"}]}]}});
    let text = comment(&plan);
    contains(&text, &["| created | `auto_renew` = `false` |", "| provisioners, not assessed: `local-exec` |"]);
}

/// The keys of a map that is sensitive as a whole are sensitive too.
#[test]
fn nothing_below_a_mask_is_told() {
    let map = |key: &str| json!({"environment": {key: "v"}, "plain": {"shown": key}});
    let mut changed = change("other_thing.x", &["update"], map("hunter2-a"), map("hunter2-b"));
    for mask in ["before_sensitive", "after_sensitive"] {
        changed["change"][mask] = json!({"environment": true});
    }
    changed["change"]["after"]["plain"] = json!({"shown": "x"});
    changed["change"]["before"]["plain"] = json!({"shown": "y"});
    let mut replaced = at("other_thing.replaced", changed.clone());
    replaced["change"]["actions"] = json!(["delete", "create"]);
    replaced["change"]["replace_paths"] = json!([["environment", "hunter2-a"], ["environment", "hunter2-b"]]);
    let mut plan = plan_of(&[changed, replaced]);
    plan["action_invocations"] = json!([{"address": "action.x.y", "type": "x", "name": "y", "config_sensitive": true,
        "config_values": {"hunter2-c": 1}, "invoke_action_trigger": {}}]);
    let review = review(&plan, &policy(None, &[Rule::SecretsInState]));
    for format in FORMATS {
        assert!(!write(&review, format).contains("hunter2"), "{format:?}");
    }
    let text = write(&review, Format::Markdown);
    assert_eq!(text.matches("`environment` (sensitive)").count(), 2, "{text}");
    contains(&text, &["`plain.shown`: `\"y\"` → `\"x\"`"]);
}

#[test]
fn nothing_sensitive_is_in_any_form() {
    let plan = everything();
    let all = plan.to_string();
    let denied = [Rule::DestroyData, Rule::Prepaid, Rule::SecretsInState, Rule::NoMaxAge, Rule::Unpriced];
    let review = review(&plan, &policy(Some("0"), &denied));
    for secret in SECRETS {
        assert!(all.contains(secret), "{secret}");
        for format in FORMATS {
            assert!(!write(&review, format).contains(secret), "{secret} in {format:?}");
        }
    }
}

/// A disk is found by its binding, so that ins-1 is not found in ins-12; where sources disagree, it goes.
#[test]
fn a_disk_goes_with_the_instance_that_it_is_bound_to() {
    let mut instance = instance(&["delete"], Some(1.0), None);
    instance["change"]["before"]["id"] = "ins-1".into();
    instance["change"]["before"]["exist_disks"] = json!([{"disk_id": 1, "release_with_instance": false}]);
    let disk = |id: &str, binding: &str| {
        let values = json!({"id": id, "release_with_instance": true, "binding_instances": [binding]});
        change(&format!("damodel_cloud_disk.d{id}"), &["no-op"], values.clone(), values)
    };
    let disks = [
        disk("1", "ins-1"),
        disk("2", "ins-12"),
        disk("3", r#"{"instance": {"uid": "ins-1"}, "device": 1}"#),
        disk("4", r#"{"uid": "ins-12"}"#),
        disk("5", r#"["x", "ins-1"]"#),
    ];
    let json = json(&plan_of(&[&[instance][..], &disks].concat()));
    let data = json["plans"][0]["changes"][0]["loss"]["data"].as_array().unwrap();
    let disks: Vec<&str> = data.iter().filter_map(|item| item["managed_by"].as_str()).collect();
    assert_eq!(disks, ["damodel_cloud_disk.d1", "damodel_cloud_disk.d3", "damodel_cloud_disk.d5"]);
}

/// The release of an instance, outside of plans too.
#[test]
fn a_release_deletes_what_one_source_marks() {
    let instance = json!({"id": "ins-1", "reported": {"sys_disk_size_gb": 5000, "data_disk_size_gb": 50},
        "exist_disks": [{"disk_id": 1, "release_with_instance": true}, {"disk_id": 2, "release_with_instance": false},
            {"disk_id": 3, "release_with_instance": false}],
        "new_disks": [{"size_gb": 20}, {"size_gb": 30, "release_with_instance": false}, {"size_gb": 40}]});
    let disk = |id: &str, address: &str, values: Value| {
        let mut disk = json!({"id": id, "name": "d", "size_gb": 9, "binding_instances": [{"uid": "ins-1"}]});
        disk.as_object_mut().unwrap().append(&mut values.as_object().unwrap().clone());
        (address.to_owned(), disk)
    };
    let disks = [
        disk("1", "", json!({"release_with_instance": false})),
        disk("2", "", json!({"release_with_instance": true})),
        disk("3", "", json!({"release_with_instance": false})),
        disk("4", "", json!({"release_with_instance": true, "size_gb": 20})),
        disk("5", "", json!({"release_with_instance": true, "binding_instances": [{"uid": "ins-12"}]})),
        disk("2", "damodel_cloud_disk.two", json!({})),
    ];
    let deleted = deleted_with(&instance, &disks);
    assert_eq!(
        deleted.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "system disk (5,000 GB)",
            "local disk (50 GB)",
            "cloud disk 1 \"d\" (9 GB)",
            "cloud disk 2 \"d\" (9 GB)",
            "cloud disk 4 \"d\" (20 GB)",
            "cloud disk (40 GB)",
        ]
    );
    assert_eq!(deleted[3].managed_by.as_deref(), Some("damodel_cloud_disk.two"));
}

/// The sum of all objects is that of the words before the semicolon.
#[test]
fn counts_and_findings_say_whose_and_which_objects_they_are() {
    let mut disk = change("damodel_cloud_disk.d", &["delete"], json!({"id": "7", "size_gb": 5000}), Value::Null);
    disk["deposed"] = "1a2b3c4d".into();
    let other = change("aws_s3_bucket.x", &["delete"], json!({}), Value::Null);
    let mut many: Vec<Value> = (0..1234).map(|index| at(&format!("aws_s3_bucket.y[{index}]"), other.clone())).collect();
    many.push(disk.clone());
    let plan = plan_of(&many);
    let text = comment(&plan);
    contains(&text, &["\n1,235 destroyed (1,234 of other providers)\n", "`7` (5,000 GB)", "` and 1,229 more\n"]);
    let json = json(&plan_of(&[disk, other]));
    let deposed: Vec<&Value> = json["findings"].as_array().unwrap().iter().map(|finding| &finding["deposed"]).collect();
    assert_eq!(deposed, [&json!("1a2b3c4d"), &Value::Null]);
}

#[test]
fn several_plans_have_one_page() {
    let plan = |price: f64| plan_of(&[instance(&["create"], None, Some(price))]);
    let review = review_all(&[&plan(1.0), &plan(2.0)], &policy(Some("2000"), &[]));
    assert_eq!(violations(&review), ["max-monthly-increase -"]);
    contains(
        &write(&review, Format::Markdown),
        &[
            "## ❌ 2 plans: +2,190.00 a month (0.00 → 2,190.00), 1 rule violated\n",
            "\n2 created\n",
            "| `b` | 0.00 | 1,460.00 | +1,460.00 |  |",
            "| `damodel_instance.a`<br>in `a`<br>created | – | 730.00 |",
        ],
    );
    let json: Value = serde_json::from_str(&write(&review, Format::Json)).unwrap();
    assert_eq!((&json["plans"][1]["name"], json["sum"]["after"]["monthly"].as_f64()), (&"b".into(), Some(2190.0)));
}

/// The last line has what the sums do not, who made the plan, and what it does not show.
#[test]
fn the_small_line_is_about_the_plan() {
    let mut plan = plan_of(&[instance(&["no-op"], Some(1.0), Some(1.0))]);
    plan["terraform_version"] = "1.12.6".into();
    plan["timestamp"] = "2026-11-20T10:00:00Z".into();
    plan["resource_changes"][0]["provider_name"] = "mirror.example.com/team/gpu".into();
    let unsure = "Terraform before 1.8 and OpenTofu do not mark";
    contains(
        &comment(&plan),
        &[
            "Terraform or OpenTofu `1.12.6`, planned `2026-11-20T10:00:00Z`. ",
            "Provider: `mirror.example.com/team/gpu`.",
            unsure,
        ],
    );
    plan["complete"] = true.into();
    plan["resource_changes"][0]["provider_name"] = "registry.opentofu.org/damodel/damodel".into();
    let text = comment(&plan);
    assert!(!text.contains(unsure) && !text.contains("Provider: "), "{text}");
    // A stated object without an entry proves it.
    plan["complete"] = Value::Null;
    plan["prior_state"] = json!({"values": {"root_module": {"resources": [{"address": "module.a.damodel_specs.left",
        "mode": "managed", "type": "damodel_specs", "values": {}}]}}});
    let text = comment(&plan);
    let why = "it has no entry for objects of the state, as with -target: `module.a.damodel_specs.left`";
    assert!(text.contains(why) && !text.contains(unsure), "{text}");
}

/// What is above the folds has an upper limit, whatever the plan's names are, and the whole too.
#[test]
fn a_comment_has_its_limits() {
    let hostile = |number: usize| format!("[{:?}]", format!("<{number}>{}", "|`".repeat(200)));
    let entry = |number: usize| {
        let mut change = instance(&["delete", "create"], Some(1.0), Some(2.0));
        change["address"] = format!("damodel_instance.m{}", hostile(number)).into();
        change["change"]["replace_paths"] = json!([[hostile(number)], [hostile(number + 1)], ["a"]]);
        change["change"]["before"][hostile(number)] = "x".repeat(500).into();
        change["change"]["before"]["deletion_protection"] = true.into();
        change
    };
    let mut plan = plan_of(&(0..150).map(entry).collect::<Vec<_>>());
    plan["errored"] = true.into();
    plan["deferred_changes"] =
        (0..30).map(|number| json!({"reason": "x", "resource_change": {"address": hostile(number)}})).collect();
    let exception = |number: usize| Exception {
        matching: vec![format!("damodel_instance.m{}", hostile(number)).parse().unwrap()],
        rules: Vec::new(),
        owner: hostile(number),
        reason: hostile(number),
        expires: jiff::civil::date(2027, 1, 1),
        is_expired: false,
    };
    let exceptions = (110..150).map(exception).collect();
    let gate = Policy { exceptions, ..policy(Some("0"), &[Rule::DestroyData, Rule::NoMaxAge]) };
    let name = || "|`".repeat(200);
    let facts = [name(), name() + "2"].map(|name| Facts::of(Some(name), &read(&plan), &arguments()));
    let locate = |_: &Finding<'_>| Some(Location { file: "`".repeat(300), line: 1 });
    let text = render(&Review::new(&facts, &gate, locate), &Style::default()).unwrap();
    let (folds, whole) = (text.split("\n<details>").collect::<Vec<_>>(), text.encode_utf16().count());
    assert!((60_000..=65_536).contains(&whole) && text.ends_with("</sub>\n"), "{whole}");
    let last = text.split("\n<sub>").last().unwrap();
    assert!((15_000..=24_000).contains(&(folds[0].chars().count() + last.chars().count())), "{}", folds[0]);
    assert!(text.contains(" more rows left out"));
    assert_eq!((folds[0].matches("| destroy-data").count(), folds[0].matches("**Excepted:**").count()), (18, 21));
}
