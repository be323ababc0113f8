//! The directory of the journal.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{
    error::Error,
    lenient::read_integer,
    pending::{
        entry::{Entry, failed, file_name, handed_over_name, lock_name, sync_directory},
        record::{Kind, Phase, Record, VERSION},
    },
    settings::Random,
};

/// A lister holds a lock for an instant; a claim that meets it looks again after this long.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// How many random names are tried for a file of our own: one is enough, unless the randomness is none.
const NAMES_TRIED: usize = 16;

/// What a claim came to.
#[derive(Debug)]
pub(in crate::api) enum Claim {
    /// An entry whose owner is gone, taken over.
    Entry(Box<Entry>),
    /// There is nothing to take up.
    None,
    /// There is an entry, and another process still owns it.
    Owned,
}

/// The journal of creates in one directory. Nothing is read or made before it is used.
///
/// Its functions read and write a few small files, and block while they do.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
    /// Read once: many things are seen, and little is ever left.
    left_accepted: Arc<OnceLock<Vec<(PathBuf, Record)>>>,
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
    pub record: Record,
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
    pub(in crate::api) kind: Kind,
    pub(in crate::api) key: &'a str,
    pub(in crate::api) marker: &'a str,
    pub(in crate::api) wanted_name: Option<&'a str>,
    pub(in crate::api) base_url: &'a str,
    pub(in crate::api) account: &'a str,
}

impl Journal {
    /// The journal in a directory, which is made when first needed.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), left_accepted: Arc::default() }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a create down, before its request; returns when the disk has it.
    ///
    /// # Errors
    /// A directory that cannot be made, written or locked: nothing may be sent then.
    pub(in crate::api) fn begin(&self, begin: &Begin<'_>, random: &Random) -> Result<Entry, Error> {
        self.make_directory()?;
        let (name, lock) = self.fresh_lock(begin.kind, random)?;
        let now = Timestamp::now().as_second();
        let record = Record {
            version: VERSION,
            kind: begin.kind,
            phase: Phase::Sent,
            key: begin.key.to_owned(),
            marker: begin.marker.to_owned(),
            wanted_name: begin.wanted_name.map(str::to_owned),
            base_url: begin.base_url.to_owned(),
            account: begin.account.to_owned(),
            begun_at: now,
            updated_at: now,
            process: std::process::id(),
            request_id: None,
            acknowledged: false,
            ids: None,
        };
        Entry::write_new(&self.directory, name, record, lock)
    }

    /// Takes up a create that was sent or accepted under the same key and whose owner is gone; accepted ones
    /// first, then the oldest. Of several that claim one, one gets it.
    ///
    /// # Errors
    /// A directory that cannot be read or locked.
    pub(in crate::api) fn claim(
        &self,
        kind: Kind,
        key: &str,
        base_url: &str,
        account: &str,
        random: &Random,
    ) -> Result<Claim, Error> {
        let wanted = |record: &Record| {
            record.kind == kind
                && record.key == key
                && record.base_url == base_url
                && matches!(record.phase, Phase::Sent | Phase::Accepted)
        };
        let mut found: Vec<(PathBuf, Record)> = self
            .files()?
            .into_iter()
            .filter_map(|path| read(&path).ok().map(|record| (path, record)))
            .filter(|(_, record)| wanted(record))
            .collect();
        found.sort_by_key(|(_, record)| (record.phase == Phase::Sent, record.begun_at));
        let mut owned = false;
        for (path, record) in found {
            match self.claim_file(&path, &record, account, wanted, random)? {
                Claim::Entry(entry) => return Ok(Claim::Entry(entry)),
                Claim::None => {}
                Claim::Owned => owned = true,
            }
        }
        Ok(if owned { Claim::Owned } else { Claim::None })
    }

    fn claim_file(
        &self,
        path: &Path,
        seen: &Record,
        account: &str,
        wanted: impl Fn(&Record) -> bool,
        random: &Random,
    ) -> Result<Claim, Error> {
        let old_lock = path.with_extension("lock");
        let file = open_lock(&old_lock)?;
        if !try_lock(&file, &old_lock)? {
            // A create of this run itself, or of a provider under another alias, is another one.
            if seen.process == std::process::id() || seen.account != account {
                return Ok(Claim::None);
            }
            std::thread::sleep(SECOND_LOOK);
            if !try_lock(&file, &old_lock)? {
                return Ok(Claim::Owned);
            }
        }
        // Under the lock the file may be gone or further than it was.
        let record = match read(path) {
            Ok(record) if wanted(&record) => record,
            _ => return Ok(Claim::None),
        };
        let (name, lock) = self.fresh_lock(record.kind, random)?;
        let own = self.directory.join(file_name(&name));
        match fs::rename(path, &own) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                super::entry::remove(&self.directory.join(lock_name(&name)))?;
                return Ok(Claim::None);
            }
            Err(error) => return Err(failed(path, "rename", error)),
        }
        sync_directory(&self.directory).map_err(|error| failed(&self.directory, "sync", error))?;
        super::entry::remove(&old_lock)?;
        Ok(Claim::Entry(Box::new(Entry::adopted(&self.directory, name, record, lock))))
    }

    /// All entries, and the files that are none.
    ///
    /// # Errors
    /// A directory that cannot be read; one that does not exist is empty.
    pub fn list(&self) -> Result<Report, Error> {
        let mut report = Report::default();
        for path in self.files()? {
            match read(&path) {
                Ok(record) => {
                    let owner_lives = owner_lives(&path);
                    report.entries.push(Listed { path, record, owner_lives });
                }
                // Finished while we looked.
                Err(_) if !path.exists() => {}
                Err(reason) => report.unreadable.push(Unreadable { path, reason }),
            }
        }
        report.entries.sort_by_key(|listed| listed.record.begun_at);
        Ok(report)
    }

    /// Clears what is shown, by its id, in a prior state of this service: what was handed over, and what was accepted by a run that
    /// is gone and did not know that the core heard its answer. Nobody may take that up any more. Costs one file operation, beside
    /// one look at the directory for all.
    ///
    /// # Errors
    /// A directory that cannot be read, or a file that cannot be removed.
    pub fn seen(&self, kind: Kind, id: &str, base_url: &str) -> Result<bool, Error> {
        let path = self.directory.join(handed_over_name(kind, id));
        let mut cleared = match fs::remove_file(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(&path, "remove", error)),
        };
        // The ids of two services may be the same numbers.
        let shown = |record: &Record| {
            record.phase == Phase::Accepted
                && record.kind == kind
                && record.base_url == base_url
                && record.ids.as_ref().is_some_and(|ids| ids.id == id)
        };
        for (path, record) in self.left_accepted()? {
            if shown(record) {
                cleared |= remove_left(path, shown)?;
            }
        }
        Ok(cleared)
    }

    /// The accepted entries that lay there when this journal was first asked what was seen. Those of the living are among them.
    fn left_accepted(&self) -> Result<&[(PathBuf, Record)], Error> {
        if let Some(left) = self.left_accepted.get() {
            return Ok(left);
        }
        let records = self.files()?.into_iter().filter_map(|path| read(&path).ok().map(|record| (path, record)));
        let accepted = records.filter(|(_, record)| record.phase == Phase::Accepted).collect();
        Ok(self.left_accepted.get_or_init(|| accepted))
    }

    /// Forgets an entry that a person has dealt with.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, listed: &Listed) -> Result<(), Error> {
        super::entry::remove(&listed.path)?;
        super::entry::remove(&listed.path.with_extension("lock"))
    }

    /// The names that are sent by creates which somebody still answers for: an owner that lives, this key's own next create, or a
    /// report. What a dead run of another folder or configuration sent is taken up by nobody here.
    pub(in crate::api) fn explained(&self, kind: Kind, key: &str) -> Vec<String> {
        let is_explained = |listed: &Listed| {
            listed.owner_lives
                || listed.record.key == key
                || matches!(listed.record.phase, Phase::HandedOver | Phase::Unexplained)
        };
        let entries = self.list().unwrap_or_default().entries.into_iter();
        entries
            .filter(|listed| listed.record.kind == kind && is_explained(listed))
            .map(|listed| listed.record.marker)
            .collect()
    }

    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let refused = |error| failed(&self.directory, "read", error);
        let listing = match fs::read_dir(&self.directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(refused(error)),
        };
        let mut files = Vec::new();
        for file in listing {
            let path = file.map_err(refused)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
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
    fn fresh_lock(&self, kind: Kind, random: &Random) -> Result<(String, File), Error> {
        for _ in 0..NAMES_TRIED {
            let name = format!("{}-{:016x}", kind.as_str(), random.next());
            let path = self.directory.join(lock_name(&name));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) if try_lock(&file, &path)? => return Ok((name, file)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, "write", error)),
            }
        }
        let taken = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(failed(&self.directory, "name a file in", taken))
    }
}

fn read(path: &Path) -> Result<Record, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|_| "it is no JSON".to_owned())?;
    match value.get("version").and_then(read_integer) {
        Some(version) if version == i64::from(VERSION) => {}
        Some(version) => {
            return Err(format!("its format is {version}, and this program reads {VERSION}"));
        }
        None => return Err("it names no format".to_owned()),
    }
    serde_json::from_value(value).map_err(|error| format!("it is not whole: {error}"))
}

/// Removes an entry whose owner is gone, if it still says this; whether it did.
fn remove_left(path: &Path, says: impl Fn(&Record) -> bool) -> Result<bool, Error> {
    if !path.exists() {
        return Ok(false);
    }
    let lock = path.with_extension("lock");
    let file = open_lock(&lock)?;
    if !try_lock(&file, &lock)? {
        std::thread::sleep(SECOND_LOOK);
        if !try_lock(&file, &lock)? {
            return Ok(false);
        }
    }
    // Under the lock the file may be gone or further than it was.
    let is_left = read(path).is_ok_and(|record| says(&record));
    if is_left {
        super::entry::remove(path)?;
        super::entry::remove(&lock)?;
    }
    Ok(is_left)
}

fn open_lock(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| failed(path, "open", error))
}

fn try_lock(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(failed(path, "lock", error)),
    }
}

fn owner_lives(path: &Path) -> bool {
    let lock = OpenOptions::new().read(true).open(path.with_extension("lock"));
    lock.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
