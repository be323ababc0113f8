//! The HTTP client, behind a trait so that tests (and embedding programs) can answer in process.

use std::{fmt, io::Read as _, sync::Mutex, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use flate2::read::GzDecoder;
use futures_util::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use reqwest::{
    Certificate, Method,
    header::{CONTENT_ENCODING, HeaderMap},
    redirect, retry,
};
use url::Url;

use crate::api::{
    beside::beside,
    endpoint::{Effect, Endpoint},
    error::{Cause, Error, TooMuch},
    proxies::Proxies,
    settings::Settings,
};

/// The largest answer that is read, in bytes.
pub(super) const LARGEST_ANSWER: usize = 64 << 20;

/// How many times its size on the wire an answer above 1 MiB may have. Lists of similar records have up to 50 times.
const MOST_INFLATED: usize = 200;

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The HTTP method.
    pub method: Method,
    /// The whole address with its query.
    pub url: Url,
    /// The headers; those with secrets are marked sensitive.
    pub headers: HeaderMap,
    /// The JSON body.
    pub body: Option<Bytes>,
}

/// A complete answer.
#[derive(Clone)]
pub struct IncomingAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. May contain secrets.
    pub body: Bytes,
}

impl fmt::Debug for IncomingAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming {{ status: {}, body: {} bytes }}", self.status, self.body.len())
    }
}

/// An answer whose body is still arriving.
pub struct Answering {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The pieces of the body. May contain secrets.
    pub body: BoxStream<'static, Result<Bytes, Cause>>,
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answering {{ status: {} }}", self.status)
    }
}

/// Why no answer arrived.
#[derive(Debug, Clone)]
pub enum SendFailure {
    /// The client could not be built.
    Impossible(String),
    /// No byte of the request was sent.
    NeverSent(Cause),
    /// At least a part of the request was sent.
    NoAnswer(Cause),
}

impl SendFailure {
    pub(super) fn into_error(self, endpoint: Endpoint, address: &str) -> Error {
        match self {
            Self::Impossible(reason) => Error::Transport { reason },
            Self::NeverSent(cause) => Error::NeverSent { endpoint, address: address.to_owned(), cause },
            Self::NoAnswer(cause) => Error::NoAnswer { endpoint, cause },
        }
    }
}

/// Sends one request and reads its answer.
///
/// The future may be dropped at any time; the request then counts as sent without an answer.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one request, once.
    async fn send(&self, request: Outgoing) -> Result<IncomingAnswer, SendFailure>;

    /// Sends one request, once, and returns its body in pieces. The default reads the whole answer first.
    async fn stream(&self, request: Outgoing) -> Result<Answering, SendFailure> {
        let IncomingAnswer { status, headers, body } = self.send(request).await?;
        Ok(Answering { status, headers, body: stream::once(ready(Ok(body))).boxed() })
    }
}

/// HTTP with reqwest. The clients are built on first use: loading certificates takes time and may fail.
pub(super) struct Http {
    options: HttpOptions,
    pooled: Mutex<Option<reqwest::Client>>,
    /// For creates: each request has a connection of its own. A pooled connection that the service has closed fails
    /// after bytes were sent, and then it is unknown whether they arrived.
    fresh: Mutex<Option<reqwest::Client>>,
}

/// The settings of an HTTP client.
pub(super) struct HttpOptions {
    pub(super) request_timeout: Duration,
    extra_roots_pem: Option<Vec<u8>>,
    plain: bool,
    pub(super) proxies: Proxies,
}

impl Http {
    pub(super) fn new(settings: &Settings) -> Self {
        let base = settings.base_url.as_ref();
        Self {
            options: HttpOptions::of(settings, base.is_some_and(|base| base.is_plain())),
            pooled: Mutex::new(None),
            fresh: Mutex::new(None),
        }
    }

    /// Sends a request; returns when the headers of its answer have arrived.
    async fn begin(&self, request: Outgoing) -> Result<reqwest::Response, SendFailure> {
        let client = self.client(request.endpoint.effect())?;
        let mut builder = client.request(request.method, request.url).headers(request.headers);
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        builder.send().await.map_err(|error| self.failure(error))
    }

    fn failure(&self, error: reqwest::Error) -> SendFailure {
        let never_sent = error.is_connect() || error.is_builder();
        let cause = self.options.proxies.cause(error);
        if never_sent { SendFailure::NeverSent(cause) } else { SendFailure::NoAnswer(cause) }
    }

    fn client(&self, effect: Effect) -> Result<reqwest::Client, SendFailure> {
        let slot = if effect == Effect::Creates { &self.fresh } else { &self.pooled };
        let mut slot = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        let client = self.options.build(|builder| {
            let builder = builder
                .redirect(redirect::Policy::none())
                .https_only(!self.options.plain)
                .pool_idle_timeout(Duration::from_secs(20));
            if effect == Effect::Creates { builder.http1_only().pool_max_idle_per_host(0) } else { builder }
        });
        let client = client.map_err(SendFailure::Impossible)?;
        Ok(slot.insert(client).clone())
    }
}

impl HttpOptions {
    /// Those of the settings, for addresses with plain http or for others.
    pub(super) fn of(settings: &Settings, plain: bool) -> Self {
        Self {
            request_timeout: settings.request_timeout,
            extra_roots_pem: settings.extra_roots_pem.clone(),
            plain,
            proxies: settings.proxies.clone(),
        }
    }

    /// A client, to which `more` adds what differs between the uses.
    ///
    /// # Errors
    ///
    /// Extra root certificates that are none; no client can be built, for example without any root certificate.
    pub(super) fn build(
        &self,
        more: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<reqwest::Client, String> {
        // Shorter than the request timeout: a failed connection is then reported as one, not as a lost answer.
        let connect = (self.request_timeout / 2).min(Duration::from_secs(10));
        let builder = || {
            let builder = self.proxies.set(reqwest::Client::builder());
            more(builder.retry(retry::never()).referer(false).connect_timeout(connect))
        };
        let roots = roots(self.extra_roots_pem.as_deref())?;
        if self.plain {
            // Plain http needs no certificate store, and must work on a computer without one.
            return builder().tls_certs_only([]).build().map_err(|error| Cause::new(error).to_string());
        }
        let merged = builder().tls_certs_merge(roots.clone()).build();
        match merged {
            Ok(client) => Ok(client),
            // A computer without a certificate store can still trust the given roots.
            Err(_) if !roots.is_empty() => {
                builder().tls_certs_only(roots).build().map_err(|error| Cause::new(error).to_string())
            }
            Err(error) => Err(Cause::new(error).to_string()),
        }
    }
}

/// The certificates of a PEM bundle.
///
/// # Errors
///
/// Text that is not a PEM bundle, or has no certificate.
fn roots(pem: Option<&[u8]>) -> Result<Vec<Certificate>, String> {
    let Some(pem) = pem else { return Ok(Vec::new()) };
    let certificates = Certificate::from_pem_bundle(pem)
        .map_err(|error| format!("the extra root certificates are not in PEM format: {}", Cause::new(error)))?;
    if certificates.is_empty() {
        return Err("the file of the extra root certificates contains no certificate in PEM format".to_owned());
    }
    Ok(certificates)
}

#[async_trait]
impl Transport for Http {
    async fn send(&self, request: Outgoing) -> Result<IncomingAnswer, SendFailure> {
        let mut answer = self.begin(request).await?;
        let status = answer.status().as_u16();
        let headers = std::mem::take(answer.headers_mut());
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.failure(error))? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(SendFailure::NoAnswer(Cause::new(TooMuch::Large)));
            }
            body.extend_from_slice(&chunk);
        }
        let mut body = body.freeze();
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip")) {
            let inflated = beside(body.len() * MOST_INFLATED, move || inflated(&body)).await;
            body =
                inflated.map_err(|error| SendFailure::Impossible(error.to_string()))?.map_err(SendFailure::NoAnswer)?;
        }
        Ok(IncomingAnswer { status, headers, body })
    }

    async fn stream(&self, request: Outgoing) -> Result<Answering, SendFailure> {
        let mut answer = self.begin(request).await?;
        let status = answer.status().as_u16();
        let headers = std::mem::take(answer.headers_mut());
        let cause = |error: reqwest::Error| Cause::new(error.without_url());
        let body = answer.bytes_stream().map(move |chunk| chunk.map_err(cause)).boxed();
        Ok(Answering { status, headers, body })
    }
}

fn inflated(body: &[u8]) -> Result<Bytes, Cause> {
    let mut text = Vec::new();
    let limit = LARGEST_ANSWER.min((body.len() * MOST_INFLATED).max(1 << 20));
    GzDecoder::new(body).take(limit as u64 + 1).read_to_end(&mut text).map_err(Cause::new)?;
    match text.len() > limit {
        true if limit < LARGEST_ANSWER => Err(Cause::new(TooMuch::Inflated)),
        true => Err(Cause::new(TooMuch::Large)),
        false => Ok(Bytes::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn compressed_answers_are_read_up_to_the_limit() {
        let packed = |size| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            // A part that does not compress keeps the ratio below its limit.
            let noise: Vec<u8> =
                (0..size as u64 / 100).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
            encoder.write_all(&noise).unwrap();
            encoder.write_all(&vec![b' '; size - noise.len()]).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(inflated(&packed(1000)).unwrap().len(), 1000);
        let error = inflated(&packed(LARGEST_ANSWER + 1)).unwrap_err();
        assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![b' '; 8 << 20]).unwrap();
        let error = inflated(&bomb.finish().unwrap()).unwrap_err();
        assert!(error.to_string().contains("200 times"), "{error}");
        assert!(inflated(&packed(1000)[..20]).is_err());
    }
}
