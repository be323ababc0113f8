//! The settings of a client.

use std::{collections::BTreeSet, fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::task::TaskTracker;
use url::{Host, Url};

use crate::api::{encoding::trimmed, progress::Progress, proxies::Proxies};

/// The settings of a [`Client`](crate::api::Client).
///
/// The address and the credentials may be missing; the first call that needs one reports that.
///
/// ```
/// use damodel_client::api::{BaseUrl, PlainHttp, Settings, TokenSource};
///
/// let settings = Settings {
///     base_url: Some(BaseUrl::parse("https://api.example.com/v1", PlainHttp::LoopbackOnly)?),
///     token: Some(TokenSource::Value("secret".into())),
///     ..Settings::default()
/// };
/// # let _ = settings;
/// # Ok::<(), damodel_client::api::InvalidBaseUrl>(())
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    /// The base address of the service.
    pub base_url: Option<BaseUrl>,
    /// The source of the `X-Service-Token` of the OpenAPI endpoints (service API, Authentication).
    pub token: Option<TokenSource>,
    /// The Bearer key of the chat endpoint (service API, Authentication).
    pub api_key: Option<SecretString>,
    /// The time limit of one request, from connecting to the last byte of its answer. A chat's may take longer: see
    /// [`Client::chat`](crate::api::Client::chat). Default: 30 s.
    pub request_timeout: Duration,
    /// How often a failed request is retried, if that can do no harm. Default: 5.
    pub max_retries: usize,
    /// The largest number of concurrent requests. Default: 16.
    pub max_concurrent_requests: NonZeroUsize,
    /// A PEM bundle of root certificates that are trusted in addition to the computer's own.
    pub extra_roots_pem: Option<Vec<u8>>,
    /// The proxies of requests to the service and to models. Default: none.
    pub proxies: Proxies,
    /// The `User-Agent` header.
    pub user_agent: UserAgent,
    /// The random source of markers and jitter.
    pub random: Random,
    /// The progress file of waits. Default: none.
    pub progress: Progress,
    /// The changes that are being sent: the process waits for them before it ends, also when their callers are gone.
    pub work: TaskTracker,
    /// The fields of records whose values the log may show. Default: none.
    pub loggable: BTreeSet<&'static str>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: None,
            token: None,
            api_key: None,
            request_timeout: Duration::from_secs(30),
            max_retries: 5,
            max_concurrent_requests: NonZeroUsize::MIN.saturating_add(15),
            extra_roots_pem: None,
            proxies: Proxies::default(),
            user_agent: UserAgent::default(),
            random: Random::default(),
            progress: Progress::default(),
            work: TaskTracker::new(),
            loggable: BTreeSet::new(),
        }
    }
}

/// The source of the API token.
#[derive(Clone)]
pub enum TokenSource {
    /// A program and its arguments, run without a shell: its standard output is the token. It has no standard input, at
    /// most 30 s, and its standard error is discarded. It is run once for all waiting calls, and again if the service
    /// still refuses the token after a correction of the clock.
    Command(Vec<String>),
    /// The token itself.
    Value(SecretString),
}

/// A token or key, [trimmed]; `None` if the rest cannot be sent in a header.
#[must_use]
pub fn credential(given: &SecretString) -> Option<SecretString> {
    let text = trimmed(given.expose_secret());
    text.chars().all(|c| matches!(c, ' '..='~')).then(|| text.into())
}

impl fmt::Debug for TokenSource {
    /// Shows the program without its arguments, which may contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(argv) => write!(f, "Command({:?}, …)", argv.first()),
            Self::Value(_) => f.write_str("Value([REDACTED])"),
        }
    }
}

/// The parts of the `User-Agent` header, in order.
#[derive(Debug, Clone)]
pub struct UserAgent {
    /// This program, as `name/version`. Default: the provider, in this crate's version.
    pub product: String,
    /// The calling program, as `name/version`.
    pub core: Option<String>,
    /// Text that the user appends.
    pub append: Option<String>,
}

impl Default for UserAgent {
    fn default() -> Self {
        Self {
            product: concat!("terraform-provider-damodel/", env!("CARGO_PKG_VERSION")).to_owned(),
            core: None,
            append: None,
        }
    }
}

impl fmt::Display for UserAgent {
    /// Writes the header's value, without characters that a header must not contain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [Some(&self.product), self.core.as_ref(), self.append.as_ref()];
        let mut separator = "";
        for part in parts.into_iter().flatten() {
            let clean: String = part.chars().filter(|c| matches!(c, ' '..='~')).collect();
            if !clean.trim().is_empty() {
                write!(f, "{separator}{}", clean.trim())?;
                separator = " ";
            }
        }
        Ok(())
    }
}

/// A source of random numbers, which tests can replace.
#[derive(Clone)]
pub struct Random(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Random {
    /// A source that calls a function.
    pub fn new(source: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The next number.
    #[must_use]
    pub fn next(&self) -> u64 {
        (self.0)()
    }

    /// A number in `0.0..1.0`.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
    }
}

impl Default for Random {
    /// The random source of the operating system.
    fn default() -> Self {
        Self::new(rand::random::<u64>)
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

/// The addresses for which plain http is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// Any address, such as a private gateway.
    Anywhere,
    /// Loopback addresses only.
    LoopbackOnly,
}

/// The base address, without a trailing `/v1` and `/` (service API, Versioning: the alias changes nothing).
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// Reads a base address.
    ///
    /// # Errors
    /// An address that is not http(s), plain http to another computer unless allowed, and an address with a user, a
    /// query or a fragment.
    pub fn parse(text: &str, plain_http: PlainHttp) -> Result<Self, InvalidBaseUrl> {
        let text = text.trim();
        // The parser would remove line breaks and tabs.
        if text.contains(char::is_whitespace) {
            return Err(InvalidBaseUrl::WhiteSpace);
        }
        let mut url = Url::parse(text).map_err(|_| InvalidBaseUrl::NoAddress)?;
        if url.host().is_none() || !names_a_host(text) {
            return Err(InvalidBaseUrl::NoAddress);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidBaseUrl::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidBaseUrl::Query);
        }
        match url.scheme() {
            "https" => {}
            "http" if plain_http == PlainHttp::Anywhere || is_loopback(&url) => {}
            "http" => return Err(InvalidBaseUrl::PlainHttp),
            _ => return Err(InvalidBaseUrl::NoAddress),
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The address of a path that begins with `/`.
    pub(super) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{path}"));
        url
    }

    /// Whether requests are sent without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }
}

/// Whether a host follows `://`. The parser skips further slashes, and takes the path behind them for a host.
pub(super) fn names_a_host(address: &str) -> bool {
    address.split_once("://").is_some_and(|(_, rest)| !rest.starts_with(['/', '\\']))
}

/// Whether an address is a loopback address.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

impl fmt::Display for BaseUrl {
    /// Writes the address without a trailing `/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({self})")
    }
}

/// Why an address is invalid as the base address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBaseUrl {
    /// It contains a user or a password.
    #[error("an address with a user or password is not accepted: credentials have settings of their own")]
    Credentials,
    /// It is not an http or https address.
    #[error("not an address that begins with https:// or http://")]
    NoAddress,
    /// It is plain http to another computer.
    #[error("plain http is accepted for a loopback address only: the token would be sent unencrypted")]
    PlainHttp,
    /// It contains a query or a fragment.
    #[error("an address with a query or fragment is not accepted")]
    Query,
    /// It contains white space.
    #[error("an address with white space in it is not accepted")]
    WhiteSpace,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://api.example.com", "https://api.example.com")]
    #[case("https://api.example.com/", "https://api.example.com")]
    #[case("https://api.example.com/v1", "https://api.example.com")]
    #[case("https://api.example.com/v1/", "https://api.example.com")]
    #[case("https://api.example.com/gateway/v1", "https://api.example.com/gateway")]
    #[case("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080")]
    #[case("http://[::1]:8080", "http://[::1]:8080")]
    #[case("http://localhost:8080", "http://localhost:8080")]
    fn base_address_loses_its_alias(#[case] given: &str, #[case] kept: &str) {
        let base = BaseUrl::parse(given, PlainHttp::LoopbackOnly).unwrap();
        assert_eq!(base.to_string(), kept);
        assert_eq!(base.join("/api/spec/list").as_str(), format!("{kept}/api/spec/list"));
    }

    #[rstest]
    #[case("http://10.0.0.1", InvalidBaseUrl::PlainHttp)]
    #[case("ftp://api.example.com", InvalidBaseUrl::NoAddress)]
    #[case("api.example.com", InvalidBaseUrl::NoAddress)]
    #[case("", InvalidBaseUrl::NoAddress)]
    #[case("https:///v1", InvalidBaseUrl::NoAddress)]
    #[case("https://user:pw@api.example.com", InvalidBaseUrl::Credentials)]
    #[case("https://api.example.com?x=1", InvalidBaseUrl::Query)]
    #[case("https://api.exa\nmple.com", InvalidBaseUrl::WhiteSpace)]
    #[case("ht\ttps://api.example.com", InvalidBaseUrl::WhiteSpace)]
    #[case("https://api.example.com/a b", InvalidBaseUrl::WhiteSpace)]
    fn malformed_base_address_is_refused(#[case] given: &str, #[case] reason: InvalidBaseUrl) {
        assert_eq!(BaseUrl::parse(given, PlainHttp::LoopbackOnly).unwrap_err(), reason);
    }

    #[test]
    fn plain_http_is_accepted_anywhere_when_allowed() {
        assert!(BaseUrl::parse("http://10.0.0.1", PlainHttp::Anywhere).is_ok());
    }

    #[test]
    fn user_agent_drops_what_no_header_may_hold() {
        let agent =
            UserAgent { product: "a/1".to_owned(), core: Some("core/2".to_owned()), append: Some("x\r\ny".to_owned()) };
        assert_eq!(agent.to_string(), "a/1 core/2 xy");
    }

    #[test]
    fn settings_show_no_secret() {
        let command = ["login", "--password", "planted"].map(str::to_owned).to_vec();
        for token in [TokenSource::Command(command), TokenSource::Value("planted".into())] {
            let settings = Settings { token: Some(token), api_key: Some("planted".into()), ..Settings::default() };
            assert!(!format!("{settings:?}").contains("planted"), "{settings:?}");
        }
    }
}
