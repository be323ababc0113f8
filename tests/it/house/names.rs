//! The names of environment variables.

use std::{collections::BTreeSet, fs, path::PathBuf};

use regex::Regex;

use super::{files, root, sources};

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
            r#"|credential\(\s*&[\w.]+,\s*\["\w+", )"(DAMODEL_[A-Z_]+)""#
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
