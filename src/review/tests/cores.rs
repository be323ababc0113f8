//! Plans that real cores made on the sandbox (see the README beside them): nothing in them is unreadable, and each is told.

use std::{fs, path::PathBuf};

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

/// For every core, every form: whole, without secrets, the same bytes each time, and without the words that tools look for.
#[test]
fn every_plan_of_every_core_is_read_whole() {
    let plans = all();
    assert!(plans.len() >= 2, "{}", plans.len());
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
                for key in ["failed_checks", "failures=\"0\"", "\"status\": \"fail\"", "on_failure", "password", "\"passed\": "] {
                    text = text.replace(key, "");
                }
                let wrong = if violations > 0 { "pass" } else { "fail" };
                assert!(!text.contains(wrong), "{name} {format:?} {violations}: {text}");
            }
        }
    }
}
