//! The quotes that plans showed: the plan inside an apply runs in another process than the first plan.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;
use terraform_plugin::process::{Parent, private};

use super::{Journal, fingerprint, pending::Maker};
use crate::api::Context;

/// How long a quote is kept: a saved plan may wait for its approval.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The size in bytes above which a file of quotes is replaced.
const LARGEST_FILE: usize = 4 << 20;

/// Quotes, one line each, in a file beside the journal's directory. It is read once and appended to.
///
/// They are optional: a line that cannot be written or read is a lost quote.
#[derive(Debug, Clone)]
pub struct Quotes {
    file: PathBuf,
    scope: String,
    maker: Maker,
    kept: Arc<Mutex<Option<Kept>>>,
}

/// What the file says about a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Quoted<T> {
    /// The quote of this run of Terraform, else the newest one.
    pub quote: Option<T>,
    /// Whether another one may be that of this plan: this run of Terraform stored no quote, and the others differ.
    pub is_ambiguous: bool,
    /// Whether this run of Terraform has planned before, or applies a saved plan.
    pub is_planned: bool,
}

/// The valid quotes by key, oldest first.
#[derive(Debug, Default)]
struct Kept {
    lines: BTreeMap<String, Vec<QuoteLine>>,
    /// Whether most of the file does not count, so that the next line replaces it.
    is_replaced: bool,
    /// Whether Terraform applies a saved plan.
    applies_plan: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct QuoteLine {
    key: String,
    quoted_at: i64,
    #[serde(flatten)]
    maker: Maker,
    quote: Value,
}

impl Quotes {
    /// The quotes beside a journal, for its workspace and backend.
    #[must_use]
    pub fn beside(journal: &Journal) -> Self {
        let mut name = journal.directory().file_name().unwrap_or_default().to_owned();
        name.push("-quotes.jsonl");
        let (scope, file) = (journal.scope(), journal.directory().with_file_name(name));
        let scope = fingerprint(&[&scope.backend, &scope.workspace]);
        Self { file, scope, maker: Maker::current(), kept: Arc::default() }
    }

    /// Their file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The quotes under a key, at most a week old at `now` (Unix seconds).
    pub async fn find<T: DeserializeOwned + Default + Send + 'static>(
        &self,
        key: &str,
        now: i64,
        context: &Context,
    ) -> Quoted<T> {
        let (key, maker) = (fingerprint(&[&self.scope, key]), self.maker.clone());
        let found = self.with(now, context, move |kept, _| {
            let lines = kept.lines.get(&key).map(Vec::as_slice).unwrap_or_default();
            let valid = || lines.iter().rev().filter(|line| is_recent(line.quoted_at, now));
            let own = valid().find(|line| line.maker.has_core_of(&maker));
            let line = own.or_else(|| valid().next());
            Quoted {
                quote: line.and_then(|line| serde_json::from_value(line.quote.clone()).ok()),
                is_ambiguous: own.is_none() && valid().any(|other| line.is_some_and(|line| line.quote != other.quote)),
                is_planned: kept.applies_plan || own.is_some_and(|own| own.maker != maker),
            }
        });
        found.await.unwrap_or_default()
    }

    /// Stores a quote made at `now` (Unix seconds).
    pub async fn keep<T: Serialize>(&self, key: &str, quote: &T, now: i64, context: &Context) {
        let (key, maker) = (fingerprint(&[&self.scope, key]), self.maker.clone());
        let written = match serde_json::to_value(quote) {
            Ok(quote) => {
                let line = QuoteLine { key, quoted_at: now, maker, quote };
                self.with(now, context, move |kept, file| kept.add(line, file)).await.unwrap_or(Ok(()))
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
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
            act(kept.get_or_insert_with(|| Kept::read(&file, now)), &file)
        });
        acted.await
    }
}

impl Kept {
    fn read(file: &Path, now: i64) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<QuoteLine>(line).ok());
        let valid: Vec<_> = lines.filter(|line| is_recent(line.quoted_at, now)).collect();
        let is_replaced = valid.is_empty() || text.len() > LARGEST_FILE;
        // Of a file that is full of valid quotes, the newer half is kept.
        let old = if is_replaced && text.len() > LARGEST_FILE { valid.len() / 2 } else { 0 };
        let mut lines = BTreeMap::<_, Vec<_>>::new();
        for line in valid.into_iter().skip(old) {
            lines.entry(line.key.clone()).or_default().push(line);
        }
        Self { lines, is_replaced, applies_plan: applies_plan(&Parent::current().arguments()) }
    }

    fn add(&mut self, line: QuoteLine, file: &Path) -> io::Result<()> {
        let lines = self.lines.entry(line.key.clone()).or_default();
        if lines.last().is_some_and(|last| (&last.maker, &last.quote) == (&line.maker, &line.quote)) {
            return Ok(());
        }
        lines.push(line.clone());
        let is_replaced = std::mem::take(&mut self.is_replaced);
        let lines = if is_replaced { self.lines.values().flatten().collect() } else { vec![&line] };
        append(file, &lines, is_replaced)
    }
}

/// Whether a command line of Terraform applies a saved plan: a zip, or OpenTofu's encrypted JSON. The paths in it are
/// relative to the working directory of this process too. (`plan -out tfplan`, run twice, also ends with one.)
fn applies_plan(arguments: &[String]) -> bool {
    let mut words = arguments.iter().skip_while(|word| word.starts_with('-'));
    let Some((subcommand, file)) = words.next().zip(words.last()) else { return false };
    let plan = if subcommand == "apply" { fs::read(file).unwrap_or_default() } else { return false };
    let has_field = |fields: BTreeMap<String, IgnoredAny>| fields.contains_key("encrypted_data");
    plan.starts_with(b"PK\x03\x04") || serde_json::from_slice(&plan).is_ok_and(has_field)
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
    (0..=KEPT.as_secs().cast_signed()).contains(&now.saturating_sub(quoted_at))
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    const WEEK: i64 = 7 * 24 * 3600;

    fn context() -> Context {
        Context::within(Duration::from_secs(10), &CancellationToken::new())
    }

    /// The quotes of a new process with this id, which a core started.
    fn process(id: u32, core: &str, folder: &Path) -> Quotes {
        let quotes = Quotes::beside(&Journal::new(folder.join("pending")));
        Quotes { maker: Maker { process: id, core: Some(core.to_owned()) }, ..quotes }
    }

    fn lines(folder: &Path) -> usize {
        fs::read_to_string(folder.join("pending-quotes.jsonl")).unwrap().lines().count()
    }

    #[tokio::test]
    async fn a_quote_is_kept_for_a_week_and_for_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        let first = process(1, "a", folder.path());
        for _ in 0..2 {
            first.keep("x", &"1.98", 1000, &context()).await;
        }
        assert_eq!(lines(folder.path()), 1);
        let quote = |quotes: Quotes, key, now| async move { quotes.find::<String>(key, now, &context()).await.quote };
        for quotes in [first, process(2, "b", folder.path())] {
            assert_eq!(quote(quotes.clone(), "x", 1000 + WEEK).await.as_deref(), Some("1.98"));
            assert_eq!(quote(quotes.clone(), "x", 1001 + WEEK).await, None);
            assert_eq!(quote(quotes.clone(), "x", 999).await, None);
            assert_eq!(quote(quotes, "y", 1000).await, None);
        }
        let scope = crate::creation::Scope { workspace: "other".to_owned(), ..crate::creation::Scope::default() };
        let other = Quotes::beside(&Journal::new(folder.path().join("pending")).within(scope));
        assert_eq!(quote(other, "x", 1000).await, None, "another workspace");
    }

    #[tokio::test]
    async fn the_quote_of_the_same_run_of_terraform_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let found = |process: u32, core: &'static str| {
            let quotes = self::process(process, core, folder.path());
            async move { quotes.find::<i64>("x", 2000, &context()).await }
        };
        let of = |quote, is_ambiguous, is_planned| Quoted { quote, is_ambiguous, is_planned };
        assert_eq!(found(1, "a").await, of(None, false, false));
        process(1, "a", folder.path()).keep("x", &1, 1000, &context()).await;
        assert_eq!(found(1, "a").await, of(Some(1), false, false), "its own");
        assert_eq!(found(2, "a").await, of(Some(1), false, true), "another process of the same core");
        assert_eq!(found(3, "b").await, of(Some(1), false, false), "the only one");
        process(3, "b", folder.path()).keep("x", &2, 1001, &context()).await;
        assert_eq!(found(2, "a").await, of(Some(1), false, true));
        assert_eq!(found(4, "b").await, of(Some(2), false, true));
        assert_eq!(found(5, "c").await, of(Some(2), true, false), "the newest of several");
    }

    #[tokio::test]
    async fn the_file_is_begun_anew_when_nothing_in_it_counts() {
        let folder = tempfile::tempdir().unwrap();
        let quotes = || process(1, "a", folder.path());
        quotes().keep("old", &1, 1000, &context()).await;
        quotes().keep("older", &1, 1001, &context()).await;
        assert_eq!(lines(folder.path()), 2);
        let later = quotes();
        later.keep("new", &1, 2000 + WEEK, &context()).await;
        later.keep("newer", &1, 2000 + WEEK, &context()).await;
        assert_eq!(lines(folder.path()), 2);
        assert_eq!(quotes().find("new", 2001 + WEEK, &context()).await.quote, Some(1));
    }

    #[test]
    fn a_command_line_tells_whether_it_applies_a_saved_plan() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            fs::write(folder.path().join(name), content).unwrap();
            folder.path().join(name).display().to_string()
        };
        let zip = file("tfplan", b"PK\x03\x04\x14");
        let encrypted = file("encrypted", br#"{"meta":{},"encrypted_data":"bm90","encryption_version":"v0"}"#);
        let variables = file("x.tfvars.json", br#"{"name":"encrypted_data"}"#);
        for (line, expected) in [
            (format!("apply {zip}"), true),
            (format!("-chdir=x apply -input=false {zip}"), true),
            (format!("apply {encrypted}"), true),
            (format!("plan -out {zip}"), false),
            (format!("show {zip}"), false),
            (format!("apply -var-file {variables}"), false),
            (format!("apply {zip}.gone"), false),
            ("apply -auto-approve".to_owned(), false),
            ("apply".to_owned(), false),
            (String::new(), false),
        ] {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(applies_plan(&words), expected, "{line}");
        }
    }
}
