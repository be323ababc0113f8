//! The journal: the directory of pending records.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    CreatePhase, Entry, PendingRecord, Place, Scope, VERSION,
    files::{FINISHED, Files, Unreadable, failed, read_all, record_name, remove},
    run::{Maker, RecordHolder, Run},
};
use crate::api::{AccountFingerprints, Error, ObjectKind};

/// The greatest age of a directory reading while another run works in the directory.
const READING_LASTS: Duration = Duration::from_millis(100);

/// The journal of creates in one directory, as one run sees it. The directory is not read or created before the first
/// use.
///
/// The directory is read on first use, and again only while a run of another Terraform process works on a record: the
/// records in it were left by earlier runs or belong to parallel ones. So a create costs a few file operations,
/// regardless of the number of records. The functions block.
#[derive(Debug, Clone)]
pub struct Journal {
    scope: Arc<Scope>,
    run: Arc<Run>,
    reading: Arc<Mutex<Option<Reading>>>,
}

/// The content of the directory.
#[derive(Debug)]
struct Reading {
    at: Instant,
    files: Files,
    /// The places of accepted records, by kind and id.
    of_objects: HashMap<(ObjectKind, String), Vec<usize>>,
    /// Whether no run of another Terraform process is writing. Otherwise the directory is read again.
    is_final: bool,
}

/// The whole content of the journal.
#[derive(Debug, Clone, Default)]
pub struct JournalReport {
    /// The readable records, oldest first.
    pub entries: Vec<PendingCreate>,
    /// The unreadable files.
    pub unreadable: Vec<Unreadable>,
}

/// A record of the journal.
#[derive(Debug, Clone)]
pub struct PendingCreate {
    /// Its file.
    pub path: PathBuf,
    /// The record.
    pub record: PendingRecord,
    /// Whether a run works on it.
    pub owner_lives: bool,
}

impl PendingCreate {
    /// Its name: the file without the ending.
    #[must_use]
    pub fn name(&self) -> &str {
        record_name(&self.path)
    }
}

/// The content of a new record.
#[derive(Debug)]
pub(in crate::creation) struct Begin {
    pub(in crate::creation) kind: ObjectKind,
    pub(in crate::creation) wanted_name: Option<String>,
    pub(in crate::creation) request: String,
    pub(in crate::creation) marker: String,
    pub(in crate::creation) base_url: String,
    pub(in crate::creation) account: AccountFingerprints,
    pub(in crate::creation) candidate: Option<String>,
}

impl Journal {
    /// The journal in a directory, for a run of this process.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self::made_by(directory, Maker::current())
    }

    /// The journal as a run of another process has it.
    pub(in crate::creation) fn made_by(directory: impl Into<PathBuf>, maker: Maker) -> Self {
        Self { scope: Arc::default(), run: Arc::new(Run::new(directory.into(), maker)), reading: Arc::default() }
    }

    /// The same journal for creates of this configuration.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        Self { scope: Arc::new(scope), ..self }
    }

    /// Ends the run, as the end of its process does.
    #[cfg(test)]
    pub(in crate::creation) fn end(&self) {
        self.run.end();
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.run.directory()
    }

    /// The configuration of its creates.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// When the run began.
    pub(in crate::creation) fn begun(&self) -> tokio::time::Instant {
        self.run.begun
    }

    /// The name of the run, for other files of it. Its own file is there when this returns.
    pub(in crate::creation) fn run_name(&self) -> Result<&str, Error> {
        self.run.begin()?;
        Ok(self.run.name())
    }

    /// Whether the Terraform process of this run has ended: this process then has another parent.
    #[must_use]
    pub fn core_has_ended(&self) -> bool {
        Maker::current().core != self.run.maker.core
    }

    /// Records a create before its request; returns when the record is on the disk.
    ///
    /// # Errors
    /// A directory that cannot be created, written or locked: then nothing may be sent.
    pub(in crate::creation) fn begin(&self, begin: Begin) -> Result<Entry, Error> {
        self.run.begin()?;
        let Begin { kind, wanted_name, request, marker, base_url, account, candidate } = begin;
        let now = Timestamp::now().as_second();
        let record = PendingRecord {
            version: VERSION,
            kind,
            phase: CreatePhase::Sent,
            scope: (*self.scope).clone(),
            wanted_name,
            request,
            marker,
            base_url,
            account,
            begun_at: now,
            updated_at: now,
            maker: self.run.maker.clone(),
            request_id: None,
            acknowledged: false,
            candidate,
            refused: false,
            ids: None,
        };
        let mut entry = Entry::new(self, self.run.record_name(kind), record);
        entry.store()?;
        Ok(entry)
    }

    /// The records of a family that were left: their runs are gone, and they are not finished ones of another request,
    /// another state or this Terraform process. Also the process of another run in the same directory that works on the
    /// same request.
    ///
    /// # Errors
    /// A directory that cannot be read, and unreadable files in it: they may be records of this create.
    pub(in crate::creation) fn left(
        &self,
        kind: ObjectKind,
        name: Option<&str>,
        request: &str,
    ) -> Result<(Vec<PendingCreate>, Option<Option<Maker>>), Error> {
        let reading = self.read()?;
        let Some(Reading { files, .. }) = reading.as_ref() else { return Ok((Vec::new(), None)) };
        if let Some(unreadable) = files.unreadable.first() {
            return Err(failed(&unreadable.path, "read", io::Error::other(unreadable.reason.clone())));
        }
        let (mut left, mut held) = (Vec::new(), None);
        for (path, record) in &files.records {
            let is_family =
                record.kind == kind && record.wanted_name.as_deref() == name && record.scope.is_family(&self.scope);
            if !is_family || !path.exists() {
                continue;
            }
            let place = record.scope.place(&self.scope);
            match self.run.holder(path) {
                RecordHolder::Gone => {
                    let is_of_others = record.request != request
                        || place == Place::OtherState
                        || record.maker.has_core_of(&self.run.maker);
                    if !(record.phase == CreatePhase::Finished && is_of_others) {
                        left.push(PendingCreate { path: path.clone(), record: record.clone(), owner_lives: false });
                    }
                }
                RecordHolder::Other(maker) if record.request == request && place == Place::Here => {
                    held = Some(maker);
                }
                RecordHolder::Other(_) | RecordHolder::Sibling => {}
            }
        }
        Ok((left, held))
    }

    /// Takes a record whose run is gone. If several processes try, one gets it.
    pub(in crate::creation) fn take(&self, left: &PendingCreate) -> Result<Option<Entry>, Error> {
        self.run.begin()?;
        let mut record = left.record.clone();
        record.scope.clone_from(&self.scope);
        record.maker.clone_from(&self.run.maker);
        let entry = Entry::new(self, self.run.record_name(record.kind), record);
        Ok(entry.rename_from(&left.path)?.then_some(entry))
    }

    /// All records, and the unreadable files.
    ///
    /// # Errors
    /// A directory that cannot be read; a missing one counts as empty.
    pub fn list(&self) -> Result<JournalReport, Error> {
        let Files { records, unreadable } = read_all(self.directory())?;
        let mut entries: Vec<PendingCreate> = records
            .into_iter()
            .map(|(path, record)| {
                let owner_lives = !matches!(self.run.holder(&path), RecordHolder::Gone);
                PendingCreate { path, record, owner_lives }
            })
            .collect();
        entries.sort_by_key(|listed| listed.record.begun_at);
        Ok(JournalReport { entries, unreadable })
    }

    /// The creates that earlier runs did not finish. Empty if a run of the same Terraform process has reported them.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn left_behind(&self) -> Result<Vec<PendingCreate>, Error> {
        let mut left = self.list()?.entries;
        left.retain(|listed| {
            listed.record.phase != CreatePhase::Finished && !listed.record.refused && !listed.owner_lives
        });
        if left.is_empty() || self.run.was_reported() {
            return Ok(Vec::new());
        }
        self.run.has_reported();
        Ok(left)
    }

    /// The creates at this address that a create of this request, for one of these candidates if there are several,
    /// would resume, if they are of its account.
    ///
    /// # Errors
    /// A directory or files that cannot be read.
    pub fn resumable(
        &self,
        kind: ObjectKind,
        name: Option<&str>,
        request: &str,
        candidates: &[String],
        base_url: &str,
    ) -> Result<Vec<PendingRecord>, Error> {
        let (left, _) = self.left(kind, name, request)?;
        Ok(left
            .into_iter()
            .map(|left| left.record)
            .filter(|record| {
                !record.refused && record.base_url == base_url && record.is_resumed_by(request, candidates)
            })
            .collect())
    }

    /// Removes the record of an object that is in a state of this service, unless a run works on its create. Considers
    /// only files that existed when the directory was read.
    ///
    /// # Errors
    /// A directory that cannot be read, or a file that cannot be removed.
    pub fn seen(&self, kind: ObjectKind, id: &str, uid: Option<&str>, base_url: &str) -> Result<bool, Error> {
        let found: Vec<PathBuf> = match self.read()?.as_ref() {
            Some(reading) => reading.of_object(kind, id, uid, base_url).cloned().collect(),
            None => Vec::new(),
        };
        let mut cleared = false;
        for path in &found {
            let is_over = path.to_str().is_some_and(|path| path.ends_with(FINISHED));
            if is_over || matches!(self.run.holder(path), RecordHolder::Gone) {
                cleared |= remove(path)?;
            }
        }
        Ok(cleared)
    }

    /// Removes a record that nothing needs any more.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, listed: &PendingCreate) -> Result<(), Error> {
        remove(&listed.path).map(drop)
    }

    /// The current reading of the directory.
    fn read(&self) -> Result<MutexGuard<'_, Option<Reading>>, Error> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let serves = reading.as_ref().is_some_and(|reading| reading.is_final || reading.at.elapsed() < READING_LASTS);
        if !serves {
            let files = read_all(self.directory())?;
            let is_final =
                files.records.iter().all(|(path, _)| !matches!(self.run.holder(path), RecordHolder::Other(_)));
            let mut of_objects: HashMap<_, Vec<usize>> = HashMap::new();
            for (place, (_, record)) in files.records.iter().enumerate() {
                if let Some(ids) = &record.ids {
                    of_objects.entry((record.kind, ids.id.clone())).or_default().push(place);
                }
            }
            *reading = Some(Reading { at: Instant::now(), files, of_objects, is_final });
        }
        Ok(reading)
    }
}

impl Reading {
    /// The files of the records of an object.
    fn of_object(
        &self,
        kind: ObjectKind,
        id: &str,
        uid: Option<&str>,
        base_url: &str,
    ) -> impl Iterator<Item = &PathBuf> {
        let places = self.of_objects.get(&(kind, id.to_owned())).into_iter().flatten();
        let records = places.filter_map(|place| self.files.records.get(*place));
        let of_object = records.filter(move |(_, record)| {
            record.base_url == base_url && record.ids.as_ref().is_some_and(|ids| ids.is(id, uid))
        });
        of_object.map(|(path, _)| path)
    }
}

impl PendingRecord {
    /// Whether a create of this request, for one of these candidates if there are several, resumes it.
    pub(in crate::creation) fn is_resumed_by(&self, request: &str, candidates: &[String]) -> bool {
        self.phase != CreatePhase::Finished
            && self.request == request
            && self.candidate.as_ref().is_none_or(|candidate| candidates.contains(candidate))
    }
}
