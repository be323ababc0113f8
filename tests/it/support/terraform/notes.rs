//! Pending records of creates, and changes of the pending directory.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::Workspace;
use crate::support::wait::wait_until;

/// A pending record of a create.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) path: PathBuf,
    pub(crate) content: Value,
}

impl Note {
    /// Its phase. The name of the file tells that it is finished.
    pub(crate) fn phase(&self) -> &str {
        match self.path.to_str() {
            Some(path) if path.ends_with(".done.json") => "finished",
            _ => self.content["phase"].as_str().unwrap_or_default(),
        }
    }
}

impl Workspace<'_> {
    /// The pending directory of this configuration.
    pub(crate) fn pending(&self) -> PathBuf {
        self.directory().join(".terraform").join("damodel-pending")
    }

    /// The pending records, by the names of their files.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let Ok(files) = fs::read_dir(self.pending()) else { return Vec::new() };
        let mut notes: Vec<Note> = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
            .filter_map(|path| {
                // It may have been removed by now.
                let content: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
                content["phase"].is_string().then_some(Note { path, content })
            })
            .collect();
        notes.sort_by(|a, b| a.path.cmp(&b.path));
        notes
    }

    /// Waits until this many records are in this phase.
    pub(crate) fn await_notes(&self, phase: &str, count: usize) {
        wait_until(&format!("{count} notes {phase}"), || {
            self.notes().iter().filter(|note| note.phase() == phase).count() >= count
        });
    }

    /// Makes the pending records 15 minutes older.
    pub(crate) fn minutes_pass(&self) {
        for mut note in self.notes() {
            for moment in ["begun_at", "updated_at"] {
                if let Some(seconds) = note.content[moment].as_i64() {
                    note.content[moment] = (seconds - 900).into();
                }
            }
            fs::write(&note.path, note.content.to_string()).unwrap();
        }
    }

    /// Loses `.terraform`, like on a fresh CI runner.
    pub(crate) fn lose_data_directory(&self) {
        let _ = fs::remove_dir_all(self.directory().join(".terraform"));
    }
}
