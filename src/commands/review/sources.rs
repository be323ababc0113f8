//! The location (file and line) of the blocks of a configuration and its modules.

use std::{
    collections::{BTreeMap, btree_map::Entry},
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

/// The file in which `init` records the folders of modules.
const MANIFEST: &str = ".terraform/modules/modules.json";

/// The blocks of a configuration and its modules.
#[derive(Debug)]
pub(super) struct Sources {
    /// The folder of the root module.
    folder: PathBuf,
    /// The folders of installed modules, by their keys.
    installed: BTreeMap<String, PathBuf>,
    /// The modules, by their folders without links.
    modules: BTreeMap<PathBuf, Module>,
    warnings: Vec<String>,
}

/// What is in the folder of a module. Each is read once, whatever calls it.
#[derive(Debug, Default)]
struct Module {
    begin: Option<Location>,
    /// By their addresses within the module, without keys.
    blocks: BTreeMap<String, Location>,
    calls: BTreeMap<String, Call>,
}

/// The block of a module, with its source if it is a text.
#[derive(Debug)]
struct Call {
    location: Location,
    source: Option<String>,
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
        let manifest: Manifest = fs::read(folder.join(MANIFEST))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let installed: BTreeMap<String, PathBuf> =
            manifest.modules.into_iter().map(|module| (module.key, folder.join(module.directory))).collect();
        // The user named the root folder, so it must exist.
        fs::read_dir(folder).map_err(|error| Failure::reading(folder.display(), error))?;
        let (root, mut warnings) = (Root::of(folder, directory), Vec::new());
        let mut modules: BTreeMap<PathBuf, Module> = BTreeMap::new();
        let mut left: Vec<PathBuf> =
            [folder].into_iter().chain(installed.values().map(PathBuf::as_path)).map(resolved).collect();
        while let Some(folder) = left.pop() {
            if let Entry::Vacant(entry) = modules.entry(folder) {
                let module = Module::read(entry.key(), &root, &mut warnings);
                left.extend(module.calls.values().filter_map(|call| call.local(entry.key())));
                entry.insert(module);
            }
        }
        Ok(Self { folder: resolved(folder), installed, modules, warnings })
    }

    /// The location of an object's block, else of its module, else of the configuration.
    pub(super) fn locate(&self, address: Option<&Address>) -> Location {
        let steps = address.map(Address::names).unwrap_or_default();
        let (mut left, mut path, mut folder) = (steps.as_slice(), Vec::new(), Some(self.folder.clone()));
        let (mut block, mut nearest) = (None, None);
        while let Some(module) = folder.as_ref().and_then(|folder| self.modules.get(folder)) {
            // A block of the module itself is nearer than one that names its object from outside.
            block = module.blocks.get(&left.join(".")).or(block);
            nearest = module.begin.as_ref().or(nearest);
            let ["module", name, inner @ ..] = left else { break };
            let Some(call) = module.calls.get(*name) else { break };
            nearest = Some(&call.location);
            path.push(*name);
            let installed = || self.installed.get(&path.join(".")).map(|folder| resolved(folder));
            folder = folder.and_then(|folder| call.local(&folder)).or_else(installed);
            left = inner;
        }
        let found = block.or(nearest).cloned();
        found.unwrap_or_else(|| Location { file: "main.tf".to_owned(), line: 1 })
    }

    /// Files that could not be read.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter()
    }
}

impl Call {
    /// The folder of a module with a local source.
    fn local(&self, folder: &Path) -> Option<PathBuf> {
        let source = self.source.as_ref().filter(|source| source.starts_with("./") || source.starts_with("../"))?;
        Some(resolved(&folder.join(source)))
    }
}

impl Module {
    fn read(folder: &Path, root: &Root, warnings: &mut Vec<String>) -> Self {
        let files = files(folder);
        let main = files.iter().find(|file| file.ends_with("main.tf")).or_else(|| files.first());
        let begin = main.map(|file| Location { file: root.name(file), line: 1 });
        let mut module = Self { begin, ..Self::default() };
        for file in files {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let text = api::without_mark(&text);
            match hcl_edit::parser::parse_body(text) {
                Ok(body) => module.read_file(&root.name(&file), text, &body),
                Err(error) => warnings.push(format!(
                    "{} cannot be parsed, so findings have no line in it: line {}, {}",
                    root.name(&file),
                    error.location().line(),
                    visible(error.message(), 200)
                )),
            }
        }
        module
    }

    fn read_file(&mut self, file: &str, text: &str, body: &Body) {
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
                    let source = block.body.get_attribute("source").and_then(|source| source.value.as_str());
                    let call = Call { location, source: source.map(str::to_owned) };
                    self.calls.insert((*name).to_owned(), call);
                    continue;
                }
                // Objects that are no longer configured.
                ("removed" | "moved", _) => {
                    if let Some(address) = from(block) {
                        self.blocks.entry(address.names().join(".")).or_insert(location);
                    }
                    continue;
                }
                _ => continue,
            };
            self.blocks.insert(address.join("."), location);
        }
    }
}

/// The address in `from`.
fn from(block: &Block) -> Option<Address> {
    let from = block.body.get_attribute("from")?;
    Some(Address::new(from.value.to_string().trim()))
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
    let mut files: Vec<PathBuf> = paths
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ENDINGS.iter().any(|ending| name.ends_with(ending)) && !is_ignored(&name) && path.is_file()
        })
        .collect();
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
