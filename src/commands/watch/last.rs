//! Reads the events of the newest run that has ended.

use std::{
    fs::{self, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use crate::api::{ProgressEvent, Told};

/// The version of the events that are read.
const VERSION: u32 = 1;

/// What the newest run that has ended told; nothing when there is none.
pub(super) fn told(directory: &Path) -> io::Result<Vec<Told>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut runs: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    // Their names begin with the time.
    runs.sort();
    for run in runs.iter().rev().filter(|run| !is_alive(run)) {
        let events = events(run)?;
        if !events.is_empty() {
            return Ok(events);
        }
    }
    Ok(Vec::new())
}

fn events(run: &Path) -> io::Result<Vec<Told>> {
    let text = String::from_utf8_lossy(&fs::read(run)?).into_owned();
    let name = run.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let events = text.lines().filter_map(|line| serde_json::from_str::<ProgressEvent>(line).ok());
    let events = events.filter(|event| event.version == VERSION);
    Ok(events.map(|event| Told { run: name.clone(), event, usual: None }).collect())
}

/// Whether the run that writes a file goes on: then its lock is held.
fn is_alive(run: &Path) -> bool {
    let lock = OpenOptions::new().read(true).open(run.with_extension("lock"));
    lock.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
