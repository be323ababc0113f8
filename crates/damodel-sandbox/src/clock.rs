//! The two clocks of the sandbox, and the durations of its state changes.
//!
//! The *wall clock* is the computer's, shifted by [`Form::clock_skew`](super::Form); the token check and the Date
//! header use it. The *life clock* moves objects through their states and sets the times of records. It runs with
//! tokio's time (so a test that pauses tokio's time pauses the sandbox), or stands still until it is advanced.
//! Advancing it leaves the wall clock alone, so a client is never refused because a test skipped an hour.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::options::{LifeClock, Options};

#[derive(Debug)]
pub(super) struct Clock {
    life: LifeClock,
    origin_ms: i64,
    started: Instant,
}

impl Clock {
    pub(super) fn new(life: LifeClock) -> Self {
        let origin_ms = match life {
            LifeClock::Running => Timestamp::now().as_millisecond(),
            LifeClock::Standing(seconds) => seconds.saturating_mul(1000),
        };
        Self { life, origin_ms, started: Instant::now() }
    }

    /// The life clock in Unix milliseconds, advanced by hand and off by `skew` seconds (a standing clock is never off).
    pub(super) fn life_ms(&self, advanced_ms: i64, skew: i64) -> i64 {
        let advanced_ms = self.origin_ms.saturating_add(advanced_ms);
        match self.life {
            LifeClock::Running => advanced_ms
                .saturating_add(milliseconds(self.started.elapsed()))
                .saturating_add(skew.saturating_mul(1000)),
            LifeClock::Standing(_) => advanced_ms,
        }
    }
}

/// The wall clock in Unix seconds, for a clock that is off by `skew` seconds.
pub(super) fn wall_seconds(skew: i64) -> i64 {
    Timestamp::now().as_second().saturating_add(skew)
}

/// A duration as whole milliseconds, at most 292 million years.
pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The times and limits of the [`Options`], in milliseconds of the life clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tempo {
    pub(super) creation_ms: i64,
    pub(super) release_ms: i64,
    pub(super) disk_change_ms: i64,
    pub(super) image_push_ms: i64,
    pub(super) sshd_start_ms: i64,
    pub(super) save_window_ms: i64,
    pub(super) daily_saves: u32,
}

impl Tempo {
    pub(super) fn of(options: &Options) -> Self {
        Self {
            creation_ms: milliseconds(options.creation),
            release_ms: milliseconds(options.release),
            disk_change_ms: milliseconds(options.disk_change),
            image_push_ms: milliseconds(options.image_push),
            sshd_start_ms: milliseconds(options.sshd_start),
            save_window_ms: milliseconds(options.save_window),
            daily_saves: options.daily_saves,
        }
    }
}
