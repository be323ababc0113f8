//! One create of this process, and its file.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::api::{
    error::{Error, JournalError},
    pending::record::{Ids, Kind, Phase, Record},
};

/// A create that this process owns. Dropping it keeps its file, which the next run then takes up.
#[derive(Debug)]
pub struct Entry {
    directory: PathBuf,
    name: String,
    record: Record,
    /// Held while the owner lives; the operating system lets go of it with the process.
    _lock: File,
}

impl Entry {
    /// Writes a new file under a lock that is held.
    pub(super) fn write_new(directory: &Path, name: String, record: Record, lock: File) -> Result<Self, Error> {
        let mut entry = Self { directory: directory.to_owned(), name, record, _lock: lock };
        entry.store()?;
        Ok(entry)
    }

    /// Takes over a file that lies there already.
    pub(super) fn adopted(directory: &Path, name: String, record: Record, lock: File) -> Self {
        Self { directory: directory.to_owned(), name, record, _lock: lock }
    }

    /// What the file says.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Notes that a request is about to be sent (again).
    ///
    /// # Errors
    /// A file that cannot be written: nothing may be sent then.
    pub(in crate::api) fn sending(&mut self, account: &str) -> Result<(), Error> {
        account.clone_into(&mut self.record.account);
        self.record.process = std::process::id();
        self.record.phase = Phase::Sent;
        self.record.acknowledged = false;
        self.store()
    }

    /// Notes that the service took the request on, and did not say what it makes.
    ///
    /// # Errors
    /// A file that cannot be written; the thing may exist nevertheless.
    pub(in crate::api) fn acknowledged(&mut self, request_id: Option<String>) -> Result<(), Error> {
        self.record.acknowledged = true;
        self.record.request_id = request_id;
        self.store()
    }

    /// Notes what the service calls the thing.
    ///
    /// # Errors
    /// A file that cannot be written; the thing exists nevertheless.
    pub(in crate::api) fn accepted(&mut self, ids: Ids, request_id: Option<String>) -> Result<(), Error> {
        self.record.phase = Phase::Accepted;
        self.record.ids = Some(ids);
        self.record.request_id = request_id;
        self.store()
    }

    /// Notes that the thing is answered to whoever wanted it, just before it is.
    ///
    /// # Errors
    /// A file that cannot be written; the next run's same create would then adopt the thing.
    pub fn handed_over(mut self) -> Result<(), Error> {
        let Some(ids) = self.record.ids.clone() else {
            return Ok(());
        };
        self.record.phase = Phase::HandedOver;
        let name = handed_over_name(self.record.kind, &ids.id);
        store(&self.directory, &name, &mut self.record)?;
        self.discard()
    }

    /// Notes that the thing was not found where this configuration looks.
    pub(in crate::api) fn unexplained(mut self) -> Result<(), Error> {
        self.record.phase = Phase::Unexplained;
        self.store()?;
        remove(&self.directory.join(lock_name(&self.name)))
    }

    /// Forgets the create: the service made nothing.
    ///
    /// # Errors
    /// A file that cannot be removed; the next run's same create then looks for the thing first.
    pub fn discard(self) -> Result<(), Error> {
        remove(&self.directory.join(file_name(&self.name)))?;
        remove(&self.directory.join(lock_name(&self.name)))
    }

    fn store(&mut self) -> Result<(), Error> {
        store(&self.directory, &file_name(&self.name), &mut self.record)
    }
}

pub(super) fn file_name(name: &str) -> String {
    format!("{name}.json")
}

pub(super) fn lock_name(name: &str) -> String {
    format!("{name}.lock")
}

/// The file of a thing that was handed over: found from its id alone, without reading the directory.
pub(super) fn handed_over_name(kind: Kind, id: &str) -> String {
    let hash = Sha256::digest(format!("{}/{id}", kind.as_str()));
    let digits: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("handed-over-{digits}.json")
}

/// Removes a file that may be gone.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, "remove", error)),
        _ => Ok(()),
    }
}

pub(super) fn failed(path: &Path, action: &'static str, error: io::Error) -> Error {
    Error::Journal(JournalError { path: path.to_owned(), action, cause: Arc::new(error) })
}

/// Replaces a file as a whole, and waits until the disk has it.
fn store(directory: &Path, name: &str, record: &mut Record) -> Result<(), Error> {
    record.updated_at = Timestamp::now().as_second();
    let path = directory.join(name);
    write(directory, &path, record).map_err(|error| failed(&path, "write", error))
}

fn write(directory: &Path, path: &Path, record: &Record) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(directory)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// A rename is on the disk when its directory is; Windows does that by itself.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
