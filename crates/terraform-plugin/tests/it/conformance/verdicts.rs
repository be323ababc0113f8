//! The rules of these tests, compared with the verdicts of the real Terraform.

use serde_json::Value as Json;
use terraform_plugin::{
    framework::{Schema, Type, Value},
    protocol::codec::{decode, encode},
    testing::{Heeded, compatibility_faults, heeded, plan_faults, proposed_new, write_only_faults},
};

use super::recorded::{bytes, is_planned, lines, path, schema, text, ty, value};

/// The number of cases that our schemas can express. It changes with the schemas, the recording and its reader.
const EXPRESSIBLE: usize = 399;

struct Case {
    id: String,
    json: Json,
    schema: Schema,
    ty: Type,
    /// Whether an unknown value is refined. We drop refinements, so that compatibility can differ.
    is_refined: bool,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Case> = lines("verdicts")
        .into_iter()
        .filter_map(|json| {
            let schema = schema(&json["schema"])?;
            let (id, ty) = (text(&json, "id").to_owned(), ty(&json["type"]));
            Some(Case { id, ty, schema, is_refined: json["refined"] == true, json })
        })
        .collect();
    assert_eq!(cases.len(), EXPRESSIBLE);
    cases
}

impl Case {
    fn value(&self, name: &str) -> Value {
        decode(&self.ty, &bytes(&self.json[name]["msgpack"])).unwrap()
    }

    /// Whether Terraform accepted it.
    fn is_ok(&self, verdict: &str) -> bool {
        self.json[verdict]["ok"] == true
    }

    fn has_write_only(&self, verdict: &str) -> bool {
        !self.json[verdict]["paths"].as_array().unwrap().is_empty()
    }
}

/// Fails with the ids of all cases in which we differ from Terraform.
fn agree(what: &str, agrees: impl Fn(&Case) -> bool) {
    let different: Vec<String> = cases().into_iter().filter(|case| !agrees(case)).map(|case| case.id).collect();
    assert!(different.is_empty(), "{what}: {} cases differ: {different:?}", different.len());
}

#[test]
fn a_schema_has_the_type_that_the_core_implies() {
    agree("the type", |case| case.schema.ty() == case.ty);
}

#[test]
fn every_value_is_read_and_written_as_it_is() {
    agree("the values", |case| {
        ["prior", "config", "proposed", "planned", "applied"].iter().all(|name| {
            let (read, json) = (case.value(name), &case.json[*name]);
            let is_same = encode(&case.ty, &read).is_ok_and(|written| written == bytes(&json["msgpack"]));
            value(&case.ty, &json["json"]) == Some(read) && (is_same || case.is_refined)
        })
    });
}

#[test]
fn our_proposal_is_the_cores() {
    agree("the proposal", |case| {
        let config = case.value("config");
        config.is_null() || proposed_new(&case.schema, &case.value("prior"), &config) == case.value("proposed")
    });
}

#[test]
fn our_rules_of_a_plan_are_the_cores() {
    agree("the plan", |case| {
        let faults = plan_faults(&case.schema, &case.value("prior"), &case.value("config"), &case.value("planned"));
        faults.is_empty() == (case.is_ok("plan") && !case.has_write_only("plan_write_only"))
    });
}

#[test]
fn our_rules_of_a_result_are_the_cores() {
    agree("the result", |case| {
        let (planned, applied) = (case.value("planned"), case.value("applied"));
        let leaks = !write_only_faults(&case.schema, &applied).is_empty();
        leaks == case.has_write_only("applied_write_only")
            && (case.json["applied_wholly_known"] == true) == applied.is_wholly_known()
            && (case.is_refined || compatibility_faults(&planned, &applied).is_empty() == case.is_ok("apply"))
    });
}

#[test]
fn our_rule_of_replacements_is_the_cores() {
    agree("the replacements", |case| {
        let verdict = &case.json["replace"];
        let (prior, planned) = (case.value("prior"), case.value("planned"));
        let paths = |name: &str| verdict[name].as_array().unwrap().iter().map(path).collect::<Vec<_>>();
        let (asked, mut expected) = (paths("asked"), paths("kept"));
        let judged: Vec<_> = asked.iter().map(|path| heeded(&case.schema, &prior, &planned, path)).collect();
        let missing = judged.iter().filter(|heeded| **heeded == Heeded::Missing).count();
        let mut kept: Vec<_> = asked
            .iter()
            .zip(&judged)
            .filter(|(_, heeded)| **heeded == Heeded::Kept)
            .map(|(path, _)| path.clone())
            .collect();
        for paths in [&mut kept, &mut expected] {
            paths.sort();
            paths.dedup();
        }
        kept == expected && verdict["missing"] == missing
    });
}

/// The same without a schema: for every recorded value whose type our schemas can have.
#[test]
fn our_rules_of_a_value_are_the_cores() {
    let mut judged = 0;
    let mut different = Vec::new();
    for json in lines("verdicts").into_iter().filter(|json| json["refined"] == false) {
        let ty = ty(&json["type"]);
        if !is_planned(&ty) {
            continue;
        }
        judged += 1;
        let value = |name: &str| decode(&ty, &bytes(&json[name]["msgpack"])).unwrap();
        let is_ok = compatibility_faults(&value("planned"), &value("applied")).is_empty();
        if is_ok != (json["value"]["ok"] == true) {
            different.push(text(&json, "id").to_owned());
        }
    }
    assert_eq!((judged, different), (JUDGED_VALUES, Vec::new()));
}

/// The number of these values.
const JUDGED_VALUES: usize = 516;
