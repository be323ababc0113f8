//! One pending record that this process owns: its file, and the lock that names the owner, which distinguishes a
//! parallel create of the same run from another run's. Also the records that earlier runs left, reported once per run.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{CreatePhase, Ids, Journal, ObjectKind, PendingCreate, PendingRecord, VERSION, journal::Unreadable};
use crate::{
    api::{
        error::{Error, JournalError},
        lenient::Lenient as _,
    },
    process::{FileLock, Parent, is_locked, replace},
};

/// A create that this process owns. Dropping it keeps its file, and the next run's same create adopts the object.
#[derive(Debug)]
pub struct Entry {
    directory: PathBuf,
    name: String,
    record: PendingRecord,
    /// Locked while the owner runs; the operating system releases the lock when the process exits.
    _lock: FileLock,
}

impl Entry {
    /// Writes a new file. The caller has its lock.
    pub(super) fn write_new(
        directory: &Path,
        name: String,
        record: PendingRecord,
        lock: FileLock,
    ) -> Result<Self, Error> {
        let mut entry = Self::adopted(directory, name, record, lock);
        entry.store()?;
        Ok(entry)
    }

    /// Takes ownership of an existing file.
    pub(super) fn adopted(directory: &Path, name: String, record: PendingRecord, lock: FileLock) -> Self {
        Self { directory: directory.to_owned(), name, record, _lock: lock }
    }

    /// The record in the file.
    #[must_use]
    pub fn record(&self) -> &PendingRecord {
        &self.record
    }

    /// Records that a request is about to be sent (again).
    ///
    /// # Errors
    /// A file that cannot be written: then nothing may be sent.
    pub(in crate::api) fn sending(&mut self, account: &str, candidate: Option<String>) -> Result<(), Error> {
        self.record.candidate = candidate;
        self.record.refused = false;
        account.clone_into(&mut self.record.account);
        self.record.process = std::process::id();
        self.record.phase = CreatePhase::Sent;
        self.record.acknowledged = false;
        self.record.begun_at = Timestamp::now().as_second();
        self.store()
    }

    /// Records that the service refused the request, which created nothing.
    ///
    /// # Errors
    /// A file that cannot be written; the next run's same create then looks for the object first.
    pub(in crate::api) fn refused(&mut self) -> Result<(), Error> {
        self.record.refused = true;
        self.store()
    }

    /// Records that the service accepted the request without returning an id.
    ///
    /// # Errors
    /// A file that cannot be written; the object may exist nevertheless.
    pub(in crate::api) fn acknowledged(&mut self, request_id: Option<String>) -> Result<(), Error> {
        self.record.acknowledged = true;
        self.record.request_id = request_id;
        self.store()
    }

    /// Records the ids of the object, and the account in which it was seen.
    ///
    /// # Errors
    /// A file that cannot be written; the object exists nevertheless.
    pub(in crate::api) fn accepted(
        &mut self,
        ids: Ids,
        account: &str,
        request_id: Option<String>,
    ) -> Result<(), Error> {
        self.record.phase = CreatePhase::Accepted;
        self.record.ids = Some(ids);
        account.clone_into(&mut self.record.account);
        self.record.request_id = request_id;
        self.store()
    }

    /// Records, just before it happens, that the object is returned to Terraform: the record moves to a file that is
    /// named after the object.
    ///
    /// # Errors
    /// A file that cannot be written; the next run's same create would then adopt the object.
    pub fn handed_over(mut self) -> Result<HandedOver, Error> {
        let own = file_name(&self.name);
        let Some(ids) = &self.record.ids else {
            return Err(failed(&self.directory.join(own), "hand over", io::Error::other("the object has no id")));
        };
        let name = handed_over_name(self.record.kind, &ids.id, &self.record.base_url);
        self.record.phase = CreatePhase::HandedOver;
        store(&self.directory, &name, &mut self.record)?;
        let handed = HandedOver { directory: self.directory.clone(), own, name, record: self.record.clone() };
        self.discard()?;
        Ok(handed)
    }

    /// Removes the record of a create that made nothing.
    ///
    /// # Errors
    /// A file that cannot be removed; the next run's same create then looks for the object first.
    pub fn discard(self) -> Result<(), Error> {
        remove(&self.directory.join(file_name(&self.name)))?;
        remove(&self.directory.join(lock_name(&self.name)))
    }

    fn store(&mut self) -> Result<(), Error> {
        store(&self.directory, &file_name(&self.name), &mut self.record)
    }
}

/// A record whose object was returned to Terraform.
#[derive(Debug)]
pub struct HandedOver {
    directory: PathBuf,
    /// The name of its file before the handover.
    own: String,
    name: String,
    record: PendingRecord,
}

impl HandedOver {
    /// Undoes the handover: the answer did not reach Terraform, so the next run's same create adopts the object.
    ///
    /// # Errors
    /// A file that cannot be written; the object is then reported, not adopted.
    pub fn take_back(mut self) -> Result<(), Error> {
        self.record.phase = CreatePhase::Accepted;
        store(&self.directory, &self.own, &mut self.record)?;
        remove(&self.directory.join(&self.name))
    }
}

pub(super) fn file_name(name: &str) -> String {
    format!("{name}.json")
}

pub(super) fn lock_name(name: &str) -> String {
    format!("{name}.lock")
}

/// The prefix of the names of handed-over records, which have no lock.
pub(super) const HANDED_OVER: &str = "handed-over-";

/// The file name of a handed-over object. It is computed from the id, so the directory need not be read; the address is
/// included because two services may use the same id.
pub(super) fn handed_over_name(kind: ObjectKind, id: &str, base_url: &str) -> String {
    let hash = Sha256::digest(format!("{}/{id}@{base_url}", kind.as_str()));
    let digits: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{HANDED_OVER}{digits}.json")
}

/// Removes a file that may be missing; `true` if it existed.
pub(super) fn remove_if_there(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(path, "remove", error)),
    }
}

/// Removes a file that may be missing.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    remove_if_there(path).map(drop)
}

pub(super) fn failed(path: &Path, action: &'static str, error: io::Error) -> Error {
    Error::Journal(JournalError { path: path.to_owned(), action, cause: Arc::new(error) })
}

/// Replaces a file atomically, and syncs it to the disk.
fn store(directory: &Path, name: &str, record: &mut PendingRecord) -> Result<(), Error> {
    record.updated_at = Timestamp::now().as_second();
    let path = directory.join(name);
    write(directory, &path, record).map_err(|error| failed(&path, "write", error))
}

fn write(directory: &Path, path: &Path, record: &PendingRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(directory)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    replace(file, path)?;
    sync_directory(directory)
}

/// Syncs a directory: only then is a rename in it durable. Windows needs no sync.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// The files of the directory, readable and unreadable ones.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) notes: Vec<(PathBuf, PendingRecord)>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Reads all files. A missing directory counts as empty.
pub(super) fn read_all(directory: &Path) -> Result<Files, Error> {
    let mut files = Files::default();
    for path in paths(directory)? {
        match read(&path) {
            Ok(record) => files.notes.push((path, record)),
            // The file was removed meanwhile.
            Err(_) if !path.exists() => {}
            Err(reason) => files.unreadable.push(Unreadable { path, reason }),
        }
    }
    Ok(files)
}

fn paths(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let refused = |error| failed(directory, "read", error);
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(error)),
    };
    let mut paths = Vec::new();
    for file in listing {
        let path = file.map_err(refused)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn is_handed_over(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(HANDED_OVER))
}

pub(super) fn read(path: &Path) -> Result<PendingRecord, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|_| "it is not JSON".to_owned())?;
    match value.get("version").and_then(i64::read) {
        Some(version) if version == i64::from(VERSION) => {}
        Some(version) => {
            return Err(format!("its format is {version}, and this program reads {VERSION}"));
        }
        None => return Err("it has no format number".to_owned()),
    }
    serde_json::from_value(value).map_err(|error| format!("it is incomplete: {error}"))
}

/// The owner of a lock, as written in the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process id.
    pub process: u32,
    /// The Terraform process that started it: its id, and its start time if the system provides one.
    #[serde(default)]
    pub core: Option<String>,
    /// Whether it is only checking if the object belongs to its account. It keeps the lock for as long as that takes.
    #[serde(default)]
    pub examines: bool,
}

impl Owner {
    /// This process.
    pub(super) fn current() -> Self {
        Self { process: std::process::id(), core: Parent::current().name(), examines: false }
    }

    /// Whether both belong to one run of Terraform: aliases of the provider are separate processes with one parent.
    pub(super) fn is_sibling(&self, other: &Self) -> bool {
        self.process == other.process || (self.core.is_some() && self.core == other.core)
    }
}

/// The result of an attempt to lock.
pub(super) enum TriedLock {
    /// This process has it.
    Locked(FileLock),
    /// Another process has it; `None` if the locked file cannot be read.
    Held(Option<Owner>),
}

/// Locks this file for `owner`, if it is free.
pub(super) fn lock(path: &Path, owner: &Owner) -> Result<TriedLock, Error> {
    match FileLock::take(path).map_err(|error| failed(path, "lock", error))? {
        Some(mut lock) => {
            sign(&mut lock, owner).map_err(|error| failed(path, "write", error))?;
            Ok(TriedLock::Locked(lock))
        }
        None => Ok(TriedLock::Held(owner_in(path))),
    }
}

/// Writes the owner into a lock file.
pub(super) fn sign(lock: &mut FileLock, owner: &Owner) -> io::Result<()> {
    lock.write(&serde_json::to_vec(owner)?)
}

/// The owner of a pending record's lock; `None` if it is free.
pub(super) fn holder_of(path: &Path) -> Option<Option<Owner>> {
    is_locked(path).then(|| owner_in(path))
}

fn owner_in(path: &Path) -> Option<Owner> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The file that describes the last run. It has no extension, so it is not read as a record.
const FILE: &str = "last-run";

/// The last run in this directory.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    core: Option<String>,
    began_at: i64,
}

impl Journal {
    /// The records that earlier runs left and no run has resumed: creates whose process has exited, and objects that
    /// were returned to Terraform but that a whole later run did not find in the state. Empty if this run has reported
    /// them already.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn left_behind(&self) -> Result<Vec<PendingCreate>, Error> {
        // Read first, before other calls wait for the files.
        drop(self.read()?);
        let entries = self.list()?.entries;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let last = self.last_run();
        if last.as_ref().is_some_and(|last| last.core.is_some() && last.core.as_deref() == self.core()) {
            return Ok(Vec::new());
        }
        self.begin_run();
        let is_passed_over = |listed: &PendingCreate| {
            let record = &listed.record;
            last.as_ref().is_some_and(|last| record.updated_at < last.began_at && record.core != last.core)
        };
        let is_left = |listed: &PendingCreate| match listed.record.phase {
            CreatePhase::Sent | CreatePhase::Accepted => !listed.owner_lives && !listed.record.refused,
            CreatePhase::HandedOver => is_passed_over(listed),
        };
        Ok(entries.into_iter().filter(is_left).collect())
    }

    fn last_run(&self) -> Option<Run> {
        serde_json::from_slice(&fs::read(self.run_file()).ok()?).ok()
    }

    /// If this fails, the same records are reported again, which is harmless.
    fn begin_run(&self) {
        let run = Run { core: self.core().map(str::to_owned), began_at: Timestamp::now().as_second() };
        let written = serde_json::to_vec(&run).map_err(Into::into).and_then(|text| fs::write(self.run_file(), text));
        if let Err(error) = written {
            tracing::debug!(%error, "the run could not be noted");
        }
    }

    fn run_file(&self) -> PathBuf {
        self.directory().join(FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(process: u32, core: Option<&str>) -> Owner {
        Owner { process, core: core.map(str::to_owned), examines: false }
    }

    #[test]
    fn siblings_have_one_parent_with_one_start_time() {
        let own = owner(10, Some("7@100"));
        for (other, is_sibling) in [
            (owner(11, Some("7@100")), true),
            (owner(11, Some("7@200")), false),
            (owner(10, None), true),
            (owner(11, None), false),
        ] {
            assert_eq!(own.is_sibling(&other), is_sibling, "{other:?}");
        }
        assert!(!owner(1, None).is_sibling(&owner(2, None)));
    }

    #[test]
    fn a_held_lock_names_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let own = Owner::current();
        let TriedLock::Locked(held) = lock(&path, &own).unwrap() else { panic!("not locked") };
        let TriedLock::Held(holder) = lock(&path, &owner(1, None)).unwrap() else { panic!("locked twice") };
        assert_eq!(holder, Some(own.clone()));
        assert_eq!(holder_of(&path), Some(Some(own)));
        drop(held);
        assert_eq!(holder_of(&path), None);
    }
}
