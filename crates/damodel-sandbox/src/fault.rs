//! Faults: failures between a client and the service, on demand.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{random::RandomStream, refusal::Code};

/// A fault, armed for one endpoint. As JSON (`POST /sandbox/faults`):
/// `{"endpoint": "instance_create", "when": {"next": 1}, "action": "drop_after"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The endpoint's name; `*` is every endpoint. The names: `chat_completions`; `instance_` and `create`, `list`,
    /// `detail`, `rename`, `release`; `cloud_disk_` and `create`, `list`, `rename`, `resize`, `release`, `spec_list`;
    /// `public_image_list`, `private_image_list`, `image_save`, `image_rename`, `image_delete`; `spec_list`.
    pub endpoint: String,
    /// The calls that it strikes.
    pub when: When,
    /// Its effect.
    pub action: FaultAction,
}

/// The calls that a fault strikes. Only calls to its endpoint count, from the moment it was armed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// On every call.
    Always,
    /// On the next calls, this many.
    Next(u32),
    /// On one call: 1 is the next.
    Nth(u32),
    /// On each call with this probability, 0 … 1, drawn from the sandbox's seed.
    Probability(f64),
}

/// The effect of a fault. "Processed" means that the service acts as usual, so that only the answer is affected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Processed; a streamed chat answer ends after this many events, without an error and without `[DONE]`.
    CutStream {
        /// The number of events that are sent.
        events: u32,
    },
    /// Processed; then the connection is closed without an answer.
    DropAfter,
    /// Not processed; the connection is closed without an answer.
    DropBefore,
    /// A documented error.
    Error {
        /// Its number.
        code_n: Code,
        /// Whether the request is processed anyway.
        #[serde(default)]
        processed: bool,
    },
    /// The instance that this call creates becomes Failed, the cloud disk Released (no status means a failed creation),
    /// and the private image is removed.
    FailCreation,
    /// No answer until the client disconnects, or until the limit, when the connection is closed.
    Hang {
        /// The limit in milliseconds.
        limit_ms: u64,
        /// Whether the request is processed first.
        #[serde(default)]
        processed: bool,
    },
    /// An HTML page with this status, as from a proxy.
    Html {
        /// The HTTP status.
        status: u16,
        /// Whether the request is processed.
        #[serde(default)]
        processed: bool,
    },
    /// Lists and details hide what this call creates for a time and for a number of reads.
    LateVisibility {
        /// The time in milliseconds of the life clock.
        #[serde(default)]
        ms: u64,
        /// The number of reads that would have shown it.
        #[serde(default)]
        reads: u32,
    },
    /// Processed; a successful result has a shape that the document does not name.
    Misshapen {
        /// The shape.
        shape: Shape,
    },
    /// Processed; the answer comes late.
    Slow {
        /// By this many milliseconds.
        ms: u64,
    },
    /// Processed; each event of a streamed chat answer comes late.
    SlowStream {
        /// By this many milliseconds.
        ms: u64,
    },
    /// An HTTP status with a body that is not an envelope, as from a gateway.
    Status {
        /// The HTTP status.
        status: u16,
        /// Whether the request is processed.
        #[serde(default)]
        processed: bool,
    },
    /// The instance that this call creates stays Creating, the cloud disk Starting, the private image without progress.
    StickCreation,
    /// Processed; a streamed chat answer sends this many events, then one with an error, and ends.
    StreamError {
        /// The number of events before it.
        events: u32,
    },
    /// 429, not processed.
    TooManyRequests {
        /// The Retry-After header in seconds; `None`: no header.
        retry_after_seconds: Option<u64>,
    },
    /// Processed; the body of the answer is cut in the middle.
    Truncated,
}

/// A shape of a result that the document does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `{}`.
    Empty,
    /// `0`.
    Number,
    /// The records under `items`, not `data`.
    Renamed,
    /// `"…"`.
    Text,
}

impl Shape {
    /// The result in this shape.
    pub(super) fn of(self, result: Value) -> Value {
        match (self, result) {
            (Self::Empty, _) => json!({}),
            (Self::Number, _) => json!(0),
            (Self::Renamed, Value::Object(mut fields)) => {
                let data = fields.remove("data").unwrap_or_default();
                fields.insert("items".to_owned(), data);
                Value::Object(fields)
            }
            (Self::Renamed, other) => json!({ "items": other }),
            (Self::Text, _) => json!("moved to another place"),
        }
    }
}

impl FaultAction {
    /// The action's name in ledgers, as in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::CutStream { .. } => "cut_stream",
            Self::DropAfter => "drop_after",
            Self::DropBefore => "drop_before",
            Self::Error { .. } => "error",
            Self::FailCreation => "fail_creation",
            Self::Hang { .. } => "hang",
            Self::Html { .. } => "html",
            Self::LateVisibility { .. } => "late_visibility",
            Self::Misshapen { .. } => "misshapen",
            Self::Slow { .. } => "slow",
            Self::SlowStream { .. } => "slow_stream",
            Self::Status { .. } => "status",
            Self::StickCreation => "stick_creation",
            Self::StreamError { .. } => "stream_error",
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::Truncated => "truncated",
        }
    }

    /// Whether it decides how the answer is delivered; a call can have one such fault, and any number of others.
    fn is_delivery(&self) -> bool {
        !matches!(
            self,
            Self::FailCreation
                | Self::LateVisibility { .. }
                | Self::Misshapen { .. }
                | Self::Slow { .. }
                | Self::SlowStream { .. }
                | Self::StickCreation
        )
    }

    /// Whether the service acts on the request.
    pub(super) fn is_processed(&self) -> bool {
        match self {
            Self::DropBefore | Self::TooManyRequests { .. } => false,
            Self::Error { processed, .. }
            | Self::Hang { processed, .. }
            | Self::Html { processed, .. }
            | Self::Status { processed, .. } => *processed,
            Self::CutStream { .. }
            | Self::DropAfter
            | Self::FailCreation
            | Self::LateVisibility { .. }
            | Self::Misshapen { .. }
            | Self::Slow { .. }
            | Self::SlowStream { .. }
            | Self::StickCreation
            | Self::StreamError { .. }
            | Self::Truncated => true,
        }
    }
}

/// An armed fault, with its number and its counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmedFault {
    /// Its number, from 1.
    pub id: u64,
    /// The fault.
    pub fault: Fault,
    /// How many calls its endpoint had since it was armed.
    pub calls: u32,
    /// How often it struck.
    pub strikes: u32,
}

impl ArmedFault {
    fn strikes_now(&self, random: &mut RandomStream) -> bool {
        match self.fault.when {
            When::Always => true,
            When::Next(count) => self.calls <= count,
            When::Nth(number) => self.calls == number,
            When::Probability(probability) => random.happens(probability),
        }
    }
}

/// All armed faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    last_id: u64,
    armed: Vec<ArmedFault>,
}

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) -> u64 {
        self.last_id += 1;
        self.armed.push(ArmedFault { id: self.last_id, fault, calls: 0, strikes: 0 });
        self.last_id
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
    }

    pub(super) fn armed(&self) -> &[ArmedFault] {
        &self.armed
    }

    /// The actions that strike this call, in the order in which they were armed. If two decide the delivery, the first
    /// wins; the call counts for both.
    pub(super) fn strike(&mut self, endpoint: &str, random: &mut RandomStream) -> Vec<FaultAction> {
        let mut actions: Vec<FaultAction> = Vec::new();
        for armed in
            self.armed.iter_mut().filter(|armed| armed.fault.endpoint == "*" || armed.fault.endpoint == endpoint)
        {
            armed.calls = armed.calls.saturating_add(1);
            let is_taken = armed.fault.action.is_delivery() && actions.iter().any(FaultAction::is_delivery);
            if armed.strikes_now(random) && !is_taken {
                armed.strikes += 1;
                actions.push(armed.fault.action.clone());
            }
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(when: When, calls: usize) -> Vec<bool> {
        let mut faults = Faults::default();
        faults.arm(Fault { endpoint: "instance_list".to_owned(), when, action: FaultAction::DropAfter });
        let mut random = RandomStream::new(3, 3);
        (0..calls).map(|_| !faults.strike("instance_list", &mut random).is_empty()).collect()
    }

    #[test]
    fn faults_strike_when_they_should() {
        assert_eq!(struck(When::Always, 3), [true, true, true]);
        assert_eq!(struck(When::Next(2), 3), [true, true, false]);
        assert_eq!(struck(When::Nth(2), 3), [false, true, false]);
        assert_eq!(struck(When::Probability(0.0), 3), [false, false, false]);
        assert_eq!(struck(When::Probability(1.0), 3), [true, true, true]);
        let half = struck(When::Probability(0.5), 200).into_iter().filter(|&strikes| strikes).count();
        assert!((60..140).contains(&half), "{half}");
    }

    #[test]
    fn other_endpoints_are_spared_and_one_delivery_wins() {
        let mut faults = Faults::default();
        let fault = |endpoint: &str, action| Fault { endpoint: endpoint.to_owned(), when: When::Always, action };
        faults.arm(fault("instance_list", FaultAction::DropAfter));
        faults.arm(fault("*", FaultAction::Truncated));
        faults.arm(fault("*", FaultAction::Slow { ms: 5 }));
        let mut random = RandomStream::new(1, 1);
        assert_eq!(faults.strike("instance_list", &mut random), [FaultAction::DropAfter, FaultAction::Slow { ms: 5 }]);
        assert_eq!(faults.strike("spec_list", &mut random), [FaultAction::Truncated, FaultAction::Slow { ms: 5 }]);
    }
}
