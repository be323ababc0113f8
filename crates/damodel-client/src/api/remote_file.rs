//! A file at any https address, read in pieces (RFC 9110, section 14). The service's credentials are never sent, and no
//! file is read whole.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    StatusCode,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, RANGE, USER_AGENT},
    redirect,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::api::{
    error::Cause,
    proxies::Proxies,
    retry::{PIECE, retry_after, waits},
    settings::{Random, Settings, is_loopback, names_a_host},
    transport::HttpOptions,
};

/// The largest number of redirects.
const REDIRECTS: usize = 10;

/// Why a piece of a file was not read. The address is not included: it may contain a key.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RemoteError {
    /// The address cannot be used. Usual cause: http instead of https.
    #[error("{reason}")]
    BadAddress {
        /// The reason.
        reason: &'static str,
    },
    /// The file is shorter.
    #[error("the file ended before the requested bytes")]
    BeyondTheEnd,
    /// The server has another version of the file than before. Usual cause: a balancer before different machines.
    #[error("the server's answers have different sizes or ETags: its machines disagree about the file, or it changes")]
    Changed,
    /// The connection failed or broke.
    #[error("the connection failed: {0}")]
    Connection(Cause),
    /// The client could not be built. Usual cause: no certificate store on this computer.
    #[error("{0}")]
    Impossible(String),
    /// The host name has no address.
    #[error("the host name cannot be resolved: {0}")]
    Lookup(Cause),
    /// The server does not support ranges.
    #[error("the server does not support range requests")]
    NoRanges,
    /// The server limits the pace of requests.
    #[error("the server answered {}: it limits the number of requests", StatusCode::TOO_MANY_REQUESTS)]
    Limited {
        /// The wait that it asks for.
        wait: Option<Duration>,
    },
    /// A redirect that is not followed: to an address without https, or after too many others.
    #[error("{0}")]
    Redirect(Cause),
    /// The server answered with another status.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// TLS failed. Usual cause: a certificate that no trusted authority signed.
    #[error("the server's certificate is not trusted: {0}")]
    Untrusted(Cause),
}

impl RemoteError {
    /// Whether a retry may succeed.
    fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Limited { .. } | Self::Lookup(_) => true,
            Self::Status(status) => status.is_server_error(),
            Self::BadAddress { .. }
            | Self::BeyondTheEnd
            | Self::Changed
            | Self::Impossible(_)
            | Self::NoRanges
            | Self::Redirect(_)
            | Self::Untrusted(_) => false,
        }
    }
}

/// A file at an address, and the other files on the same server.
#[derive(Debug, Clone)]
pub struct RemoteFile {
    client: reqwest::Client,
    url: Url,
    user_agent: String,
    /// The bearer token for the server of the address. The library removes it from a redirect to another one.
    token: Option<HeaderValue>,
    /// [`Settings::max_retries`].
    max_retries: usize,
    random: Random,
    /// When the caller stops waiting.
    deadline: Option<Instant>,
    proxies: Proxies,
    /// The versions of the files that were read: pieces of different ones are no file.
    versions: Arc<Mutex<HashMap<String, FileVersion>>>,
    /// Whether ETags are ignored.
    has_no_tags: bool,
}

/// What identifies a version of a file: its size, and its ETag if the server sends a strong one.
type FileVersion = (u64, Option<HeaderValue>);

impl RemoteFile {
    /// Reads an address: https, or http on a loopback address, without credentials.
    ///
    /// # Errors
    ///
    /// [`RemoteError::BadAddress`].
    pub fn address(address: &str) -> Result<Url, RemoteError> {
        let bad = |reason| RemoteError::BadAddress { reason };
        // The parser would remove them.
        if address.trim().contains(['\n', '\r', '\t']) {
            return Err(bad("the address contains a line break or a tab"));
        }
        let url = Url::parse(address).map_err(|_| bad("the address is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("the address contains credentials, which would be stored in the state"));
        }
        if !is_permitted(&url) {
            return Err(bad("the address must begin with https, or with http on a loopback address"));
        }
        if !names_a_host(address) {
            return Err(bad("the address has no host after ://"));
        }
        Ok(url)
    }

    /// A file at an [address](Self::address). Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`RemoteError::BadAddress`], [`RemoteError::Impossible`].
    pub fn new(address: &str, settings: &Settings) -> Result<Self, RemoteError> {
        let url = Self::address(address)?;
        let options = HttpOptions::of(settings, url.scheme() == "http");
        let client = options
            .build(|builder| builder.redirect(redirect::Policy::custom(follow)).timeout(options.request_timeout));
        Ok(Self {
            client: client.map_err(RemoteError::Impossible)?,
            url,
            user_agent: settings.user_agent.to_string(),
            token: None,
            max_retries: settings.max_retries,
            random: settings.random.clone(),
            deadline: None,
            proxies: options.proxies,
            versions: Arc::default(),
            has_no_tags: false,
        })
    }

    /// The same file, of which no version is known yet.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Self { versions: Arc::default(), ..self.clone() }
    }

    /// Ignores ETags, for a file whose sum is checked later.
    #[must_use]
    pub fn without_tags(self) -> Self {
        Self { has_no_tags: true, ..self }
    }

    /// Sends this token to the server of the address alone. A token that no header can carry is not sent.
    #[must_use]
    pub fn with_token(self, token: Option<SecretString>) -> Self {
        let bearer = |token: &SecretString| HeaderValue::try_from(format!("Bearer {}", token.expose_secret())).ok();
        let token = token.as_ref().and_then(bearer).map(|mut bearer| {
            bearer.set_sensitive(true);
            bearer
        });
        Self { token, ..self }
    }

    /// For a caller who stops waiting then.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The path of the address, which identifies the file.
    #[must_use]
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// The size in bytes of the file with this path on the same server.
    ///
    /// # Errors
    ///
    /// All of [`RemoteError`].
    pub async fn size(&self, path: &str) -> Result<u64, RemoteError> {
        self.piece(path, 0, 1).await.map(|(_, size)| size)
    }

    /// Exactly these bytes of the file with this path.
    ///
    /// # Errors
    ///
    /// All of [`RemoteError`].
    pub async fn bytes(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>, RemoteError> {
        self.piece(path, offset, length).await.map(|(bytes, _)| bytes)
    }

    async fn piece(&self, path: &str, offset: u64, length: usize) -> Result<(Vec<u8>, u64), RemoteError> {
        let mut waits = waits(PIECE.with_max_times(self.max_retries), &self.random);
        loop {
            let error = match self.request(path, offset, length).await {
                Err(error) if error.may_pass() => error,
                settled => return settled,
            };
            let Some(mut wait) = waits.next() else { return Err(error) };
            if let RemoteError::Limited { wait: asked } = &error {
                wait = wait.max(asked.unwrap_or_default());
                // The error names the pace, and a caller who gives up first would not.
                if self.deadline.is_some_and(|deadline| deadline <= Instant::now() + wait) {
                    return Err(error);
                }
            }
            sleep(wait).await;
        }
    }

    async fn request(&self, path: &str, offset: u64, length: usize) -> Result<(Vec<u8>, u64), RemoteError> {
        let mut url = self.url.clone();
        url.set_path(path);
        let last = offset.saturating_add(length as u64).saturating_sub(1);
        let request = self
            .client
            .get(url)
            .header(RANGE, format!("bytes={offset}-{last}"))
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, &self.user_agent);
        let request = match &self.token {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        };
        let mut answer = request.send().await.map_err(|error| failure(error, &self.proxies))?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => {}
            // The answer would be the whole file, which is not read.
            StatusCode::OK => return Err(RemoteError::NoRanges),
            // An empty file has no valid range.
            StatusCode::RANGE_NOT_SATISFIABLE if offset == 0 => return Ok((Vec::new(), 0)),
            StatusCode::RANGE_NOT_SATISFIABLE => return Err(RemoteError::BeyondTheEnd),
            StatusCode::TOO_MANY_REQUESTS => {
                let wait = retry_after(answer.headers(), jiff::Timestamp::now().as_second());
                return Err(RemoteError::Limited { wait });
            }
            status => return Err(RemoteError::Status(status)),
        }
        let (first, size) = content_range(answer.headers()).ok_or(RemoteError::NoRanges)?;
        if first != offset {
            return Err(RemoteError::NoRanges);
        }
        // Files with different bytes may have the same weak tag.
        let is_strong = |tag: &&HeaderValue| !self.has_no_tags && !tag.as_bytes().starts_with(b"W/");
        let version = (size, answer.headers().get(ETAG).filter(is_strong).cloned());
        let known = self
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(path.to_owned())
            .or_insert_with(|| version.clone())
            .clone();
        if known != version {
            return Err(RemoteError::Changed);
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| failure(error, &self.proxies))? {
            let room = length - bytes.len();
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if bytes.len() == length {
                return Ok((bytes, size));
            }
        }
        Err(RemoteError::BeyondTheEnd)
    }
}

/// Which part of a connection failed. The library tells name lookups and certificates apart only in its texts.
fn failure(error: reqwest::Error, proxies: &Proxies) -> RemoteError {
    let is_redirect = error.is_redirect();
    let cause = proxies.cause(error);
    let text = cause.to_string();
    if is_redirect {
        RemoteError::Redirect(cause)
    } else if text.contains("dns error") {
        RemoteError::Lookup(cause)
    } else if text.contains("invalid peer certificate") {
        RemoteError::Untrusted(cause)
    } else {
        RemoteError::Connection(cause)
    }
}

/// Follows a redirect to https, or from one loopback address to another.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let from_local = attempt.previous().iter().all(is_loopback);
    let leads_on = attempt.url().scheme() == "https" || (from_local && is_permitted(attempt.url()));
    if !leads_on {
        return attempt.error("a redirect to an address without https");
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("too many redirects");
    }
    attempt.follow()
}

fn is_permitted(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}

/// The first byte that is sent, and the size of the file: `bytes 0-9/100`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let (range, size) = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, size.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;
    use wiremock::{
        Mock, MockServer, ResponseTemplate,
        matchers::{header, method, path},
    };

    use super::*;

    fn file(server: &MockServer, path: &str) -> RemoteFile {
        RemoteFile::new(&format!("{}{path}", server.uri()), &Settings::default()).unwrap()
    }

    async fn answers(server: &MockServer, at: &str, answer: ResponseTemplate) {
        Mock::given(method("GET")).and(path(at)).respond_with(answer).mount(server).await;
    }

    fn part(range: &str, body: &[u8]) -> ResponseTemplate {
        ResponseTemplate::new(206).insert_header("Content-Range", range).set_body_bytes(body)
    }

    #[tokio::test]
    async fn only_the_bytes_that_are_asked_for_are_requested() {
        let server = MockServer::start().await;
        Mock::given(header("Range", "bytes=3-6")).respond_with(part("bytes 3-6/10", b"defg")).mount(&server).await;
        Mock::given(header("Range", "bytes=0-0")).respond_with(part("bytes 0-0/10", b"a")).mount(&server).await;
        let file = file(&server, "/m.gguf");
        assert_eq!(file.size("/m.gguf").await.unwrap(), 10);
        assert_eq!(file.bytes("/m.gguf", 3, 4).await.unwrap(), b"defg");
        let requests = server.received_requests().await.unwrap();
        assert!(requests.iter().all(|request| !request.headers.contains_key("authorization")));
        assert!(requests.iter().all(|request| !request.headers.contains_key("x-service-token")));
    }

    #[tokio::test]
    async fn a_token_is_sent_to_the_server_of_the_address_alone() {
        let (hub, store) = (MockServer::start().await, MockServer::start().await);
        let leads = ResponseTemplate::new(302).insert_header("Location", format!("{}/m", store.uri()));
        answers(&hub, "/m", leads).await;
        answers(&store, "/m", part("bytes 0-0/10", b"a")).await;
        let file = file(&hub, "/m").with_token(Some("planted".into()));
        assert_eq!(file.size("/m").await.unwrap(), 10);
        let tokens = async |server: &MockServer| {
            let requests = server.received_requests().await.unwrap();
            requests.iter().map(|request| request.headers.get("authorization").cloned()).collect::<Vec<_>>()
        };
        assert_eq!(tokens(&hub).await, [Some(HeaderValue::from_static("Bearer planted"))]);
        assert_eq!(tokens(&store).await, [None]);
        assert!(!format!("{file:?}").contains("planted"));
    }

    #[tokio::test]
    async fn a_server_without_ranges_is_an_error() {
        let server = MockServer::start().await;
        answers(&server, "/whole", ResponseTemplate::new(200).set_body_bytes(b"abc")).await;
        answers(&server, "/other", part("bytes 5-8/10", b"abcd")).await;
        answers(&server, "/unsized", part("bytes 0-3/*", b"abcd")).await;
        for path in ["/whole", "/other", "/unsized"] {
            let error = file(&server, path).bytes(path, 0, 4).await.unwrap_err();
            assert!(matches!(error, RemoteError::NoRanges), "{path}: {error}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_none_is_an_error_and_passing_ones_are_asked_again() {
        let server = MockServer::start().await;
        answers(&server, "/missing", ResponseTemplate::new(404)).await;
        answers(&server, "/short", part("bytes 0-3/10", b"ab")).await;
        Mock::given(path("/busy")).respond_with(ResponseTemplate::new(503)).up_to_n_times(1).mount(&server).await;
        answers(&server, "/busy", part("bytes 0-3/10", b"abcd")).await;
        let status = file(&server, "/missing").size("/missing").await.unwrap_err();
        assert_eq!(status.to_string(), "the server answered 404 Not Found");
        let short = file(&server, "/short").bytes("/short", 0, 4).await.unwrap_err();
        assert!(matches!(short, RemoteError::BeyondTheEnd), "{short}");
        assert_eq!(file(&server, "/busy").bytes("/busy", 0, 4).await.unwrap(), b"abcd");
    }

    #[tokio::test]
    async fn pieces_of_different_versions_are_an_error() {
        let server = MockServer::start().await;
        let tagged = |range: &str, tag: &str| part(range, b"abcd").insert_header("ETag", tag);
        for (range, answer) in [
            ("bytes=0-3", tagged("bytes 0-3/12", "\"1\"")),
            ("bytes=4-7", tagged("bytes 4-7/12", "\"1\"")),
            ("bytes=8-11", tagged("bytes 8-11/12", "\"2\"")),
        ] {
            Mock::given(header("Range", range)).respond_with(answer).mount(&server).await;
        }
        let file = file(&server, "/m.gguf");
        for offset in [0, 4] {
            assert_eq!(file.bytes("/m.gguf", offset, 4).await.unwrap(), b"abcd");
        }
        assert!(matches!(file.bytes("/m.gguf", 8, 4).await.unwrap_err(), RemoteError::Changed));
        for file in [file.afresh(), file.afresh().without_tags()] {
            assert_eq!(file.bytes("/m.gguf", 8, 4).await.unwrap(), b"abcd");
        }
    }

    #[tokio::test]
    async fn a_weak_tag_says_nothing_about_bytes() {
        let server = MockServer::start().await;
        for (range, tag) in [("bytes=0-3", "W/\"1\""), ("bytes=4-7", "W/\"2\"")] {
            let answer = part(&format!("{}/8", range.replace('=', " ")), b"abcd").insert_header("ETag", tag);
            Mock::given(header("Range", range)).respond_with(answer).mount(&server).await;
        }
        let file = file(&server, "/m.gguf");
        for offset in [0, 4] {
            assert_eq!(file.bytes("/m.gguf", offset, 4).await.unwrap(), b"abcd");
        }
    }

    #[tokio::test]
    async fn a_request_is_repeated_as_often_as_configured() {
        let server = MockServer::start().await;
        answers(&server, "/busy", ResponseTemplate::new(503)).await;
        for max_retries in [0, 1] {
            let settings = Settings { max_retries, ..Settings::default() };
            let file = RemoteFile::new(&format!("{}/busy", server.uri()), &settings).unwrap();
            assert!(matches!(file.size("/busy").await.unwrap_err(), RemoteError::Status(_)));
        }
        assert_eq!(server.received_requests().await.unwrap().len(), 1 + 2);
    }

    /// It gave up after ten seconds.
    #[tokio::test]
    async fn a_pace_that_the_server_asks_for_is_kept_within_the_limit_of_the_caller() {
        let server = MockServer::start().await;
        for (at, wait) in [("/soon", "1"), ("/late", "60")] {
            let limited = ResponseTemplate::new(429).insert_header("Retry-After", wait);
            Mock::given(path(at)).respond_with(limited).up_to_n_times(1).mount(&server).await;
            answers(&server, at, part("bytes 0-3/10", b"abcd")).await;
        }
        let begun = Instant::now();
        assert_eq!(file(&server, "/soon").bytes("/soon", 0, 4).await.unwrap(), b"abcd");
        assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
        let begun = Instant::now();
        let late = file(&server, "/late").until(begun + Duration::from_secs(40)).size("/late").await.unwrap_err();
        assert!(late.to_string().contains("it limits the number of requests"), "{late}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn what_failed_of_a_connection_is_named() {
        let unknown = RemoteFile::new("https://models.invalid/m.gguf", &Settings::default()).unwrap();
        let unknown = RemoteFile { max_retries: 0, ..unknown }.size("/m.gguf").await.unwrap_err();
        assert!(matches!(unknown, RemoteError::Lookup(_)), "{unknown}");
        // Held, and nothing listens.
        let held = TcpSocket::new_v4().unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let closed = format!("http://{}/m.gguf", held.local_addr().unwrap());
        let closed = RemoteFile::new(&closed, &Settings::default()).unwrap();
        let closed = RemoteFile { max_retries: 0, ..closed }.size("/m.gguf").await.unwrap_err();
        assert!(matches!(closed, RemoteError::Connection(_)), "{closed}");
    }

    #[tokio::test]
    async fn a_redirect_is_followed_and_never_to_plain_http_elsewhere() {
        let server = MockServer::start().await;
        let to = |address: &str| ResponseTemplate::new(302).insert_header("Location", address);
        answers(&server, "/here", to(&format!("{}/file", server.uri()))).await;
        answers(&server, "/file", part("bytes 0-3/10", b"abcd")).await;
        answers(&server, "/away", to("http://models.test/file")).await;
        answers(&server, "/loop", to("/loop")).await;
        assert_eq!(file(&server, "/here").bytes("/here", 0, 4).await.unwrap(), b"abcd");
        let away = file(&server, "/away").size("/away").await.unwrap_err();
        assert!(away.to_string().contains("a redirect to an address without https"), "{away}");
        let endless = file(&server, "/loop").size("/loop").await.unwrap_err();
        assert!(endless.to_string().contains("too many redirects"), "{endless}");
        // A refused redirect is no failure that passes.
        let requests = server.received_requests().await.unwrap();
        let asked = |path: &str| requests.iter().filter(|request| request.url.path() == path).count();
        assert_eq!((asked("/away"), asked("/loop")), (1, REDIRECTS + 1));
    }

    #[test]
    fn an_address_needs_https_and_no_credentials() {
        let refused = |address| RemoteFile::new(address, &Settings::default()).unwrap_err().to_string();
        assert!(refused("http://models.test/m.gguf").contains("must begin with https"));
        assert!(refused("file:///m.gguf").contains("must begin with https"));
        assert!(refused("m.gguf").contains("not a URL"));
        for hostless in ["https:///m.gguf", " https:////x/m.gguf", "https:\\m.gguf", "https:/m.gguf", "https:m.gguf"] {
            assert!(refused(hostless).contains("no host"), "{hostless}");
        }
        assert!(refused("https://models.test/m\n.gguf").contains("a line break"));
        assert!(RemoteFile::new(" https://models.test/m.gguf\r\n", &Settings::default()).is_ok());
        let error = refused("https://planted:secret@models.test/m.gguf");
        assert!(error.contains("credentials") && !error.contains("planted") && !error.contains("secret"), "{error}");
        assert!(RemoteFile::new("https://models.test/m.gguf?key=k", &Settings::default()).is_ok());
    }
}
