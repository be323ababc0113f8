//! The API token: a configured value, or the output of a program.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use backon::ExponentialBackoff;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    io::AsyncReadExt,
    process::Command,
    time::{Instant, sleep, timeout},
};

use crate::api::{
    error::{Error, Missing, TokenError},
    flight::{Flight, Freshness},
    retry::{TOKEN_PROGRAM, waits},
    settings::{Random, TokenSource, credential},
};

/// The time limit of the program.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How long the output is read after the end of the program, whose words are in the pipe then.
const DRAINED: Duration = Duration::from_millis(500);

/// How long a failure of the program is cached. A temporary one must not end a long apply.
const FAILURE_LASTS: Duration = Duration::from_secs(10);

/// The longest token that is accepted, in bytes.
const LONGEST_TOKEN: u64 = 64 * 1024;

/// Provides the token; a program is run once for all waiting callers.
#[derive(Debug)]
pub(super) struct Tokens {
    source: Option<TokenSource>,
    /// The output of the program, or its failure. A failure is cached for a while too, because otherwise each of a
    /// thousand reads would wait for the same failing program.
    printed: Flight<Printed>,
    /// Whether the program has ever printed a token: then a failure may be temporary.
    has_printed: Arc<AtomicBool>,
    generation: AtomicU64,
    /// The number of the last run whose token the service accepted.
    accepted: AtomicU64,
    random: Random,
}

/// The output of the program, and its time.
#[derive(Debug)]
struct Printed {
    token: Result<SecretString, TokenError>,
    at: Instant,
}

/// A token, and the number of the run that printed it.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    generation: u64,
}

impl Tokens {
    pub(super) fn new(source: Option<TokenSource>, random: &Random) -> Self {
        let (printed, random) = (Flight::default(), random.clone());
        Self { source, printed, random, has_printed: Arc::default(), generation: 0.into(), accepted: 0.into() }
    }

    /// The token. Cancel-safe.
    pub(super) async fn current(&self) -> Result<Token, Error> {
        match &self.source {
            None => Err(Error::Missing(Missing::ApiToken)),
            Some(TokenSource::Value(secret)) => Ok(Token { secret: secret.clone(), generation: 0 }),
            Some(TokenSource::Command(argv)) => {
                let generation = self.generation.load(Ordering::SeqCst);
                let stamp = || self.generation.load(Ordering::SeqCst);
                let run = || {
                    let (argv, has_printed) = (argv.clone(), Arc::clone(&self.has_printed));
                    let waits = waits(TOKEN_PROGRAM, &self.random);
                    async move {
                        let token = print_again(&argv, &has_printed, waits).await;
                        Ok(Printed { token, at: Instant::now() })
                    }
                };
                let mut printed = self.printed.get(Freshness::Within(Duration::MAX), stamp, run).await?;
                if printed.token.is_err() && printed.at.elapsed() >= FAILURE_LASTS {
                    printed = self.printed.get(Freshness::Within(FAILURE_LASTS), stamp, run).await?;
                }
                match &printed.token {
                    Ok(secret) => Ok(Token { secret: secret.clone(), generation }),
                    Err(failure) => Err(Error::Token(failure.clone())),
                }
            }
        }
    }

    /// Records that the service accepted a token.
    pub(super) fn worked(&self, token: &Token) {
        self.accepted.fetch_max(token.generation, Ordering::SeqCst);
    }

    /// Discards a token that the service refused; `true` if another one can be obtained.
    ///
    /// If many callers were refused with one token, the first one discards it and the others use the next one. The
    /// program is not run again for a second token that was never accepted.
    pub(super) fn forget(&self, refused: &Token) -> bool {
        if !matches!(self.source, Some(TokenSource::Command(_))) {
            return false;
        }
        let generation = refused.generation;
        if self.accepted.load(Ordering::SeqCst) == generation {
            let _ = self.generation.compare_exchange(generation, generation + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
        self.generation.load(Ordering::SeqCst) > generation
    }
}

/// Runs the program, and repeats a failed run after a pause if the program has printed a token before: the failure may
/// be temporary.
async fn print_again(
    argv: &[String],
    has_printed: &AtomicBool,
    mut waits: ExponentialBackoff,
) -> Result<SecretString, TokenError> {
    let is_known = has_printed.load(Ordering::SeqCst);
    loop {
        match (print(argv).await, waits.next().filter(|_| is_known)) {
            (Err(error), Some(pause)) => {
                tracing::warn!(%error, pause_s = pause.as_secs(), "the token program failed and is run again");
                sleep(pause).await;
            }
            (outcome, _) => {
                has_printed.fetch_or(outcome.is_ok(), Ordering::SeqCst);
                return outcome;
            }
        }
    }
}

async fn print(argv: &[String]) -> Result<SecretString, TokenError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(TokenError::NoProgram);
    };
    match timeout(TIME_LIMIT, run(program, arguments)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(TokenError::TimedOut { program: program.clone() }),
    }
}

async fn run(program: &str, arguments: &[String]) -> Result<SecretString, TokenError> {
    let named = || program.to_owned();
    let not_started =
        |error: std::io::Error| TokenError::NotStarted { program: named(), reason: error.kind().to_string() };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(not_started)?;
    let mut printed = Vec::new();
    let output = child.stdout.take();
    let reading = async {
        match output {
            Some(output) => output.take(LONGEST_TOKEN + 1).read_to_end(&mut printed).await.map(drop),
            None => Ok(()),
        }
    };
    let status = {
        tokio::pin!(reading);
        tokio::select! {
            biased;
            read = &mut reading => read.map(|()| None),
            status = child.wait() => {
                // A process that it left behind, such as an agent, may hold the pipe open for ever.
                let _ = timeout(DRAINED, reading).await;
                status.map(Some)
            }
        }
    };
    let status = status.map_err(not_started)?;
    if printed.len() as u64 > LONGEST_TOKEN {
        return Err(TokenError::NoToken { program: named() });
    }
    let status = match status {
        Some(status) => status,
        None => child.wait().await.map_err(not_started)?,
    };
    if !status.success() {
        return Err(TokenError::Failed { program: named(), status: status.to_string() });
    }
    let line = printed.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let token = str::from_utf8(line).ok().and_then(|text| credential(&text.into()));
    token.filter(|token| !token.expose_secret().is_empty()).ok_or_else(|| TokenError::NoToken { program: named() })
}

#[cfg(all(test, unix))]
mod tests {
    use futures_util::future::join_all;
    use rstest::rstest;

    use super::*;

    fn tokens(script: &str) -> Tokens {
        Tokens::new(Some(TokenSource::Command(shell(script))), &Random::default())
    }

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn program_is_run_once_for_all_who_wait_and_again_when_refused() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!("echo x >> {0}; printf 'token-%s\\n' $(wc -l < {0})", count.display());
        let tokens = tokens(&script);
        let given = join_all((0..20).map(|_| tokens.current())).await;
        let given: Vec<Token> = given.into_iter().map(Result::unwrap).collect();
        assert!(given.iter().all(|token| token.secret.expose_secret() == "token-1"));
        for refused in &given {
            assert!(tokens.forget(refused));
        }
        let renewed = join_all((0..20).map(|_| tokens.current())).await;
        assert!(renewed.into_iter().all(|token| token.unwrap().secret.expose_secret() == "token-2"));
        assert_eq!(std::fs::read_to_string(count).unwrap().lines().count(), 2);
    }

    #[rstest]
    #[case("echo planted >&2; echo planted; exit 3", "failed: exit status: 3")]
    #[case("true", "printed no token")]
    #[case("printf 'a\\001b'", "printed no token")]
    #[case("head -c 70000 /dev/zero | tr '\\0' x", "printed no token")]
    #[tokio::test]
    async fn failure_says_how_and_shows_no_output(#[case] script: &str, #[case] said: &str) {
        let error = print(&shell(script)).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains(said), "{text}");
        assert!(!text.contains("planted"), "{text}");
    }

    /// It was killed after 30 s, though it had ended.
    #[rstest]
    #[case::a_line("echo token")]
    #[case::no_end_of_line("printf token")]
    #[case::a_mark("printf '\\357\\273\\277token\\nand a note\\n'")]
    #[tokio::test]
    async fn a_process_that_the_program_leaves_behind_is_not_waited_for(#[case] script: &str) {
        let begun = Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("pid");
        let token = print(&shell(&format!("sleep 600 & echo $! >{}; {script}", left.display()))).await;
        let left = std::fs::read_to_string(left).unwrap().trim().parse().unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(left), nix::sys::signal::Signal::SIGKILL).unwrap();
        assert_eq!(token.unwrap().expose_secret(), "token");
        assert!(begun.elapsed() < TIME_LIMIT / 2, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn program_that_failed_is_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!("echo x >> {}; exit 1", count.display());
        let tokens = tokens(&script);
        for _ in 0..3 {
            assert!(matches!(tokens.current().await, Err(Error::Token(TokenError::Failed { .. }))));
        }
        assert_eq!(std::fs::read_to_string(count).unwrap().lines().count(), 1);
    }

    #[tokio::test]
    async fn program_that_worked_and_fails_once_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!(
            "echo x >> {0}; n=$(wc -l < {0}); [ $n -ne 2 ] || exit 1; printf 'token-%s\\n' $n",
            count.display()
        );
        let tokens = tokens(&script);
        let first = tokens.current().await.unwrap();
        assert!(tokens.forget(&first));
        assert_eq!(tokens.current().await.unwrap().secret.expose_secret(), "token-3");
    }

    #[tokio::test]
    async fn program_that_is_not_there_is_named() {
        let error = print(&["/no/such/program".to_owned()]).await.unwrap_err();
        assert!(matches!(error, TokenError::NotStarted { .. }), "{error}");
        assert_eq!(print(&[]).await.unwrap_err(), TokenError::NoProgram);
    }
}
