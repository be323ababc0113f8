//! Writes the progress file of a run.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use terraform_plugin::process::{private, private_directory};
use tokio::runtime::Handle;

use super::{directory, files, is_alive};
use crate::{
    api::{Progress, ProgressEvent},
    creation::Journal,
};

/// The largest size of a run's file, in bytes.
const MOST: usize = 512 * 1024;

/// The progress file of a run, which is created with the first event.
struct ProgressFile {
    directory: PathBuf,
    /// Keeps the run's lock.
    journal: Journal,
    file: Mutex<Output>,
    queue: Mutex<Queue>,
}

/// The events that are not written yet. One thread writes at a time, in their order.
#[derive(Default)]
struct Queue {
    events: Vec<ProgressEvent>,
    is_being_written: bool,
}

enum Output {
    /// The file cannot be written (any more).
    Closed,
    Open(Open),
    Unopened,
}

struct Open {
    file: File,
    written: usize,
}

/// Progress that is written to a file beside a journal.
#[must_use]
pub fn beside(journal: &Journal) -> Progress {
    let file = Arc::new(ProgressFile {
        directory: directory(journal),
        journal: journal.clone(),
        file: Mutex::new(Output::Unopened),
        queue: Mutex::default(),
    });
    Progress::new(move |event| write(&file, event))
}

/// Writes an event soon: the file may stall.
fn write(file: &Arc<ProgressFile>, event: ProgressEvent) {
    {
        let mut queue = file.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.events.push(event);
        if std::mem::replace(&mut queue.is_being_written, true) {
            return;
        }
    }
    match Handle::try_current() {
        Ok(runtime) => {
            let file = Arc::clone(file);
            drop(runtime.spawn_blocking(move || file.write_all()));
        }
        Err(_) => file.write_all(),
    }
}

impl ProgressFile {
    /// Writes the queued events.
    fn write_all(&self) {
        let mut output = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let events = {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.is_being_written = !queue.events.is_empty();
                std::mem::take(&mut queue.events)
            };
            if events.is_empty() {
                return;
            }
            if matches!(*output, Output::Unopened) {
                *output = open(self).map_or_else(|error| closed(&error), Output::Open);
            }
            if let Output::Open(open) = &mut *output
                && let Err(error) = events.iter().try_for_each(|event| open.append(event))
            {
                *output = closed(&error);
            }
        }
    }
}

impl Open {
    fn append(&mut self, event: &ProgressEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        if self.written + line.len() > MOST {
            return Ok(());
        }
        self.written += line.len();
        self.file.write_all(&line)
    }
}

/// Creates the file of this run, and removes those of runs that are over.
fn open(progress: &ProgressFile) -> io::Result<Open> {
    let directory = &progress.directory;
    let name = progress.journal.run_name().map_err(io::Error::other)?;
    private_directory(directory)?;
    for run in files(directory)?.iter().filter(|run| !is_alive(progress.journal.directory(), run)) {
        let _ = fs::remove_file(run);
    }
    let file = private().append(true).create_new(true).open(directory.join(format!("run-{name}.jsonl")))?;
    Ok(Open { file, written: 0 })
}

fn closed(error: &io::Error) -> Output {
    tracing::debug!(%error, "progress is not reported");
    Output::Closed
}
