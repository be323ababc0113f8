//! The service's clock, as far as we know it.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// How far two clocks must be apart to be called different: a `Date` has whole seconds, and travels.
const TOLERANCE: i64 = 2;

/// This computer's clock with the correction that the service taught us.
#[derive(Debug, Default)]
pub(super) struct Clock {
    offset: AtomicI64,
}

impl Clock {
    /// The service's time, in Unix seconds, and the offset that it was made with.
    pub(super) fn now(&self) -> (i64, i64) {
        let offset = self.offset.load(Ordering::Relaxed);
        (machine_time() + offset, offset)
    }

    /// Takes over the service's time; `true` when a request made with `used` is worth repeating.
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
        let clock = Clock::default();
        let (now, used) = clock.now();
        assert!(clock.correct(now - 3600, used));
        let (corrected, used) = clock.now();
        assert!((corrected - (now - 3600)).abs() <= 1);
        assert!(!clock.correct(corrected, used));
    }
}
