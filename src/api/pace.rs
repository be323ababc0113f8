//! How many requests at once, and how many a second.

use std::{sync::Mutex, time::Duration};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};

use crate::api::settings::{RequestRate, Settings};

/// The limits that every request passes.
#[derive(Debug)]
pub(super) struct Pace {
    slots: Semaphore,
    bucket: Option<Bucket>,
}

impl Pace {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            slots: Semaphore::new(settings.max_concurrent_requests.get().min(Semaphore::MAX_PERMITS)),
            bucket: settings.requests_per_second.map(Bucket::new),
        }
    }

    /// Waits for a slot and for the rate. Cancel-safe: a dropped wait gives its slot back (not its token).
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        let slot = self.slots.acquire().await.ok();
        if let Some(bucket) = &self.bucket {
            bucket.take().await;
        }
        slot
    }
}

/// A token bucket that holds one second's worth, one token at least.
#[derive(Debug)]
struct Bucket {
    interval: Duration,
    burst: Duration,
    /// When the bucket would be full again, if nobody took from it.
    full_at: Mutex<Instant>,
}

impl Bucket {
    fn new(rate: RequestRate) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate.per_second()).unwrap_or(Duration::MAX / 4);
        let burst = interval.max(Duration::from_secs(1));
        Self { interval, burst, full_at: Mutex::new(Instant::now()) }
    }

    async fn take(&self) {
        let turn = {
            let mut full_at = self.full_at.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let filled = (*full_at).max(Instant::now()) + self.interval;
            *full_at = filled;
            filled.checked_sub(self.burst)
        };
        if let Some(turn) = turn {
            sleep_until(turn).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bucket_lets_a_second_through_at_once_and_then_keeps_the_rate() {
        let bucket = Bucket::new(RequestRate::try_new(5.0).unwrap());
        let start = Instant::now();
        for _ in 0..5 {
            bucket.take().await;
        }
        assert!(start.elapsed() < Duration::from_millis(10));
        for _ in 0..10 {
            bucket.take().await;
        }
        assert_eq!(start.elapsed().as_millis().div_ceil(100), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_rate_holds_one_token() {
        let bucket = Bucket::new(RequestRate::try_new(0.5).unwrap());
        let start = Instant::now();
        bucket.take().await;
        bucket.take().await;
        assert_eq!(start.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_given_back() {
        let settings = Settings { max_concurrent_requests: std::num::NonZeroUsize::MIN, ..Settings::default() };
        let pace = Pace::new(&settings);
        let held = pace.enter().await;
        let waiting = tokio::time::timeout(Duration::from_secs(1), pace.enter()).await;
        assert!(waiting.is_err());
        drop(held);
        assert!(pace.enter().await.is_some());
    }
}
