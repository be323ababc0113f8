//! The schedules of repeated requests, the service's Retry-After, and the limits on concurrent requests and on requests
//! per second.

use std::{sync::Mutex, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};

use super::settings::{Random, RequestRate, Settings};

/// Whether a failed request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// As often as the settings allow.
    AsConfigured,
    /// Not at all: the caller has a schedule of its own.
    Never,
}

/// The pauses between attempts: 0.5 s, doubling up to 20 s, each with up to as much again at random.
pub(super) fn schedule(max_retries: usize, random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_millis(500), Duration::from_secs(20), random).with_max_times(max_retries).build()
}

/// The pauses while the service has no stock: 5 s, doubling up to a minute, with jitter, without end.
pub(super) fn patience(random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_secs(5), Duration::from_secs(60), random).without_max_times().build()
}

/// The pauses between rounds over a list of candidates without stock. Stock changes while the candidates are requested,
/// so one round proves little. Five pauses, 0.5 s and then 1 s, with jitter: less than ten seconds in all.
pub(super) fn rounds(random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_millis(500), Duration::from_secs(1), random).with_max_times(5).build()
}

/// The pauses while the service is busy with another request of the same kind: 2 s, doubling up to 20 s, with jitter,
/// without end.
pub(super) fn busy(random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_secs(2), Duration::from_secs(20), random).without_max_times().build()
}

/// The pauses between looks for an object whose create returned no id: 0.5 s, doubling up to `longest`, with jitter,
/// without end.
pub(super) fn looks(longest: Duration, random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_millis(500), longest, random).without_max_times().build()
}

fn backoff(first: Duration, longest: Duration, random: &Random) -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(first)
        .with_max_delay(longest)
        .with_factor(2.0)
        .with_jitter()
        .with_jitter_seed(random.next())
}

/// `Retry-After`, in either form of HTTP: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let until = http_date(text)?;
    Some(Duration::from_secs(u64::try_from(until - now).unwrap_or(0)))
}

/// The service's clock, from its `Date` header, in Unix seconds.
pub(super) fn server_time(headers: &HeaderMap) -> Option<i64> {
    http_date(headers.get(DATE)?.to_str().ok()?)
}

fn http_date(text: &str) -> Option<i64> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(text.trim()).ok().map(Timestamp::as_second)
}

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

    /// Waits for a slot and for the rate. Cancel-safe: a dropped wait returns its slot (not its token).
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        let slot = self.slots.acquire().await.ok();
        if let Some(bucket) = &self.bucket {
            bucket.take().await;
        }
        slot
    }
}

/// A token bucket with the tokens of one second, at least one.
#[derive(Debug)]
struct Bucket {
    interval: Duration,
    burst: Duration,
    /// When the bucket is full again without further requests.
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
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("3", Some(3000))]
    #[case("0.5", Some(500))]
    #[case("-1", Some(0))]
    #[case("Sun, 06 Nov 1994 08:49:37 GMT", Some(10_000))]
    #[case("Sun, 06 Nov 1994 08:49:00 GMT", Some(0))]
    #[case("soon", None)]
    fn retry_after_in_both_forms(#[case] header: &str, #[case] milliseconds: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, header.parse().unwrap());
        assert_eq!(retry_after(&headers, 784_111_767), milliseconds.map(Duration::from_millis));
    }

    #[test]
    fn schedule_ends_after_the_configured_number() {
        let random = Random::new(|| 7);
        let waits: Vec<_> = schedule(3, &random).collect();
        assert_eq!(waits.len(), 3);
        for (wait, least) in waits.iter().zip([500, 1000, 2000]) {
            let least = Duration::from_millis(least);
            assert!((least..=2 * least).contains(wait), "{wait:?}");
        }
        assert_eq!(schedule(0, &random).count(), 0);
    }

    #[test]
    fn patience_does_not_end() {
        let last = patience(&Random::new(|| 7)).nth(200).unwrap();
        assert!(last >= Duration::from_secs(60) && last <= Duration::from_secs(120), "{last:?}");
    }

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
