//! A run: one configured client. Its file in the pending directory is locked while it lasts: others see that
//! it works on the records with its name.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use terraform_plugin::process::{FileLock, Parent, is_locked, private_directory};
use tokio::time::Instant;

use super::files::{RUN, failed, paths, run_of, sync_directory};
use crate::api::{Error, ObjectKind, Random};

/// The process of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// The process id.
    pub process: u32,
    /// The Terraform process that started it: its id, and its start time if the system provides one.
    #[serde(default)]
    pub core: Option<String>,
}

impl Maker {
    /// This process.
    pub(in crate::creation) fn current() -> Self {
        Self { process: std::process::id(), core: Parent::current().name() }
    }

    /// Whether both belong to one run of Terraform: aliases of the provider are separate processes with one parent.
    fn is_sibling(&self, other: &Self) -> bool {
        self.process == other.process || self.has_core_of(other)
    }

    /// Whether one Terraform process started both.
    pub(in crate::creation) fn has_core_of(&self, other: &Self) -> bool {
        self.core.is_some() && self.core == other.core
    }
}

/// The content of a run's file.
#[derive(Debug, Serialize, Deserialize)]
struct RunFile {
    #[serde(flatten)]
    maker: Maker,
    /// Whether it has reported the creates that earlier runs left.
    #[serde(default)]
    has_reported: bool,
}

/// Who works on a record.
#[derive(Debug)]
pub(super) enum RecordHolder {
    /// Nobody: its run is gone.
    Gone,
    /// A run of another Terraform process; `None` if its file cannot be read.
    Other(Option<Maker>),
    /// This run, or another one of the same Terraform process.
    Sibling,
}

/// A run. Its file is made before its first record.
#[derive(Debug)]
pub(super) struct Run {
    directory: PathBuf,
    name: String,
    pub(super) maker: Maker,
    pub(super) begun: Instant,
    file: Mutex<OpenRun>,
    records: AtomicU64,
}

#[derive(Debug, Default)]
struct OpenRun {
    lock: Option<FileLock>,
    has_reported: bool,
}

impl Run {
    pub(super) fn new(directory: PathBuf, maker: Maker) -> Self {
        let name = format!("{:013}-{:08x}", Timestamp::now().as_millisecond(), Random::default().next() >> 32);
        let begun = Instant::now();
        Self { directory, name, maker, begun, file: Mutex::default(), records: AtomicU64::new(1) }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its name, which begins with its time.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes its file, unless that has happened.
    pub(super) fn begin(&self) -> Result<(), Error> {
        let mut open = self.open();
        if open.lock.is_none() {
            make_directory(&self.directory)?;
            self.clear_gone();
            open.lock = Some(self.write(false)?);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn end(&self) {
        self.open().lock = None;
    }

    /// Records that it has reported the creates of earlier runs: its file then stays for later processes of the same
    /// Terraform process. If this fails, they report the same again, which is harmless.
    pub(super) fn has_reported(&self) {
        let mut open = self.open();
        let (made, written) = (make_directory(&self.directory), self.write(true));
        match made.and(written) {
            Ok(lock) => *open = OpenRun { lock: Some(lock), has_reported: true },
            Err(error) => tracing::debug!(%error, "the report of earlier creates could not be recorded"),
        }
    }

    /// Whether a run of the same Terraform process has reported the creates of earlier runs.
    pub(super) fn was_reported(&self) -> bool {
        let runs = paths(&self.directory, |name| name.starts_with(RUN)).unwrap_or_default();
        runs.iter().filter_map(|path| read(path)).any(|run| run.has_reported && run.maker.has_core_of(&self.maker))
    }

    /// A new name for a record of this run.
    pub(super) fn record_name(&self, kind: ObjectKind) -> String {
        format!("{}-{}-{}", kind.as_str(), self.name, self.records.fetch_add(1, Ordering::Relaxed))
    }

    /// Who works on the record in this file.
    pub(super) fn holder(&self, record: &Path) -> RecordHolder {
        let Some(run) = run_of(record) else { return RecordHolder::Gone };
        let file = self.directory.join(file_name(run));
        // A lock of this process's own is never asked for again.
        if run == self.name {
            return RecordHolder::Sibling;
        }
        if !is_locked(&file) {
            return RecordHolder::Gone;
        }
        match read(&file).map(|run| run.maker) {
            Some(maker) if maker.is_sibling(&self.maker) => RecordHolder::Sibling,
            maker => RecordHolder::Other(maker),
        }
    }

    /// Writes and locks its file under another name, so that it is never seen without its lock or content.
    fn write(&self, has_reported: bool) -> Result<FileLock, Error> {
        let path = self.path();
        self.write_at(&path, has_reported).map_err(|error| failed(&path, "write", error))
    }

    fn write_at(&self, path: &Path, has_reported: bool) -> io::Result<FileLock> {
        let temporary = self.directory.join(format!(".{}", self.name));
        let mut lock = FileLock::make(&temporary)?;
        lock.write(&serde_json::to_vec(&RunFile { maker: self.maker.clone(), has_reported })?)?;
        fs::rename(&temporary, path)?;
        Ok(lock)
    }

    /// Removes the files of runs that are gone. Only the holder of its lock removes one.
    fn clear_gone(&self) {
        for path in paths(&self.directory, |name| name.starts_with(RUN)).unwrap_or_default() {
            let is_needed = read(&path).is_some_and(|run| run.has_reported && run.maker.has_core_of(&self.maker));
            if !is_needed && let Ok(Some(_held)) = FileLock::take(&path) {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(file_name(&self.name))
    }

    fn open(&self) -> MutexGuard<'_, OpenRun> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let open = self.open();
        if open.lock.is_some() && !open.has_reported {
            let _ = fs::remove_file(self.path());
        }
    }
}

/// Whether a run with this name lasts.
pub(in crate::creation) fn lasts(directory: &Path, run: &str) -> bool {
    is_locked(&directory.join(file_name(run)))
}

fn file_name(run: &str) -> String {
    format!("{RUN}{run}.json")
}

fn read(path: &Path) -> Option<RunFile> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Creates the directory, with access for its owner only, and syncs it to the disk.
fn make_directory(directory: &Path) -> Result<(), Error> {
    if directory.is_dir() {
        return Ok(());
    }
    private_directory(directory).map_err(|error| failed(directory, "make", error))?;
    match directory.parent().filter(|parent| *parent != Path::new("")) {
        Some(parent) => sync_directory(parent).map_err(|error| failed(parent, "sync", error)),
        None => Ok(()),
    }
}
