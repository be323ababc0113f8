//! From a machine that may still be booting to a session that works: commands and channels over one connection.

use std::{fmt, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Error, HostKey, Output, Pin, SessionLimits, Stream, Target,
    connection::{Connection, Hop},
    error::said,
};

/// What sshd takes of sessions at a time is ten (MaxSessions); more have to wait here.
const SESSIONS: usize = 8;

/// A server that we are logged in to, and that runs commands.
///
/// Usable from several tasks at once. Its connection ends when it and every [`Stream`], [`Body`](crate::ssh::Body)
/// and [`Forward`](crate::ssh::Forward) of it are dropped. A stream that is not read holds up everything else on the
/// connection once half a megabyte waits in it: read it, or drop it.
pub struct Session {
    pub(super) connection: Connection,
    pub(super) limits: SessionLimits,
    pub(super) cancel: CancellationToken,
    sessions: Semaphore,
}

impl Session {
    pub(super) fn new(connection: Connection, limits: SessionLimits, cancel: CancellationToken) -> Self {
        Self { connection, limits, cancel, sessions: Semaphore::new(SESSIONS) }
    }

    /// The key that the server proved to hold: for the caller to keep, when the target had no pin.
    pub fn host_key(&self) -> &HostKey {
        &self.connection.host_key
    }

    /// The key of the bastion that the server was reached through.
    pub fn bastion_host_key(&self) -> Option<&HostKey> {
        self.connection.bastion.as_deref().map(|bastion| &bastion.host_key)
    }

    /// Whether the connection has ended: nothing but a new [`connect`](crate::ssh::connect) helps.
    pub fn is_lost(&self) -> bool {
        self.connection.facts.is_gone()
    }

    /// Runs a command by the user's shell, with `stdin` as its input, and waits until it ends.
    ///
    /// A command line is seen by everyone on the machine: secrets belong into `stdin`, as do whole scripts
    /// (`sh -s`). What it leaves behind with its outputs open is waited for two seconds, then left alone.
    ///
    /// May be dropped while it waits: the command then finds its input at an end, and a write that fails.
    ///
    /// # Errors
    ///
    /// [`Error::NotRun`], [`Error::Lost`], [`Error::TimedOut`] after [`SessionLimits::command`], [`Error::Cancelled`].
    pub async fn run(&self, command: &str, stdin: &[u8]) -> Result<Output, Error> {
        self.within(self.limits.command, "the command", async {
            // The semaphore is never closed.
            let _permit = self.sessions.acquire().await.map_err(|_| self.connection.lost())?;
            self.connection.exec(command, stdin, self.limits.output).await
        })
        .await
    }

    /// Opens a connection to a host and a port as the server sees them; `127.0.0.1` is the server itself.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when nothing listens there, [`Error::Forbidden`] when the server permits no such
    /// connections, [`Error::Lost`], [`Error::TimedOut`] after [`SessionLimits::connect`], [`Error::Cancelled`].
    pub async fn open(&self, host: &str, port: u16) -> Result<Stream, Error> {
        self.within(self.limits.connect, "the channel", self.connection.open(host, port)).await
    }

    /// Ends a wait by its limit, or by the token.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        doing: &str,
        wait: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let doing = || format!("{doing} on {}", self.connection.address);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::Cancelled { doing: doing() }),
            outcome = timeout(limit, wait) => {
                outcome.unwrap_or_else(|_| Err(Error::TimedOut { doing: doing(), last: None }))
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("address", &self.connection.address).finish_non_exhaustive()
    }
}

/// A login that lasts until it is dropped: whoever needs a session gets the one there is, or a new one when that was
/// lost. It runs no command.
pub struct Link {
    target: Target,
    pub(super) limits: SessionLimits,
    patience: Duration,
    pub(super) cancel: CancellationToken,
    session: Mutex<Arc<Session>>,
}

impl Link {
    /// Logs in. Each later login may take as long, shows the same host keys, and is made when a session is asked for.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](crate::ssh::connect).
    pub async fn open(
        mut target: Target,
        limits: SessionLimits,
        patience: Duration,
        cancel: CancellationToken,
    ) -> Result<Self, Error> {
        let session = log_in(&target, &limits, Instant::now() + patience, &cancel).await?;
        target.pin = Some(Pin::from(session.host_key().clone()));
        if let (Some(bastion), Some(key)) = (&mut target.bastion, session.bastion_host_key()) {
            bastion.pin = Some(Pin::from(key.clone()));
        }
        Ok(Self { target, limits, patience, cancel, session: Mutex::new(Arc::new(session)) })
    }

    /// A session whose connection was there a moment ago.
    ///
    /// # Errors
    ///
    /// Those of a login, where one is needed.
    pub async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut session = self.session.lock().await;
        if session.is_lost() {
            let deadline = Instant::now() + self.patience;
            *session = Arc::new(log_in(&self.target, &self.limits, deadline, &self.cancel).await?);
        }
        Ok(session.clone())
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").field("address", &self.target.address()).finish_non_exhaustive()
    }
}

/// How often a refused login is tried. A machine that bans whoever is refused often (fail2ban: five times in ten
/// minutes) has to let in whoever corrects the password, too.
const LOGINS: u32 = 3;

/// Connects, logs in and sees a command run, and tries again while the server is still coming up.
///
/// What may pass is tried again until the deadline: a refused or reset connection, no banner, a login that works while
/// no command runs. A refused login is tried again for [`SessionLimits::denied`] only, and three times at most: a
/// server that cannot be reached after that may have banned us. A host key that the pin refuses, a key that cannot be
/// read and a server that is too old end it at once. The token ends this wait and every later one of the session. May
/// be dropped while it waits.
///
/// # Errors
///
/// [`Error::BadKey`] and [`Error::EncryptedKey`] before anything is sent; [`Error::HostKeyChanged`] before any
/// credential is; [`Error::Incompatible`], [`Error::Denied`]; [`Error::TimedOut`], with the last failure, at the
/// deadline; [`Error::Cancelled`].
pub async fn connect(
    target: &Target,
    limits: &SessionLimits,
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
    limits: &SessionLimits,
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
    limits: &SessionLimits,
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

async fn attempt(hop: &Hop, limits: &SessionLimits, wanted: Wanted) -> Result<Connection, Error> {
    let connection = hop.reach(limits).await?;
    if wanted == Wanted::Commands {
        ready(&connection, limits).await?;
    }
    Ok(connection)
}

/// Sees a command run: a machine that boots lets people in before it works, and some users have no shell.
async fn ready(connection: &Connection, limits: &SessionLimits) -> Result<(), Error> {
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
fn least_pause(error: &Error, limits: &SessionLimits) -> Duration {
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
