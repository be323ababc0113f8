//! The files of a journal's directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::api::{
    error::Error,
    lenient::read_integer,
    pending::{
        entry::{HANDED_OVER, failed},
        journal::Unreadable,
        record::{Record, VERSION},
    },
};

/// The files of the directory, each read or not.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) notes: Vec<(PathBuf, Record)>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Reads them all. A directory that does not exist is empty.
pub(super) fn read_all(directory: &Path) -> Result<Files, Error> {
    let mut files = Files::default();
    for path in paths(directory)? {
        match read(&path) {
            Ok(record) => files.notes.push((path, record)),
            // Finished while we looked.
            Err(_) if !path.exists() => {}
            Err(reason) => files.unreadable.push(Unreadable { path, reason }),
        }
    }
    Ok(files)
}

fn paths(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let refused = |error| failed(directory, "read", error);
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(error)),
    };
    let mut paths = Vec::new();
    for file in listing {
        let path = file.map_err(refused)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn is_handed_over(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(HANDED_OVER))
}

pub(super) fn read(path: &Path) -> Result<Record, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|_| "it is not JSON".to_owned())?;
    match value.get("version").and_then(read_integer) {
        Some(version) if version == i64::from(VERSION) => {}
        Some(version) => {
            return Err(format!("its format is {version}, and this program reads {VERSION}"));
        }
        None => return Err("it names no format".to_owned()),
    }
    serde_json::from_value(value).map_err(|error| format!("it is not whole: {error}"))
}
