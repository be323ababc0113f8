//! Sessions: commands and channels over one connection, and the wait for a server that is still starting.

use std::{fmt, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Error, HostKey, Output, Pin, SessionLimits, Stream, Target,
    connection::{Connection, Hop, patience},
};

/// The largest number of concurrent commands. sshd accepts ten sessions (MaxSessions); further ones wait.
const SESSIONS: usize = 8;

/// A login to a server that runs commands.
///
/// Usable from several tasks. The connection closes when it and every [`Stream`], [`Body`](crate::Body) and
/// [`Forward`](crate::Forward) of it are dropped. A stream with half a megabyte of unread data blocks everything
/// else on the connection: read it, or drop it.
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

    /// The server's host key. The caller should keep it if the target had no pin.
    pub fn host_key(&self) -> &HostKey {
        &self.connection.host_key
    }

    /// The bastion's host key.
    pub fn bastion_host_key(&self) -> Option<&HostKey> {
        self.connection.bastion.as_deref().map(|bastion| &bastion.host_key)
    }

    /// Whether the connection has ended, so that a new [`connect`](crate::connect) is needed.
    pub fn is_lost(&self) -> bool {
        self.connection.facts.is_gone()
    }

    /// Runs a command in the user's shell, with `stdin` as its input, and waits until it ends.
    ///
    /// Every user of the instance can read a command line: send secrets and scripts (`sh -s`) in `stdin`. A process
    /// that the command left behind with open outputs is waited for at most two seconds.
    ///
    /// Cancel-safe: when dropped, the input of the command ends and its writes fail.
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

    /// Runs a script in `sh`, whatever the user's shell is. [`Output::stdout`] is what the script wrote, without what
    /// the login's start files wrote around it. The arguments are `$1` and so on, and the input is empty. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Those of [`Session::run`]; [`Error::NotRun`] if the answer is not whole.
    pub async fn script(&self, script: &str, arguments: &[&str]) -> Result<Output, Error> {
        self.within(self.limits.command, "the command", async {
            let _permit = self.sessions.acquire().await.map_err(|_| self.connection.lost())?;
            self.connection.script(script, arguments, self.limits.output).await
        })
        .await
    }

    /// Opens a connection to a host and port as the server sees them; `127.0.0.1` is the server itself.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if no process listens there, [`Error::Forbidden`] if the server permits no such
    /// connections, [`Error::Lost`], [`Error::TimedOut`] after [`SessionLimits::connect`], [`Error::Cancelled`].
    pub async fn open(&self, host: &str, port: u16) -> Result<Stream, Error> {
        self.within(self.limits.connect, "the channel", self.connection.open(host, port)).await
    }

    /// Waits at most as long as the limit, and until the token is cancelled.
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

/// A login that is repeated when its session was lost, until it is dropped. It runs no command.
pub struct Link {
    target: Target,
    pub(super) limits: SessionLimits,
    patience: Duration,
    pub(super) cancel: CancellationToken,
    session: Mutex<Arc<Session>>,
}

impl Link {
    /// Logs in. Later logins are made on demand, with the same time limit, and must show the same host keys.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](crate::connect).
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

    /// The current session, or a new one if it was lost.
    ///
    /// # Errors
    ///
    /// Those of a login, if one is needed.
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

/// The number of attempts of a refused login. Below the limit of servers that ban clients (fail2ban: five refusals in
/// ten minutes), so that a corrected password is accepted.
const LOGINS: u32 = 3;

/// Connects, logs in and runs a test command, and repeats this while the server is still starting.
///
/// Temporary failures are repeated until the deadline: a refused or reset connection, no banner, a login without a
/// working command. A refused login is repeated only for [`SessionLimits::denied`], and three times at most: a server
/// that is unreachable afterwards may have banned this client. A rejected host key, an unreadable key and a server that
/// is too old end it at once. The token ends this wait and every later one of the session. Cancel-safe.
///
/// # Errors
///
/// [`Error::BadKey`] and [`Error::EncryptedKey`] before anything is sent; [`Error::HostKeyChanged`] before any
/// credential is sent; [`Error::Incompatible`], [`Error::Denied`], [`Error::Excluded`]; [`Error::TimedOut`], with the
/// last failure, at the deadline; [`Error::Cancelled`].
pub async fn connect(
    target: &Target,
    limits: &SessionLimits,
    deadline: Instant,
    cancel: &CancellationToken,
) -> Result<Session, Error> {
    establish(target, limits, deadline, cancel, Wanted::Commands).await
}

/// The same without a test command, for a user who may only open connections.
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

/// The purpose of a login.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Commands and connections.
    Commands,
    /// Connections only.
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
    let attempts = (|| attempt(&hop, limits, deadline, wanted))
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
        // A refusal of the credentials is the result, not the time limit.
        (None, Some(denied @ Error::Denied { .. })) => Err(denied),
        (None, last) => {
            Err(Error::TimedOut { doing: format!("the connection to {address}"), last: last.map(Box::new) })
        }
    }
}

async fn attempt(hop: &Hop, limits: &SessionLimits, deadline: Instant, wanted: Wanted) -> Result<Connection, Error> {
    let connection = hop.reach(limits, deadline).await?;
    if wanted == Wanted::Commands {
        ready(&connection, limits, deadline).await?;
    }
    Ok(connection)
}

/// Runs a script that does nothing: an instance that starts accepts logins before commands work, and some users have no
/// shell.
async fn ready(connection: &Connection, limits: &SessionLimits, deadline: Instant) -> Result<(), Error> {
    let ran = timeout(patience(limits, deadline), connection.script(":", &[], limits.output)).await;
    let reason = match ran {
        Err(_) => "it does not finish".to_owned(),
        Ok(Ok(output)) if output.is_success() => return Ok(()),
        Ok(Ok(output)) => output.ended(),
        Ok(Err(Error::NotRun { reason })) => reason,
        Ok(Err(error)) => return Err(error),
    };
    Err(Error::NotReady { address: connection.address.clone(), reason })
}

fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Lost { .. } | Error::NotReady { .. } | Error::Unreachable { .. })
}

/// The pause between refused logins. They are spread over the allowed time, since the key may be installed at any
/// moment.
fn least_pause(error: &Error, limits: &SessionLimits) -> Duration {
    if matches!(error, Error::Denied { .. }) { limits.denied / (LOGINS - 1) } else { Duration::ZERO }
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
