//! The names of types. Two types that other files can use have different names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use regex::Regex;

use super::{root, sources};

/// Names that several types share, and the one meaning that they have.
const SHARED: &[(&str, &str)] = &[
    ("Arguments", "what a command receives, in its own module"),
    ("CloudDisk", "the object of the service: in its answers, in a state, in the sandbox"),
    ("Code", "an error code of the service: as the client reads it, as the sandbox writes it"),
    ("Column", "a column of a table: of records that are only read, of a report"),
    ("Ended", "how something ended: a wait of the client, the work on a llama server"),
    ("Endpoint", "an endpoint of the service: as the client calls it, as the sandbox serves it"),
    ("Error", "the error of a module's functions, in its own module"),
    ("Failure", "what failed, and why: a command, or a call of the service"),
    ("Instance", "the object of the service: in its answers, in a state, in the sandbox"),
    ("Machines", "the instances of a sandbox, on systems that can run them and on others"),
    ("PrivateImage", "the object of the service: in its answers, in a state, in the sandbox"),
    ("PublicImage", "the object of the service: in its answers, in the sandbox"),
    ("Resource", "the framework's trait, and the resource of each kind in the kind's own module"),
    ("Spec", "the object of the service: in its answers, in the sandbox"),
];

/// The visible types of src/ without its tests, each with its files. A file may have a type once for each system.
fn types() -> BTreeMap<String, BTreeSet<String>> {
    let declaration = Regex::new(r"(?m)^ *pub(?:\([^)]*\))? (?:struct|enum|trait|type) ([A-Z]\w*)").unwrap();
    let mut types = BTreeMap::<String, BTreeSet<String>>::new();
    for file in sources("src") {
        let path = file.strip_prefix(root()).unwrap().display().to_string();
        if path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/testing.rs") {
            continue;
        }
        let source = fs::read_to_string(&file).unwrap();
        let shipped = source.split("mod tests {").next().unwrap_or_default();
        for found in declaration.captures_iter(shipped) {
            types.entry(found[1].to_owned()).or_default().insert(path.clone());
        }
    }
    types
}

#[test]
fn a_name_has_one_meaning() {
    let types = types();
    assert!(types.len() > 300, "{}", types.len());
    for (name, files) in &types {
        let is_shared = SHARED.iter().any(|(shared, _)| shared == name);
        assert_eq!(files.len() > 1, is_shared, "{name}: {files:?}");
    }
    for (name, _) in SHARED {
        assert!(types.contains_key(*name), "{name}");
    }
}
