//! The quotes that a plan showed: the plan inside an apply runs in another process than the first plan.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use terraform_plugin::process::private;

use super::{Journal, fingerprint};
use crate::api::Context;

/// How long a quote is valid.
const VALID: Duration = Duration::from_secs(60 * 60);

/// The size in bytes above which a file of quotes is replaced.
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
    /// Whether the file holds nothing else that counts, so that the next line replaces it.
    is_replaced: bool,
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
            Err(error) => tracing::debug!(%error, "a quote could not be stored"),
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
            let is_replaced = std::mem::take(&mut kept.is_replaced);
            let lines = if is_replaced { kept.lines.values().collect() } else { vec![&line] };
            append(file, &lines, is_replaced)
        });
        if let Some(Err(error)) = written.await {
            tracing::debug!(%error, "a quote could not be stored");
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
    Kept { is_replaced: lines.is_empty() || text.len() > LARGEST_FILE, lines }
}

/// Adds lines in one write, so that those of other processes stay whole.
fn append(file: &Path, lines: &[&QuoteLine], is_replaced: bool) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    let mut options = private();
    let options = if is_replaced { options.write(true).truncate(true) } else { options.append(true) };
    options.create(true).open(file)?.write_all(&text)
}

fn is_recent(quoted_at: i64, now: i64) -> bool {
    (0..=VALID.as_secs().cast_signed()).contains(&now.saturating_sub(quoted_at))
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn context() -> Context {
        Context::within(Duration::from_secs(10), &CancellationToken::new())
    }

    #[tokio::test]
    async fn a_quote_counts_for_an_hour_and_in_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = || Quotes::beside(&Journal::new(folder.path().join("pending")));
        let first = quotes();
        first.keep("a", &"1.98", 1000, &context()).await;
        for quotes in [&first, &quotes()] {
            assert_eq!(quotes.find::<String>("a", 1000 + 3600, &context()).await.as_deref(), Some("1.98"));
            assert_eq!(quotes.find::<String>("a", 1000 + 3601, &context()).await, None);
            assert_eq!(quotes.find::<String>("a", 999, &context()).await, None);
            assert_eq!(quotes.find::<String>("b", 1000, &context()).await, None);
        }
        first.forget("a", 1001, &context()).await;
        assert_eq!(first.find::<String>("a", 1001, &context()).await, None);
        assert_eq!(quotes().find::<String>("a", 1001, &context()).await, None);
    }

    #[tokio::test]
    async fn the_file_is_begun_anew_when_nothing_in_it_counts() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = || Quotes::beside(&Journal::new(folder.path().join("pending")));
        let lines = || fs::read_to_string(folder.path().join("pending-quotes.jsonl")).unwrap().lines().count();
        quotes().keep("old", &1, 1000, &context()).await;
        quotes().keep("older", &1, 1001, &context()).await;
        assert_eq!(lines(), 2);
        let later = quotes();
        later.keep("new", &1, 9000, &context()).await;
        later.keep("newer", &1, 9000, &context()).await;
        assert_eq!((lines(), quotes().find::<i64>("new", 9001, &context()).await), (2, Some(1)));
    }
}
