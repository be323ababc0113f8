//! When to ask again: the schedule, and what the service says about it.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::api::settings::Random;

/// Whether a failed request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// As often as the settings say.
    AsConfigured,
    /// Not at all: the caller asks again on its own schedule.
    Never,
}

/// The waits between attempts: 0.5 s, doubling up to 20 s, each with up to as much again at random.
pub(super) fn schedule(max_retries: usize, random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_millis(500), Duration::from_secs(20), random).with_max_times(max_retries).build()
}

/// The waits while the service has no stock: 5 s, doubling up to a minute, with jitter, without end.
pub(super) fn patience(random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_secs(5), Duration::from_secs(60), random).without_max_times().build()
}

/// The waits while the service is busy with another request like ours: 2 s, doubling up to 20 s, with jitter,
/// without end.
pub(super) fn busy(random: &Random) -> ExponentialBackoff {
    backoff(Duration::from_secs(2), Duration::from_secs(20), random).without_max_times().build()
}

/// The waits between looks for an object whose create named none: 0.5 s, doubling up to `longest`, with jitter,
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
}
