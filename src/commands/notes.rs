//! Where the provider of a folder writes down what it creates, as its own configuration would say it.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::{api::Journal, provider::Environment};

/// The default name of Terraform's data directory.
pub(super) const DATA_DIRECTORY: &str = ".terraform";

/// The notes of a folder.
#[derive(Debug)]
pub(super) struct Notes {
    pub(super) journal: Journal,
    /// Whether somebody said where they are: then they are somewhere, or it was said wrongly.
    pub(super) are_named: bool,
}

impl Notes {
    /// Those in the directory that is named, or else below Terraform's data directory. Paths mean what they mean to the
    /// provider; an empty one counts as not set, as there.
    pub(super) fn find(named: Option<&Path>, data: &Path, environment: &Environment) -> Self {
        let is_set = |path: &&Path| !path.as_os_str().is_empty();
        let named = named.filter(is_set);
        let directory = named.map_or_else(
            || {
                let data = Some(data).filter(is_set).unwrap_or_else(|| Path::new(DATA_DIRECTORY));
                environment.directory().join(data).join("damodel-pending")
            },
            |named| environment.path(named),
        );
        Self { journal: Journal::new(directory), are_named: named.is_some() }
    }

    /// Where they are.
    pub(super) fn directory(&self) -> &Path {
        self.journal.directory()
    }
}

/// Takes an empty variable too.
pub(super) fn path_or_nothing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_what_it_means_to_the_provider() {
        let environment = Environment::made_of([("HOME", "/home/me")], PathBuf::from("/stack"));
        for (named, data, expected, are_named) in [
            (None, ".terraform", "/stack/.terraform/damodel-pending", false),
            (None, "", "/stack/.terraform/damodel-pending", false),
            (Some(""), "../data", "/stack/../data/damodel-pending", false),
            (Some("notes"), "data", "/stack/notes", true),
            (Some("/notes"), "data", "/notes", true),
            (Some("~/notes"), "data", "/home/me/notes", true),
            (Some("~other/notes"), "data", "/stack/~other/notes", true),
        ] {
            let notes = Notes::find(named.map(Path::new), Path::new(data), &environment);
            assert_eq!((notes.directory(), notes.are_named), (Path::new(expected), are_named), "{named:?}");
        }
        let there = environment.within("inner");
        assert_eq!(Notes::find(None, Path::new("x"), &there).directory(), Path::new("/stack/inner/x/damodel-pending"));
    }
}
