//! From a machine that may still be booting to a session that works.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::ssh::{
    Error, Limits, Output, Session, Target,
    connection::{Connection, Hop},
    error::said,
};

/// How often a refused login is tried. A machine that bans whoever is refused often (fail2ban: five times in ten
/// minutes) has to let in whoever corrects the password, too.
const LOGINS: u32 = 3;

/// Connects, logs in and sees a command run, and tries again while the server is still coming up.
///
/// What may pass is tried again until the deadline: a refused or reset connection, no banner, a login that works while
/// no command runs. A refused login is tried again for [`Limits::denied`] only, and three times at most; what cannot be
/// reached after that has not taken it back, and may have banned us. A host key that the pin refuses, a key that cannot
/// be read and a server that is too old end it at once. The token ends this wait and every later one of the session.
/// May be dropped while it waits.
///
/// # Errors
///
/// [`Error::BadKey`] and [`Error::EncryptedKey`] before anything is sent; [`Error::HostKeyChanged`] before any
/// credential is; [`Error::Incompatible`], [`Error::Denied`]; [`Error::TimedOut`], with the last failure, at the
/// deadline; [`Error::Cancelled`].
pub async fn connect(
    target: &Target,
    limits: &Limits,
    deadline: Instant,
    cancel: &CancellationToken,
) -> Result<Session, Error> {
    establish(target, limits, deadline, cancel, Wanted::Commands).await
}

/// The same without a command: for a login that may open connections, and perhaps nothing else.
///
/// # Errors
///
/// Those of [`connect`].
pub async fn log_in(
    target: &Target,
    limits: &Limits,
    deadline: Instant,
    cancel: &CancellationToken,
) -> Result<Session, Error> {
    establish(target, limits, deadline, cancel, Wanted::Connections).await
}

/// What a login is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// To run commands, and all else.
    Commands,
    /// To open connections through it.
    Connections,
}

async fn establish(
    target: &Target,
    limits: &Limits,
    deadline: Instant,
    cancel: &CancellationToken,
    wanted: Wanted,
) -> Result<Session, Error> {
    let address = target.address();
    let hop = Hop::new(target).await?;
    let mut last = None;
    let (mut denied_since, mut denials) = (None, 0);
    let attempts = (|| attempt(&hop, limits, wanted))
        .retry(schedule())
        .when(|error| match error {
            Error::Denied { .. } => {
                denials += 1;
                denials < LOGINS && denied_since.get_or_insert_with(Instant::now).elapsed() < limits.denied
            }
            other => may_pass(other),
        })
        .adjust(|error, pause| pause.map(|pause| pause.max(least_pause(error, limits))))
        .notify(|error, pause| {
            tracing::debug!(ssh.address = %address, %error, ?pause, "not connected yet");
            if !matches!((&last, error), (Some(Error::Denied { .. }), Error::Unreachable { .. })) {
                last = Some(error.clone());
            }
        });
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Some(Err(Error::Cancelled { doing: format!("the connection to {address}") })),
        outcome = attempts => Some(outcome),
        () = sleep_until(deadline) => None,
    };
    match (outcome, last) {
        (Some(outcome), _) => outcome.map(|connection| Session::new(connection, limits.clone(), cancel.clone())),
        // What the server said about the credentials is the answer, however long it was asked.
        (None, Some(denied @ Error::Denied { .. })) => Err(denied),
        (None, last) => {
            Err(Error::TimedOut { doing: format!("the connection to {address}"), last: last.map(Box::new) })
        }
    }
}

async fn attempt(hop: &Hop, limits: &Limits, wanted: Wanted) -> Result<Connection, Error> {
    let connection = hop.reach(limits).await?;
    if wanted == Wanted::Commands {
        ready(&connection, limits).await?;
    }
    Ok(connection)
}

/// Sees a command run: a machine that boots lets people in before it works, and some users have no shell.
async fn ready(connection: &Connection, limits: &Limits) -> Result<(), Error> {
    const WORD: &str = "ssh-is-ready";

    let not_ready = |reason: String| Error::NotReady { address: connection.address.clone(), reason };
    let ran = timeout(limits.connect, connection.exec(&format!("echo {WORD}"), b"", limits.output)).await;
    let output = match ran {
        Err(_) => return Err(not_ready("it does not finish".to_owned())),
        Ok(Err(Error::NotRun { reason })) => return Err(not_ready(reason)),
        Ok(output) => output?,
    };
    // A shell's start files may say something before it.
    let is_said = String::from_utf8_lossy(&output.stdout).lines().any(|line| line.trim_end() == WORD);
    if output.is_success() && is_said { Ok(()) } else { Err(not_ready(ended(&output))) }
}

/// How a command ended that should not have ended so.
pub(super) fn ended(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let text = said(&String::from_utf8_lossy(text));
    if text.is_empty() { output.exit.to_string() } else { format!("{}: {text}", output.exit) }
}

fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Lost { .. } | Error::NotReady { .. } | Error::Unreachable { .. })
}

/// Refused logins are spread over the time that they have, since a key may be installed at any moment of it.
fn least_pause(error: &Error, limits: &Limits) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(5);

    if matches!(error, Error::Denied { .. }) { SHORTEST.max(limits.denied / (LOGINS - 1)) } else { Duration::ZERO }
}

/// The pauses between attempts: 0.25 s, half as much again each time up to 5 s, with jitter.
fn schedule() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(250))
        .with_max_delay(Duration::from_secs(5))
        .with_factor(1.5)
        .with_jitter()
        .without_max_times()
}
