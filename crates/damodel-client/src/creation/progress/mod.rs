//! The progress of waits, for other processes such as `watch`.
//!
//! Terraform prints only "Still creating..." during a wait, so each run of the provider that waits writes a file of
//! events beside the journal: JSON lines, each complete and with the version of the format. The run's file in the
//! pending directory is locked while the run lasts, and a later run removes the files of runs that are over. The files
//! are limited in size and contain no secret. If an event cannot be written, it is skipped.

mod writer;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::{self, File},
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use super::{Journal, pending};
use crate::api::{ProgressEvent, WaitEnding};

pub use self::writer::beside;

/// The directory of a journal's progress files.
fn directory(journal: &Journal) -> PathBuf {
    let mut name = journal.directory().file_name().unwrap_or_default().to_owned();
    name.push("-progress");
    journal.directory().with_file_name(name)
}

/// Reads the progress of runs, from another process.
#[derive(Debug)]
pub struct Follower {
    directory: PathBuf,
    pending: PathBuf,
    /// The runs that last, by the path of their files.
    runs: BTreeMap<PathBuf, Run>,
}

#[derive(Debug)]
struct Run {
    /// Stays open, because a later run removes the file.
    file: BufReader<File>,
    /// The line that is not read to its end.
    line: Vec<u8>,
    /// The last event of each wait that has not ended.
    open: BTreeMap<u64, ProgressEvent>,
}

/// The result of a look.
#[derive(Debug, Default)]
pub struct Look {
    /// The new events, in the order of each run.
    pub events: Vec<RunEvent>,
    /// The number of running runs.
    pub alive: usize,
}

/// An event with its run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// The run, by the name of its file. The number of a wait is unique only within a run.
    pub run: String,
    /// The event.
    pub event: ProgressEvent,
}

impl Follower {
    /// Follows the runs with this journal.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        let pending = journal.directory().to_owned();
        Self { directory: directory(journal), pending, runs: BTreeMap::new() }
    }

    /// The directory of the progress files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the events written since the last look. Runs that were over before the first look are passed over.
    ///
    /// # Errors
    /// A directory that cannot be read; a missing one counts as empty.
    pub fn look(&mut self) -> io::Result<Look> {
        for path in files(&self.directory)?.into_iter().filter(|path| is_alive(&self.pending, path)) {
            if let Entry::Vacant(place) = self.runs.entry(path)
                && let Ok(file) = File::open(place.key())
            {
                place.insert(Run { file: BufReader::new(file), line: Vec::new(), open: BTreeMap::new() });
            }
        }
        let mut look = Look::default();
        self.runs.retain(|path, run| {
            // Checked before the read, so that the last events of a run are not missed.
            let is_alive = is_alive(&self.pending, path);
            let mut events = run.read();
            if is_alive {
                look.alive += 1;
            } else {
                events.extend(run.broken_off());
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            look.events.extend(events.into_iter().map(|event| RunEvent { run: name.clone().into_owned(), event }));
            is_alive
        });
        Ok(look)
    }
}

impl Run {
    /// The events of the complete unread lines; lines of another format are skipped, and an error ends the read.
    fn read(&mut self) -> Vec<ProgressEvent> {
        let mut events = Vec::new();
        while self.file.read_until(b'\n', &mut self.line).is_ok() && self.line.ends_with(b"\n") {
            events.extend(ProgressEvent::parse(&self.line));
            self.line.clear();
        }
        for event in &events {
            if event.ended.is_some() {
                self.open.remove(&event.task);
            } else {
                self.open.insert(event.task, event.clone());
            }
        }
        events
    }

    /// The waits that the run did not end, after its end.
    fn broken_off(&mut self) -> impl Iterator<Item = ProgressEvent> + use<> {
        let open = std::mem::take(&mut self.open);
        open.into_values().map(|event| ProgressEvent { ended: Some(WaitEnding::BrokenOff), ..event })
    }
}

/// The files of runs; none if the directory does not exist.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect())
}

/// Whether the run that writes a file lasts: the names of its file here and in the pending directory are equal.
fn is_alive(pending: &Path, run: &Path) -> bool {
    let name = run.file_stem().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("run-"));
    name.is_some_and(|name| pending::run_lasts(pending, name))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use tempfile::TempDir;

    use super::*;
    use crate::api::{Progress, Stage};

    fn journal() -> (TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path().join("pending"));
        (folder, journal)
    }

    /// The progress of a new run.
    fn run(journal: &Journal) -> Progress {
        beside(&Journal::new(journal.directory()))
    }

    fn files(journal: &Journal) -> Vec<PathBuf> {
        super::files(&directory(journal)).unwrap()
    }

    fn lines(look: &Look) -> Vec<String> {
        let line = |RunEvent { run: _, event }: &RunEvent| {
            let percent = event.percent.map(|percent| format!(" {percent}")).unwrap_or_default();
            let ended = event.ended.map(|ended| format!(" {ended:?}")).unwrap_or_default();
            format!("{} {}{percent}{ended}", event.id, event.phase)
        };
        look.events.iter().map(line).collect()
    }

    fn percent(phase: &str, percent: u8) -> Stage {
        Stage { percent: Some(percent), ..Stage::new(phase) }
    }

    #[test]
    fn what_changes_is_told_once_and_the_end_always() {
        let (_folder, journal) = journal();
        let progress = run(&journal);
        let mut follower = Follower::beside(&journal);
        assert_eq!((follower.look().unwrap().alive, files(&journal).len()), (0, 0));
        let mut image = progress.task("private image", 951);
        let mut idle = progress.task("instance", "ins-1");
        image.sees(percent("creating", 10), Some("base"));
        image.sees(percent("creating", 10), None);
        let look = follower.look().unwrap();
        assert_eq!((look.alive, lines(&look)), (1, vec!["951 creating 10".to_owned()]));
        assert_eq!(look.events[0].event.name.as_deref(), Some("base"));
        image.sees(percent("creating", 250), None);
        image.done(Some(Stage::new("ready")));
        idle.sees(Stage::new("Creating"), None);
        drop(idle);
        drop(progress.task("instance", "never seen"));
        let look = follower.look().unwrap();
        assert_eq!(lines(&look), ["951 creating 100", "951 ready Done", "ins-1 Creating", "ins-1 Creating Stopped"]);
        drop(progress);
        let look = follower.look().unwrap();
        assert_eq!((look.alive, lines(&look)), (0, Vec::new()));
    }

    /// A killed process ends no wait.
    #[test]
    fn what_a_run_did_not_end_is_broken_off() {
        let (_folder, journal) = journal();
        let killed = Journal::new(journal.directory());
        let progress = beside(&killed);
        let mut follower = Follower::beside(&journal);
        let mut task = progress.task("instance", "ins-1");
        task.sees(Stage::new("Creating"), None);
        let mut other = progress.task("instance", "ins-2");
        other.sees(Stage::new("Creating"), None);
        other.done(None);
        assert_eq!(lines(&follower.look().unwrap()), ["ins-1 Creating", "ins-2 Creating", "ins-2 Creating Done"]);
        killed.end();
        assert_eq!(lines(&follower.look().unwrap()), ["ins-1 Creating BrokenOff"]);
        assert!(follower.look().unwrap().events.is_empty());
    }

    /// The next run removes the file of this one before its last events are read.
    #[test]
    fn the_last_events_of_a_run_are_read_although_its_file_is_gone() {
        let (_folder, journal) = journal();
        let (first, second) = (Journal::new(journal.directory()), run(&journal));
        let progress = beside(&first);
        let mut follower = Follower::beside(&journal);
        let mut task = progress.task("instance", "ins-1");
        task.sees(Stage::new("Creating"), None);
        assert_eq!(lines(&follower.look().unwrap()), ["ins-1 Creating"]);
        task.done(None);
        first.end();
        let mut next = second.task("instance", "ins-2");
        next.sees(Stage::new("Creating"), None);
        assert_eq!(files(&journal).len(), 1);
        let mut lines = lines(&follower.look().unwrap());
        lines.sort();
        assert_eq!(lines, ["ins-1 Creating Done", "ins-2 Creating"]);
        // What was over before the first look is not shown.
        drop((next, second));
        let look = Follower::beside(&journal).look().unwrap();
        assert_eq!((look.alive, look.events.len()), (0, 0));
    }

    #[test]
    fn a_line_that_is_not_whole_waits_and_one_of_another_format_is_passed_over() {
        let (_folder, journal) = journal();
        let progress = run(&journal);
        let mut task = progress.task("instance", "ins-1");
        task.sees(Stage::new("Creating"), None);
        let file = files(&journal).remove(0);
        let text = fs::read_to_string(&file).unwrap();
        let newer = text.replace("\"version\":1", "\"version\":2");
        let (begin, end) = text.split_at(10);
        fs::write(&file, format!("{newer}no json\n{begin}")).unwrap();
        let mut follower = Follower::beside(&journal);
        assert_eq!(lines(&follower.look().unwrap()), Vec::<String>::new());
        fs::write(&file, format!("{newer}no json\n{begin}{end}")).unwrap();
        assert_eq!(lines(&follower.look().unwrap()), ["ins-1 Creating"]);
    }

    #[test]
    fn files_are_bounded_in_size() {
        let (_folder, journal) = journal();
        let progress = run(&journal);
        let mut task = progress.task("instance", "ins-1");
        for number in 0..4000 {
            task.sees(Stage { detail: Some("x".repeat(1000)), ..Stage::new(number.to_string()) }, None);
        }
        let size = files(&journal)[0].metadata().unwrap().len();
        assert!((500_000..=512 * 1024).contains(&size), "{size}");
    }

    #[test]
    fn nothing_fails_where_nothing_can_be_written() {
        let (folder, journal) = journal();
        fs::write(folder.path().join("pending-progress"), "a file where a folder should be").unwrap();
        let progress = run(&journal);
        progress.task("instance", "ins-1").sees(Stage::new("Creating"), None);
        Progress::default().task("instance", "ins-1").sees(Stage::new("Creating"), None);
    }

    #[cfg(unix)]
    #[test]
    fn only_their_owner_may_read_them() {
        use std::os::unix::fs::PermissionsExt as _;

        let (_folder, journal) = journal();
        let progress = run(&journal);
        progress.task("instance", "ins-1").sees(Stage::new("Creating"), None);
        assert_eq!(fs::metadata(directory(&journal)).unwrap().permissions().mode() & 0o777, 0o700);
        for file in files(&journal) {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
