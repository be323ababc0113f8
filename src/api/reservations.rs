//! What creates in flight are about to spend, for all runs of an account on this computer: a budget is held only if
//! each knows of the others.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::{create::VISIBILITY_WINDOW, settings::Random};

/// How long the reservation of another run counts after its last change, in seconds. By then lists show what it made;
/// the run may have been killed.
const LAPSES: u64 = 3 * VISIBILITY_WINDOW.as_secs();

/// What one create is about to spend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The name that the create sends.
    pub marker: String,
    /// The object as texts name it.
    pub title: String,
    /// By the hour, as decimal text.
    pub hourly: String,
    /// What the service calls the object, once it is accepted.
    pub uid: Option<String>,
    /// The run.
    owner: String,
    /// When this was written, in Unix seconds.
    at: i64,
}

/// The reservations of an account. Those of this run are held in memory, and told to other runs by a file; without the
/// file they count in this run alone.
#[derive(Debug)]
pub struct Reservations {
    file: Option<PathBuf>,
    owner: String,
    own: Mutex<Vec<Reservation>>,
}

impl Reservations {
    /// Those in a file, which is made when first needed.
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

    /// Changes the reservations of this run, and those of other runs, while no run changes any.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<Reservation>, &mut Vec<Reservation>) -> T) -> T {
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

    /// Notes what the service calls the object of a create; without an id, that nothing was made.
    pub fn ended(&self, marker: &str, uid: Option<&str>) {
        self.change(|own, _| {
            own.retain(|reservation| reservation.marker != marker || uid.is_some());
            for reservation in own.iter_mut().filter(|reservation| reservation.marker == marker) {
                reservation.uid = uid.map(str::to_owned);
                reservation.at = Timestamp::now().as_second();
            }
        });
    }

    /// Forgets an object that is gone.
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

/// Opens the file, and waits until no other run changes it.
fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}

/// What cannot be read counts as nothing: a run was killed while it wrote.
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

impl Drop for Reservations {
    /// What was accepted stays: other runs may not see it in a list yet.
    fn drop(&mut self) {
        let is_used = self.file.as_deref().is_some_and(|file| fs::exists(file).unwrap_or(false));
        if is_used {
            self.change(|own, _| own.retain(|reservation| reservation.uid.is_some()));
        }
    }
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
}
