//! The errors of this layer.

#[cfg(test)]
mod tests;

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use crate::api::{code::Code, endpoint::Endpoint};

/// An error of this layer.
///
/// Its text is a lowercase fragment that names the endpoint and the ids for support, and never contains a secret or a
/// body. The variants differ in how far the request got, because that decides whether it may be sent again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The caller cancelled before the request was sent, or during a read. Usual cause: Ctrl-C.
    #[error("{endpoint} was cancelled")]
    Cancelled {
        /// The endpoint.
        endpoint: Endpoint,
    },
    /// The operation's deadline passed before the request was sent, or during a read. Usual cause: a service that does
    /// not answer, or a short timeout.
    #[error("{endpoint} had no answer before the deadline of the operation")]
    DeadlinePassed {
        /// The endpoint.
        endpoint: Endpoint,
    },
    /// Another process keeps the lock of the same create's record. Usual cause: a second run in the same folder.
    #[error(transparent)]
    HeldElsewhere(Box<HeldElsewhere>),
    /// The journal of creates could not be read or written. Usual cause: a read-only or full disk.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A setting that this call needs is missing. Usual cause: a variable that is not exported.
    #[error("{0}")]
    Missing(Missing),
    /// None of the choices of a create was accepted. Usual cause: no stock.
    #[error("none of the {} requests was accepted", .0.len())]
    NoneAccepted(Vec<Refusal>),
    /// No byte of the request was sent. Usual cause: a wrong address, a firewall, an untrusted certificate.
    #[error("{endpoint} could not be sent to {address}: {cause}")]
    NeverSent {
        /// The endpoint.
        endpoint: Endpoint,
        /// Scheme, host and port of the service.
        address: String,
        /// Why the connection failed.
        cause: Cause,
    },
    /// The request was sent and no complete answer arrived: it may have taken effect. Usual cause: a timeout, a broken
    /// connection, a cancellation while a change was in flight.
    #[error("{endpoint} was sent and no answer came: {cause}")]
    NoAnswer {
        /// The endpoint.
        endpoint: Endpoint,
        /// The error of the exchange.
        cause: Cause,
    },
    /// The service answered with a redirect, which is refused: the token would be sent to another address. Usual cause:
    /// a base address with http instead of https, or with a wrong path.
    #[error("{endpoint} was answered with a redirect (HTTP {status}), which is refused")]
    Redirected {
        /// The endpoint.
        endpoint: Endpoint,
        /// The HTTP status.
        status: u16,
    },
    /// The service's own error.
    #[error(transparent)]
    Service(Box<ServiceError>),
    /// Several objects have the marker of a create whose answer was lost. Usual cause: a proxy that repeats requests.
    /// None of them was changed.
    #[error("several objects have the name {marker}: {}", found.join(", "))]
    SeveralMatches {
        /// The name that the create sent.
        marker: String,
        /// The ids of the objects with this name.
        found: Vec<String>,
    },
    /// The program that prints the token failed. Usual cause: an expired login.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The HTTP client could not be built. Usual cause: no certificate store on the computer, a broken PEM file.
    #[error("the HTTP client could not be built: {reason}")]
    Transport {
        /// The error of the HTTP library.
        reason: String,
    },
    /// A token or key contains characters that a header must not contain. Usual cause: it did not pass
    /// [`credential`](crate::api::credential).
    #[error("the {credential} contains characters that cannot be sent in a header")]
    Unsendable {
        /// The credential.
        credential: &'static str,
    },
    /// A successful answer that cannot be read. Usual cause: a proxy's page, a truncated body.
    #[error("{} was answered in a form that cannot be read: {}{}", .0.endpoint, .0.reason, .0.ids)]
    Undecodable(Box<UnreadAnswer>),
    /// An HTTP error without the service's error object. Usual cause: a proxy or gateway.
    #[error("{} was answered with HTTP {}: {}{}", .0.endpoint, .0.status, .0.reason, .0.ids)]
    UndocumentedStatus(Box<UnreadAnswer>),
    /// The outcome of a create is unknown, and its object was not found so far.
    #[error(transparent)]
    Unsettled(Box<Unsettled>),
    /// A wait ended before its condition was met.
    #[error(transparent)]
    WaitEnded(Box<WaitEnded>),
    /// The caller refused a create before its request was sent.
    #[error("{endpoint} was not sent: a check refused it")]
    Withdrawn {
        /// The endpoint that was not called.
        endpoint: Endpoint,
    },
}

impl Error {
    /// An answer with the status 200 that is not what was asked for.
    pub(crate) fn undecodable(endpoint: Endpoint, reason: &str, ids: RequestIds) -> Self {
        let reason = reason.to_owned();
        Self::Undecodable(Box::new(UnreadAnswer { endpoint, status: 200, reason, ids, retry_after: None }))
    }

    /// Whether the service refused the token: 100006, or a 401 without a code. The chat endpoint has another
    /// credential.
    #[must_use]
    pub fn refuses_token(&self) -> bool {
        match self {
            Self::Service(error) if error.endpoint != Endpoint::ChatCompletions => {
                error.code == Code::InvalidToken || (error.code == Code::Other(0) && error.status == 401)
            }
            Self::UndocumentedStatus(answer) => answer.endpoint != Endpoint::ChatCompletions && answer.status == 401,
            _ => false,
        }
    }

    /// Whether the answer to a long list was larger than is read, or did not come in time: a part of it may.
    pub(super) fn is_too_much(&self) -> bool {
        match self {
            Self::NoAnswer { cause, .. } => cause.0.is::<TooMuch>(),
            Self::UndocumentedStatus(answer) => answer.status == 504,
            Self::Service(error) => matches!(error.code, Code::Other(_)) && error.status == 504,
            _ => false,
        }
    }

    /// Whether the request was sent and its effect is unknown.
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

    /// Whether waiting cannot help, because the caller's settings or permissions are wrong.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Missing(_)
            | Self::Redirected { .. }
            | Self::Token(_)
            | Self::Transport { .. }
            | Self::Unsendable { .. } => true,
            Self::Service(_) | Self::UndocumentedStatus(_) => !self.is_retryable(),
            _ => false,
        }
    }

    /// The service's code, if it sent one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Service(error) => Some(error.code),
            Self::Unsettled(unsettled) => unsettled.cause.as_ref().and_then(|cause| cause.code()),
            _ => None,
        }
    }

    /// The endpoint of the request, if there was one.
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

    /// The ids to give to support, if the service sent them.
    #[must_use]
    pub fn request_ids(&self) -> RequestIds {
        match self {
            Self::Service(error) => error.ids.clone(),
            Self::Undecodable(answer) | Self::UndocumentedStatus(answer) => answer.ids.clone(),
            Self::Unsettled(unsettled) => unsettled.cause.as_ref().map(|cause| cause.request_ids()).unwrap_or_default(),
            _ => RequestIds::default(),
        }
    }

    /// The pause that the service requests (`Retry-After`).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Service(error) => error.retry_after,
            Self::Undecodable(answer) | Self::UndocumentedStatus(answer) => answer.retry_after,
            _ => None,
        }
    }

    /// The service's own error, if it sent one.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceError> {
        match self {
            Self::Service(error) => Some(error),
            _ => None,
        }
    }
}

/// Why an answer may be too much for one request.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(super) enum TooMuch {
    #[error("the answer is more than 200 times as large as what was sent")]
    Inflated,
    #[error("the answer is larger than 64 MiB")]
    Large,
    #[error("the request timed out")]
    TimedOut,
}

/// Why a choice of a create was not accepted.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Its index among the choices.
    pub choice: usize,
    /// The service's refusal, or [`Error::Withdrawn`].
    pub error: Error,
}

/// A setting that a call needs and that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The key of the chat endpoint.
    #[error("no API key for the chat endpoint is set (DAMODEL_CHAT_API_KEY)")]
    ApiKey,
    /// The token of the OpenAPI endpoints.
    #[error("no API token is set (DAMODEL_API_TOKEN or DAMODEL_API_TOKEN_COMMAND)")]
    ApiToken,
    /// The base address of the service.
    #[error("no base address of the service is set (DAMODEL_BASE_URL)")]
    BaseUrl,
    /// Both.
    #[error(
        "no base address of the service and no API token are set (DAMODEL_BASE_URL, and DAMODEL_API_TOKEN or \
         DAMODEL_API_TOKEN_COMMAND)"
    )]
    BaseUrlAndToken,
}

/// The ids of a request for the service's support (service API, Response envelope).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestIds {
    /// `response_metadata.request_id`, or the header of that name.
    pub request_id: Option<String>,
    /// `response_metadata.trace_id`, or the header of that name.
    pub trace_id: Option<String>,
}

impl fmt::Display for RequestIds {
    /// Writes ` (request_id …, trace_id …)` with the known ids, or nothing.
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
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The code, by number, otherwise by name.
    pub code: Code,
    /// The name as the service wrote it (`code`), if it did.
    pub name: Option<String>,
    /// The service's message without secrets; may be empty.
    pub message: String,
    /// The HTTP status; errors may have status 200.
    pub status: u16,
    /// The ids to give to support.
    pub ids: RequestIds,
    /// The pause that the service requests (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// The service's clock when it answered, in Unix seconds (`Date`).
    pub server_time: Option<i64>,
}

impl ServiceError {
    /// The documented name of the code, otherwise the service's own, otherwise `code <n>`.
    #[must_use]
    pub fn code_name(&self) -> String {
        match (self.code.name(), &self.name) {
            (Some(documented), _) => documented.to_owned(),
            (None, Some(own)) => own.clone(),
            (None, None) => self.code.to_string(),
        }
    }
}

/// An answer in an undocumented form.
#[derive(Debug, Clone)]
pub struct UnreadAnswer {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The HTTP status.
    pub status: u16,
    /// The fault, without the answer's text: form, size, content type.
    pub reason: String,
    /// The ids to give to support, if they could be read.
    pub ids: RequestIds,
    /// The pause that the answer requests.
    pub retry_after: Option<Duration>,
}

/// Why a file of the journal could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {action} {}: {cause}", path.display())]
pub struct JournalError {
    /// The file or directory.
    pub path: PathBuf,
    /// The attempted action, as a verb: `write`, `lock`, …
    pub action: &'static str,
    /// The error of the operating system.
    pub cause: Arc<io::Error>,
}

/// A pending record that another process has locked.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{} holds the pending record of the same object in {}",
    process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}")),
    directory.display()
)]
pub struct HeldElsewhere {
    /// The process, if its id is known.
    pub process: Option<u32>,
    /// The journal's directory.
    pub directory: PathBuf,
}

/// A create that may have made an object that was not found.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "whether the object was created is unknown: no object named {marker} was found before the {}{}",
    if *cancelled { "cancellation" } else { "deadline" },
    cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default()
)]
pub struct Unsettled {
    /// The name to look for.
    pub marker: String,
    /// The error of the request, if it was sent in this run.
    pub cause: Option<Error>,
    /// Whether the caller cancelled; otherwise the time ran out.
    pub cancelled: bool,
}

/// The last observation of a wait that ended.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the wait for {what} {}, {}",
    if *cancelled { "was cancelled" } else { "timed out" },
    self.last_words()
)]
pub struct WaitEnded {
    /// The object that was waited for, as `instance ins-…`.
    pub what: String,
    /// The last observed status and progress.
    pub last: Option<String>,
    /// The age of that observation.
    pub age: Option<Duration>,
    /// The error of the last request, if it failed.
    pub cause: Option<Error>,
    /// Whether the caller cancelled; otherwise the time ran out.
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
            Some(cause) => format!("{seen}; the last request failed: {cause}"),
            None => seen,
        }
    }
}

/// The cause of an error, shared so that all callers who waited for one request get it.
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// Wraps a library's error, which must not print a secret.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }

    /// The environment variable of the proxy that the request went through.
    #[must_use]
    pub fn proxy(&self) -> Option<&'static str> {
        self.0.downcast_ref::<ThroughProxy>().map(|through| through.variable)
    }

    /// The environment variable of a proxy whose address cannot be used, if the request went without it.
    #[must_use]
    pub fn unusable_proxy(&self) -> Option<&'static str> {
        self.0.downcast_ref::<WithoutProxy>().map(|without| without.variable)
    }

    /// Why a connection failed. The HTTP library has no types for it, so its texts decide.
    #[must_use]
    pub fn connect_failure(&self) -> ConnectFailure {
        let text = self.to_string().to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["dns error", "failed to lookup address"]) {
            ConnectFailure::Name
        } else if has(&["causedasendentity"]) {
            ConnectFailure::Authority
        } else if has(&["certificate: expired", "certificate expired", "not valid yet", "notvalidyet"]) {
            ConnectFailure::Expired
        } else if has(&["not valid for name", "notvalidforname"]) {
            ConnectFailure::OtherName
        } else if has(&["ekuerror", "invalidpurpose"]) {
            ConnectFailure::OtherUse
        } else if has(&["certificate", "tls", "handshake", "corrupt message", "fatal alert"]) {
            ConnectFailure::Tls
        } else {
            ConnectFailure::Connection
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("through the proxy in {variable}")]
pub(super) struct ThroughProxy {
    pub(super) variable: &'static str,
    pub(super) source: reqwest::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("without the proxy in {variable}, whose address cannot be used")]
pub(super) struct WithoutProxy {
    pub(super) variable: &'static str,
    pub(super) source: reqwest::Error,
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// TLS: the server's certificate is that of an authority. Usual cause: `openssl req -x509`.
    Authority,
    /// No connection, or a proxy refused it.
    Connection,
    /// TLS: the server's certificate has expired, or is not valid yet.
    Expired,
    /// The host's name was not resolved.
    Name,
    /// TLS: the server's certificate does not name the host.
    OtherName,
    /// TLS: the server's certificate is not one for servers.
    OtherUse,
    /// TLS: an untrusted certificate, a port without TLS, or one with old versions only.
    Tls,
}

impl fmt::Display for Cause {
    /// Writes the error and its causes: the text of an HTTP library's error alone is rarely enough.
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

/// Why the token program printed no token. Its output is never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Its exit status was not 0. Usual cause: an expired login.
    #[error("the token program {program} failed: {status}")]
    Failed {
        /// The program, without its arguments.
        program: String,
        /// The exit status.
        status: String,
    },
    /// The list of program and arguments is empty.
    #[error("the token program is not named")]
    NoProgram,
    /// It printed nothing, characters that a header must not contain, or more than 64 KiB.
    #[error("the token program {program} printed no token")]
    NoToken {
        /// The program, without its arguments.
        program: String,
    },
    /// It could not be run. Usual cause: it is not on the PATH.
    #[error("the token program {program} could not be run: {reason}")]
    NotStarted {
        /// The program, without its arguments.
        program: String,
        /// The error of the operating system.
        reason: String,
    },
    /// It took longer than 30 s. Usual cause: it waits for input.
    #[error("the token program {program} did not end within 30 s")]
    TimedOut {
        /// The program, without its arguments.
        program: String,
    },
}
