//! The plans of a review: files, folders or standard input.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use crate::{
    commands::Failure,
    provider,
    review::{Arguments, Facts, NotAPlan, Plan},
};

/// What a plan does. Its name is its path below the named folder, or as it was named beside others; one file alone has
/// none.
#[derive(Debug)]
pub(super) struct PlanInput {
    /// Its file; `None` for standard input.
    pub(super) file: Option<PathBuf>,
    pub(super) facts: Facts,
}

/// What identifies a file under all its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl FileId {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(path).map(|file| Self((file.dev(), file.ino())))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        fs::canonicalize(path).map(Self)
    }
}

/// Reads the named inputs in their order, and folders in the order of their file names.
pub(super) fn read(named: &[PathBuf], input: &mut impl Read) -> Result<Vec<PlanInput>, Failure> {
    let paths: BTreeSet<PathBuf> = named.iter().map(|path| plain(path)).collect();
    let arguments = Arguments(provider::arguments());
    let mut reading = Reading { seen: BTreeMap::new(), is_of_several: paths.len() > 1, arguments, inputs: Vec::new() };
    let mut seen = BTreeSet::new();
    for path in named.iter().filter(|path| seen.insert(plain(path))) {
        if path == Path::new("-") {
            let mut document = Vec::new();
            input.read_to_end(&mut document).map_err(|error| Failure::reading("standard input", error))?;
            let plan = Plan::read(&document).map_err(|error| not_a_plan("standard input", error))?;
            let facts = Facts::of(reading.is_of_several.then(|| "-".to_owned()), &plan, &reading.arguments);
            reading.inputs.push(PlanInput { file: None, facts });
        } else if path.is_dir() {
            let before = reading.inputs.len();
            let mut files = Vec::new();
            walk(path, &mut files)?;
            for file in files {
                let below = written(file.strip_prefix(path).unwrap_or(&file));
                let given = path.display().to_string();
                let name =
                    if reading.is_of_several { format!("{}/{below}", given.trim_end_matches('/')) } else { below };
                reading.file(&file, Some(name), true)?;
            }
            if reading.inputs.len() == before && !reading.seen.values().any(|seen| seen.starts_with(plain(path))) {
                let place = path.display();
                return Err(Failure::new(format!("no plan in {place}: it has no file that ends with .json")));
            }
        } else {
            let name = reading.is_of_several.then(|| path.display().to_string());
            reading.file(path, name, false)?;
        }
    }
    Ok(reading.inputs)
}

struct Reading {
    /// The path of each file.
    seen: BTreeMap<FileId, PathBuf>,
    is_of_several: bool,
    arguments: Arguments,
    inputs: Vec<PlanInput>,
}

impl Reading {
    /// Reads a file, once for each path.
    fn file(&mut self, path: &Path, name: Option<String>, is_found: bool) -> Result<(), Failure> {
        let failed = |error| Failure::reading(path.display(), error);
        let id = FileId::of(path).map_err(failed)?;
        // The document is large, and not needed beside the facts.
        let plan = match Plan::read(&fs::read(path).map_err(failed)?) {
            // A file of a configuration, or a hidden one of another program.
            Err(NotAPlan::Other) if is_found && may_be_other(path) => return Ok(()),
            read => read.map_err(|error| not_a_plan(&path.display().to_string(), error))?,
        };
        let known = plain(path);
        match self.seen.insert(id, known.clone()) {
            Some(before) if before == known => return Ok(()),
            Some(before) => {
                let message = format!("{} and {} are one file: name it once", before.display(), path.display());
                return Err(Failure::new(message));
            }
            None => {}
        }
        self.inputs.push(PlanInput { file: Some(path.to_owned()), facts: Facts::of(name, &plan, &self.arguments) });
        Ok(())
    }
}

fn not_a_plan(place: &str, error: NotAPlan) -> Failure {
    Failure::because(format!("cannot read {place} as a plan"), error)
}

/// A path without `.` and doubled or final slashes.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|component| *component != Component::CurDir).collect()
}

/// A relative path with `/` between its folders.
fn written(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn may_be_other(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.starts_with('.') || name.ends_with(".tf.json") || name.ends_with(".tofu.json")
}

/// The paths in a folder that may be plans or hold them, in the order of their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::reading(folder.display(), error);
    let entries = fs::read_dir(folder).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>().map_err(failed)?;
    let is_json = |path: &Path| path.as_os_str().to_string_lossy().to_lowercase().ends_with(".json");
    entries.retain(|path| path.is_dir() || is_json(path) || !is_there(path));
    entries.sort();
    // Reading a pipe would wait for ever.
    match entries.iter().find(|path| fs::metadata(path).is_ok_and(|entry| !entry.is_dir() && !entry.is_file())) {
        Some(odd) => Err(Failure::new(format!("{} is not a regular file", odd.display()))),
        None => Ok(entries),
    }
}

/// Whether a path can be followed: a link to nothing is no entry.
fn is_there(path: &Path) -> bool {
    fs::metadata(path).map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |_| true)
}

/// The files in a folder and below that may be plans. A hidden or linked folder is not read, so it must have no plan.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for path in entries(folder)? {
        let is_hidden = path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
        if !path.is_dir() {
            found.push(path);
        } else if is_hidden || path.is_symlink() {
            if has_plan(&path, &mut BTreeSet::new())? {
                let kind = if is_hidden { "hidden folder" } else { "link to a folder" };
                let place = path.display();
                return Err(Failure::new(format!(
                    "{place} is a {kind} with plans, which is not read: name or move it"
                )));
            }
        } else {
            walk(&path, found)?;
        }
    }
    Ok(())
}

/// Whether a folder has a plan, looked at once under all its names.
fn has_plan(folder: &Path, seen: &mut BTreeSet<FileId>) -> Result<bool, Failure> {
    if !seen.insert(FileId::of(folder).map_err(|error| Failure::reading(folder.display(), error))?) {
        return Ok(false);
    }
    for path in entries(folder)? {
        let is_plan = if path.is_dir() {
            has_plan(&path, seen)?
        } else {
            let document = fs::read(&path).map_err(|error| Failure::reading(path.display(), error))?;
            Plan::read(&document).is_ok()
        };
        if is_plan {
            return Ok(true);
        }
    }
    Ok(false)
}
