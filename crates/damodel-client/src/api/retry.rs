//! The rules of repetition: which requests are sent again, the schedules, the service's Retry-After, and the limit on
//! concurrent requests.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::Instant,
};

use super::{
    code::Code,
    endpoint::Effect,
    error::Error,
    settings::{Random, Settings},
};

/// Whether a failed request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// As often as the settings allow.
    AsConfigured,
    /// As often as the settings allow, unless the answer is [too much](super::error::Error::is_too_much).
    UnlessTooMuch,
    /// Not at all: the caller has a schedule of its own.
    Never,
}

impl Error {
    /// Whether a retry may succeed and can do no harm.
    ///
    /// For reads and repeatable changes: failed connections, lost answers, 429, 5xx, 100014 and truncated answers. For
    /// creates: only errors with [`Error::nothing_was_processed`]. A rejected token is handled before this check and is
    /// final here.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let Some(endpoint) = self.endpoint() else {
            return false;
        };
        if self.refuses_token() {
            return false;
        }
        if endpoint.effect() == Effect::Creates {
            return self.nothing_was_processed();
        }
        match self {
            Self::NeverSent { .. } | Self::NoAnswer { .. } | Self::Undecodable(_) => true,
            Self::UndocumentedStatus(answer) => is_transient(answer.status),
            Self::Service(error) => match error.code {
                Code::InternalError => true,
                Code::Other(_) => is_transient(error.status),
                _ => self.is_limited(),
            },
            _ => false,
        }
    }

    /// Whether the service certainly processed nothing: the connection failed, 429, or a refused token.
    ///
    /// Never for 5xx, 100014 or a timeout: an object may have been created.
    #[must_use]
    pub fn nothing_was_processed(&self) -> bool {
        matches!(self, Self::NeverSent { .. })
            || self.is_limited()
            || self.refuses_token()
            || self.service().is_some_and(|error| error.code == Code::InvalidToken)
    }

    /// Whether the service asks for fewer requests (429).
    pub(super) fn is_limited(&self) -> bool {
        match self {
            Self::Service(error) => error.status == 429,
            Self::UndocumentedStatus(answer) => answer.status == 429,
            _ => false,
        }
    }
}

/// Whether another answer may follow this status.
fn is_transient(status: u16) -> bool {
    status == 408 || status == 425 || status == 429 || status >= 500
}

/// Between attempts of a request; the number is the setting's.
pub(crate) const REQUEST: ExponentialBuilder = schedule(500, 2.0, 20_000);
/// While the service has no stock.
pub(crate) const STOCK: ExponentialBuilder = schedule(5000, 2.0, 60_000);
/// Between rounds over candidates without stock. Stock changes while they are requested, so one round proves little.
/// Less than ten seconds in all.
pub(crate) const ROUNDS: ExponentialBuilder = schedule(500, 2.0, 1000).with_max_times(5);
/// While the service is busy with another request of the same kind.
pub(crate) const BUSY: ExponentialBuilder = schedule(2000, 2.0, 20_000);
/// Between requests for a piece of a file at an address; the number is the setting's.
pub(super) const PIECE: ExponentialBuilder = schedule(250, 2.0, 5000);
/// Between looks for an object whose create returned no id.
pub(crate) const SEARCH: ExponentialBuilder = schedule(500, 2.0, 10_000);
/// After failed looks of the poller.
pub(super) const FAILED_LOOK: ExponentialBuilder = schedule(500, 2.0, 30_000);
/// Before a token program that has worked is run again.
pub(super) const TOKEN_PROGRAM: ExponentialBuilder = schedule(2000, 4.0, 20_000).with_max_times(3);

const fn schedule(first_ms: u64, factor: f32, longest_ms: u64) -> ExponentialBuilder {
    let first = ExponentialBuilder::new().with_min_delay(Duration::from_millis(first_ms));
    first.with_factor(factor).with_max_delay(Duration::from_millis(longest_ms)).without_max_times()
}

/// The waits of a schedule, each lengthened by up to as much again at random.
pub(crate) fn waits(schedule: ExponentialBuilder, random: &Random) -> ExponentialBackoff {
    schedule.with_jitter().with_jitter_seed(random.next()).build()
}

/// The longest `Retry-After` that is followed at a time.
const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// `Retry-After`, in either form of HTTP (seconds, or a date), and at most a minute.
pub(super) fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(LONGEST_HOLD),
        Err(_) => Duration::from_secs(u64::try_from(http_date(text)? - now).unwrap_or(0)),
    };
    Some(wait.min(LONGEST_HOLD))
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
    hold: watch::Sender<Hold>,
}

/// Whether the service has asked all requests to wait (429 with Retry-After).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Open,
    Until(Instant),
    /// The hold has ended, and one request goes first.
    Probed,
}

/// The permission to send one request.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    pace: &'a Pace,
    first: Option<FirstRequest<'a>>,
    _slot: Option<SemaphorePermit<'a>>,
}

/// The request that goes first after a hold. When it ends, the others follow, unless it was the cause of another hold.
#[derive(Debug)]
struct FirstRequest<'a>(&'a Pace);

impl Pace {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            slots: Semaphore::new(settings.max_concurrent_requests.get().min(Semaphore::MAX_PERMITS)),
            hold: watch::Sender::new(Hold::Open),
        }
    }

    /// Waits for the end of a hold and for a slot. Cancel-safe: a dropped wait returns its slot.
    pub(super) async fn enter(&self) -> Admission<'_> {
        loop {
            let first = self.end_of_hold().await;
            let admission = Admission { pace: self, first, _slot: self.enter_chat().await };
            if admission.first.is_some() || *self.hold.borrow() == Hold::Open {
                return admission;
            }
        }
    }

    /// The same for the chat endpoint, whose limits are its own.
    pub(super) async fn enter_chat(&self) -> Option<SemaphorePermit<'_>> {
        self.slots.acquire().await.ok()
    }

    /// Waits until no hold is in force. Cancel-safe.
    async fn end_of_hold(&self) -> Option<FirstRequest<'_>> {
        let mut changes = self.hold.subscribe();
        loop {
            let hold = *changes.borrow_and_update();
            match hold {
                Hold::Open => return None,
                Hold::Until(end) if end <= Instant::now() => {
                    if self.hold.send_if_modified(|now| *now == hold && std::mem::replace(now, Hold::Probed) == hold) {
                        return Some(FirstRequest(self));
                    }
                }
                Hold::Until(end) => {
                    let _ = tokio::time::timeout_at(end, changes.changed()).await;
                }
                Hold::Probed => drop(changes.changed().await),
            }
        }
    }
}

impl Admission<'_> {
    /// Makes all requests wait, if the service says how long. `true` if no wait was on, or if this request was the
    /// first one after it.
    pub(super) fn hold(&self, wait: Option<Duration>) -> bool {
        let mut is_first = false;
        self.pace.hold.send_if_modified(|hold| {
            is_first = self.first.is_some() || *hold == Hold::Open;
            if let Some(wait) = wait {
                let end = Instant::now() + wait;
                *hold = Hold::Until(if let Hold::Until(other) = *hold { other.max(end) } else { end });
            }
            wait.is_some()
        });
        is_first
    }
}

impl Drop for FirstRequest<'_> {
    fn drop(&mut self) {
        self.0.hold.send_if_modified(|hold| {
            let is_over = *hold == Hold::Probed;
            if is_over {
                *hold = Hold::Open;
            }
            is_over
        });
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
    #[case("3600", Some(60_000))]
    #[case("1e99", Some(60_000))]
    #[case("Mon, 07 Nov 1994 08:49:37 GMT", Some(60_000))]
    #[case("soon", None)]
    fn retry_after_in_both_forms(#[case] header: &str, #[case] milliseconds: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, header.parse().unwrap());
        assert_eq!(retry_after(&headers, 784_111_767), milliseconds.map(Duration::from_millis));
    }

    #[test]
    fn schedule_ends_after_the_configured_number() {
        let random = Random::default();
        let found: Vec<_> = waits(REQUEST.with_max_times(3), &random).collect();
        assert_eq!(found.len(), 3);
        for (wait, least) in found.iter().zip([500, 1000, 2000]) {
            let least = Duration::from_millis(least);
            assert!((least..=2 * least).contains(wait), "{wait:?}");
        }
        assert_eq!(waits(REQUEST.with_max_times(0), &random).count(), 0);
    }

    #[test]
    fn wait_for_stock_does_not_end() {
        let last = waits(STOCK, &Random::default()).nth(200).unwrap();
        assert!(last >= Duration::from_secs(60) && last <= Duration::from_secs(120), "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_given_back() {
        let settings = Settings { max_concurrent_requests: std::num::NonZeroUsize::MIN, ..Settings::default() };
        let pace = Pace::new(&settings);
        let held = pace.enter().await;
        let waiting = tokio::time::timeout(Duration::from_secs(1), pace.enter()).await;
        assert!(waiting.is_err());
        drop(held);
        pace.enter().await;
    }
}
