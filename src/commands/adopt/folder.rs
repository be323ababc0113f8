//! The folder of a configuration: its resources, and the files that are added to it.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;
use serde_json::Value as Json;

use super::{
    Adoptable, Error,
    draft::{self, Draft},
};
use crate::{framework::Value, provider::ADDRESS};

/// The endings of the files that Terraform and OpenTofu read, by syntax.
const NATIVE: [&str; 2] = [".tf", ".tofu"];
const JSON: [&str; 2] = [".tf.json", ".tofu.json"];
const IMPORTS: &str = "imports.tf";
const VERSIONS: &str = "versions.tf";

static REQUIRED_PROVIDERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^\s*required_providers\b").ok());
static PROVIDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?m)^\s*provider\s+"?damodel\b"#).ok());

static RESOURCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?m)^\s*resource\s+"?(damodel_\w+)"?\s+"?([\w-]+)"#).ok());

/// The folder with the relevant parts of its configuration.
#[derive(Debug)]
pub(super) struct Folder {
    directory: PathBuf,
    requires_providers: bool,
    names_source: bool,
    has_provider: bool,
    /// The types and labels of its resources.
    resources: BTreeSet<(String, String)>,
}

impl Folder {
    /// Reads the configuration; the folder may be missing.
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
            resources: BTreeSet::new(),
        };
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folder),
            entries => entries.map_err(failed(directory))?,
        };
        for entry in entries {
            let path = entry.map_err(failed(directory))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_one_of = |endings: [&str; 2]| path.is_file() && endings.iter().any(|ending| name.ends_with(ending));
            let read = || Ok(String::from_utf8_lossy(&fs::read(&path).map_err(failed(&path))?).into_owned());
            if is_one_of(NATIVE) {
                folder.take_native(&read()?);
            } else if is_one_of(JSON) {
                let text = read()?;
                let root = serde_json::from_str(&text).map_err(|error| failed(&path)(error.into()))?;
                folder.take_json(&text, &root);
            }
        }
        Ok(folder)
    }

    fn take_native(&mut self, text: &str) {
        let says = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(text));
        self.requires_providers |= says(&REQUIRED_PROVIDERS);
        self.names_source |= text.contains(ADDRESS);
        self.has_provider |= says(&PROVIDER);
        let resources = RESOURCE.iter().flat_map(|pattern| pattern.captures_iter(text));
        self.resources.extend(resources.map(|found| {
            let [kind, label] = found.extract().1;
            (kind.to_owned(), label.to_owned())
        }));
    }

    /// The same for the JSON syntax, in which every body of blocks may be a list of bodies (configuration language,
    /// JSON syntax).
    fn take_json(&mut self, text: &str, root: &Json) {
        self.requires_providers |= members(root)
            .filter(|(name, _)| *name == "terraform")
            .any(|(_, settings)| members(settings).any(|(name, _)| name == "required_providers"));
        self.names_source |= text.contains(ADDRESS);
        self.has_provider |= members(root)
            .filter(|(name, _)| *name == "provider")
            .any(|(_, providers)| members(providers).any(|(name, _)| name == "damodel"));
        let kinds = members(root).filter(|(name, _)| *name == "resource").flat_map(|(_, kinds)| members(kinds));
        self.resources.extend(
            kinds.flat_map(|(kind, labels)| members(labels).map(move |(label, _)| (kind.to_owned(), label.to_owned()))),
        );
    }

    /// The types and labels of the configured resources.
    pub(super) fn resources(&self) -> &BTreeSet<(String, String)> {
        &self.resources
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

    /// Whether the configuration requires providers but not this one: the core would look for another one.
    pub(super) fn lacks_requirement(&self) -> bool {
        self.requires_providers && !self.names_source
    }

    fn files(&self, drafts: &[Draft], provider: &[(String, Value)]) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        for kind in Adoptable::asked(&[]) {
            let blocks: Vec<String> = drafts.iter().filter(|draft| draft.kind == kind).map(Draft::resource).collect();
            if !blocks.is_empty() {
                files.push((kind.file(), blocks.join("\n")));
            }
        }
        let imports: Vec<String> = drafts.iter().map(Draft::import).collect();
        files.push((IMPORTS, format!("# After the import, this file can be deleted.\n\n{}", imports.join("\n"))));
        let mut settings = Vec::new();
        if !self.requires_providers {
            settings.push(format!(
                "terraform {{\n  required_providers {{\n    damodel = {{\n      source = {}\n    }}\n  }}\n}}\n",
                draft::quoted(ADDRESS)
            ));
        }
        if !self.has_provider && !provider.is_empty() {
            settings.push(format!("provider \"damodel\" {{\n{}}}\n", draft::arguments(provider)));
        }
        if !settings.is_empty() {
            files.push((VERSIONS, settings.join("\n")));
        }
        files
    }
}

/// The members of an object, or of all objects of a list.
fn members(body: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let bodies = match body {
        Json::Array(bodies) => bodies.as_slice(),
        body => std::slice::from_ref(body),
    };
    bodies.iter().filter_map(Json::as_object).flatten().map(|(name, value)| (name.as_str(), value))
}

/// Creates all files or none. A file that exists, even one created since the check, is an error.
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
            kind: Adoptable::CloudDisk,
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
    fn a_configuration_in_json_counts_too() {
        let directory = tempfile::tempdir().unwrap();
        let open = |text: &str| {
            fs::write(directory.path().join("main.tf.json"), text).unwrap();
            Folder::open(directory.path())
        };
        let arguments = [("allow_http".to_owned(), Value::from(true))];
        let required = r#"{"damodel": {"source": "damodel/damodel"}}"#;
        for text in [
            format!(r#"{{"terraform": {{"required_providers": {required}}}, "provider": {{"damodel": {{}}}}}}"#),
            format!(
                r#"[{{"terraform": [{{"required_providers": [{required}]}}], "provider": [{{"damodel": [{{}}]}}]}}]"#
            ),
        ] {
            let folder = open(&text).unwrap();
            assert!(folder.files(&[draft()], &arguments).iter().all(|(name, _)| *name != VERSIONS), "{text}");
            assert!(!folder.lacks_requirement());
        }
        assert!(open(r#"{"terraform": {"required_providers": {}}}"#).unwrap().lacks_requirement());
        let bare = open(r#"{"terraform": {}, "//": "required_providers"}"#).unwrap();
        assert!(bare.files(&[draft()], &[]).iter().any(|(name, _)| *name == VERSIONS));
        let refused = open("{").unwrap_err();
        assert!(matches!(refused, Error::Read { path, .. } if path.ends_with("main.tf.json")));
    }

    #[test]
    fn the_resources_that_are_there_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write(
            "a.tf",
            "resource \"damodel_instance\" \"a-1\" {\n}\n  resource damodel_cloud_disk b {}\nresource \"x\" \"y\" {}\n",
        );
        write("b.tofu", "data \"damodel_instance\" \"not\" {}\nresource \"damodel_instance\" \"c\" { name = 1 }\n");
        write("c.tofu.json", r#"{"resource": [{"damodel_instance": {"d": {}}}, {"damodel_instance": [{"e": [{}]}]}]}"#);
        write("d.json", r#"{"resource": {"damodel_instance": {"no": {}}}}"#);
        let folder = Folder::open(directory.path()).unwrap();
        let found: Vec<String> = folder.resources().iter().map(|(kind, label)| format!("{kind}.{label}")).collect();
        let expected = [
            "damodel_cloud_disk.b",
            "damodel_instance.a-1",
            "damodel_instance.c",
            "damodel_instance.d",
            "damodel_instance.e",
        ];
        assert_eq!(found, expected);
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
