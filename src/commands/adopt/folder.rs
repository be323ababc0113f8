//! The files of an adoption, in a folder of their own.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::draft::{self, Draft};
use crate::{
    api::ObjectKind,
    commands::{Failure, terraform::is_ignored},
    framework::Value,
    provider::ADDRESS,
};

/// The endings of the files that Terraform and OpenTofu read.
const ENDINGS: [&str; 4] = [".tf", ".tofu", ".tf.json", ".tofu.json"];

/// Fails if the folder contains a configuration; it may be missing.
pub(super) fn check(directory: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::reading(directory.display(), error);
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if is_configuration(&path) {
            return Err(Failure::new(format!(
                "the folder already contains a configuration: {}. Nothing was written. Select a folder without a \
                 configuration with --out",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Whether Terraform or OpenTofu reads this file of a folder (configuration language, files and directories).
fn is_configuration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !path.is_dir() && !is_ignored(&name) && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Writes the drafts, all or nothing. Returns the names of the files.
pub(super) fn write(directory: &Path, drafts: &[Draft], provider: &[(String, Value)]) -> Result<Vec<String>, Failure> {
    let files = files(drafts, provider);
    fs::create_dir_all(directory).map_err(|error| Failure::writing(directory.display(), error))?;
    let texts: Vec<_> = files.iter().map(|(name, text)| (directory.join(name), text.as_str())).collect();
    write_all(&texts)?;
    Ok(files.into_iter().map(|(name, _)| name).collect())
}

fn files(drafts: &[Draft], provider: &[(String, Value)]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for kind in ObjectKind::ALL {
        let blocks: Vec<String> = drafts.iter().filter(|draft| draft.kind == kind).map(Draft::resource).collect();
        if !blocks.is_empty() {
            files.push((format!("{}s.tf", kind.as_str()), blocks.join("\n")));
        }
    }
    let imports: Vec<String> = drafts.iter().map(Draft::import).collect();
    let imports = format!("# After the import, this file can be deleted.\n\n{}", imports.join("\n"));
    files.push(("imports.tf".to_owned(), imports));
    let versions = format!(
        "terraform {{\n  required_providers {{\n    damodel = {{\n      source = {}\n    }}\n  }}\n}}\n\nprovider \
         \"damodel\" {{\n{}}}\n",
        draft::quoted(ADDRESS),
        draft::arguments(provider)
    );
    files.push(("versions.tf".to_owned(), versions));
    files
}

/// Creates all files or none. A file that exists, even one created since the check, is an error.
fn write_all(files: &[(PathBuf, &str)]) -> Result<(), Failure> {
    let mut begun = Vec::new();
    for (path, text) in files {
        if let Err(error) = write_new(path, text, &mut begun) {
            for path in begun {
                let _ = fs::remove_file(path);
            }
            return Err(Failure::writing(path.display(), error));
        }
    }
    Ok(())
}

fn write_new<'a>(path: &'a Path, text: &str, begun: &mut Vec<&'a Path>) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    begun.push(path);
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            kind: ObjectKind::CloudDisk,
            id: "801".to_owned(),
            name: "x".to_owned(),
            label: "x".to_owned(),
            arguments: Vec::new(),
            untold: Vec::new(),
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_what_a_core_reads_is_a_configuration() {
        for (name, is_one) in [
            ("a.tf", true),
            ("a.tofu", true),
            ("a.tf.json", true),
            ("a.tofu.json", true),
            (".a.tf", false),
            ("a.tf~", false),
            ("a.json", false),
            ("a.tfvars", false),
            ("terraform.tfstate", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("folder.tf")).unwrap();
            assert!(check(directory.path()).is_ok());
            fs::write(directory.path().join(name), "").unwrap();
            let checked = check(directory.path()).map_err(|error| error.to_string());
            assert_eq!(checked.is_err_and(|told| told.contains(name) && told.contains("--out")), is_one, "{name}");
        }
    }

    #[test]
    fn the_provider_block_has_the_arguments() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        check(&directory).unwrap();
        let arguments = [("allow_http".to_owned(), Value::from(true))];
        assert_eq!(write(&directory, &[draft()], &arguments).unwrap(), ["cloud_disks.tf", "imports.tf", "versions.tf"]);
        let versions = fs::read_to_string(directory.join("versions.tf")).unwrap();
        let expected = "terraform {\n  required_providers {\n    damodel = {\n      source = \"damodel/damodel\"\n    \
                        }\n  }\n}\n\nprovider \"damodel\" {\n  allow_http = true\n}\n";
        assert_eq!(versions, expected);
    }

    #[test]
    fn what_was_begun_is_taken_back_when_a_file_came_in_between() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("b"), "mine").unwrap();
        let failed = write_all(&[(path("a"), "x"), (path("b"), "y"), (path("c"), "z")]).unwrap_err();
        assert_eq!(failed.to_string(), format!("cannot write {}", path("b").display()));
        assert_eq!(names(directory.path()), ["b"]);
        assert_eq!(fs::read_to_string(path("b")).unwrap(), "mine");
    }
}
