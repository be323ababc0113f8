//! The directory of the journal.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    ObjectKind, PendingRecord, Phase, VERSION,
    entry::{
        Entry, Files, Owner, Tried, failed, file_name, handed_over_name, holder_of, is_handed_over, lock, lock_name,
        read, read_all, remove, remove_if_there, sign, sync_directory,
    },
};
use crate::api::{error::Error, settings::Random};

/// How many random names are tried for a file of our own: one is enough, unless the randomness is constant.
const NAMES_TRIED: usize = 16;

/// How old a reading of the directory may be for those who wait for another process.
const READING_LASTS: Duration = Duration::from_millis(100);

/// What a claim came to.
#[derive(Debug)]
pub(in crate::api) enum Claim {
    /// A record whose owner is gone, taken over.
    Entry(Box<Entry>),
    /// The same of another account: it is held while the caller finds out whether its object is seen under this token.
    Foreign(Box<Examined>),
    /// Another process holds one, as far as known which.
    Held(Option<Owner>),
    /// Nothing to adopt.
    None,
}

/// What a create claims.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Wanted<'a> {
    pub(in crate::api) kind: ObjectKind,
    pub(in crate::api) key: &'a str,
    pub(in crate::api) base_url: &'a str,
    pub(in crate::api) account: &'a str,
    /// Of a create that has several, those that it may be made as.
    pub(in crate::api) candidates: &'a [String],
}

impl Wanted<'_> {
    fn is(&self, record: &PendingRecord) -> bool {
        record.kind == self.kind
            && record.key == self.key
            && record.base_url == self.base_url
            && matches!(record.phase, Phase::Sent | Phase::Accepted)
            && record.candidate.as_ref().is_none_or(|candidate| self.candidates.contains(candidate))
    }
}

/// The journal of creates in one directory. Nothing is read or made before it is used.
///
/// The directory is read once, when it is first asked for something: what lies there then was left by earlier runs, or
/// belongs to parallel ones. After that a create costs a few file operations, however many records there are. Its
/// functions block.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
    owner: Owner,
    reading: Arc<Mutex<Option<Reading>>>,
}

/// What the directory held.
#[derive(Debug)]
pub(super) struct Reading {
    at: Instant,
    files: Files,
    /// Whether another run may still write: then the directory is read again.
    is_final: bool,
}

/// All that the journal holds.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The entries that could be read, oldest first.
    pub entries: Vec<Listed>,
    /// Files that could not.
    pub unreadable: Vec<Unreadable>,
}

/// An entry of the journal, seen from outside.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its file.
    pub path: PathBuf,
    /// What it says.
    pub record: PendingRecord,
    /// Whether a process owns it now.
    pub owner_lives: bool,
}

/// A file of the journal that could not be read. It is left where it is.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why, as a fragment.
    pub reason: String,
}

/// What a new entry says.
#[derive(Debug)]
pub(in crate::api) struct Begin<'a> {
    pub(in crate::api) wanted: Wanted<'a>,
    pub(in crate::api) marker: &'a str,
    pub(in crate::api) wanted_name: Option<&'a str>,
    pub(in crate::api) candidate: Option<String>,
}

/// A record of another account, held while its object is looked for. Dropped, it is left as it is.
#[derive(Debug)]
pub(in crate::api) struct Examined {
    journal: Journal,
    path: PathBuf,
    record: PendingRecord,
    lock: File,
}

impl Examined {
    pub(in crate::api) fn record(&self) -> &PendingRecord {
        &self.record
    }

    pub(in crate::api) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the record over, since its object was seen. None when it is gone.
    pub(in crate::api) fn take_over(self, random: &Random) -> Result<Option<Entry>, Error> {
        self.journal.take_over(&self.path, self.record, self.lock, random)
    }
}

impl Journal {
    /// The journal in a directory, which is made when first needed.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self::owned_by(directory, Owner::current())
    }

    /// The same in the name of another process.
    pub(super) fn owned_by(directory: impl Into<PathBuf>, owner: Owner) -> Self {
        Self { directory: directory.into(), owner, reading: Arc::default() }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The Terraform process that this journal's creates belong to, where the system shows it.
    #[must_use]
    pub fn core(&self) -> Option<&str> {
        self.owner.core.as_deref()
    }

    /// Whether that process has ended since: this one was then given another parent.
    #[must_use]
    pub fn core_has_ended(&self) -> bool {
        Owner::current().core != self.owner.core
    }

    /// Writes a create down, before its request; returns when the disk has it.
    ///
    /// # Errors
    /// A directory that cannot be made, written or locked: nothing may be sent then.
    pub(in crate::api) fn begin(&self, begin: &Begin<'_>, random: &Random) -> Result<Entry, Error> {
        self.make_directory()?;
        let (name, lock) = self.fresh_lock(begin.wanted.kind, random)?;
        let now = Timestamp::now().as_second();
        let record = PendingRecord {
            version: VERSION,
            kind: begin.wanted.kind,
            phase: Phase::Sent,
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

    /// Resumes a create that was sent or accepted under the same key and whose owner is gone: those of this account
    /// first, accepted ones before others, then the oldest. Of several that claim one, one gets it. `passed_over` are
    /// those of other accounts that were examined already.
    ///
    /// A record that a parallel create of the same run owns is no obstacle: that is another create.
    ///
    /// # Errors
    /// A directory that cannot be read or locked, and files in it that cannot be read: it is not known what they stand
    /// for.
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

    /// What a create would adopt; without a lock, so another may be quicker.
    fn left(&self, wanted: &Wanted<'_>) -> Result<Vec<(PathBuf, PendingRecord)>, Error> {
        let reading = self.read()?;
        let Some(reading) = reading.as_ref() else { return Ok(Vec::new()) };
        if let Some(unreadable) = reading.files.unreadable.first() {
            let reason = io::Error::other(unreadable.reason.clone());
            return Err(failed(&unreadable.path, "read", reason));
        }
        let mut left: Vec<_> = reading.files.notes.iter().filter(|(_, record)| wanted.is(record)).cloned().collect();
        left.sort_by_key(|(_, record)| {
            (record.account != wanted.account, record.phase == Phase::Sent, record.begun_at)
        });
        Ok(left)
    }

    /// The records of creates under this key, as one of these candidates where there are several, that earlier runs
    /// left and that may have made something.
    ///
    /// # Errors
    /// As those of a create: a directory or files that cannot be read.
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
            Tried::Locked(file) => file,
            Tried::Held(Some(holder)) if holder.is_sibling(&self.owner) && !holder.examines => return Ok(Claim::None),
            Tried::Held(holder) => return Ok(Claim::Held(holder)),
        };
        // Under the lock the file may be gone or further than it was.
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

    /// Gives a record that we hold a name of our own: of several, one succeeds.
    fn take_over(
        &self,
        path: &Path,
        record: PendingRecord,
        held: File,
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

    /// All entries, and the files that are none.
    ///
    /// # Errors
    /// A directory that cannot be read; one that does not exist is empty.
    pub fn list(&self) -> Result<Report, Error> {
        let Files { notes, unreadable } = read_all(&self.directory)?;
        let mut entries: Vec<Listed> = notes
            .into_iter()
            .map(|(path, record)| {
                let owner_lives = holder_of(&path.with_extension("lock")).is_some();
                Listed { path, record, owner_lives }
            })
            .collect();
        entries.sort_by_key(|listed| listed.record.begun_at);
        Ok(Report { entries, unreadable })
    }

    /// Clears the record of an object that is in a state of this service: handed over, or accepted by a run that ended
    /// without knowing that Terraform had its answer. Looks only at what lay there when the directory was read.
    ///
    /// # Errors
    /// A directory that cannot be read, or a file that cannot be removed.
    pub fn seen(&self, kind: ObjectKind, id: &str, base_url: &str) -> Result<bool, Error> {
        let is_it = |record: &PendingRecord| {
            matches!(record.phase, Phase::Accepted | Phase::HandedOver)
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

    /// The ids of what earlier runs of Terraform made under this key and answered, and no state has shown since.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn never_shown(&self, kind: ObjectKind, key: &str) -> Result<Vec<String>, Error> {
        let reading = self.read()?;
        let notes = reading.iter().flat_map(|reading| &reading.files.notes).map(|(_, record)| record);
        let of_another_run = |record: &&PendingRecord| {
            record.phase == Phase::HandedOver
                && record.kind == kind
                && record.key == key
                && record.process != self.owner.process
                && (record.core.is_none() || record.core != self.owner.core)
        };
        Ok(notes.filter(of_another_run).filter_map(|record| Some(record.ids.as_ref()?.id.clone())).collect())
    }

    /// Clears the record of an object that was released: nothing of it is left to report.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn released(&self, kind: ObjectKind, id: &str, base_url: &str) -> Result<(), Error> {
        remove(&self.directory.join(handed_over_name(kind, id, base_url)))?;
        self.seen(kind, id, base_url).map(drop)
    }

    /// Removes an entry that a person has dealt with.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, listed: &Listed) -> Result<(), Error> {
        remove(&listed.path)?;
        remove(&listed.path.with_extension("lock"))
    }

    /// Removes a record whose owner is gone, if it still says this; whether it did.
    fn remove_left(&self, path: &Path, says: impl Fn(&PendingRecord) -> bool) -> Result<bool, Error> {
        if is_handed_over(path) {
            return remove_if_there(path);
        }
        if !path.exists() {
            return Ok(false);
        }
        let lock_path = path.with_extension("lock");
        let Tried::Locked(_held) = lock(&lock_path, &self.owner)? else { return Ok(false) };
        // Under the lock the file may be gone or further than it was.
        let is_left = read(path).is_ok_and(|record| says(&record));
        if is_left {
            remove(path)?;
        }
        if !path.exists() {
            remove(&lock_path)?;
        }
        Ok(is_left)
    }

    /// The reading of the directory that serves now.
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

    /// Makes the directory, for its owner alone, and waits until the disk has it.
    fn make_directory(&self) -> Result<(), Error> {
        if self.directory.is_dir() {
            return Ok(());
        }
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory).map_err(|error| failed(&self.directory, "make", error))?;
        match self.directory.parent() {
            Some(parent) if parent != Path::new("") => {
                sync_directory(parent).map_err(|error| failed(parent, "sync", error))
            }
            _ => Ok(()),
        }
    }

    /// A name that is ours alone, and its lock.
    fn fresh_lock(&self, kind: ObjectKind, random: &Random) -> Result<(String, File), Error> {
        for _ in 0..NAMES_TRIED {
            let name = format!("{}-{:016x}", kind.as_str(), random.next());
            let path = self.directory.join(lock_name(&name));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let locked = file.lock().and_then(|()| sign(&mut file, &self.owner));
                    locked.map_err(|error| failed(&path, "lock", error))?;
                    return Ok((name, file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, "write", error)),
            }
        }
        let taken = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(failed(&self.directory, "name a file in", taken))
    }
}
