//! One line of a progress file: the format that runs write and `watch` reads.

use serde::{Deserialize, Serialize};

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// How far a wait is: one line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the format.
    pub version: u32,
    /// When it was written, in Unix milliseconds.
    pub at: i64,
    /// The wait, by a number within its file.
    pub task: u64,
    /// When the wait began, in Unix milliseconds.
    pub since: i64,
    /// What is waited for, as one calls it.
    pub kind: String,
    /// Its id; the name that was sent while it has none.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In which phase it is.
    pub phase: String,
    /// How far the phase is, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What is done in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How the wait ended; none while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// What was waited for has come.
    Done,
    /// It was given up: by an error, by a timeout, or by who waited.
    Stopped,
}

impl Event {
    /// Reads a line; none of a newer format, or of one that is not whole.
    pub(super) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok().filter(|event: &Self| event.version == VERSION)
    }
}
