//! Money between runs: the spending that creates in flight of one account have reserved, and the quotes that a plan
//! showed. A budget holds only if each create sees the others' reservations, and the plan inside an apply runs in
//! another process than the first plan.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Context, Journal, create::VISIBILITY_WINDOW, pending::fingerprint, settings::Random};
use crate::process::{private, private_directory};

/// How long the reservation of another run counts after its last change, in seconds. After that, lists show the object;
/// the other run may have been killed.
const LAPSES: u64 = 3 * VISIBILITY_WINDOW.as_secs();

/// How long the end of a create or release waits for the file.
const MOMENT: Duration = Duration::from_secs(2);

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

    /// Changes the reservations of this run and of other runs under the file's lock. If `context` ends first, only
    /// those of this run.
    pub async fn change<T>(
        &self,
        context: &Context,
        change: impl FnOnce(&mut Vec<Reservation>, &mut Vec<Reservation>) -> T,
    ) -> T {
        let opened = match self.file.clone() {
            Some(path) => context.blocking(move || read(open(&path)?)).await,
            None => None,
        };
        let (mut file, mut others) = match opened {
            Some(Ok((file, others))) => (Some(file), others),
            Some(Err(error)) => {
                tracing::debug!(%error, "reservations count in this run alone");
                (None, Vec::new())
            }
            None => (None, Vec::new()),
        };
        let now = Timestamp::now().as_second();
        others.retain(|other| other.owner != self.owner && is_valid(other.at, now));
        let others_before = others.clone();
        let (changed, is_same) = {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            let before = own.clone();
            let changed = change(&mut own, &mut others);
            let is_same = *own == before && others == others_before;
            others.extend(own.iter().cloned());
            (changed, is_same)
        };
        if let Some(file) = file.take().filter(|_| !is_same)
            && let Some(Err(error)) = context.blocking(move || write(file, &others)).await
        {
            tracing::debug!(%error, "reservations could not be shared with other runs");
        }
        changed
    }

    /// Records the id of a create's object; without an id, removes the reservation.
    pub async fn ended(&self, marker: &str, uid: Option<&str>) {
        let change = |own: &mut Vec<Reservation>, _: &mut Vec<Reservation>| {
            own.retain(|reservation| reservation.marker != marker || uid.is_some());
            for reservation in own.iter_mut().filter(|reservation| reservation.marker == marker) {
                reservation.uid = uid.map(str::to_owned);
                reservation.at = Timestamp::now().as_second();
            }
        };
        self.change(&at_the_end(), change).await;
    }

    /// Removes the reservation of a released object.
    pub async fn released(&self, uid: &str) {
        let change = |own: &mut Vec<Reservation>, others: &mut Vec<Reservation>| {
            own.retain(|reservation| reservation.uid.as_deref() != Some(uid));
            others.retain(|reservation| reservation.uid.as_deref() != Some(uid));
        };
        self.change(&at_the_end(), change).await;
    }
}

/// The time for a change at the end of an operation, which may have been cancelled.
fn at_the_end() -> Context {
    Context::within(MOMENT, &CancellationToken::new())
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
fn read(mut file: File) -> io::Result<(File, Vec<Reservation>)> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((file, serde_json::from_str(&text).unwrap_or_default()))
}

fn write(mut file: File, reservations: &[Reservation]) -> io::Result<()> {
    let text = serde_json::to_vec(reservations)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

/// How long a quote is valid.
const VALID: Duration = Duration::from_secs(60 * 60);

/// The size in bytes above which a file of quotes is begun anew.
const LARGEST_FILE: usize = 4 << 20;

/// Quotes, one line each, in a file beside the journal's directory. It is read once and appended to.
///
/// They are optional: a line that cannot be written or read is a lost quote.
#[derive(Debug, Clone)]
pub struct Quotes {
    file: PathBuf,
    kept: Arc<Mutex<Option<Kept>>>,
}

/// The valid quotes by key.
#[derive(Debug, Default)]
struct Kept {
    lines: BTreeMap<String, QuoteLine>,
    /// Whether the file holds nothing else that counts, so that the next line begins it anew.
    begins_anew: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct QuoteLine {
    key: String,
    quoted_at: i64,
    /// `None` for a quote that was forgotten.
    quote: Option<Value>,
}

impl Quotes {
    /// The quotes beside a journal.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        let mut name = journal.directory().file_name().unwrap_or_default().to_owned();
        name.push("-quotes.jsonl");
        Self { file: journal.directory().with_file_name(name), kept: Arc::default() }
    }

    /// The quote under a key, at most an hour old at `now` (Unix seconds).
    pub async fn find<T: DeserializeOwned>(&self, key: &str, now: i64, context: &Context) -> Option<T> {
        let key = fingerprint(&[key]);
        let found = self.with(now, context, move |kept, _| {
            kept.lines.get(&key).filter(|line| is_recent(line.quoted_at, now)).and_then(|line| line.quote.clone())
        });
        serde_json::from_value(found.await??).ok()
    }

    /// Stores a quote made at `now` (Unix seconds).
    pub async fn keep<T: Serialize>(&self, key: &str, quote: &T, now: i64, context: &Context) {
        match serde_json::to_value(quote) {
            Ok(quote) => {
                self.write(QuoteLine { key: fingerprint(&[key]), quoted_at: now, quote: Some(quote) }, context).await
            }
            Err(error) => tracing::debug!(%error, "a quote could not be kept"),
        }
    }

    /// Removes a quote made before `now` (Unix seconds).
    pub async fn forget(&self, key: &str, now: i64, context: &Context) {
        self.write(QuoteLine { key: fingerprint(&[key]), quoted_at: now, quote: None }, context).await;
    }

    async fn write(&self, line: QuoteLine, context: &Context) {
        let written = self.with(line.quoted_at, context, move |kept, file| {
            let has_quote = kept.lines.get(&line.key).is_some_and(|line| line.quote.is_some());
            if line.quote.is_none() && !has_quote {
                return Ok(());
            }
            kept.lines.insert(line.key.clone(), line.clone());
            let begins_anew = std::mem::take(&mut kept.begins_anew);
            let lines = if begins_anew { kept.lines.values().collect() } else { vec![&line] };
            append(file, &lines, begins_anew)
        });
        if let Some(Err(error)) = written.await {
            tracing::debug!(%error, "a quote could not be kept");
        }
    }

    async fn with<T: Send + 'static>(
        &self,
        now: i64,
        context: &Context,
        act: impl FnOnce(&mut Kept, &Path) -> T + Send + 'static,
    ) -> Option<T> {
        let (kept, file) = (Arc::clone(&self.kept), self.file.clone());
        let acted = context.blocking(move || {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            act(kept.get_or_insert_with(|| read_quotes(&file, now)), &file)
        });
        acted.await
    }
}

fn read_quotes(file: &Path, now: i64) -> Kept {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<QuoteLine>(line).ok());
    let lines: BTreeMap<_, _> = lines.map(|line| (line.key.clone(), line)).collect();
    let valid = |(_, line): &(String, QuoteLine)| line.quote.is_some() && is_recent(line.quoted_at, now);
    let lines: BTreeMap<_, _> = lines.into_iter().filter(valid).collect();
    Kept { begins_anew: lines.is_empty() || text.len() > LARGEST_FILE, lines }
}

/// Adds lines in one write, so that those of other processes stay whole.
fn append(file: &Path, lines: &[&QuoteLine], begins_anew: bool) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    let mut options = private();
    let options = if begins_anew { options.write(true).truncate(true) } else { options.append(true) };
    options.create(true).open(file)?.write_all(&text)
}

fn is_recent(quoted_at: i64, now: i64) -> bool {
    (0..=VALID.as_secs().cast_signed()).contains(&now.saturating_sub(quoted_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn total(reservations: &Reservations) -> usize {
        reservations.change(&at_the_end(), |own, others| own.len() + others.len()).await
    }

    #[tokio::test]
    async fn runs_know_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/reservations.json");
        let run = || Reservations::new(Some(file.clone()), &Random::default());
        let (first, second) = (run(), run());
        for (run, marker) in [(&first, "x-1"), (&second, "x-2")] {
            let reservation = run.reservation(marker, "x".to_owned(), "1.98".to_owned());
            run.change(&at_the_end(), |own, _| own.push(reservation)).await;
        }
        assert_eq!((total(&first).await, total(&second).await), (2, 2));
        first.ended("x-1", None).await;
        assert_eq!(total(&second).await, 1);
        second.ended("x-2", Some("ins-2")).await;
        drop(second);
        assert_eq!(total(&first).await, 1, "what was made stays until lists show it");
        first.released("ins-2").await;
        assert_eq!(total(&first).await, 0);
    }

    #[tokio::test]
    async fn without_a_file_a_run_counts_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let reservations = Reservations::new(Some(folder.path().join("file/reservations.json")), &Random::default());
        let reservation = reservations.reservation("x-1", "x".to_owned(), "1".to_owned());
        reservations.change(&at_the_end(), |own, _| own.push(reservation)).await;
        assert_eq!(total(&reservations).await, 1);
    }

    #[test]
    fn a_reservation_of_a_killed_run_lapses() {
        let now = 1_700_000_000;
        assert!(is_valid(now, now) && is_valid(now - 359, now) && is_valid(now + 5, now));
        assert!(!is_valid(now - 360, now));
    }

    #[tokio::test]
    async fn a_quote_counts_for_an_hour_and_in_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = || Quotes::beside(&Journal::new(folder.path().join("pending")));
        let first = quotes();
        first.keep("a", &"1.98", 1000, &at_the_end()).await;
        for quotes in [&first, &quotes()] {
            assert_eq!(quotes.find::<String>("a", 1000 + 3600, &at_the_end()).await.as_deref(), Some("1.98"));
            assert_eq!(quotes.find::<String>("a", 1000 + 3601, &at_the_end()).await, None);
            assert_eq!(quotes.find::<String>("a", 999, &at_the_end()).await, None);
            assert_eq!(quotes.find::<String>("b", 1000, &at_the_end()).await, None);
        }
        first.forget("a", 1001, &at_the_end()).await;
        assert_eq!(first.find::<String>("a", 1001, &at_the_end()).await, None);
        assert_eq!(quotes().find::<String>("a", 1001, &at_the_end()).await, None);
    }

    #[tokio::test]
    async fn the_file_is_begun_anew_when_nothing_in_it_counts() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = || Quotes::beside(&Journal::new(folder.path().join("pending")));
        let lines = || fs::read_to_string(folder.path().join("pending-quotes.jsonl")).unwrap().lines().count();
        quotes().keep("old", &1, 1000, &at_the_end()).await;
        quotes().keep("older", &1, 1001, &at_the_end()).await;
        assert_eq!(lines(), 2);
        let later = quotes();
        later.keep("new", &1, 9000, &at_the_end()).await;
        later.keep("newer", &1, 9000, &at_the_end()).await;
        assert_eq!((lines(), quotes().find::<i64>("new", 9001, &at_the_end()).await), (2, Some(1)));
    }
}
