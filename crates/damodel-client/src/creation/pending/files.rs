//! The files of the pending directory: written atomically, read strictly.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::Value;
use terraform_plugin::process::replace;

use super::{CreatePhase, PendingRecord, VERSION};
use crate::api::{Error, JournalError, Lenient as _};

/// The ending of an unfinished record's file.
pub(super) const RECORD: &str = ".json";

/// The ending of a finished record's file.
pub(super) const FINISHED: &str = ".done.json";

/// The beginning of the names of files of runs.
pub(super) const RUN: &str = "run-";

/// A file of the journal that could not be read. It is kept.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The reason, as a fragment.
    pub reason: String,
}

/// The name of a record: its file without the ending, `<kind>-<run>-<number>`.
pub(super) fn record_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(FINISHED).or_else(|| name.strip_suffix(RECORD)).unwrap_or(name)
}

/// The name of the run in the name of a record.
pub(super) fn run_of(path: &Path) -> Option<&str> {
    let (rest, _number) = record_name(path).rsplit_once('-')?;
    rest.split_once('-').map(|(_kind, run)| run)
}

/// Removes a file that may be missing; `true` if it existed.
pub(super) fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(path, "remove", error)),
    }
}

pub(super) fn failed(path: &Path, action: &'static str, error: io::Error) -> Error {
    Error::Journal(JournalError { path: path.to_owned(), action, cause: Arc::new(error) })
}

/// Replaces a record atomically, and syncs it to the disk.
pub(super) fn store(path: &Path, record: &mut PendingRecord) -> Result<(), Error> {
    record.updated_at = Timestamp::now().as_second();
    write(path, record).map_err(|error| failed(path, "write", error))
}

fn write(path: &Path, record: &PendingRecord) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(directory)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    replace(file, path)?;
    sync_directory(directory)
}

/// Syncs a directory: only then is a rename in it durable. Windows needs no sync, and some file systems (CIFS, shared
/// folders of virtual machines) cannot.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    match File::open(directory)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// The records of the directory, and the files that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) records: Vec<(PathBuf, PendingRecord)>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Reads all records. A missing directory counts as empty.
pub(super) fn read_all(directory: &Path) -> Result<Files, Error> {
    let mut files = Files::default();
    for path in paths(directory, |name| name.ends_with(RECORD) && !name.starts_with(RUN))? {
        match read(&path) {
            Ok(record) => files.records.push((path, record)),
            // The file was removed or renamed meanwhile.
            Err(_) if !path.exists() => {}
            Err(reason) => files.unreadable.push(Unreadable { path, reason }),
        }
    }
    Ok(files)
}

/// The files with such a name, in order.
pub(super) fn paths(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    let refused = |error| failed(directory, "read", error);
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(error)),
    };
    let mut paths = Vec::new();
    for file in listing {
        let file = file.map_err(refused)?;
        if file.file_name().to_str().is_some_and(&is_wanted) {
            paths.push(file.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads a record. The phase of a finished one is in its name.
pub(super) fn read(path: &Path) -> Result<PendingRecord, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|_| "it is not JSON".to_owned())?;
    match value.get("version").and_then(i64::read) {
        Some(version) if version == i64::from(VERSION) => {}
        Some(version) => {
            return Err(format!("its format is {version}, and this program reads {VERSION}"));
        }
        None => return Err("it has no format number".to_owned()),
    }
    let mut record: PendingRecord =
        serde_json::from_value(value).map_err(|error| format!("it is incomplete: {error}"))?;
    if path.to_str().is_some_and(|path| path.ends_with(FINISHED)) {
        record.phase = CreatePhase::Finished;
    }
    Ok(record)
}
