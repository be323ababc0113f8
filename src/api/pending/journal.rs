//! The journal: the directory of pending records.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    CreatePhase, ObjectKind, PendingRecord, VERSION,
    entry::{
        Entry, Files, Owner, TriedLock, failed, file_name, handed_over_name, holder_of, is_handed_over, lock,
        lock_name, read, read_all, remove, remove_if_there, sign, sync_directory,
    },
};
use crate::{
    api::{error::Error, settings::Random},
    process::{FileLock, private_directory},
};

/// How many random names are tried for a new file. One suffices, unless the random source is constant.
const NAMES_TRIED: usize = 16;

/// The greatest age of a directory reading while waiting for another process.
const READING_LASTS: Duration = Duration::from_millis(100);

/// The result of a claim.
#[derive(Debug)]
pub(in crate::api) enum Claim {
    /// A record whose owner has exited; this process owns it now.
    Entry(Box<Entry>),
    /// Such a record of another account, locked while the caller checks whether this token shows its object.
    Foreign(Box<Examined>),
    /// Another process has locked one; its owner, if known.
    Held(Option<Owner>),
    /// No record to adopt.
    None,
}

/// The records that a create claims.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Wanted<'a> {
    pub(in crate::api) kind: ObjectKind,
    pub(in crate::api) key: &'a str,
    pub(in crate::api) base_url: &'a str,
    pub(in crate::api) account: &'a str,
    /// The names of the create's candidates, if it has several choices.
    pub(in crate::api) candidates: &'a [String],
}

impl Wanted<'_> {
    fn is(&self, record: &PendingRecord) -> bool {
        record.kind == self.kind
            && record.key == self.key
            && record.base_url == self.base_url
            && matches!(record.phase, CreatePhase::Sent | CreatePhase::Accepted)
            && record.candidate.as_ref().is_none_or(|candidate| self.candidates.contains(candidate))
    }
}

/// The journal of creates in one directory. The directory is not read or created before the first use.
///
/// The directory is read on first use, and again only while another run has locked a record: the records in it were
/// left by earlier runs or belong to parallel ones. So a create costs a few file operations, regardless of the number
/// of records. The functions block.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
    owner: Owner,
    reading: Arc<Mutex<Option<Reading>>>,
}

/// The content of the directory.
#[derive(Debug)]
pub(super) struct Reading {
    at: Instant,
    files: Files,
    /// Whether no other run is writing. Otherwise the directory is read again.
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

/// A record of the journal, read without its lock.
#[derive(Debug, Clone)]
pub struct PendingCreate {
    /// Its file.
    pub path: PathBuf,
    /// The record.
    pub record: PendingRecord,
    /// Whether a running process owns it.
    pub owner_lives: bool,
}

/// A file of the journal that could not be read. It is kept.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The reason, as a fragment.
    pub reason: String,
}

/// The content of a new record.
#[derive(Debug)]
pub(in crate::api) struct Begin<'a> {
    pub(in crate::api) wanted: Wanted<'a>,
    pub(in crate::api) marker: &'a str,
    pub(in crate::api) wanted_name: Option<&'a str>,
    pub(in crate::api) candidate: Option<String>,
}

/// A record of another account, locked while its object is looked up. Dropping it leaves the record unchanged.
#[derive(Debug)]
pub(in crate::api) struct Examined {
    journal: Journal,
    path: PathBuf,
    record: PendingRecord,
    lock: FileLock,
}

impl Examined {
    pub(in crate::api) fn record(&self) -> &PendingRecord {
        &self.record
    }

    pub(in crate::api) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes ownership of the record after its object was seen. `None` if the record is gone.
    pub(in crate::api) fn take_over(self, random: &Random) -> Result<Option<Entry>, Error> {
        self.journal.take_over(&self.path, self.record, self.lock, random)
    }
}

impl Journal {
    /// The journal in a directory, which is created on first use.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self::owned_by(directory, Owner::current())
    }

    /// The journal as another process sees it.
    pub(super) fn owned_by(directory: impl Into<PathBuf>, owner: Owner) -> Self {
        Self { directory: directory.into(), owner, reading: Arc::default() }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The Terraform process of this journal's creates, if the system shows it.
    #[must_use]
    pub fn core(&self) -> Option<&str> {
        self.owner.core.as_deref()
    }

    /// Whether that process has ended: this process then has another parent.
    #[must_use]
    pub fn core_has_ended(&self) -> bool {
        Owner::current().core != self.owner.core
    }

    /// Records a create before its request; returns when the record is on the disk.
    ///
    /// # Errors
    /// A directory that cannot be created, written or locked: then nothing may be sent.
    pub(in crate::api) fn begin(&self, begin: &Begin<'_>, random: &Random) -> Result<Entry, Error> {
        self.make_directory()?;
        let (name, lock) = self.fresh_lock(begin.wanted.kind, random)?;
        let now = Timestamp::now().as_second();
        let record = PendingRecord {
            version: VERSION,
            kind: begin.wanted.kind,
            phase: CreatePhase::Sent,
            key: begin.wanted.key.to_owned(),
            marker: begin.marker.to_owned(),
            wanted_name: begin.wanted_name.map(str::to_owned),
            base_url: begin.wanted.base_url.to_owned(),
            account: begin.wanted.account.to_owned(),
            begun_at: now,
            updated_at: now,
            process: self.owner.process,
            core: self.owner.core.clone(),
            request_id: None,
            acknowledged: false,
            candidate: begin.candidate.clone(),
            refused: false,
            ids: None,
        };
        Entry::write_new(&self.directory, name, record, lock)
    }

    /// Claims a create that was sent or accepted under the same key and whose owner has exited: those of this account
    /// first, accepted ones before others, then the oldest. If several processes claim one record, one gets it.
    /// `passed_over` are examined records of other accounts.
    ///
    /// A record of a parallel create in the same run is ignored: it is another create.
    ///
    /// # Errors
    /// A directory that cannot be read or locked, and unreadable files in it: they may be records of this create.
    pub(in crate::api) fn claim(
        &self,
        wanted: &Wanted<'_>,
        passed_over: &[PathBuf],
        random: &Random,
    ) -> Result<Claim, Error> {
        let mut held = None;
        for (path, record) in self.left(wanted)? {
            if passed_over.contains(&path) {
                continue;
            }
            match self.claim_file(&path, &record, wanted, random)? {
                Claim::Held(holder) => held = Some(holder),
                Claim::None => {}
                claimed => return Ok(claimed),
            }
        }
        Ok(held.map_or(Claim::None, Claim::Held))
    }

    /// The records that a create would adopt, without their locks: another process may claim them first.
    fn left(&self, wanted: &Wanted<'_>) -> Result<Vec<(PathBuf, PendingRecord)>, Error> {
        let reading = self.read()?;
        let Some(reading) = reading.as_ref() else { return Ok(Vec::new()) };
        if let Some(unreadable) = reading.files.unreadable.first() {
            let reason = io::Error::other(unreadable.reason.clone());
            return Err(failed(&unreadable.path, "read", reason));
        }
        let mut left: Vec<_> = reading.files.notes.iter().filter(|(_, record)| wanted.is(record)).cloned().collect();
        left.sort_by_key(|(_, record)| {
            (record.account != wanted.account, record.phase == CreatePhase::Sent, record.begun_at)
        });
        Ok(left)
    }

    /// The records of creates under this key, for one of these candidates if there are several, that earlier runs left
    /// and that may have created something.
    ///
    /// # Errors
    /// A directory or files that cannot be read.
    pub fn left_for(
        &self,
        kind: ObjectKind,
        key: &str,
        base_url: &str,
        candidates: &[String],
    ) -> Result<Vec<PendingRecord>, Error> {
        let left = self.left(&Wanted { kind, key, base_url, account: "", candidates })?;
        Ok(left.into_iter().map(|(_, record)| record).filter(|record| !record.refused).collect())
    }

    fn claim_file(
        &self,
        path: &Path,
        seen: &PendingRecord,
        wanted: &Wanted<'_>,
        random: &Random,
    ) -> Result<Claim, Error> {
        let is_own = seen.account == wanted.account;
        let lock_path = path.with_extension("lock");
        let file = match lock(&lock_path, &Owner { examines: !is_own, ..self.owner.clone() })? {
            TriedLock::Locked(file) => file,
            TriedLock::Held(Some(holder)) if holder.is_sibling(&self.owner) && !holder.examines => {
                return Ok(Claim::None);
            }
            TriedLock::Held(holder) => return Ok(Claim::Held(holder)),
        };
        // Read again under the lock: the file may have changed or disappeared.
        let record = match read(path) {
            Ok(record) if wanted.is(&record) => record,
            _ => {
                if !path.exists() {
                    remove(&lock_path)?;
                }
                return Ok(Claim::None);
            }
        };
        if is_own {
            let entry = self.take_over(path, record, file, random)?;
            return Ok(entry.map_or(Claim::None, |entry| Claim::Entry(Box::new(entry))));
        }
        let examined = Examined { journal: self.clone(), path: path.to_owned(), record, lock: file };
        Ok(Claim::Foreign(Box::new(examined)))
    }

    /// Renames a locked record to a new name. If several processes try, one succeeds.
    fn take_over(
        &self,
        path: &Path,
        record: PendingRecord,
        held: FileLock,
        random: &Random,
    ) -> Result<Option<Entry>, Error> {
        let (name, lock) = self.fresh_lock(record.kind, random)?;
        let own = self.directory.join(file_name(&name));
        match fs::rename(path, &own) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(&self.directory.join(lock_name(&name)))?;
                return Ok(None);
            }
            Err(error) => return Err(failed(path, "rename", error)),
        }
        sync_directory(&self.directory).map_err(|error| failed(&self.directory, "sync", error))?;
        remove(&path.with_extension("lock"))?;
        drop(held);
        Ok(Some(Entry::adopted(&self.directory, name, record, lock)))
    }

    /// All records, and the unreadable files.
    ///
    /// # Errors
    /// A directory that cannot be read; a missing one counts as empty.
    pub fn list(&self) -> Result<JournalReport, Error> {
        let Files { notes, unreadable } = read_all(&self.directory)?;
        let mut entries: Vec<PendingCreate> = notes
            .into_iter()
            .map(|(path, record)| {
                let owner_lives = holder_of(&path.with_extension("lock")).is_some();
                PendingCreate { path, record, owner_lives }
            })
            .collect();
        entries.sort_by_key(|listed| listed.record.begun_at);
        Ok(JournalReport { entries, unreadable })
    }

    /// Removes the record of an object that is in a state of this service: handed over, or accepted by a run that ended
    /// without knowing whether Terraform received its answer. Considers only files that existed when the directory was
    /// read.
    ///
    /// # Errors
    /// A directory that cannot be read, or a file that cannot be removed.
    pub fn seen(&self, kind: ObjectKind, id: &str, base_url: &str) -> Result<bool, Error> {
        let is_it = |record: &PendingRecord| {
            matches!(record.phase, CreatePhase::Accepted | CreatePhase::HandedOver)
                && record.kind == kind
                && record.base_url == base_url
                && record.ids.as_ref().is_some_and(|ids| ids.id == id)
        };
        let mut found = Vec::new();
        if let Some(reading) = self.read()?.as_mut() {
            reading.files.notes.retain(|(path, record)| {
                let is_it = is_it(record);
                if is_it {
                    found.push(path.clone());
                }
                !is_it
            });
        }
        let mut cleared = false;
        for path in &found {
            cleared |= self.remove_left(path, is_it)?;
        }
        Ok(cleared)
    }

    /// The ids of objects that earlier runs of Terraform created under this key and returned, and that no state has
    /// shown since.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn never_shown(&self, kind: ObjectKind, key: &str) -> Result<Vec<String>, Error> {
        let reading = self.read()?;
        let notes = reading.iter().flat_map(|reading| &reading.files.notes).map(|(_, record)| record);
        let of_another_run = |record: &&PendingRecord| {
            record.phase == CreatePhase::HandedOver
                && record.kind == kind
                && record.key == key
                && record.process != self.owner.process
                && (record.core.is_none() || record.core != self.owner.core)
        };
        Ok(notes.filter(of_another_run).filter_map(|record| Some(record.ids.as_ref()?.id.clone())).collect())
    }

    /// Removes the record of an object that was released.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn released(&self, kind: ObjectKind, id: &str, base_url: &str) -> Result<(), Error> {
        remove(&self.directory.join(handed_over_name(kind, id, base_url)))?;
        self.seen(kind, id, base_url).map(drop)
    }

    /// Removes a record that the operator has dealt with.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, listed: &PendingCreate) -> Result<(), Error> {
        remove(&listed.path)?;
        remove(&listed.path.with_extension("lock"))
    }

    /// Removes a record whose owner has exited, if it matches `says`; `true` if it was removed.
    fn remove_left(&self, path: &Path, says: impl Fn(&PendingRecord) -> bool) -> Result<bool, Error> {
        if is_handed_over(path) {
            return remove_if_there(path);
        }
        if !path.exists() {
            return Ok(false);
        }
        let lock_path = path.with_extension("lock");
        let TriedLock::Locked(_held) = lock(&lock_path, &self.owner)? else { return Ok(false) };
        // Read again under the lock: the file may have changed or disappeared.
        let is_left = read(path).is_ok_and(|record| says(&record));
        if is_left {
            remove(path)?;
        }
        if !path.exists() {
            remove(&lock_path)?;
        }
        Ok(is_left)
    }

    /// The current reading of the directory.
    pub(super) fn read(&self) -> Result<MutexGuard<'_, Option<Reading>>, Error> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let serves = reading.as_ref().is_some_and(|reading| reading.is_final || reading.at.elapsed() < READING_LASTS);
        if !serves {
            let files = read_all(&self.directory)?;
            let is_final =
                files.notes.iter().filter(|(path, _)| !is_handed_over(path)).all(|(path, _)| {
                    match holder_of(&path.with_extension("lock")) {
                        Some(Some(holder)) => holder.is_sibling(&self.owner),
                        Some(None) => false,
                        None => true,
                    }
                });
            *reading = Some(Reading { at: Instant::now(), files, is_final });
        }
        Ok(reading)
    }

    /// Creates the directory, with access for its owner only, and syncs it to the disk.
    fn make_directory(&self) -> Result<(), Error> {
        if self.directory.is_dir() {
            return Ok(());
        }
        private_directory(&self.directory).map_err(|error| failed(&self.directory, "make", error))?;
        match self.directory.parent() {
            Some(parent) if parent != Path::new("") => {
                sync_directory(parent).map_err(|error| failed(parent, "sync", error))
            }
            _ => Ok(()),
        }
    }

    /// A unique name, and its lock.
    fn fresh_lock(&self, kind: ObjectKind, random: &Random) -> Result<(String, FileLock), Error> {
        for _ in 0..NAMES_TRIED {
            let name = format!("{}-{:016x}", kind.as_str(), random.next());
            let path = self.directory.join(lock_name(&name));
            match FileLock::make(&path) {
                Ok(mut lock) => {
                    sign(&mut lock, &self.owner).map_err(|error| failed(&path, "write", error))?;
                    return Ok((name, lock));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, "lock", error)),
            }
        }
        let taken = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(failed(&self.directory, "find a free file name in", taken))
    }
}
