//! Money between runs: the spending that creates in flight of one account have reserved, and the quotes that a plan
//! showed. A budget holds only if each create sees the others' reservations, and the plan inside an apply runs in
//! another process than the first plan.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{Journal, create::VISIBILITY_WINDOW, settings::Random};
use crate::process::{in_place, private, private_directory, replace};

/// How long the reservation of another run counts after its last change, in seconds. After that, lists show the object;
/// the other run may have been killed.
const LAPSES: u64 = 3 * VISIBILITY_WINDOW.as_secs();

/// The spending of one create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The name that the create sends.
    pub marker: String,
    /// The object's title in diagnostics.
    pub title: String,
    /// The hourly price, as decimal text.
    pub hourly: String,
    /// The object's id, once accepted.
    pub uid: Option<String>,
    /// The run that made it.
    owner: String,
    /// When this was written, in Unix seconds.
    at: i64,
}

/// The reservations of an account. Those of this run are in memory and shared with other runs in a file; without the
/// file they count in this run only.
#[derive(Debug)]
pub struct Reservations {
    file: Option<PathBuf>,
    owner: String,
    own: Mutex<Vec<Reservation>>,
}

impl Reservations {
    /// The reservations in a file, which is created on first use.
    #[must_use]
    pub fn new(file: Option<PathBuf>, random: &Random) -> Self {
        Self { file, owner: format!("{}-{:016x}", std::process::id(), random.next()), own: Mutex::default() }
    }

    /// A reservation of this run.
    #[must_use]
    pub fn reservation(&self, marker: &str, title: String, hourly: String) -> Reservation {
        let at = Timestamp::now().as_second();
        Reservation { marker: marker.to_owned(), title, hourly, uid: None, owner: self.owner.clone(), at }
    }

    /// Changes the reservations of this run and of other runs under the file's lock.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<Reservation>, &mut Vec<Reservation>) -> T) -> T {
        in_place(|| self.change_locked(change))
    }

    fn change_locked<T>(&self, change: impl FnOnce(&mut Vec<Reservation>, &mut Vec<Reservation>) -> T) -> T {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let before = own.clone();
        let opened = self.file.as_deref().and_then(|path| {
            open(path).map_err(|error| tracing::debug!(%error, "reservations count in this run alone")).ok()
        });
        let Some(mut file) = opened else { return change(&mut own, &mut Vec::new()) };
        let now = Timestamp::now().as_second();
        let mut others = read(&mut file);
        others.retain(|other| other.owner != self.owner && is_valid(other.at, now));
        let others_before = others.clone();
        let changed = change(&mut own, &mut others);
        if *own != before || others != others_before {
            others.extend(own.iter().cloned());
            if let Err(error) = write(&mut file, &others) {
                tracing::debug!(%error, "reservations could not be shared with other runs");
            }
        }
        changed
    }

    /// Records the id of a create's object; without an id, removes the reservation.
    pub fn ended(&self, marker: &str, uid: Option<&str>) {
        self.change(|own, _| {
            own.retain(|reservation| reservation.marker != marker || uid.is_some());
            for reservation in own.iter_mut().filter(|reservation| reservation.marker == marker) {
                reservation.uid = uid.map(str::to_owned);
                reservation.at = Timestamp::now().as_second();
            }
        });
    }

    /// Removes the reservation of a released object.
    pub fn released(&self, uid: &str) {
        self.change(|own, others| {
            own.retain(|reservation| reservation.uid.as_deref() != Some(uid));
            others.retain(|reservation| reservation.uid.as_deref() != Some(uid));
        });
    }
}

fn is_valid(at: i64, now: i64) -> bool {
    u64::try_from(now.saturating_sub(at)).map_or(true, |age| age < LAPSES)
}

/// Opens the file, and waits for its lock.
fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        private_directory(directory)?;
    }
    let file = private().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    Ok(file)
}

/// An unreadable file counts as empty: a run was killed while writing it.
fn read(file: &mut File) -> Vec<Reservation> {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

fn write(file: &mut File, reservations: &[Reservation]) -> io::Result<()> {
    let text = serde_json::to_vec(reservations)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

/// How long a quote is valid.
const VALID: Duration = Duration::from_secs(60 * 60);
const VERSION: u32 = 1;

/// Quotes, one small file each, in a directory beside the journal's.
///
/// They are optional: if one cannot be written or read, it is ignored.
#[derive(Debug, Clone)]
pub struct Quotes {
    directory: PathBuf,
    /// Expired quotes are removed once.
    cleared: Arc<Once>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept<T> {
    version: u32,
    quoted_at: i64,
    quote: T,
}

impl Quotes {
    /// The quotes beside a journal.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        let mut name = journal.directory().file_name().unwrap_or_default().to_owned();
        name.push("-quotes");
        Self { directory: journal.directory().with_file_name(name), cleared: Arc::new(Once::new()) }
    }

    /// The quote under a key, at most an hour old at `now` (Unix seconds).
    #[must_use]
    pub fn find<T: DeserializeOwned>(&self, key: &str, now: i64) -> Option<T> {
        let file: Kept<T> = serde_json::from_slice(&in_place(|| fs::read(self.path(key))).ok()?).ok()?;
        (file.version == VERSION && is_recent(file.quoted_at, now)).then_some(file.quote)
    }

    /// Stores a quote made at `now` (Unix seconds), and removes expired ones.
    pub fn keep<T: Serialize>(&self, key: &str, quote: &T, now: i64) {
        let kept = Kept { version: VERSION, quoted_at: now, quote };
        let written = in_place(|| {
            self.cleared.call_once(|| self.clear(now));
            self.write(key, &kept)
        });
        if let Err(error) = written {
            tracing::debug!(%error, "a quote could not be kept");
        }
    }

    /// Removes a quote.
    pub fn forget(&self, key: &str) {
        let _ = in_place(|| fs::remove_file(self.path(key)));
    }

    fn write<T: Serialize>(&self, key: &str, file: &Kept<T>) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut written = NamedTempFile::new_in(&self.directory)?;
        written.write_all(&serde_json::to_vec(file)?)?;
        replace(written, &self.path(key))
    }

    fn clear(&self, now: i64) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_some_and(|extension| extension == "json") && !counts(&path, now) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        let hash: String = Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.directory.join(format!("{hash}.json"))
    }
}

fn counts(path: &Path, now: i64) -> bool {
    let file = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Kept<serde_json::Value>>(&bytes).ok());
    file.is_some_and(|file| is_recent(file.quoted_at, now))
}

fn is_recent(quoted_at: i64, now: i64) -> bool {
    (0..=VALID.as_secs().cast_signed()).contains(&now.saturating_sub(quoted_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(reservations: &Reservations) -> usize {
        reservations.change(|own, others| own.len() + others.len())
    }

    #[test]
    fn runs_know_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/reservations.json");
        let run = || Reservations::new(Some(file.clone()), &Random::default());
        let (first, second) = (run(), run());
        for (run, marker) in [(&first, "x-1"), (&second, "x-2")] {
            let reservation = run.reservation(marker, "x".to_owned(), "1.98".to_owned());
            run.change(|own, _| own.push(reservation));
        }
        assert_eq!((total(&first), total(&second)), (2, 2));
        first.ended("x-1", None);
        assert_eq!(total(&second), 1);
        second.ended("x-2", Some("ins-2"));
        drop(second);
        assert_eq!(total(&first), 1, "what was made stays until lists show it");
        first.released("ins-2");
        assert_eq!(total(&first), 0);
    }

    #[test]
    fn without_a_file_a_run_counts_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let reservations = Reservations::new(Some(folder.path().join("file/reservations.json")), &Random::default());
        let reservation = reservations.reservation("x-1", "x".to_owned(), "1".to_owned());
        reservations.change(|own, _| own.push(reservation));
        assert_eq!(total(&reservations), 1);
    }

    #[test]
    fn a_reservation_of_a_killed_run_lapses() {
        let now = 1_700_000_000;
        assert!(is_valid(now, now) && is_valid(now - 359, now) && is_valid(now + 5, now));
        assert!(!is_valid(now - 360, now));
    }

    #[test]
    fn a_quote_counts_for_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = Quotes::beside(&Journal::new(folder.path().join("pending")));
        quotes.keep("a", &"1.98", 1000);
        assert_eq!(quotes.find::<String>("a", 1000 + 3600).as_deref(), Some("1.98"));
        assert_eq!(quotes.find::<String>("a", 1000 + 3601), None);
        assert_eq!(quotes.find::<String>("a", 999), None);
        assert_eq!(quotes.find::<String>("b", 1000), None);
    }

    #[test]
    fn quotes_are_forgotten_and_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = Quotes::beside(&Journal::new(folder.path().join("pending")));
        quotes.keep("a", &1, 1000);
        quotes.forget("a");
        assert_eq!(quotes.find::<i64>("a", 1000), None);
        quotes.keep("old", &1, 1000);
        let later = Quotes::beside(&Journal::new(folder.path().join("pending")));
        later.keep("new", &1, 9000);
        let files = fs::read_dir(folder.path().join("pending-quotes")).unwrap().count();
        assert_eq!(files, 1);
    }
}
