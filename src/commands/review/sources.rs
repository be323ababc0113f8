//! The location (file and line) of the blocks of a configuration and its modules.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

use hcl_edit::structure::{Block, Body, Structure};
use serde::Deserialize;

use crate::{
    api,
    commands::{Failure, terraform::is_ignored},
    review::{Address, Location, visible},
};

/// The endings of HCL files that Terraform and OpenTofu read.
const ENDINGS: [&str; 2] = [".tf", ".tofu"];

/// The deepest nesting of modules, which ends the reading of a folder that calls itself.
const DEEPEST: usize = 32;

/// The file in which `init` records the folders of modules.
const MANIFEST: &str = ".terraform/modules/modules.json";

/// The blocks of a configuration, by their address without keys.
#[derive(Debug)]
pub(super) struct Sources {
    blocks: BTreeMap<String, Location>,
    /// The locations for objects without a block, by the address of the module.
    modules: BTreeMap<String, Location>,
    warnings: Vec<String>,
}

/// The manifest of installed modules.
#[derive(Default, Deserialize)]
struct Manifest {
    #[serde(default, rename = "Modules")]
    modules: Vec<Installed>,
}

#[derive(Deserialize)]
struct Installed {
    #[serde(rename = "Key")]
    key: String,
    #[serde(rename = "Dir")]
    directory: PathBuf,
}

impl Sources {
    /// Reads the configuration of a folder.
    pub(super) fn read(folder: &Path, directory: &Path) -> Result<Self, Failure> {
        let mut sources = Self { blocks: BTreeMap::new(), modules: BTreeMap::new(), warnings: Vec::new() };
        let manifest: Manifest = fs::read(folder.join(MANIFEST))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let installed: BTreeMap<String, PathBuf> =
            manifest.modules.into_iter().map(|module| (module.key, module.directory)).collect();
        let reading = Reading { folder, root: Root::of(folder, directory), installed: &installed };
        // The user named the root folder, so it must exist.
        fs::read_dir(folder).map_err(|error| Failure::reading(folder.display(), error))?;
        sources.read_module(&reading, folder, &[], None);
        Ok(sources)
    }

    /// The location of an object's block, else of its module, else of the configuration.
    pub(super) fn locate(&self, address: Option<&Address>) -> Location {
        let steps = address.map(Address::names).unwrap_or_default();
        let whole = self.blocks.get(&steps.join("."));
        let mut module: &[&str] = &steps;
        let nearest = || {
            while let Some((_, rest)) = module.split_last() {
                module = rest;
                if let Some(location) = self.modules.get(&module.join(".")) {
                    return Some(location);
                }
            }
            self.modules.get("")
        };
        let found = whole.or_else(nearest).cloned();
        found.unwrap_or_else(|| Location { file: "main.tf".to_owned(), line: 1 })
    }

    /// Files that could not be read.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter()
    }

    fn read_module(&mut self, reading: &Reading<'_>, folder: &Path, module: &[String], call: Option<&Location>) {
        if module.len() > 2 * DEEPEST {
            return;
        }
        let files = files(folder);
        let main = files.iter().find(|file| file.ends_with("main.tf")).or_else(|| files.first());
        let begin = main.map(|file| Location { file: reading.root.name(file), line: 1 });
        if let Some(location) = begin.or_else(|| call.cloned()) {
            self.modules.insert(module.join("."), location);
        }
        for file in files {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let text = api::without_mark(&text);
            match hcl_edit::parser::parse_body(text) {
                Ok(body) => self.read_file(reading, folder, module, &reading.root.name(&file), text, &body),
                Err(error) => self.warnings.push(format!(
                    "{} cannot be parsed, so findings have no line in it: line {}, {}",
                    file.display(),
                    error.location().line(),
                    visible(error.message(), 200)
                )),
            }
        }
    }

    fn read_file(
        &mut self,
        reading: &Reading<'_>,
        folder: &Path,
        module: &[String],
        file: &str,
        text: &str,
        body: &Body,
    ) {
        let lines = Lines::of(text);
        let blocks = body.iter().filter_map(Structure::as_block);
        for block in blocks {
            let location = Location {
                file: file.to_owned(),
                line: hcl_edit::Span::span(block).map_or(1, |span| lines.at(span.start)),
            };
            let labels: Vec<&str> = block.labels.iter().map(|label| label.as_str()).collect();
            let address = match (block.ident.as_str(), labels.as_slice()) {
                ("resource", [kind, name]) => vec![*kind, *name],
                ("data" | "action" | "ephemeral" | "output" | "check", rest) => {
                    [block.ident.as_str()].into_iter().chain(rest.iter().copied()).collect()
                }
                ("variable", [name]) => vec!["var", *name],
                ("module", [name]) => {
                    let mut inner = module.to_vec();
                    inner.extend(["module".to_owned(), (*name).to_owned()]);
                    self.modules.insert(inner.join("."), location.clone());
                    if let Some(folder) = reading.folder_of(block, folder, &inner) {
                        self.read_module(reading, &folder, &inner, Some(&location));
                    }
                    continue;
                }
                // Objects that are no longer configured.
                ("removed" | "moved", _) => match from(block) {
                    Some(address) => {
                        let address =
                            module.iter().map(String::as_str).chain(address.names()).collect::<Vec<_>>().join(".");
                        self.blocks.entry(address).or_insert(location);
                        continue;
                    }
                    None => continue,
                },
                _ => continue,
            };
            let address = module.iter().map(String::as_str).chain(address).collect::<Vec<_>>().join(".");
            self.blocks.insert(address, location);
        }
    }
}

/// The address in `from`.
fn from(block: &Block) -> Option<Address> {
    let from = block.body.get_attribute("from")?;
    Some(Address::new(from.value.to_string().trim()))
}

/// The settings that all modules share.
struct Reading<'a> {
    /// The folder of the root module.
    folder: &'a Path,
    /// The folder that the names of files begin at.
    root: Root,
    /// The folders of installed modules, by their keys.
    installed: &'a BTreeMap<String, PathBuf>,
}

impl Reading<'_> {
    /// The folder of a module: a local path, or the folder in which `init` installed it.
    fn folder_of(&self, block: &Block, folder: &Path, module: &[String]) -> Option<PathBuf> {
        let source = block.body.get_attribute("source")?.value.as_str()?.to_owned();
        if source.starts_with("./") || source.starts_with("../") {
            return Some(folder.join(source));
        }
        let names: Vec<&str> = module.iter().skip(1).step_by(2).map(String::as_str).collect();
        let directory = self.installed.get(&names.join("."))?;
        Some(self.folder.join(directory))
    }
}

/// The folder that names of files in reports begin at.
pub(super) struct Root {
    folder: PathBuf,
    directory: PathBuf,
}

impl Root {
    /// The nearest folder above this one with `.git`, else the working directory.
    pub(super) fn of(folder: &Path, directory: &Path) -> Self {
        let whole = resolved(&directory.join(folder));
        let root = whole.ancestors().find(|folder| folder.join(".git").exists());
        let folder = root.map_or_else(|| resolved(directory), Path::to_owned);
        Self { folder, directory: directory.to_owned() }
    }

    /// The name of a file, with `/` between its folders.
    pub(super) fn name(&self, file: &Path) -> String {
        let whole = self.directory.join(file);
        let name = whole.file_name().map(PathBuf::from).unwrap_or_default();
        let whole = resolved(whole.parent().unwrap_or_else(|| Path::new(""))).join(name);
        let shared = self.folder.components().zip(whole.components()).take_while(|(one, other)| one == other).count();
        let up = self.folder.components().skip(shared).map(|_| "..".to_owned());
        let down = whole.components().skip(shared).filter_map(|component| match component {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            _ => None,
        });
        up.chain(down).collect::<Vec<_>>().join("/")
    }
}

/// A folder without links; as it is if it cannot be found.
fn resolved(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The files of a module, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_source = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ENDINGS.iter().any(|ending| name.ends_with(ending)) && !is_ignored(&name) && path.is_file()
    };
    let mut files: Vec<PathBuf> = paths.filter(is_source).collect();
    files.sort();
    files
}

/// The byte offsets of the lines of a text.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(end, _)| end + 1).collect())
    }

    /// The line of a byte, from 1 on.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|begin| *begin <= byte) + 1
    }
}
