//! What pending directories hold: creates that are under way, or that a run left behind.

use std::path::PathBuf;

use super::Error;
use crate::{
    api::{Journal, Kind as NoteKind},
    commands::adopt::Kind,
    provider::Environment,
};

/// A create that is written down.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) kind: Kind,
    /// Its import id, once the service told it.
    pub(super) id: Option<String>,
    /// The name that was sent.
    pub(super) marker: String,
    /// The pending directory, as it was named.
    pub(super) source: String,
}

/// Reads the notes of every directory, all or none.
pub(super) fn read(directories: &[PathBuf], environment: &Environment) -> Result<Vec<Note>, Error> {
    let mut notes = Vec::new();
    for directory in directories {
        let path = environment.path(directory);
        if !path.is_dir() {
            return Err(Error::NoDirectory(directory.clone()));
        }
        let failed = |path: PathBuf, reason: String| Error::Notes { path, reason };
        let report = Journal::new(&path).list().map_err(|error| failed(path, error.to_string()))?;
        if let Some(file) = report.unreadable.into_iter().next() {
            return Err(failed(file.path, file.reason));
        }
        notes.extend(report.entries.into_iter().map(|entry| Note {
            kind: match entry.record.kind {
                NoteKind::CloudDisk => Kind::CloudDisk,
                NoteKind::Instance => Kind::Instance,
                NoteKind::PrivateImage => Kind::PrivateImage,
            },
            id: entry.record.ids.map(|ids| ids.id),
            marker: entry.record.marker,
            source: directory.display().to_string(),
        }));
    }
    Ok(notes)
}
