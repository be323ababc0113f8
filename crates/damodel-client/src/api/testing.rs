//! An in-process service for tests of calls and creates: answers come from a closure, and every request is recorded.

use std::{
    collections::BTreeSet,
    future::Future,
    io,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Level, subscriber::DefaultGuard};
use tracing_subscriber::Registry;

use crate::api::{
    BaseUrl, Cause, Client, Context, Endpoint, IncomingAnswer, Outgoing, PlainHttp, Random, SendFailure, Settings,
    TokenSource, Transport,
};

/// The token of every test client. No output may contain it.
pub(crate) const TOKEN: &str = "planted-token-8273";

pub(crate) type Reply = Result<IncomingAnswer, SendFailure>;

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) request: Outgoing,
    pub(crate) at: Instant,
}

impl Asked {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(self.request.body.as_deref().unwrap_or_default()).unwrap()
    }
}

pub(crate) fn query(request: &Outgoing, name: &str) -> Option<String> {
    request.url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The recorded requests of a client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<Asked>>>);

impl Ledger {
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn of(&self, endpoint: Endpoint) -> Vec<Asked> {
        self.all().into_iter().filter(|asked| asked.request.endpoint == endpoint).collect()
    }
}

struct Service<H> {
    handler: H,
    ledger: Ledger,
}

#[async_trait]
impl<H> Transport for Service<H>
where
    H: Fn(Outgoing) -> BoxFuture<'static, Reply> + Send + Sync,
{
    async fn send(&self, request: Outgoing) -> Reply {
        let asked = Asked { request: request.clone(), at: Instant::now() };
        self.ledger.0.lock().unwrap().push(asked);
        (self.handler)(request).await
    }
}

/// Subscribes every test's thread to events. The interest in an event is asked once for each place in the code, and
/// kept for all threads: a place that a thread without a subscriber passes first is silent in the test that reads the
/// log.
fn hear() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Registry::default()).unwrap());
}

pub(crate) fn settings() -> Settings {
    hear();
    let numbers = AtomicU64::new(1);
    Settings {
        base_url: Some(BaseUrl::parse("http://127.0.0.1:1", PlainHttp::LoopbackOnly).unwrap()),
        token: Some(TokenSource::Value(TOKEN.into())),
        random: Random::new(move || numbers.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        loggable: BTreeSet::from(["instance_uid"]),
        ..Settings::default()
    }
}

/// A client whose service is a closure.
pub(crate) fn serve<F>(handler: impl Fn(Outgoing) -> F + Send + Sync + 'static) -> (Client, Ledger)
where
    F: Future<Output = Reply> + Send + 'static,
{
    serve_with(settings(), handler)
}

pub(crate) fn serve_with<F>(
    settings: Settings,
    handler: impl Fn(Outgoing) -> F + Send + Sync + 'static,
) -> (Client, Ledger)
where
    F: Future<Output = Reply> + Send + 'static,
{
    let ledger = Ledger::default();
    let service = Service { handler: move |request| handler(request).boxed(), ledger: ledger.clone() };
    (Client::with_transport(settings, Arc::new(service)), ledger)
}

pub(crate) fn context(seconds: u64) -> Context {
    Context::within(Duration::from_secs(seconds), &CancellationToken::new())
}

pub(crate) fn answer(status: u16, body: &Value) -> Reply {
    raw(status, &[], body.to_string())
}

pub(crate) fn raw(status: u16, headers: &[(&'static str, &str)], body: impl Into<Bytes>) -> Reply {
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    Ok(IncomingAnswer { status, headers, body: body.into() })
}

pub(crate) fn ok(result: &Value) -> Reply {
    answer(
        200,
        &json!({"result": result, "response_metadata": {"request_id": "req-1", "trace_id": "trace-1",
                "action": "", "version": "", "service": "", "error": null}}),
    )
}

pub(crate) fn refusal(code: i64) -> Reply {
    answer(
        200,
        &json!({"result": null, "response_metadata": {"request_id": "req-9", "trace_id": "trace-9",
                "error": {"code_n": code, "code": "Name", "message": "why"}}}),
    )
}

pub(crate) fn page(data: &[Value]) -> Reply {
    ok(&json!({"total": data.len(), "page": 1, "page_size": 0, "total_page": 1, "data": data}))
}

pub(crate) fn never_sent() -> Reply {
    Err(SendFailure::NeverSent(Cause::new("connection refused")))
}

pub(crate) fn lost() -> Reply {
    Err(SendFailure::NoAnswer(Cause::new("connection reset")))
}

/// Everything that this thread logs, down to TRACE.
pub(crate) struct Log {
    lines: Lines,
    guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn begin() -> Self {
        hear();
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(move || writer.clone()).finish();
        Self { lines, guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn end(self) -> String {
        drop(self.guard);
        let lines = self.lines.0.lock().unwrap();
        String::from_utf8(lines.clone()).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
