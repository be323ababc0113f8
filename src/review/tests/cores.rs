//! Plans that real cores made on the sandbox (see the README beside them): nothing in them is unreadable, and each is
//! told.

use std::{fs, path::PathBuf};

use rstest::rstest;

use super::*;

/// What stands in the place of every value that a plan marks as sensitive.
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

/// For every core, every form: whole, without secrets, the same bytes each time, and without the words that tools look
/// for.
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
                // Keys of programs, names of attributes, and the status of a check in Terraform's word.
                for key in [
                    "failed_checks",
                    "failures=\"0\"",
                    "\"status\": \"fail\"",
                    "on_failure",
                    "password",
                    "\"passed\": ",
                ] {
                    text = text.replace(key, "");
                }
                let wrong = if violations > 0 { "pass" } else { "fail" };
                assert!(!text.contains(wrong), "{name} {format:?} {violations}: {text}");
            }
        }
    }
}

/// What is read in a comment of each plan.
#[rstest]
#[case("terraform-1.17-action-after-create", &["\n1 to create, 1 action to invoke.\n",
    "| `action.damodel_chat_completion.smoke` | after the create of `damodel_instance.gpu`<br>an error is a warning | \
     `messages` = "])]
#[case("terraform-1.17-action-before-destroy", &["\n1 to destroy, 1 action to invoke.\n",
    "| before the destroy of `damodel_instance.gpu`<br>an error is a warning |"])]
#[case("terraform-1.17-action-on-replace", &["\n1 to replace, 2 actions to invoke.\n", "| before the destroy of \
    `damodel_instance.gpu`",
    "| after the create of `damodel_instance.gpu`"])]
#[case("terraform-1.17-action-on-update", &["\n1 to update in place, 2 actions to invoke.\n",
    "| before the update of `damodel_instance.gpu` |", "| after the update of `damodel_instance.gpu` |",
    "`name`: `\"gpu\"` → `\"renamed\"`"])]
#[case("terraform-1.17-action-invoked", &["\n1 action to invoke.\n", "| invoked by itself (-invoke) |"])]
#[case("terraform-1.17-deferred", &["> The plan is incomplete: some changes are deferred to a later plan.",
    "| `damodel_cloud_disk.many[*]` | its count or for_each is not known yet |"])]
#[case("opentofu-1.12-forget-create", &["\n1 to replace, 1 to forget, 1 unchanged.\n",
    "| `damodel_instance.a` | replace (the old one is forgotten) | `image_id`: `902` → `901`",
    "| `damodel_instance.b` | `damodel_instance`<br>destroy = false in the state |",
    "| **all of them** |  | **2890.80** | **4336.20** | **+1445.40** |"])]
fn a_core_s_plan_is_told(#[case] name: &str, #[case] parts: &[&str]) {
    let text = write(&review(&plan(name), &Policy::default()), Format::Markdown);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The same changes by each core: what differs between them is no matter of the reader.
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
            "### Forgotten: not destroyed, still billed (1)\n\n| object | type |\n| --- | --- |\n\
             | `damodel_instance.gone` |",
            "| `damodel_instance.pick` | create<br>at most: its price_ceiling<br>2 candidates: ",
            "| `damodel_instance.paid` | 2 months |",
            "new cloud disk of 100 GB at `/data`, released with the instance",
            "| `damodel_cloud_disk.grows` | `size_gb`: `30` → `60` GB |",
            "### Imported (1)",
            "| `damodel_instance.new` | `damodel_instance.old` | no change |",
            "| `check.small` | does not hold | `The disk is too large \\u007c \\u0060really\\u0060.` |",
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
