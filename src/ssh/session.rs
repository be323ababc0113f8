//! A login that lasts: commands, channels, over one connection.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Error, HostKey, Limits, Output, Pin, Stream, Target, connection::Connection, log_in};

/// What sshd takes of sessions at a time is ten (MaxSessions); more have to wait here.
const SESSIONS: usize = 8;

/// A server that we are logged in to, and that runs commands.
///
/// Usable from several tasks at once. Its connection ends when it and every [`Stream`], [`Body`](crate::ssh::Body)
/// and [`Forward`](crate::ssh::Forward) of it are dropped. A stream that is not read holds up everything else on the
/// connection once half a megabyte waits in it: read it, or drop it.
pub struct Session {
    pub(super) connection: Connection,
    pub(super) limits: Limits,
    pub(super) cancel: CancellationToken,
    sessions: Semaphore,
}

impl Session {
    pub(super) fn new(connection: Connection, limits: Limits, cancel: CancellationToken) -> Self {
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
    /// [`Error::NotRun`], [`Error::Lost`], [`Error::TimedOut`] after [`Limits::command`], [`Error::Cancelled`].
    #[tracing::instrument(
        name = "ssh",
        level = "info",
        skip_all,
        fields(step = "run", address = %self.connection.address)
    )]
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
    /// connections, [`Error::Lost`], [`Error::TimedOut`] after [`Limits::connect`], [`Error::Cancelled`].
    #[tracing::instrument(
        name = "ssh",
        level = "info",
        skip_all,
        fields(step = "open", address = %self.connection.address)
    )]
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
    pub(super) limits: Limits,
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
        limits: Limits,
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
