//! The names of types and of environment variables. Two types that other files can use have different names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use regex::Regex;

use super::{files, root, sources};

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
        if ["/tests/", "/testing/"].iter().any(|folder| path.contains(folder))
            || path.ends_with("/tests.rs")
            || path.ends_with("/testing.rs")
        {
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

/// The names that a pattern captures in these files.
fn names(pattern: &str, files: impl IntoIterator<Item = PathBuf>) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    let names = files.into_iter().flat_map(|file| {
        // Binary files have no names.
        let text = fs::read_to_string(file).unwrap_or_default();
        pattern.captures_iter(&text).map(|found| found[1].to_owned()).collect::<Vec<_>>()
    });
    names.collect()
}

/// Each variable that a page or a text of the program names is read, and the table has each one that is read.
#[test]
fn variables_that_are_named_are_read_and_stand_in_the_table() {
    let read = names(
        concat!(
            r"(?:env = |\.variable\(|text\(&[\w.]+, |destroy_fallback\(|parsed_variable\(",
            r#"|credential\(&[\w.]+, \["\w+", )"(DAMODEL_[A-Z_]+)""#
        ),
        [sources("src/provider"), sources("src/commands")].concat(),
    );
    assert!(read.len() > 5, "{read:?}");
    assert_eq!(names(r"(?m)^\| `(DAMODEL_[A-Z_]+)` \|", [root().join("docs/index.md")]), read);
    let pages = ["docs", "examples"].into_iter().flat_map(|folder| files(&root().join(folder)));
    let pages = pages.chain(["README.md", "SECURITY.md", "CHANGELOG.md"].map(|page| root().join(page)));
    // The bootstrap program's variables are its own.
    let texts = sources("src").into_iter().filter(|file| !file.iter().any(|part| part == "bootstrap"));
    let mut named = names(r"\b(DAMODEL_[A-Z]\w*)", pages.chain(texts));
    // The commit in `--version`, and a secret of a workflow.
    for other in ["DAMODEL_COMMIT", "DAMODEL_PREVIEW_TOKEN"] {
        assert!(named.remove(other), "{other}");
    }
    assert_eq!(named, read);
}
