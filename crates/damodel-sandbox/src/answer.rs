//! An HTTP answer: its content, its delivery, and the effects of faults on it.

use std::time::Duration;

use super::fault::FaultAction;

/// How an answer is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Not sent: the connection is closed.
    Drop,
    /// Not sent: the connection is closed after this time.
    Hang(Duration),
    Send,
    /// The first half is sent, then the connection is closed.
    Truncate,
}

/// The content of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Sent in portions, without a length, with a pause between them.
    Stream {
        pieces: Vec<Vec<u8>>,
        pause: Duration,
    },
    Whole(Vec<u8>),
}

/// An answer and its delivery.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) retry_after: Option<u64>,
    pub(super) body: Content,
    /// For the Date header, in Unix seconds.
    pub(super) date: i64,
    /// How long to wait before it is sent.
    pub(super) delay: Duration,
    pub(super) delivery: Delivery,
}

impl HttpAnswer {
    /// Applies a fault to a finished answer.
    pub(super) fn distort(&mut self, action: &FaultAction) {
        match action {
            FaultAction::DropAfter | FaultAction::DropBefore => self.delivery = Delivery::Drop,
            FaultAction::Hang { limit_ms, .. } => self.delivery = Delivery::Hang(Duration::from_millis(*limit_ms)),
            FaultAction::Html { status, .. } => {
                self.status = *status;
                self.content_type = "text/html";
                self.body = whole("<!DOCTYPE html><html><body><h1>The page you want is not here</h1></body></html>");
            }
            FaultAction::Slow { ms } => self.delay = Duration::from_millis(*ms),
            FaultAction::Status { status, .. } => {
                self.status = *status;
                self.content_type = "text/plain";
                self.body = whole("upstream gave no answer\n");
            }
            FaultAction::TooManyRequests { retry_after_seconds } => {
                self.status = 429;
                self.retry_after = *retry_after_seconds;
                self.content_type = "text/plain";
                self.body = whole("too many requests\n");
            }
            FaultAction::Truncated => self.delivery = Delivery::Truncate,
            // These were applied while the answer was made.
            FaultAction::CutStream { .. }
            | FaultAction::Error { .. }
            | FaultAction::FailCreation
            | FaultAction::LateVisibility { .. }
            | FaultAction::Misshapen { .. }
            | FaultAction::SlowStream { .. }
            | FaultAction::StickCreation
            | FaultAction::StreamError { .. } => {}
        }
    }
}

fn whole(text: &str) -> Content {
    Content::Whole(text.as_bytes().to_vec())
}
