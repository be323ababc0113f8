//! The time limit and cancellation of an operation, and the service's clock.

use std::{
    future::Future,
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use terraform_plugin::process;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{endpoint::Endpoint, error::Error};

/// The limits of an operation: a cancellation token and a deadline, passed to every call.
///
/// ```no_run
/// # use std::time::Duration;
/// use damodel_client::api::Context;
/// use tokio_util::sync::CancellationToken;
///
/// let cancel = CancellationToken::new();
/// let context = Context::within(Duration::from_secs(120), &cancel);
/// ```
#[derive(Debug, Clone)]
pub struct Context {
    /// Cancelled to stop the operation at once.
    pub cancel: CancellationToken,
    /// The latest end of the operation.
    pub deadline: Instant,
}

/// Why an operation ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Cancelled,
    DeadlinePassed,
}

impl Ended {
    pub(crate) fn error(self, endpoint: Endpoint) -> Error {
        match self {
            Self::Cancelled => Error::Cancelled { endpoint },
            Self::DeadlinePassed => Error::DeadlinePassed { endpoint },
        }
    }
}

impl Context {
    /// A context that ends this long from now.
    #[must_use]
    pub fn within(limit: Duration, cancel: &CancellationToken) -> Self {
        Self { cancel: cancel.clone(), deadline: Instant::now() + limit }
    }

    /// The same cancellation with a deadline at most this long from now.
    #[must_use]
    pub fn at_most(&self, limit: Duration) -> Self {
        Self { cancel: self.cancel.clone(), deadline: self.deadline.min(Instant::now() + limit) }
    }

    /// The time that is left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Fails if the operation is over.
    pub(crate) fn check(&self) -> Result<(), Ended> {
        if self.cancel.is_cancelled() {
            Err(Ended::Cancelled)
        } else if self.remaining().is_zero() {
            Err(Ended::DeadlinePassed)
        } else {
            Ok(())
        }
    }

    /// Completes when the operation is over. Cancel-safe.
    pub(crate) async fn ended(&self) -> Ended {
        tokio::select! {
            () = self.cancel.cancelled() => Ended::Cancelled,
            () = sleep_until(self.deadline) => Ended::DeadlinePassed,
        }
    }

    /// Runs `work` until it completes or the operation is over; then `work` is dropped.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Ended> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            ended = self.ended() => Err(ended),
        }
    }

    /// Runs a file operation, which may stall, on a thread of its own. `None` if this operation is over first.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.run(process::blocking(work)).await.ok()
    }

    /// Sleeps, unless the operation is over first.
    pub(crate) async fn sleep(&self, duration: Duration) -> Result<(), Ended> {
        self.run(tokio::time::sleep(duration)).await
    }
}

/// The smallest difference between two clocks that counts: a `Date` header has whole seconds and takes time to arrive.
const TOLERANCE: i64 = 2;

/// This computer's clock, corrected by the service's `Date` headers.
#[derive(Debug, Default)]
pub(super) struct CorrectedClock {
    offset: AtomicI64,
}

impl CorrectedClock {
    /// The service's time in Unix seconds, and the offset used to compute it.
    pub(super) fn now(&self) -> (i64, i64) {
        let offset = self.offset.load(Ordering::Relaxed);
        (machine_time() + offset, offset)
    }

    /// Adopts the service's time; `true` if a request made with the offset `used` should be repeated.
    pub(super) fn correct(&self, server_time: i64, used: i64) -> bool {
        let offset = server_time - machine_time();
        if (self.offset.load(Ordering::Relaxed) - offset).abs() >= TOLERANCE {
            self.offset.store(offset, Ordering::Relaxed);
        }
        (used - offset).abs() >= TOLERANCE
    }
}

fn machine_time() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_differs_is_corrected_once() {
        let clock = CorrectedClock::default();
        let (now, used) = clock.now();
        assert!(clock.correct(now - 3600, used));
        let (corrected, used) = clock.now();
        assert!((corrected - (now - 3600)).abs() <= 1);
        assert!(!clock.correct(corrected, used));
    }
}
