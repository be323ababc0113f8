//! Host keys and pins.

use std::{fmt, str::FromStr};

use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey, ssh_key::Fingerprint};

use crate::Error;

/// The accepted algorithms in order of preference if the pin names none. Signatures over SHA-1 are excluded.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Ed25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

/// The public key that a server proved to hold. Displayed as `ssh-ed25519 AAAA…`, and read from the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey(PublicKey);

impl HostKey {
    pub(super) fn new(key: &PublicKey) -> Self {
        // Without the comment, which the server did not prove.
        Self(PublicKey::new(key.key_data().clone(), ""))
    }

    /// The fingerprint in OpenSSH's form, `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        self.sha256().to_string()
    }

    /// The algorithm, such as `ssh-ed25519`.
    pub fn algorithm(&self) -> String {
        self.0.algorithm().to_string()
    }

    fn sha256(&self) -> Fingerprint {
        self.0.fingerprint(HashAlg::Sha256)
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_openssh().map_err(|_| fmt::Error)?)
    }
}

impl FromStr for HostKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let key = PublicKey::from_openssh(text.trim()).map_err(|_| bad("is not a public key in OpenSSH's format"))?;
        if key.algorithm().is_dsa() {
            return Err(bad("is a DSA key, which is no longer accepted"));
        }
        Ok(Self::new(&key))
    }
}

/// The host key that is accepted: a public key, or the fingerprint of one. Displayed as it was given, without comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin(KeyKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyKind {
    Fingerprint(Fingerprint),
    Key(HostKey),
}

impl Pin {
    /// Whether this key is accepted.
    pub fn matches(&self, key: &HostKey) -> bool {
        match &self.0 {
            KeyKind::Fingerprint(fingerprint) => *fingerprint == key.sha256(),
            KeyKind::Key(pinned) => pinned == key,
        }
    }

    /// The fingerprint of the accepted key, `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        match &self.0 {
            KeyKind::Fingerprint(fingerprint) => fingerprint.to_string(),
            KeyKind::Key(key) => key.fingerprint(),
        }
    }

    /// Whether the algorithm of the key is known, so that a server with several keys can be asked for it.
    pub(super) fn knows_algorithm(&self) -> bool {
        matches!(self.0, KeyKind::Key(_))
    }
}

/// The algorithms to offer: that of the pin first, so that a server with several keys shows the pinned one.
pub(super) fn algorithms(pin: Option<&Pin>) -> Vec<Algorithm> {
    let mut algorithms = ALGORITHMS.to_vec();
    if let Some(Pin(KeyKind::Key(key))) = pin {
        // The sort is stable: the others keep their order.
        algorithms.sort_by_key(|algorithm| !is_of(algorithm, key));
    }
    algorithms
}

/// The algorithms that are left after a server has shown this key.
pub(super) fn others(algorithms: &[Algorithm], shown: &HostKey) -> Vec<Algorithm> {
    algorithms.iter().filter(|algorithm| !is_of(algorithm, shown)).cloned().collect()
}

/// An RSA key has several algorithm names.
fn is_of(algorithm: &Algorithm, key: &HostKey) -> bool {
    match (algorithm, key.0.algorithm()) {
        (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
        (algorithm, of_key) => *algorithm == of_key,
    }
}

impl From<HostKey> for Pin {
    fn from(key: HostKey) -> Self {
        Self(KeyKind::Key(key))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            KeyKind::Fingerprint(fingerprint) => fingerprint.fmt(formatter),
            KeyKind::Key(key) => key.fmt(formatter),
        }
    }
}

impl FromStr for Pin {
    type Err = Error;

    /// Reads `ssh-ed25519 AAAA… comment` or `SHA256:…`; an error never repeats the text, which may be a private key.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = &*clean(text);
        if text.starts_with("SHA256:") {
            let fingerprint = text.trim_end_matches('=').parse();
            return fingerprint
                .map(|fingerprint| Self(KeyKind::Fingerprint(fingerprint)))
                .map_err(|_| bad("is not a complete SHA256 fingerprint (`SHA256:` and 43 characters)"));
        }
        if text.starts_with("-----BEGIN") {
            return Err(bad("is a PEM block; a pin is the public half, as in /etc/ssh/ssh_host_ed25519_key.pub"));
        }
        if text.starts_with("MD5:") {
            return Err(bad("is an MD5 fingerprint, which is too weak: `ssh-keygen -l -E sha256` shows the other"));
        }
        if text.split_whitespace().count() > 2 && text.split_whitespace().nth(1).is_some_and(is_kind_of_key) {
            return Err(bad("begins with a host name, as in known_hosts: give the line without it"));
        }
        text.parse().map(|key: HostKey| key.into())
    }
}

fn is_kind_of_key(word: &str) -> bool {
    word.starts_with("ssh-") || word.starts_with("ecdsa-")
}

fn bad(reason: &str) -> Error {
    Error::BadPin { reason: reason.to_owned() }
}

/// The text of a key without what its way here added: indentation of here-documents, Windows line ends, a byte order
/// mark, and the line breaks of one line that JSON and .env files write as `\n`.
pub(super) fn clean(text: &str) -> String {
    let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
    let text = text.trim_matches(is_space);
    let line_break = if text.contains('\n') { "\n" } else { "\\n" };
    let lines = text.split(line_break).map(|line| line.trim_end_matches("\\r").trim_matches(is_space));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    /// The output of `ssh-keygen -l`.
    const FINGERPRINT: &str = "SHA256:T7SvZ2cslqpPj6nKzitCBHHlpVF3r3MvLwmFL0fk0IE";

    #[test]
    fn a_pin_is_a_key_or_its_fingerprint() {
        let key: HostKey = ED25519.parse().unwrap();
        assert_eq!(key.to_string(), ED25519);
        assert_eq!(key.fingerprint(), FINGERPRINT);
        for text in [
            ED25519.to_owned(),
            format!("  {ED25519} root@host with words\n"),
            FINGERPRINT.to_owned(),
            format!("{FINGERPRINT}="),
        ] {
            let pin: Pin = text.parse().unwrap();
            assert!(pin.matches(&key), "{text}");
            assert_eq!(pin.fingerprint(), FINGERPRINT, "{text}");
        }
        assert_eq!(format!("{ED25519} comment").parse::<Pin>().unwrap().to_string(), ED25519);
        assert_eq!(FINGERPRINT.parse::<Pin>().unwrap().to_string(), FINGERPRINT);
        assert_eq!(Pin::from(key).to_string(), ED25519);
    }

    #[test]
    fn another_key_is_refused() {
        let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN+Wjn4+4Fcvl2JlKpggT+wCRxpSvtqqpVrQrKN1/A22";
        let other: HostKey = other.parse().unwrap();
        assert!(!ED25519.parse::<Pin>().unwrap().matches(&other));
        assert!(!FINGERPRINT.parse::<Pin>().unwrap().matches(&other));
    }

    #[test]
    fn what_is_no_pin_is_told_without_repeating_it() {
        for text in [
            "",
            "SHA256:",
            "SHA256:abc",
            "MD5:aa:bb",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "256 SHA256:UCUiLr7Pjs9wFFJMDByLgc3NrtdU344OgUM45wZPcIQ root@host (ED25519)",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nPLANTED",
            "@cert-authority * ssh-ed25519 AAAA",
        ] {
            let error = text.parse::<Pin>().unwrap_err().to_string();
            assert!(!error.contains("PLANTED"), "{error}");
        }
        let known_hosts = format!("[10.0.0.1]:2222 {ED25519}").parse::<Pin>().unwrap_err().to_string();
        assert!(known_hosts.contains("without it"), "{known_hosts}");
    }

    #[test]
    fn the_pinned_kind_is_asked_for_first() {
        let rsa = Algorithm::Rsa { hash: Some(HashAlg::Sha512) };
        assert_eq!(algorithms(None), ALGORITHMS);
        assert_eq!(algorithms(Some(&FINGERPRINT.parse().unwrap())), ALGORITHMS);
        let key: HostKey = ED25519.parse().unwrap();
        assert_eq!(algorithms(Some(&key.clone().into()))[0], Algorithm::Ed25519);
        assert!(!others(&ALGORITHMS, &key).contains(&Algorithm::Ed25519));
        assert!(others(&ALGORITHMS, &key).contains(&rsa));
    }
}
