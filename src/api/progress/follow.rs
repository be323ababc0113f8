//! Reads the progress files of runs from another process.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    directory,
    event::{Ending, Event},
};
use crate::api::Journal;

/// Reads what runs tell, from another process.
#[derive(Debug)]
pub struct Follower {
    directory: PathBuf,
    runs: BTreeMap<PathBuf, Run>,
    /// How long waits took: by what was waited for and the phase that was seen first, in milliseconds.
    history: HashMap<(String, String), Vec<u64>>,
}

#[derive(Debug, Default)]
struct Run {
    /// What was read, in bytes: whole lines.
    offset: u64,
    /// Whether it was seen alive.
    was_alive: bool,
    is_over: bool,
    /// The phases that its waits began with.
    first_phases: HashMap<u64, String>,
}

/// What a look found.
#[derive(Debug, Default)]
pub struct Look {
    /// What is new, of runs that live or were seen alive, in the order of each.
    pub told: Vec<Told>,
    /// How many runs live.
    pub alive: usize,
}

/// An event, and what is known beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The run, by the name of its file: a task is one of its numbers.
    pub run: String,
    /// The event.
    pub event: Event,
    /// How long such waits took in earlier runs: the middle one.
    pub usual: Option<Duration>,
}

impl Follower {
    /// Follows the runs whose journal this is.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        Self { directory: directory(journal), runs: BTreeMap::new(), history: HashMap::new() }
    }

    /// The directory that is looked at.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Looks at what was written since. What earlier runs told counts as experience only.
    ///
    /// # Errors
    /// A directory that cannot be read; one that does not exist is empty.
    pub fn look(&mut self) -> io::Result<Look> {
        let mut look = Look::default();
        for path in self.files()? {
            let run = self.runs.entry(path.clone()).or_default();
            if run.is_over {
                continue;
            }
            // Asked first: what a run wrote before its end is read after it.
            let is_alive = is_alive(&path);
            let Ok(events) = run.read(&path) else { continue };
            run.was_alive |= is_alive;
            run.is_over = !is_alive && (run.was_alive || run.offset > 0);
            look.alive += usize::from(is_alive);
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for event in events {
                let first = run.first_phases.entry(event.task).or_insert_with(|| event.phase.clone()).clone();
                let key = (event.kind.clone(), first);
                let usual = self.history.get(&key).and_then(|past| middle(past));
                if event.ended == Some(Ending::Done) {
                    let took = u64::try_from(event.at.saturating_sub(event.since)).unwrap_or(0);
                    self.history.entry(key).or_default().push(took);
                }
                if run.was_alive {
                    look.told.push(Told { run: name.clone(), event, usual });
                }
            }
        }
        Ok(look)
    }

    /// The files of runs, oldest first.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
        files.sort();
        Ok(files)
    }
}

impl Run {
    /// The whole lines that were not read yet; what is none of this format is passed over.
    fn read(&mut self, path: &Path) -> io::Result<Vec<Event>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.offset += u64::try_from(whole).unwrap_or(0);
        let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default()).into_owned();
        Ok(text.lines().filter_map(Event::parse).collect())
    }
}

/// Whether the run that writes a file lives: then its lock is held.
pub(super) fn is_alive(run: &Path) -> bool {
    let lock = OpenOptions::new().read(true).open(run.with_extension("lock"));
    lock.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn middle(past: &[u64]) -> Option<Duration> {
    let mut sorted = past.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().map(Duration::from_millis)
}
