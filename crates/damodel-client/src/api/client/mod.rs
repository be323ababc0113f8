//! The client: headers, clock, pacing, retries and log lines of every call.

use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use backon::ExponentialBackoff;
use reqwest::{
    Method,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT},
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    beside::beside,
    context::{Context, CorrectedClock},
    endpoint::{ChangeUnderWay, Effect, Endpoint, Request},
    envelope::{self, Answer},
    error::{Cause, Error, Missing, TooMuch},
    flight::{Flight, Freshness},
    redact,
    retry::{Admission, Pace, REQUEST, Retry, server_time, waits},
    settings::{Random, Settings, TokenSource},
    snapshots::Snapshots,
    token::{Token, Tokens},
    transport::{Http, Outgoing, Transport},
    watch::Watch,
    witness::{AccountFingerprints, Witness},
};

mod chat;

/// How long the answer of a change in flight is waited for after its operation was cancelled or its deadline passed.
///
/// Long enough for the id of a new object to arrive, short enough for an operator who pressed Ctrl-C.
pub const GRACE: Duration = Duration::from_secs(5);

/// The time limit of a shared fetch. It belongs to no single operation, so no operation's deadline ends it.
const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// The service's client. Cheap to clone; all clones share connections, limits, snapshots and the poller.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use damodel_client::api::{BaseUrl, Client, Context, PlainHttp, Settings, TokenSource};
/// use tokio_util::sync::CancellationToken;
///
/// let client = Client::new(Settings {
///     base_url: Some(BaseUrl::parse("https://api.example.com", PlainHttp::LoopbackOnly)?),
///     token: Some(TokenSource::Value("secret".into())),
///     ..Settings::default()
/// });
/// let context = Context::within(Duration::from_secs(60), &CancellationToken::new());
/// for instance in &client.instances().snapshot(&context).await?.records {
///     println!("{} {}", instance.uid, instance.name.as_deref().unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// How a request failed.
enum Refused {
    Alone(Error),
    /// The service asked all requests to wait, and another one was the first to hear it.
    WithOthers,
}

/// How long connections are retried while the service has never answered.
const FIRST_CONTACT: Duration = Duration::from_secs(6);

/// Scheme, host and port, for the texts of errors.
pub(super) fn origin(url: &url::Url) -> String {
    url.origin().ascii_serialization()
}

struct Shared {
    settings: Settings,
    transport: Arc<dyn Transport>,
    tokens: Tokens,
    clock: CorrectedClock,
    /// The `Date` of the last successful answer in Unix seconds; 0 if it had none.
    date: AtomicI64,
    pace: Pace,
    /// Counts changes: each one before it is sent and after its answer, and each change of an object that a wait
    /// observed.
    changes: AtomicU64,
    snapshots: Snapshots,
    watch: Watch,
    witness: Witness,
    has_answered: AtomicBool,
    /// Whether a list was too long for one answer.
    lists_in_pages: AtomicBool,
    /// When the first connection failed.
    first_failure: OnceLock<Instant>,
}

impl Client {
    /// A client that uses HTTP. It connects, reads and checks nothing before the first call.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let transport = Arc::new(Http::new(&settings));
        Self::with_transport(settings, transport)
    }

    /// A client whose requests go through `transport`.
    #[must_use]
    pub fn with_transport(settings: Settings, transport: Arc<dyn Transport>) -> Self {
        Self {
            shared: Arc::new(Shared {
                tokens: Tokens::new(settings.token.clone(), &settings.random),
                pace: Pace::new(&settings),
                transport,
                settings,
                clock: CorrectedClock::default(),
                date: AtomicI64::new(0),
                changes: AtomicU64::new(0),
                snapshots: Snapshots::default(),
                watch: Watch::default(),
                witness: Witness::default(),
                has_answered: AtomicBool::new(false),
                lists_in_pages: AtomicBool::new(false),
                first_failure: OnceLock::new(),
            }),
        }
    }

    /// The settings of this client.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The objects of earlier runs that this run found.
    #[must_use]
    pub fn witness(&self) -> &Witness {
        &self.shared.witness
    }

    /// Whether a base address and a source of the token are set, so that calls can be made.
    ///
    /// # Errors
    /// What is missing.
    pub fn check_configured(&self) -> Result<(), Missing> {
        match (&self.settings().base_url, &self.settings().token) {
            (None, None) => Err(Missing::BaseUrlAndToken),
            (None, _) => Err(Missing::BaseUrl),
            (_, None) => Err(Missing::ApiToken),
            _ => Ok(()),
        }
    }

    /// The account of the present token.
    ///
    /// # Errors
    /// A missing base address or token, a token program that fails, the end of the context.
    pub async fn account(&self, context: &Context) -> Result<AccountFingerprints, Error> {
        let token = self.fingerprint(context).await?;
        let program = match &self.settings().token {
            Some(TokenSource::Command(argv)) => Some(self.digest("token program", &argv.join("\0"))?),
            _ => None,
        };
        Ok(AccountFingerprints { token, program })
    }

    /// A short text that is the same for the same base address and token. Neither can be computed from it.
    ///
    /// A token program that prints a different token each time gives a different fingerprint each time.
    ///
    /// # Errors
    /// A missing base address or token, a token program that fails, the end of the context.
    pub async fn fingerprint(&self, context: &Context) -> Result<String, Error> {
        self.check_configured().map_err(Error::Missing)?;
        let token = context.run(self.shared.tokens.current()).await;
        let token = token.map_err(|ended| ended.error(Endpoint::InstanceList))??;
        self.digest("account fingerprint 1", token.secret.expose_secret())
    }

    fn digest(&self, what: &str, text: &str) -> Result<String, Error> {
        let base = self.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?;
        let hash = Sha256::digest(format!("damodel {what}\0{base}\0{text}"));
        Ok(hash.get(..12).map(hex::encode).unwrap_or_default())
    }

    pub(crate) fn random(&self) -> &Random {
        &self.settings().random
    }

    /// The time of the service's clock, estimated, at the time `machine` of this computer's clock, both in Unix
    /// seconds.
    pub(crate) fn service_time(&self, machine: i64) -> i64 {
        machine + self.shared.clock.now().1
    }

    /// The service's clock as its last successful answer shows it (`Date`), in Unix seconds; `None` if it does not.
    #[must_use]
    pub fn last_date(&self) -> Option<i64> {
        Some(self.shared.date.load(Ordering::Relaxed)).filter(|date| *date > 0)
    }

    /// Whether lists are read in pages only.
    pub(super) fn lists_in_pages(&self) -> &AtomicBool {
        &self.shared.lists_in_pages
    }

    pub(super) fn snapshots(&self) -> &Snapshots {
        &self.shared.snapshots
    }

    pub(super) fn poller(&self) -> &Watch {
        &self.shared.watch
    }

    /// Invalidates snapshots, because something in the service has changed.
    pub(crate) fn note_change(&self) {
        self.shared.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of changes that this client has begun, ended and observed.
    pub(super) fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::SeqCst)
    }

    /// Reads through a snapshot. Cancel-safe.
    ///
    /// # Errors
    /// The error of the fetch, or the end of the caller's context.
    pub(super) async fn shared<T, F>(
        &self,
        context: &Context,
        flight: &Flight<T>,
        freshness: Freshness,
        endpoint: Endpoint,
        fetch: impl Fn(Self, Context) -> F,
    ) -> Result<Arc<T>, Error>
    where
        T: Send + Sync + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let own = || Context::within(FETCH_LIMIT, &CancellationToken::new());
        let get = flight.get(freshness, || self.changes(), || fetch(self.clone(), own()));
        context.run(get).await.map_err(|ended| ended.error(endpoint))?
    }

    /// Sends a read. Cancel-safe.
    pub(super) async fn read(&self, context: &Context, request: &Request, retry: Retry) -> Result<Answer, Error> {
        context.run(self.persist(context, request, retry)).await.map_err(|ended| ended.error(request.endpoint))?
    }

    /// Sends a change, on a task of its own: dropping the caller does not drop the change.
    pub(super) async fn change(&self, context: &Context, request: Request) -> Result<Answer, Error> {
        let client = self.clone();
        let own = context.clone();
        let endpoint = request.endpoint;
        let change = async move { client.persist(&own, &request, Retry::AsConfigured).await };
        self.detached(endpoint, change).await
    }

    /// Runs a change on a task of its own, in the caller's span. The end of the process waits for it.
    pub(super) async fn detached<T: Send + 'static>(
        &self,
        endpoint: Endpoint,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        debug_assert!(endpoint.effect() != Effect::Reads, "reads need no task");
        match self.settings().work.spawn(work.in_current_span()).await {
            Ok(outcome) => outcome,
            // A panic is passed on: its change has an unknown outcome.
            Err(broken) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
            Err(broken) => Err(Error::NoAnswer { endpoint, cause: Cause::new(broken) }),
        }
    }

    /// Records that the service at this address has answered.
    pub(super) fn was_reached(&self) {
        self.shared.has_answered.store(true, Ordering::Relaxed);
    }

    /// Sends until the answer is final or the retries are used up.
    async fn persist(&self, context: &Context, request: &Request, retry: Retry) -> Result<Answer, Error> {
        let mut waits = waits(REQUEST.with_max_times(self.settings().max_retries), self.random());
        let mut attempt = 1;
        loop {
            let error = match self.attempt(context, request, attempt).await {
                Ok(answer) => return Ok(answer),
                Err(error) if retry == Retry::Never || !error.is_retryable() => return Err(error),
                Err(error) if retry == Retry::UnlessTooMuch && error.is_too_much() => return Err(error),
                Err(error) => error,
            };
            tracing::debug!(endpoint = %request.endpoint, attempt, %error, "may be asked again");
            if !self.pause(context, &mut waits, &error).await {
                return Err(error);
            }
            attempt += 1;
        }
    }

    /// Waits until the next attempt; `false` if no attempt is left. A service that has never answered is retried only
    /// briefly: its address is probably wrong.
    async fn pause(&self, context: &Context, waits: &mut ExponentialBackoff, error: &Error) -> bool {
        let Some(wait) = waits.next() else {
            return false;
        };
        let wait = wait.max(error.retry_after().unwrap_or_default());
        if matches!(error, Error::NeverSent { .. }) && !self.shared.has_answered.load(Ordering::Relaxed) {
            let begun = self.shared.first_failure.get_or_init(Instant::now);
            if begun.elapsed() + wait > FIRST_CONTACT {
                return false;
            }
        }
        wait < context.remaining() && context.sleep(wait).await.is_ok()
    }

    /// Sends a request. It is sent again once after a correction of the clock and once with a renewed token, because a
    /// request whose token is refused was not processed (service API, Authentication). One of many that get a 429 is
    /// sent again when the service's pause is over, and counts no attempt.
    pub(crate) async fn attempt(&self, context: &Context, request: &Request, attempt: u32) -> Result<Answer, Error> {
        let (mut corrected, mut renewed) = (false, false);
        loop {
            context.check().map_err(|ended| ended.error(request.endpoint))?;
            let turn = context.run(self.shared.pace.enter()).await.map_err(|ended| ended.error(request.endpoint))?;
            let base = self.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?;
            let token =
                context.run(self.shared.tokens.current()).await.map_err(|ended| ended.error(request.endpoint))??;
            let (now, offset) = self.shared.clock.now();
            let outgoing = self.outgoing(request, base.join(&request.path()), &token, now)?;
            let span = tracing::info_span!("request", endpoint = %request.endpoint, attempt);
            let outcome = self.exchange(context, outgoing, attempt, &token, turn).instrument(span).await;
            let error = match outcome {
                Ok(answer) => {
                    self.shared.tokens.worked(&token);
                    return Ok(answer);
                }
                Err(Refused::WithOthers) => continue,
                Err(Refused::Alone(error)) => error,
            };
            if !error.refuses_token() {
                return Err(error);
            }
            let server_time = error.service().and_then(|refusal| refusal.server_time);
            if server_time.is_some_and(|server| self.shared.clock.correct(server, offset)) && !corrected {
                corrected = true;
                let seconds = server_time.unwrap_or(now) - now;
                tracing::info!(endpoint = %request.endpoint, seconds, "the service's clock differs: corrected");
            } else if !renewed && self.shared.tokens.forget(&token) {
                renewed = true;
                tracing::info!(endpoint = %request.endpoint, "the token was refused: its program is run again");
            } else {
                return Err(error);
            }
        }
    }

    fn outgoing(&self, request: &Request, mut url: url::Url, token: &Token, now: i64) -> Result<Outgoing, Error> {
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut secret = HeaderValue::from_str(token.secret.expose_secret())
            .map_err(|_| Error::Unsendable { credential: "API token" })?;
        secret.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert("x-service-token", secret);
        headers.insert("x-service-timestamp", HeaderValue::from(now));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Ok(agent) = HeaderValue::from_str(&self.settings().user_agent.to_string()) {
            headers.insert(USER_AGENT, agent);
        }
        if request.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok(Outgoing {
            endpoint: request.endpoint,
            method: Method::from_bytes(request.endpoint.method().as_bytes()).unwrap_or_default(),
            url,
            headers,
            body: request.body.clone(),
        })
    }

    /// One request and its answer.
    async fn exchange(
        &self,
        context: &Context,
        outgoing: Outgoing,
        attempt: u32,
        token: &Token,
        turn: Admission<'_>,
    ) -> Result<Answer, Refused> {
        let endpoint = outgoing.endpoint;
        let (address, path) = (origin(&outgoing.url), outgoing.url.path().to_owned());
        if let Some(body) = &outgoing.body
            && tracing::enabled!(tracing::Level::TRACE)
        {
            tracing::trace!(
                method = endpoint.method(),
                path,
                attempt,
                body = self.loggable(body, Some(&token.secret)),
                "sending"
            );
        }
        let change = endpoint.mutates().then(|| ChangeUnderWay::begin(&self.shared.changes));
        let start = Instant::now();
        let sending = tokio::time::timeout(self.settings().request_timeout, self.shared.transport.send(outgoing));
        let sent = tokio::select! {
            biased;
            sent = sending => match sent {
                Ok(sent) => sent.map_err(|failure| failure.into_error(endpoint, &address)),
                Err(_) => Err(Error::NoAnswer { endpoint, cause: Cause::new(TooMuch::TimedOut) }),
            },
            () = grace_ended(context) => Err(no_answer(endpoint, "the operation ended before the answer came")),
        };
        drop(change);
        let duration_ms = start.elapsed().as_millis();
        let (now, _) = self.shared.clock.now();
        let status = sent.as_ref().ok().map(|incoming| incoming.status);
        if sent.is_ok() {
            self.was_reached();
        }
        if let Ok(incoming) = &sent
            && tracing::enabled!(tracing::Level::TRACE)
        {
            tracing::trace!(
                method = endpoint.method(),
                path,
                attempt,
                body = self.loggable(&incoming.body, Some(&token.secret)),
                "answer"
            );
        }
        let date = sent.as_ref().ok().and_then(|incoming| server_time(&incoming.headers));
        let outcome = match sent {
            Ok(incoming) => {
                beside(incoming.body.len(), move || envelope::open(endpoint, &incoming, now)).await.flatten()
            }
            Err(error) => Err(error),
        };
        let outcome = outcome.map_err(|error| self.without_secrets(error, Some(&token.secret)));
        let ids = match &outcome {
            Ok(answer) => {
                self.shared.date.store(date.unwrap_or_default(), Ordering::Relaxed);
                answer.ids.clone()
            }
            Err(error) => error.request_ids(),
        };
        tracing::debug!(
            method = endpoint.method(),
            path,
            status,
            duration_ms,
            request_id = ids.request_id,
            trace_id = ids.trace_id,
            attempt,
            error = outcome.as_ref().err().map(tracing::field::display),
            "request"
        );
        outcome.map_err(|error| {
            let wait = error.retry_after();
            let is_one_of_many = error.is_limited() && !turn.hold(wait) && wait < Some(context.remaining());
            if is_one_of_many { Refused::WithOthers } else { Refused::Alone(error) }
        })
    }

    /// Removes secrets from an error: the service's message may repeat what was sent.
    fn without_secrets(&self, error: Error, token: Option<&SecretString>) -> Error {
        let Error::Service(mut refusal) = error else {
            return error;
        };
        for text in [Some(&mut refusal.message), refusal.name.as_mut()].into_iter().flatten() {
            *text = self.cut_secrets(std::mem::take(text), token);
        }
        Error::Service(refusal)
    }

    /// A body for the log, without credentials, which even an allowed field may repeat.
    fn loggable(&self, body: &[u8], token: Option<&SecretString>) -> String {
        self.cut_secrets(redact::body(body, &self.settings().loggable), token)
    }

    fn cut_secrets(&self, text: String, token: Option<&SecretString>) -> String {
        let secrets = [token, self.settings().api_key.as_ref()];
        let secrets = secrets.into_iter().flatten().map(ExposeSecret::expose_secret);
        secrets
            .filter(|secret| !secret.is_empty())
            .fold(text, |text, secret| if text.contains(secret) { text.replace(secret, "…") } else { text })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base_url", &self.settings().base_url).finish_non_exhaustive()
    }
}

async fn grace_ended(context: &Context) {
    context.ended().await;
    tokio::time::sleep(GRACE).await;
}

fn no_answer(endpoint: Endpoint, reason: &'static str) -> Error {
    Error::NoAnswer { endpoint, cause: Cause::new(reason) }
}

#[cfg(test)]
mod tests;
