//! A login that is made again when its connection is lost.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::ssh::{Error, Limits, Pin, Session, Target, log_in};

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
