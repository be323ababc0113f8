//! Writes the progress file of a run.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use terraform_plugin::process::{private, private_directory};
use tokio::runtime::Handle;

use super::{Event, VERSION, WaitEnding, directory, files, is_alive};
use crate::api::Journal;

/// The largest size of a run's file, in bytes.
const MOST: usize = 512 * 1024;

/// The longest text of an event, in characters.
const LONGEST: usize = 160;

/// The progress file of a run. Cheap to clone; all clones write one file, which is created with the first event.
#[derive(Clone, Default)]
pub struct Progress {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    directory: PathBuf,
    /// Keeps the run's lock.
    journal: Journal,
    file: Mutex<Output>,
    queue: Mutex<Queue>,
    tasks: AtomicU64,
}

/// The events that are not written yet. One thread writes at a time, in their order.
#[derive(Default)]
struct Queue {
    events: Vec<Event>,
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

/// The progress of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The phase, in a word or two.
    pub phase: String,
    /// The progress of the phase, 0 to 100.
    pub percent: Option<u8>,
    /// The current step of the phase. It contains no secret.
    pub detail: Option<String>,
}

impl Stage {
    /// A phase without percentage and detail.
    pub fn new(phase: impl Into<String>) -> Self {
        Self { phase: phase.into(), ..Self::default() }
    }
}

/// One wait. It writes nothing before its first phase, and its end when it is dropped.
#[derive(Debug)]
pub struct Task {
    progress: Progress,
    event: Event,
    is_told: bool,
}

impl Progress {
    /// Writes a file beside a journal. The default writes no file.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        let directory = directory(journal);
        let journal = journal.clone();
        let shared = Shared {
            directory,
            journal,
            file: Mutex::new(Output::Unopened),
            queue: Mutex::default(),
            tasks: AtomicU64::new(0),
        };
        Self { shared: Some(Arc::new(shared)) }
    }

    /// Begins a wait for an object: the noun of its kind, and its id or name.
    #[must_use]
    pub fn task(&self, kind: &str, id: impl fmt::Display) -> Task {
        let number = self.shared.as_ref().map_or(0, |shared| shared.tasks.fetch_add(1, Ordering::Relaxed));
        let now = now();
        let event = Event {
            version: VERSION,
            at: now,
            task: number,
            since: now,
            kind: kind.to_owned(),
            id: id.to_string(),
            name: None,
            phase: String::new(),
            percent: None,
            detail: None,
            ended: None,
        };
        Task { progress: self.clone(), event, is_told: false }
    }

    /// Writes an event soon: the file may stall.
    fn write(&self, event: &Event) {
        let Some(shared) = &self.shared else { return };
        {
            let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.events.push(event.clone());
            if std::mem::replace(&mut queue.is_being_written, true) {
                return;
            }
        }
        match Handle::try_current() {
            Ok(runtime) => {
                let shared = Arc::clone(shared);
                drop(runtime.spawn_blocking(move || shared.write_all()));
            }
            Err(_) => shared.write_all(),
        }
    }
}

impl Shared {
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

impl Task {
    /// Writes the progress and name of the object if they have changed.
    pub fn sees(&mut self, step: Stage, name: Option<&str>) {
        let next = Event { name: name.map(short).or_else(|| self.event.name.clone()), ..self.at(step) };
        if !self.is_told || next != self.event {
            self.event = Event { at: now(), ..next };
            self.is_told = true;
            self.progress.write(&self.event);
        }
    }

    /// Writes that the condition was met, and the last phase. A wait without any event writes no end.
    pub fn done(mut self, last: Option<Stage>) {
        if let Some(last) = last {
            self.event = self.at(last);
        }
        self.end(WaitEnding::Done);
    }

    fn at(&self, step: Stage) -> Event {
        let Stage { phase, percent, detail } = step;
        Event {
            phase: short(&phase),
            percent: percent.map(|percent| percent.min(100)),
            detail: detail.as_deref().map(short),
            ..self.event.clone()
        }
    }

    fn end(&mut self, ending: WaitEnding) {
        if self.is_told && self.event.ended.is_none() {
            self.event.at = now();
            self.event.ended = Some(ending);
            self.progress.write(&self.event);
            let Event { kind, id, phase, at, since, .. } = &self.event;
            tracing::info!(kind, id, phase, waited_ms = at - since, ?ending, "waited");
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.end(WaitEnding::Stopped);
    }
}

impl Open {
    fn append(&mut self, event: &Event) -> io::Result<()> {
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
fn open(shared: &Shared) -> io::Result<Open> {
    let directory = &shared.directory;
    let name = shared.journal.run_name().map_err(io::Error::other)?;
    private_directory(directory)?;
    for run in files(directory)?.iter().filter(|run| !is_alive(shared.journal.directory(), run)) {
        let _ = fs::remove_file(run);
    }
    let file = private().append(true).create_new(true).open(directory.join(format!("run-{name}.jsonl")))?;
    Ok(Open { file, written: 0 })
}

fn closed(error: &io::Error) -> Output {
    tracing::debug!(%error, "progress is not reported");
    Output::Closed
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.shared.as_ref().map(|shared| &shared.directory);
        formatter.debug_struct("Progress").field("directory", &directory).finish_non_exhaustive()
    }
}
