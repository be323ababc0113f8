//! The folder of a configuration.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

use super::{Error, Kind, draft::Draft, hcl};
use crate::{framework::Value, provider::ADDRESS};

/// What Terraform and OpenTofu read.
const ENDINGS: [&str; 2] = ["tf", "tofu"];
const IMPORTS: &str = "imports.tf";
const VERSIONS: &str = "versions.tf";

static REQUIRED_PROVIDERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^\s*required_providers\b").ok());
static PROVIDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?m)^\s*provider\s+"?damodel\b"#).ok());

/// The folder, and what its configuration has already.
#[derive(Debug)]
pub(super) struct Folder {
    directory: PathBuf,
    requires_providers: bool,
    names_source: bool,
    has_provider: bool,
}

impl Folder {
    /// Reads what is there; there may be no folder yet.
    pub(super) fn open(directory: &Path) -> Result<Self, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Read { path, source }
        };
        let mut folder = Self {
            directory: directory.to_owned(),
            requires_providers: false,
            names_source: false,
            has_provider: false,
        };
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folder),
            entries => entries.map_err(failed(directory))?,
        };
        for entry in entries {
            let path = entry.map_err(failed(directory))?.path();
            if path.is_file() && path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)) {
                let text = String::from_utf8_lossy(&fs::read(&path).map_err(failed(&path))?).into_owned();
                let says = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(&text));
                folder.requires_providers |= says(&REQUIRED_PROVIDERS);
                folder.names_source |= text.contains(ADDRESS);
                folder.has_provider |= says(&PROVIDER);
            }
        }
        Ok(folder)
    }

    /// Writes the drafts, all or nothing. Returns the names of the files.
    pub(super) fn write(&self, drafts: &[Draft], provider: &[(String, Value)]) -> Result<Vec<String>, Error> {
        let files = self.files(drafts, provider);
        let path = |name: &str| self.directory.join(name);
        let there: Vec<PathBuf> =
            files.iter().map(|(name, _)| path(name)).filter(|path| path.symlink_metadata().is_ok()).collect();
        if !there.is_empty() {
            return Err(Error::Exists { files: there });
        }
        fs::create_dir_all(&self.directory).map_err(|source| Error::Write { path: self.directory.clone(), source })?;
        let texts: Vec<_> = files.iter().map(|(name, text)| (path(name), text.as_str())).collect();
        write_all(&texts)?;
        Ok(files.into_iter().map(|(name, _)| name.to_owned()).collect())
    }

    /// Whether a configuration is there that requires providers, and this one not: the core would look for another one.
    pub(super) fn lacks_requirement(&self) -> bool {
        self.requires_providers && !self.names_source
    }

    fn files(&self, drafts: &[Draft], provider: &[(String, Value)]) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        for kind in Kind::asked(&[]) {
            let blocks: Vec<String> = drafts.iter().filter(|draft| draft.kind == kind).map(Draft::resource).collect();
            if !blocks.is_empty() {
                files.push((kind.file(), blocks.join("\n")));
            }
        }
        let imports: Vec<String> = drafts.iter().map(Draft::import).collect();
        files.push((IMPORTS, format!("# When these are imported, this file can go.\n\n{}", imports.join("\n"))));
        let mut settings = Vec::new();
        if !self.requires_providers {
            settings.push(format!(
                "terraform {{\n  required_providers {{\n    damodel = {{\n      source = {}\n    }}\n  }}\n}}\n",
                hcl::quoted(ADDRESS)
            ));
        }
        if !self.has_provider && !provider.is_empty() {
            settings.push(format!("provider \"damodel\" {{\n{}}}\n", hcl::arguments(provider)));
        }
        if !settings.is_empty() {
            files.push((VERSIONS, settings.join("\n")));
        }
        files
    }
}

/// Writes files that must not be there, not even since somebody looked; all or none.
fn write_all(files: &[(PathBuf, &str)]) -> Result<(), Error> {
    let mut begun = Vec::new();
    for (path, text) in files {
        if let Err(source) = write_new(path, text, &mut begun) {
            for path in begun {
                let _ = fs::remove_file(path);
            }
            return Err(Error::Write { path: path.clone(), source });
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
            kind: Kind::CloudDisk,
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
    fn what_the_configuration_has_is_not_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let arguments = [("allow_http".to_owned(), Value::from(true))];
        let versions = |arguments| {
            let files = Folder::open(directory).unwrap().files(&[draft()], arguments);
            files.into_iter().find(|(name, _)| *name == VERSIONS).map(|(_, text)| text)
        };
        fs::write(directory.join("a.tf"), "terraform {}\n# required_providers {\n").unwrap();
        let both = versions(&arguments).unwrap();
        assert!(both.contains("source = \"damodel/damodel\"") && both.contains("  allow_http = true\n"), "{both}");
        assert!(!versions(&[]).unwrap().contains("provider \"damodel\""));

        fs::write(directory.join("a.tofu"), "terraform {\n  required_providers {\n  }\n}\n").unwrap();
        assert!(versions(&arguments).unwrap().starts_with("provider \"damodel\" {\n"));
        fs::write(directory.join("b.tf"), "provider \"damodel\" {\n}\n").unwrap();
        assert_eq!(versions(&arguments), None);
    }

    #[test]
    fn no_file_is_overwritten_and_then_none_is_written() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        let folder = Folder::open(&directory).unwrap();
        assert_eq!(folder.write(&[draft()], &[]).unwrap(), ["cloud_disks.tf", "imports.tf", "versions.tf"]);
        fs::remove_file(directory.join("imports.tf")).unwrap();
        fs::write(directory.join("cloud_disks.tf"), "mine").unwrap();
        let refused = Folder::open(&directory).unwrap().write(&[draft()], &[]).unwrap_err();
        assert!(refused.to_string().contains("cloud_disks.tf") && !refused.to_string().contains("versions.tf"));
        assert_eq!(names(&directory), ["cloud_disks.tf", "versions.tf"]);
        assert_eq!(fs::read_to_string(directory.join("cloud_disks.tf")).unwrap(), "mine");
    }

    #[test]
    fn what_was_begun_is_taken_back_when_a_file_came_in_between() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("b"), "mine").unwrap();
        let failed = write_all(&[(path("a"), "x"), (path("b"), "y"), (path("c"), "z")]).unwrap_err();
        assert!(matches!(failed, Error::Write { path: at, .. } if at == path("b")));
        assert_eq!(names(directory.path()), ["b"]);
        assert_eq!(fs::read_to_string(path("b")).unwrap(), "mine");
    }

    #[test]
    fn a_requirement_that_is_missing_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let lacks = |text: &str| {
            fs::write(directory.path().join("a.tf"), text).unwrap();
            Folder::open(directory.path()).unwrap().lacks_requirement()
        };
        assert!(!lacks(""));
        assert!(lacks("terraform {\n  required_providers {\n    x = { source = \"a/x\" }\n  }\n}\n"));
        assert!(!lacks(
            "terraform {\n  required_providers {\n    damodel = { source = \"damodel/damodel\" }\n  }\n}\n"
        ));
    }
}
