//! The proxies of this computer's environment variables, as Go and curl read them.

use std::{fmt, net::IpAddr};

use url::{Host, Url};

use crate::api::{
    error::{Cause, ThroughProxy, WithoutProxy},
    settings::is_loopback,
};

/// The variables of proxies for addresses with https; the first that is set counts.
const HTTPS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The same for addresses with http.
const HTTP: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
/// The variables of the hosts that are reached without a proxy.
const NONE: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The proxies through which requests go. Default: none. Loopback addresses are reached without one.
#[derive(Clone, Default)]
pub struct Proxies {
    https: Option<Proxy>,
    http: Option<Proxy>,
    exceptions: String,
}

#[derive(Clone)]
struct Proxy {
    variable: &'static str,
    /// May contain a password. `None` if it cannot be used.
    address: Option<Url>,
}

impl Proxies {
    /// The proxies of variables; `variable` returns the value of one that is set.
    pub fn read<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let first = |names: [&'static str; 4]| {
            let set = names.into_iter().filter_map(|name| Some((name, variable(name)?)));
            let set = set.filter(|(_, text)| !text.trim().is_empty());
            let mut proxies = set.map(|(variable, text)| Proxy { variable, address: address(text) });
            let first = proxies.next()?;
            if first.address.is_some() {
                return Some(first);
            }
            proxies.find(|proxy| proxy.address.is_some()).or(Some(first))
        };
        let exceptions = NONE.into_iter().find_map(&variable).unwrap_or_default().to_owned();
        Self { https: first(HTTPS), http: first(HTTP), exceptions }
    }

    /// The proxy for an address.
    fn of(&self, url: &Url) -> Option<&Proxy> {
        let proxy = if url.scheme() == "http" { &self.http } else { &self.https };
        proxy.as_ref().filter(|_| !is_loopback(url) && !is_excepted(url, &self.exceptions))
    }

    /// A client whose requests go through these proxies, and through no other.
    pub(super) fn set(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        let proxies = self.clone();
        let of = move |url: &Url| proxies.of(url)?.address.clone();
        builder.proxy(reqwest::Proxy::custom(of))
    }

    /// An error of a request, with the variable of its proxy, used or not, and without its address, which may contain a
    /// key.
    pub(super) fn cause(&self, error: reqwest::Error) -> Cause {
        let proxy = error.url().and_then(|url| self.of(url)).map(|proxy| (proxy.variable, proxy.address.is_some()));
        let error = error.without_url();
        match proxy {
            Some((variable, true)) => Cause::new(ThroughProxy { variable, source: error }),
            Some((variable, false)) => Cause::new(WithoutProxy { variable, source: error }),
            None => Cause::new(error),
        }
    }
}

impl fmt::Debug for Proxies {
    /// Shows variables only, because an address may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries([&self.https, &self.http].into_iter().flatten().map(|proxy| proxy.variable)).finish()
    }
}

/// The address of a proxy. One without a scheme is http.
fn address(text: &str) -> Option<Url> {
    let text = text.trim();
    let mut url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) }.ok()?;
    if url.scheme() == "socks5" {
        // The proxy looks names up, as for Terraform: a name of a private network is often known there only.
        url.set_scheme("socks5h").ok()?;
    }
    matches!(url.scheme(), "http" | "https" | "socks4" | "socks4a" | "socks5h").then_some(url)
}

/// Whether a list of hosts has the host of an address: names with all names below them, addresses, networks, each of
/// the former with or without a port, or `*` for every host.
fn is_excepted(url: &Url, list: &str) -> bool {
    let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    let (host, port) = (url.host(), url.port_or_known_default());
    entries.into_iter().any(|entry| {
        let (name, wanted) = match entry.rsplit_once(':') {
            // An IPv6 address without brackets has no port.
            Some((name, digits)) if entry.parse::<IpAddr>().is_err() && digits.parse::<u16>().is_ok() => {
                (name, digits.parse().ok())
            }
            _ => (entry, None),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_host = match &host {
            _ if name == "*" => true,
            Some(Host::Domain(host)) => is_below(host, name),
            Some(Host::Ipv4(address)) => is_in(IpAddr::V4(*address), name),
            Some(Host::Ipv6(address)) => is_in(IpAddr::V6(*address), name),
            None => false,
        };
        is_host && (wanted.is_none() || wanted == port)
    })
}

/// Whether a host has this name, or one that ends with it: `example.com`, `.example.com` and `*.example.com` are equal.
fn is_below(host: &str, name: &str) -> bool {
    let name = name.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    let before = host.strip_suffix(&name).filter(|_| !name.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Whether an address is this one, or in this network (`10.0.0.0/8`).
fn is_in(address: IpAddr, network: &str) -> bool {
    let (start, length) = network.split_once('/').map_or((network, None), |(start, length)| (start, Some(length)));
    let Ok(start) = start.parse::<IpAddr>() else { return false };
    // All addresses with as many first bits as `length` names are equal after the shift.
    let (bits, address, start) = match (address, start) {
        (IpAddr::V4(address), IpAddr::V4(start)) => (32, u128::from(address.to_bits()), u128::from(start.to_bits())),
        (IpAddr::V6(address), IpAddr::V6(start)) => (128, address.to_bits(), start.to_bits()),
        _ => return false,
    };
    match length.map_or(Ok(bits), str::parse::<u32>) {
        Ok(length) if length <= bits => (address ^ start).checked_shr(bits - length).unwrap_or(0) == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn proxies(variables: &[(&str, &'static str)]) -> Proxies {
        Proxies::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }

    fn used(variables: &[(&str, &'static str)], url: &str) -> Option<(&'static str, String)> {
        let url = Url::parse(url).unwrap();
        let proxies = proxies(variables);
        let proxy = proxies.of(&url)?;
        Some((proxy.variable, proxy.address.as_ref().map_or_else(|| "unusable".to_owned(), Url::to_string)))
    }

    #[test]
    fn the_scheme_decides_on_the_variable() {
        let all = [("ALL_PROXY", "socks5://p:1080"), ("https_proxy", "p:3128"), ("HTTPS_PROXY", "ftp://p")];
        let https = Some(("https_proxy", "http://p:3128/".to_owned()));
        assert_eq!(used(&all, "https://gateway.example"), https);
        let http = Some(("ALL_PROXY", "socks5h://p:1080".to_owned()));
        assert_eq!(used(&all, "http://gateway.example"), http);
        for local in ["https://localhost", "http://127.0.0.2:8080", "http://[::1]"] {
            assert_eq!(used(&all, local), None, "{local}");
        }
        assert_eq!(used(&[("NO_PROXY", "")], "https://gateway.example"), None);
        // As GNOME writes it; white space is no address.
        let unusable = [("HTTPS_PROXY", " "), ("https_proxy", "http://"), ("all_proxy", "socks://p:1080/")];
        let unusable = used(&unusable, "https://gateway.example");
        assert_eq!(unusable, Some(("https_proxy", "unusable".to_owned())));
    }

    #[rstest]
    #[case("*", true)]
    #[case("other.example, *", true)]
    #[case("gateway.example", true)]
    #[case("GATEWAY.example.", true)]
    #[case("example", true)]
    #[case(".example", true)]
    #[case("*.example", true)]
    #[case("other.example gateway.example", true)]
    #[case("gateway.example:8443", true)]
    #[case("*:8443", true)]
    #[case("gateway.example:443", false)]
    #[case("way.example", false)]
    #[case("a.gateway.example", false)]
    #[case("10.0.0.0/8", false)]
    #[case("", false)]
    #[case(",.,", false)]
    fn a_name_is_excepted(#[case] list: &'static str, #[case] is_excepted: bool) {
        let variables = [("HTTPS_PROXY", "http://p"), ("no_proxy", list)];
        assert_eq!(used(&variables, "https://gateway.example:8443/v1").is_none(), is_excepted);
    }

    #[rstest]
    #[case("https://10.1.2.3", "10.0.0.0/8", true)]
    #[case("https://10.1.2.3", "10.1.2.3", true)]
    #[case("https://10.1.2.3", "10.1.2.3:443", true)]
    #[case("https://10.1.2.3", "10.1.2.3:80", false)]
    #[case("https://10.1.2.3", "*", true)]
    #[case("https://10.1.2.3", "0.0.0.0/0", true)]
    #[case("https://10.1.2.3", "11.0.0.0/8,10.1.2.2/32,10.0.0.0/33,2.3", false)]
    #[case("https://[fd00::1]", "fd00::/8", true)]
    #[case("https://[fd00::1]", "fd00::1", true)]
    #[case("https://[fd00::1]", "[fd00::1]:443", true)]
    #[case("https://[fd00::1]", "[fd00::1]:80,fd00::2", false)]
    fn an_address_is_excepted(#[case] url: &str, #[case] list: &'static str, #[case] is_excepted: bool) {
        assert_eq!(used(&[("HTTPS_PROXY", "http://p"), ("NO_PROXY", list)], url).is_none(), is_excepted);
    }

    #[test]
    fn no_password_of_a_proxy_is_shown() {
        let shown = format!("{:?}", proxies(&[("HTTPS_PROXY", "http://me:planted@p")]));
        assert!(shown.contains("HTTPS_PROXY") && !shown.contains("planted"), "{shown}");
    }
}
