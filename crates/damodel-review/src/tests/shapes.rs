//! Plans of all cores. Those of cores that were not available are written by hand after the format's documentation.

use std::{fs, path::PathBuf};

use rstest::rstest;

use super::*;

/// The prefix of every sensitive value in the fixtures.
const SECRET: &str = "hunter2-";

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/review/cores"))
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

/// For every core and every format: complete, without secrets, and the same bytes each time.
#[test]
fn every_plan_of_every_core_is_read_whole() {
    let plans = all();
    assert!(plans.len() >= 10, "{}", plans.len());
    let denied = policy(Some("0"), &[Rule::DestroyData, Rule::Prepaid, Rule::SecretsInState, Rule::NoMaxAge]);
    for (name, plan) in &plans {
        let facts = Facts::of(None, &read(plan), &arguments());
        let Head { unreadable, left_out, .. } = &facts.head;
        assert_eq!((unreadable.len(), left_out.len()), (0, facts.deferred.len()), "{name}");
        for gate in [Policy::default(), policy(Some("1000000"), &[]), denied.clone()] {
            let review = review(plan, &gate);
            for format in FORMATS {
                let text = write(&review, format);
                assert_eq!(text, write(&review, format), "{name} {format:?}");
                assert!(!text.contains(SECRET), "{name} {format:?}");
            }
        }
    }
}

/// Texts in the comment of each plan.
#[rstest]
#[case("terraform-1.17-action-after-create", &["\n1 created; 1 action\n", "\n**Run by the apply:** \
    `action.damodel_llama_server_restart.smoke` after the creation of `damodel_instance.gpu` (an error is a \
    warning)\n"])]
#[case("terraform-1.17-action-before-destroy", &["\n1 destroyed; 1 action\n", "before the deletion of \
    `damodel_instance.gpu` (an error is a warning)\n"])]
#[case("terraform-1.17-action-on-replace", &["\n1 replaced; 2 actions\n", "before the deletion of", "after the \
    creation of", "| replaced (`image_id` `902` → `901`): destroys its system disk (40 GB) and local disk (50 GB) |"])]
#[case("terraform-1.17-action-on-update", &["\n1 changed; 2 actions\n", "before the update of", "after the update of",
    "`name`: `\"gpu\"` → `\"renamed\"`"])]
#[case("terraform-1.17-action-invoked", &["\nno changes; 1 action\n", "` invoked directly (-invoke)\n"])]
#[case("terraform-1.17-deferred", &["\n**Cannot be judged:** some changes are deferred to a later plan: \
    `damodel_cloud_disk.many[*]`\n", "| `damodel_cloud_disk.many[*]` | count or for_each is unknown so far |"])]
#[case("opentofu-1.12-forget-create", &["## +1,445.40 a month (2,890.80 → 4,336.20)\n", "\n**Still billed \
    afterwards:** forgotten: `damodel_instance.a` (1,445.40 a month), `damodel_instance.b` (1,445.40 a month)\n",
    "\n1 replaced, 1 forgotten\n", "| `damodel_instance.b` | forgotten<br>destroy = false in the state |"])]
fn a_core_s_plan_is_told(#[case] name: &str, #[case] parts: &[&str]) {
    let text = comment(&plan(name));
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
        let text = write(&review(&plan, &policy(None, &[Rule::DestroyData, Rule::Prepaid])), Format::Markdown);
        for part in [
            "## ❌ at most +10,532.00 a month (4,336.20 → 14,868.20), 2 rules violated\n",
            "\n**Still billed afterwards:** forgotten: `damodel_instance.gone` (1,445.40 a month)\n",
            "\n2 created, 1 changed, 1 replaced, 1 imported, 1 moved, 1 forgotten\n",
            "| `damodel_instance.kept` | destroy-data | replaced (`image_id` `902` → `901`): destroys its system disk",
            "| `damodel_instance.paid` | prepaid | buys 2 months for 2,376.00 |",
            "| `damodel_instance.pick`<br>at most: its price_ceiling<br>2 candidates: ",
            "| `damodel_instance.paid` | creates a cloud disk of 100 GB (no price) |",
            "| `damodel_cloud_disk.grows` | changed | `size_gb`: `30` → `60` |",
            "| `damodel_instance.new` | unchanged<br>moved from `damodel_instance.old` |",
            "| `check.small` | failed | `The disk is too large \\| \\u0060really\\u0060.` |",
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
        let text = comment(&plan);
        assert!(text.contains("\nno changes; 1 object changed outside of Terraform\n"), "{name}: {text}");
        assert!(text.contains("| `damodel_cloud_disk.d` | `size_gb`: `20` → `40` |"), "{name}: {text}");
    }
}
