//! What a plan showed, prices above all, kept for the plan inside the apply: it runs in another process, and must say
//! the same.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Once},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::api::Journal;

/// How long a quote counts.
const VALID: Duration = Duration::from_secs(60 * 60);
const VERSION: u32 = 1;

/// Quotes, one small file each, in a directory beside the journal's.
///
/// They are a convenience: what cannot be written or read is no quote, and nothing fails for it.
#[derive(Debug, Clone)]
pub struct Quotes {
    directory: PathBuf,
    /// Whether those that no longer count were cleared away: once is enough.
    cleared: Arc<Once>,
}

#[derive(Debug, Serialize, Deserialize)]
struct File<T> {
    version: u32,
    quoted_at: i64,
    quote: T,
}

impl Quotes {
    /// The quotes that belong to a journal.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        let mut name = journal.directory().file_name().unwrap_or_default().to_owned();
        name.push("-quotes");
        Self { directory: journal.directory().with_file_name(name), cleared: Arc::new(Once::new()) }
    }

    /// The quote under a key, at most an hour old at `now` (Unix seconds).
    #[must_use]
    pub fn find<T: DeserializeOwned>(&self, key: &str, now: i64) -> Option<T> {
        let file: File<T> = serde_json::from_slice(&fs::read(self.path(key)).ok()?).ok()?;
        (file.version == VERSION && is_valid(file.quoted_at, now)).then_some(file.quote)
    }

    /// Keeps a quote made at `now` (Unix seconds), and clears away those that no longer count.
    pub fn keep<T: Serialize>(&self, key: &str, quote: &T, now: i64) {
        self.cleared.call_once(|| self.clear(now));
        if let Err(error) = self.write(key, &File { version: VERSION, quoted_at: now, quote }) {
            tracing::debug!(%error, "a quote could not be kept");
        }
    }

    /// Forgets a quote.
    pub fn forget(&self, key: &str) {
        let _ = fs::remove_file(self.path(key));
    }

    fn write<T: Serialize>(&self, key: &str, file: &File<T>) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut written = NamedTempFile::new_in(&self.directory)?;
        written.write_all(&serde_json::to_vec(file)?)?;
        written.persist(self.path(key)).map_err(|error| error.error)?;
        Ok(())
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
    let file = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<File<serde_json::Value>>(&bytes).ok());
    file.is_some_and(|file| is_valid(file.quoted_at, now))
}

fn is_valid(quoted_at: i64, now: i64) -> bool {
    (0..=VALID.as_secs().cast_signed()).contains(&now.saturating_sub(quoted_at))
}

#[cfg(test)]
mod tests {
    use super::*;

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
