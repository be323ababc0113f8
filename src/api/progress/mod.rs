//! What waits tell of themselves, for who looks on from another process.
//!
//! A core says only "Still creating..." of a wait, so each run of the provider that waits writes a file of events
//! beside the journal: JSON lines, each with the version of the format and whole in itself. A second file is locked
//! while the run lives. The files are bounded in size and number and hold no secret, and nothing fails for them: what
//! cannot be written is not told.

mod event;
mod follow;
mod writer;

pub use event::{Ending, Event};
pub use follow::{Follower, Look, Told};
pub use writer::{Progress, Step, Task};

use std::path::PathBuf;

use crate::api::Journal;

/// The directory of the files that belong to a journal.
fn directory(journal: &Journal) -> PathBuf {
    let mut name = journal.directory().file_name().unwrap_or_default().to_owned();
    name.push("-progress");
    journal.directory().with_file_name(name)
}

#[cfg(test)]
mod tests;
