//! The folder of a configuration: its resources, and the files that are added to it.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use hcl_edit::{
    expr::{Expression, ObjectKey},
    structure::{Block, Body},
};
use serde_json::Value as Json;

use super::draft::{self, Draft};
use crate::{api::ObjectKind, commands::Failure, framework::Value, provider::ADDRESS};

/// The endings of the files that Terraform and OpenTofu read, by syntax.
const NATIVE: [&str; 2] = [".tf", ".tofu"];
const JSON: [&str; 2] = [".tf.json", ".tofu.json"];
const IMPORTS: &str = "imports.tf";
const VERSIONS: &str = "versions.tf";

/// The folder with the relevant parts of its configuration.
#[derive(Debug)]
pub(super) struct Folder {
    directory: PathBuf,
    requires_providers: bool,
    /// The local names of this provider.
    local_names: BTreeSet<String>,
    /// The local names with a provider block.
    providers: BTreeSet<String>,
    /// The types and labels of its resources.
    resources: BTreeSet<(String, String)>,
}

impl Folder {
    /// Reads the configuration; the folder may be missing.
    pub(super) fn open(directory: &Path) -> Result<Self, Failure> {
        let failed = |path: &Path, error: io::Error| Failure::reading(path.display(), error);
        let mut folder = Self {
            directory: directory.to_owned(),
            requires_providers: false,
            local_names: BTreeSet::new(),
            providers: BTreeSet::new(),
            resources: BTreeSet::new(),
        };
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folder),
            entries => entries.map_err(|error| failed(directory, error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| failed(directory, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_one_of = |endings: [&str; 2]| path.is_file() && endings.iter().any(|ending| name.ends_with(ending));
            let read = || {
                let text = fs::read(&path).map_err(|error| failed(&path, error))?;
                Ok::<_, Failure>(String::from_utf8_lossy(&text).into_owned())
            };
            if is_one_of(NATIVE) {
                let body = read()?.parse::<Body>();
                let line = body.map_err(|error| format!("it cannot be parsed at line {}", error.location().line()));
                folder.take_native(&line.map_err(|error| failed(&path, io::Error::other(error)))?);
            } else if is_one_of(JSON) {
                folder.take_json(&serde_json::from_str(&read()?).map_err(|error| failed(&path, error.into()))?);
            }
        }
        Ok(folder)
    }

    fn take_native(&mut self, body: &Body) {
        let label = |block: &Block, index: usize| block.labels.get(index).map(|label| label.as_str().to_owned());
        for required in body.get_blocks("terraform").flat_map(|block| block.body.get_blocks("required_providers")) {
            self.requires_providers = true;
            let own = required.body.attributes().filter(|attribute| source(&attribute.value).is_some_and(is_ours));
            self.local_names.extend(own.map(|attribute| attribute.key.to_string()));
        }
        self.providers.extend(body.get_blocks("provider").filter_map(|block| label(block, 0)));
        let resources = body.get_blocks("resource").filter_map(|block| Some((label(block, 0)?, label(block, 1)?)));
        self.resources.extend(resources.filter(|(kind, _)| kind.starts_with("damodel_")));
    }

    /// The same for the JSON syntax, in which every body of blocks may be a list of bodies (configuration language,
    /// JSON syntax).
    fn take_json(&mut self, root: &Json) {
        let settings =
            members(root).filter(|(name, _)| *name == "terraform").flat_map(|(_, settings)| members(settings));
        for (_, required) in settings.filter(|(name, _)| *name == "required_providers") {
            self.requires_providers = true;
            let source =
                |settings: &Json| settings.as_str().or_else(|| settings["source"].as_str()).is_some_and(is_ours);
            let own = members(required).filter(|(_, settings)| source(settings));
            self.local_names.extend(own.map(|(name, _)| name.to_owned()));
        }
        let blocks = |kind: &'static str| {
            members(root).filter(move |(name, _)| *name == kind).flat_map(|(_, blocks)| members(blocks))
        };
        self.providers.extend(blocks("provider").map(|(name, _)| name.to_owned()));
        let labels = |(kind, labels)| members(labels).map(move |(label, _)| (String::from(kind), label.to_owned()));
        self.resources.extend(blocks("resource").flat_map(labels));
    }

    /// The types and labels of the configured resources.
    pub(super) fn resources(&self) -> &BTreeSet<(String, String)> {
        &self.resources
    }

    /// Writes the drafts, all or nothing. Returns the names of the files.
    pub(super) fn write(&self, drafts: &[Draft], provider: &[(String, Value)]) -> Result<Vec<String>, Failure> {
        let files = self.files(drafts, provider);
        let path = |name: &str| self.directory.join(name);
        let there: Vec<PathBuf> =
            files.iter().map(|(name, _)| path(name)).filter(|path| path.symlink_metadata().is_ok()).collect();
        if !there.is_empty() {
            let names: Vec<String> = there.iter().map(|file| file.display().to_string()).collect();
            return Err(Failure::new(format!(
                "{} already exist: {}. Nothing was written. Move existing files away, or select another folder with \
                 --out",
                if there.len() == 1 { "a file is" } else { "files are" },
                names.join(", ")
            )));
        }
        fs::create_dir_all(&self.directory).map_err(|error| Failure::writing(self.directory.display(), error))?;
        let texts: Vec<_> = files.iter().map(|(name, text)| (path(name), text.as_str())).collect();
        write_all(&texts)?;
        Ok(files.into_iter().map(|(name, _)| name).collect())
    }

    /// Whether the configuration requires providers but not this one under the name that its resources imply: the core
    /// would look for another one.
    pub(super) fn lacks_requirement(&self) -> bool {
        self.requires_providers && !self.local_names.contains(LOCAL_NAME)
    }

    /// The other local name under which the configuration requires this provider.
    pub(super) fn other_name(&self) -> Option<&String> {
        self.local_names.iter().next().filter(|_| self.lacks_requirement())
    }

    fn files(&self, drafts: &[Draft], provider: &[(String, Value)]) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for kind in ObjectKind::ALL {
            let blocks: Vec<String> = drafts.iter().filter(|draft| draft.kind == kind).map(Draft::resource).collect();
            if !blocks.is_empty() {
                files.push((format!("{}s.tf", kind.as_str()), blocks.join("\n")));
            }
        }
        let imports: Vec<String> = drafts.iter().map(Draft::import).collect();
        files.push((
            IMPORTS.to_owned(),
            format!("# After the import, this file can be deleted.\n\n{}", imports.join("\n")),
        ));
        let mut settings = Vec::new();
        if !self.requires_providers {
            settings.push(format!(
                "terraform {{\n  required_providers {{\n    damodel = {{\n      source = {}\n    }}\n  }}\n}}\n",
                draft::quoted(ADDRESS)
            ));
        }
        if !self.providers.contains(LOCAL_NAME) && !provider.is_empty() {
            settings.push(format!("provider \"damodel\" {{\n{}}}\n", draft::arguments(provider)));
        }
        if !settings.is_empty() {
            files.push((VERSIONS.to_owned(), settings.join("\n")));
        }
        files
    }
}

/// The local name that the types of its resources imply.
const LOCAL_NAME: &str = "damodel";

/// The source address in an entry of required_providers.
fn source(entry: &Expression) -> Option<&str> {
    let is_source = |key: &ObjectKey| match key {
        ObjectKey::Expression(key) => key.as_str() == Some("source"),
        ObjectKey::Ident(key) => key.as_str() == "source",
    };
    let (_, value) = entry.as_object()?.iter().find(|(key, _)| is_source(key))?;
    value.expr().as_str()
}

/// Whether a source address, with or without a host, is this provider's.
fn is_ours(source: &str) -> bool {
    source == ADDRESS || source.ends_with(&format!("/{ADDRESS}"))
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
    fn what_the_configuration_has_is_not_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let arguments = [("allow_http".to_owned(), Value::from(true))];
        let versions = |arguments| {
            let files = Folder::open(directory).unwrap().files(&[draft()], arguments);
            files.into_iter().find(|(name, _)| *name == VERSIONS).map(|(_, text)| text)
        };
        let comment = "terraform {}\n# required_providers {\n/*\nterraform {\n  required_providers {\n  }\n}\n*/\n";
        fs::write(directory.join("a.tf"), comment).unwrap();
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
        let refused = open("{").unwrap_err().to_string();
        assert!(refused.starts_with("cannot read ") && refused.ends_with("main.tf.json"), "{refused}");
    }

    #[test]
    fn the_resources_that_are_there_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write(
            "a.tf",
            "resource \"damodel_instance\" \"a-1\" {\n}\n  resource damodel_cloud_disk b {}\nresource \"x\" \"y\" {}\n\
             # resource \"damodel_instance\" \"comment\" {}\n",
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
        fs::write(directory.join("cloud_disks.tf"), "# mine").unwrap();
        let refused = Folder::open(&directory).unwrap().write(&[draft()], &[]).unwrap_err();
        assert!(refused.to_string().contains("cloud_disks.tf") && !refused.to_string().contains("versions.tf"));
        assert_eq!(names(&directory), ["cloud_disks.tf", "versions.tf"]);
        assert_eq!(fs::read_to_string(directory.join("cloud_disks.tf")).unwrap(), "# mine");
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
        // Another local name is not the one that the resources imply.
        let source = "registry.terraform.io/damodel/damodel";
        let text = format!("terraform {{\n  required_providers {{\n    gpu = {{ source = \"{source}\" }}\n  }}\n}}\n");
        assert!(lacks(&text));
        let folder = Folder::open(directory.path()).unwrap();
        assert_eq!(folder.other_name().map(String::as_str), Some("gpu"));
    }
}
