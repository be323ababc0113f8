//! What can go wrong between a call and its answer.

#[cfg(test)]
mod tests;

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use crate::api::{code::Code, endpoint::Effect, endpoint::Endpoint, token::TokenError};

/// Every failure of this layer.
///
/// Its text is a lowercase fragment, names the endpoint and the ids that support asks for, and never holds a
/// secret or a body. The axis of the variants is how far the request came, because that is what decides whether
/// it may be sent again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller cancelled before the request was sent, or while a read was under way. Usual cause: Ctrl-C.
    #[error("{endpoint} was cancelled")]
    Cancelled {
        /// What was asked.
        endpoint: Endpoint,
    },
    /// The operation's deadline passed before the request was sent, or while a read was under way.
    /// Usual cause: a service that does not answer, or a timeout set too short.
    #[error("{endpoint} had no answer before the deadline of the operation")]
    DeadlinePassed {
        /// What was asked.
        endpoint: Endpoint,
    },
    /// Another process holds the record of the same create, and goes on holding it. Usual cause: a second run in the
    /// same folder.
    #[error(transparent)]
    HeldElsewhere(Box<HeldElsewhere>),
    /// The journal of creates could not be read or written. Usual cause: a read-only or full disk.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A setting that this call needs is absent. Usual cause: a variable that is not exported.
    #[error("{0}")]
    Missing(Missing),
    /// None of the choices of a create was accepted. Usual cause: no stock.
    #[error("none of the {} requests was accepted", .0.len())]
    NoneAccepted(Vec<Refusal>),
    /// No byte of the request was sent. Usual cause: a wrong address, a firewall, a certificate nobody trusts.
    #[error("{endpoint} could not be sent to {address}: {cause}")]
    NeverSent {
        /// What was asked.
        endpoint: Endpoint,
        /// Scheme, host and port of the service.
        address: String,
        /// Why the connection failed.
        cause: Cause,
    },
    /// The request was sent and no whole answer came: it may have taken effect. Usual cause: a timeout, a
    /// connection that broke, a cancel while a change was in flight.
    #[error("{endpoint} was sent and no answer came: {cause}")]
    NoAnswer {
        /// What was asked.
        endpoint: Endpoint,
        /// How the exchange ended.
        cause: Cause,
    },
    /// The service answered with a redirect, which is refused: the token would travel to another address.
    /// Usual cause: a base address with http where https is served, or with a path too many.
    #[error("{endpoint} was answered with a redirect (HTTP {status}), which is refused")]
    Redirected {
        /// What was asked.
        endpoint: Endpoint,
        /// The HTTP status.
        status: u16,
    },
    /// The service refused, with its own error.
    #[error(transparent)]
    Service(Box<ServiceError>),
    /// A create whose answer was lost left several objects with its marker. Usual cause: a proxy that repeats
    /// requests. None of them was touched.
    #[error("several objects have the name {marker}: {}", found.join(", "))]
    SeveralMatches {
        /// The name that the create sent.
        marker: String,
        /// The ids of those that carry it.
        found: Vec<String>,
    },
    /// The program that prints the token failed. Usual cause: an expired login.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The HTTP client could not be built. Usual cause: no certificate store on the computer, a broken PEM file.
    #[error("the HTTP client could not be built: {reason}")]
    Transport {
        /// What the HTTP library says.
        reason: String,
    },
    /// An answer that says success and cannot be read. Usual cause: a proxy's page, a body cut short.
    #[error("{} was answered in a form that cannot be read: {}{}", .0.endpoint, .0.reason, .0.ids)]
    Undecodable(Box<UnreadAnswer>),
    /// An HTTP error without the service's error object. Usual cause: a proxy or gateway in between.
    #[error("{} was answered with HTTP {}: {}{}", .0.endpoint, .0.status, .0.reason, .0.ids)]
    UndocumentedStatus(Box<UnreadAnswer>),
    /// The outcome of a create is unknown, and looking for what it made found nothing so far.
    #[error(transparent)]
    Unsettled(Box<Unsettled>),
    /// A wait ended before what it waited for came.
    #[error(transparent)]
    WaitEnded(Box<WaitEnded>),
    /// The caller refused a create before its request was sent.
    #[error("{endpoint} was not sent: the caller withdrew it")]
    Withdrawn {
        /// What was to be asked.
        endpoint: Endpoint,
    },
}

impl Error {
    /// Whether asking again may help, and can do no harm.
    ///
    /// For reads and for changes that are the same when done twice: failed connections, lost answers, 429, 5xx,
    /// 100014 and answers cut short. For creates: only what [`Error::nothing_was_processed`] proves. A wrong
    /// token is handled before this is asked, and is final here.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let Some(endpoint) = self.endpoint() else {
            return false;
        };
        if self.code() == Some(Code::InvalidToken) {
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
                _ => error.status == 429,
            },
            _ => false,
        }
    }

    /// Whether the service did nothing, for sure: the connection failed, 429, or 100006.
    ///
    /// Never for 5xx, 100014 or a timeout: those may hide an object that was made.
    #[must_use]
    pub fn nothing_was_processed(&self) -> bool {
        match self {
            Self::NeverSent { .. } => true,
            Self::UndocumentedStatus(answer) => answer.status == 429,
            Self::Service(error) => error.status == 429 || error.code == Code::InvalidToken,
            _ => false,
        }
    }

    /// Whether the request was sent and it is not known if it took effect.
    #[must_use]
    pub fn outcome_is_unknown(&self) -> bool {
        if self.nothing_was_processed() {
            return false;
        }
        match self {
            Self::NoAnswer { .. } | Self::Undecodable(_) => true,
            Self::UndocumentedStatus(answer) => answer.status >= 500 || matches!(answer.status, 408 | 425 | 499),
            Self::Service(error) => {
                error.code == Code::InternalError || (matches!(error.code, Code::Other(_)) && error.status >= 500)
            }
            _ => false,
        }
    }

    /// Whether waiting longer cannot help: the caller's settings or rights are what is wrong.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Missing(_) | Self::Token(_) | Self::Transport { .. } | Self::Redirected { .. } => true,
            Self::Service(_) | Self::UndocumentedStatus(_) => !self.is_retryable(),
            _ => false,
        }
    }

    /// The service's code, when it sent one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Service(error) => Some(error.code),
            Self::Unsettled(unsettled) => unsettled.cause.as_ref().and_then(|cause| cause.code()),
            _ => None,
        }
    }

    /// The endpoint that was asked, when one was.
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Self::Cancelled { endpoint }
            | Self::DeadlinePassed { endpoint }
            | Self::NeverSent { endpoint, .. }
            | Self::NoAnswer { endpoint, .. }
            | Self::Redirected { endpoint, .. } => Some(*endpoint),
            Self::Service(error) => Some(error.endpoint),
            Self::Undecodable(answer) | Self::UndocumentedStatus(answer) => Some(answer.endpoint),
            Self::Unsettled(unsettled) => unsettled.cause.as_ref().and_then(|cause| cause.endpoint()),
            _ => None,
        }
    }

    /// What support asks for, when the service told it.
    #[must_use]
    pub fn request_ids(&self) -> RequestIds {
        match self {
            Self::Service(error) => error.ids.clone(),
            Self::Undecodable(answer) | Self::UndocumentedStatus(answer) => answer.ids.clone(),
            Self::Unsettled(unsettled) => unsettled.cause.as_ref().map(|cause| cause.request_ids()).unwrap_or_default(),
            _ => RequestIds::default(),
        }
    }

    /// How long the service asks us to wait (`Retry-After`).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Service(error) => error.retry_after,
            Self::Undecodable(answer) | Self::UndocumentedStatus(answer) => answer.retry_after,
            _ => None,
        }
    }

    /// The service's own error, when it sent one.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceError> {
        match self {
            Self::Service(error) => Some(error),
            _ => None,
        }
    }
}

fn is_transient(status: u16) -> bool {
    status == 408 || status == 425 || status == 429 || status >= 500
}

/// Why one of the choices of a create was not accepted.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Its place among the choices.
    pub choice: usize,
    /// The service's refusal, or [`Error::Withdrawn`].
    pub error: Error,
}

/// A setting that a call needs and nobody gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// The key of the chat endpoint.
    #[error("no API key for the chat endpoint is set")]
    ApiKey,
    /// The token of the OpenAPI endpoints.
    #[error("no API token is set")]
    ApiToken,
    /// The base address of the service.
    #[error("no base address of the service is set")]
    BaseUrl,
}

/// What identifies a request to the service's support (service API, Response envelope).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestIds {
    /// `response_metadata.request_id`, or the header of that name.
    pub request_id: Option<String>,
    /// `response_metadata.trace_id`, or the header of that name.
    pub trace_id: Option<String>,
}

impl fmt::Display for RequestIds {
    /// Writes ` (request_id …, trace_id …)`, with what is known, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.request_id, &self.trace_id) {
            (Some(request), Some(trace)) => write!(f, " (request_id {request}, trace_id {trace})"),
            (Some(request), None) => write!(f, " (request_id {request})"),
            (None, Some(trace)) => write!(f, " (trace_id {trace})"),
            (None, None) => Ok(()),
        }
    }
}

/// The service's own error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{endpoint} was refused: {} ({}): {message}{ids}", self.code_name(), code.number())]
pub struct ServiceError {
    /// What was asked.
    pub endpoint: Endpoint,
    /// The code, by number or else by name.
    pub code: Code,
    /// The name as the service wrote it (`code`), when it did.
    pub name: Option<String>,
    /// The service's sentence, secrets cut out; may be empty.
    pub message: String,
    /// The HTTP status it came with; errors may come with 200.
    pub status: u16,
    /// What support asks for.
    pub ids: RequestIds,
    /// How long the service asks us to wait.
    pub retry_after: Option<Duration>,
    /// The service's clock when it answered, in Unix seconds (`Date`).
    pub server_time: Option<i64>,
}

impl ServiceError {
    /// The documented name of the code, else the service's own, else `code <n>`.
    #[must_use]
    pub fn code_name(&self) -> String {
        match (self.code.name(), &self.name) {
            (Some(documented), _) => documented.to_owned(),
            (None, Some(own)) => own.clone(),
            (None, None) => self.code.to_string(),
        }
    }
}

/// An answer that is not what the service documents.
#[derive(Debug, Clone)]
pub struct UnreadAnswer {
    /// What was asked.
    pub endpoint: Endpoint,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with it, without its text: form, size, content type.
    pub reason: String,
    /// What support asks for, when it could be read.
    pub ids: RequestIds,
    /// How long the answer asks us to wait.
    pub retry_after: Option<Duration>,
}

/// Why a file of the journal could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the journal of creates could not {action} {}: {cause}", path.display())]
pub struct JournalError {
    /// The file or directory.
    pub path: PathBuf,
    /// What was tried, as a verb: `write`, `lock`, …
    pub action: &'static str,
    /// What the operating system says.
    pub cause: Arc<io::Error>,
}

/// A record of the journal that another process holds.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{} holds the record of the same create in {}",
    process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}")),
    directory.display()
)]
pub struct HeldElsewhere {
    /// The process, where it can be told.
    pub process: Option<u32>,
    /// The journal's directory.
    pub directory: PathBuf,
}

/// A create that may have made something nobody has seen yet.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the outcome of a create is unknown, and nothing named {marker} was seen {}{}",
    if *cancelled { "before it was cancelled" } else { "until its deadline" },
    cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default()
)]
pub struct Unsettled {
    /// The name to look for.
    pub marker: String,
    /// The request's own end, when it was sent in this run.
    pub cause: Option<Error>,
    /// Whether the caller cancelled; else the time ran out.
    pub cancelled: bool,
}

/// What a wait had seen when it ended.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the wait for {what} ended {}, {}",
    if *cancelled { "because it was cancelled" } else { "because its time ran out" },
    self.last_words()
)]
pub struct WaitEnded {
    /// What was waited for, as `instance ins-…`.
    pub what: String,
    /// The last status and progress that was seen.
    pub last: Option<String>,
    /// How long ago that was.
    pub age: Option<Duration>,
    /// The last failure of asking, when the last question failed.
    pub cause: Option<Error>,
    /// Whether the caller cancelled; else the time ran out.
    pub cancelled: bool,
}

impl WaitEnded {
    fn last_words(&self) -> String {
        let seen = match (&self.last, self.age) {
            (Some(last), Some(age)) => format!("last seen {last} {} s ago", age.as_secs()),
            (Some(last), None) => format!("last seen {last}"),
            (None, _) => "never seen".to_owned(),
        };
        match &self.cause {
            Some(cause) => format!("{seen}; asking failed: {cause}"),
            None => seen,
        }
    }
}

/// The reason below an error, shared so that everyone who waited for one request gets it.
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// Keeps a library's error; it must not print a secret.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }
}

impl fmt::Display for Cause {
    /// Writes the error and what lies below it: an HTTP library's own text rarely says what happened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut said = self.0.to_string();
        let mut below = self.0.source();
        while let Some(error) = below {
            let text = error.to_string();
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said.push_str(&text);
            }
            below = error.source();
        }
        Ok(())
    }
}
