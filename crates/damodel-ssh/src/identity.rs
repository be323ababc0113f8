//! Private keys and certificates, read from text, and the agent.

use std::{fmt, path::Path, sync::Arc};

use russh::{
    AgentAuthError, Signer,
    keys::{
        self, Algorithm, Certificate, HashAlg, PrivateKey, PublicKey,
        agent::{
            AgentIdentity,
            client::{AgentClient, AgentStream},
        },
        decode_secret_key,
        ssh_encoding::Decode,
        ssh_key::{encoding::DecodePem, public::KeyData},
    },
};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt, join, sink};

use super::{Credentials, Error, error::said, host_key::clean, login::LoginUnderWay, short_key::ShortKey};

/// The keys of a target.
pub(super) struct Identities {
    /// Each with its certificate, if it has one.
    pub(super) keys: Vec<SshIdentity>,
    /// A certificate for another key, which the agent may hold.
    certificate: Option<Certificate>,
    /// The public half of a key that only the agent can use.
    named: Option<KeyData>,
    /// The name of the credential that has a passphrase, if one has.
    locked: Option<String>,
}

/// A private key, and the certificate for it.
pub(super) struct SshIdentity {
    pub(super) key: Arc<PrivateKey>,
    pub(super) certificate: Option<Certificate>,
    /// The name of the credential, such as `private key`.
    what: String,
}

impl fmt::Display for SshIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.key.fingerprint(HashAlg::Sha256);
        write!(formatter, "{} {} {fingerprint}", self.what, self.key.algorithm())
    }
}

/// Reads the keys that are given as text.
pub(super) fn given(credentials: &Credentials) -> Result<Identities, Error> {
    let certificate = credentials.certificate.as_deref().map(certificate).transpose()?;
    let mut identities = Identities { keys: Vec::new(), certificate, named: None, locked: None };
    if let Some(text) = &credentials.private_key {
        identities.take(text, "private key".to_owned(), None, credentials)?;
    }
    identities.pair();
    let has_other_keys = credentials.private_key_file.is_some() || credentials.agent.is_some();
    if identities.certificate.is_some() && !has_other_keys {
        return Err(bad_certificate("it belongs to a key other than the one that is given"));
    }
    Ok(identities)
}

/// Reads all keys, the key file included.
pub(super) async fn all(credentials: &Credentials) -> Result<Identities, Error> {
    let mut identities = given(credentials)?;
    if let Some(path) = &credentials.private_key_file {
        let what = format!("private key file {}", path.display());
        let bad = |reason: String| Error::BadKey { what: what.clone(), reason };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".pub");
        let beside = tokio::fs::read_to_string(beside).await.ok();
        let text = match (tokio::fs::read(path).await, &beside) {
            (Ok(content), _) => {
                String::from_utf8(content).map_err(|error| bad(no_utf_8(error.as_bytes()).to_owned()))?
            }
            (Err(_), Some(public)) if credentials.agent.is_some() => public.clone(),
            (Err(error), _) => return Err(bad(error.to_string())),
        };
        identities.take(&SecretString::from(text), what, beside.as_deref(), credentials)?;
        identities.pair();
        if identities.certificate.is_some() && credentials.agent.is_none() {
            return Err(bad_certificate("it belongs to a key other than those that are given"));
        }
    }
    Ok(identities)
}

impl Identities {
    /// Takes a key from its text. As with OpenSSH, one that is locked or public names the key that an agent has.
    /// `beside` is the public half of a file, which older forms of a locked key hide.
    fn take(
        &mut self,
        text: &SecretString,
        what: String,
        beside: Option<&str>,
        credentials: &Credentials,
    ) -> Result<(), Error> {
        let text = &SecretString::from(clean(text.expose_secret()));
        match private_key(text, &what) {
            Ok(key) => self.keys.push(SshIdentity { key: Arc::new(key), certificate: None, what }),
            Err(error) if credentials.agent.is_none() => return Err(error),
            Err(error) => {
                let is_locked = matches!(error, Error::EncryptedKey { .. });
                self.locked = is_locked.then_some(what);
                let beside = beside.filter(|_| is_locked).and_then(public_half);
                self.named = public_half(text.expose_secret()).or(beside);
                // If the key is unknown, all keys of the agent are tried.
                if self.named.is_none() && !is_locked {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Assigns the certificate to its key.
    fn pair(&mut self) {
        let Some(certificate) = &self.certificate else { return };
        let owner = self.keys.iter_mut().find(|one| one.key.public_key().key_data() == certificate.public_key());
        if let Some(owner) = owner {
            owner.certificate = self.certificate.take();
        }
    }
}

/// The public half of a key: of a public key, or of a private one in OpenSSH's form, which has it in the clear.
fn public_half(text: &str) -> Option<KeyData> {
    let text = &*clean(text);
    let private = || PrivateKey::from_openssh(text).ok().map(|key| key.public_key().clone());
    PublicKey::from_openssh(text).ok().or_else(private).map(|key| key.key_data().clone())
}

/// Why a file that is not UTF-8 is no key.
fn no_utf_8(content: &[u8]) -> &'static str {
    match content {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            "it is UTF-16, as `>` of Windows PowerShell 5 writes it. Save it as UTF-8 without a byte order mark"
        }
        _ => "it is not text",
    }
}

fn private_key(text: &SecretString, what: &str) -> Result<PrivateKey, Error> {
    let bad = |reason: &str| Error::BadKey { what: what.to_owned(), reason: reason.to_owned() };
    let lines: Vec<&str> = text.expose_secret().lines().collect();
    if lines.iter().all(|line| line.is_empty()) {
        return Err(bad("it is empty"));
    }
    if lines.iter().any(|line| is_mark_of_encryption(line)) {
        return Err(Error::EncryptedKey { what: what.to_owned() });
    }
    let is_private = |line: &&str| line.contains("PRIVATE KEY-----") || line.starts_with("PuTTY-User-Key-File-");
    if public_half(text.expose_secret()).is_some() && !lines.iter().any(is_private) {
        return Err(bad("it is the public half, not a private key: it names a key of an agent"));
    }
    if Certificate::from_openssh(text.expose_secret()).is_ok() {
        return Err(bad("it is a certificate, which is another argument: certificate"));
    }
    if !lines.iter().any(is_private) {
        return Err(bad("it is not a private key (a PEM block that begins with `-----BEGIN … PRIVATE KEY-----`)"));
    }
    let read = decode_secret_key(text.expose_secret(), None);
    match read.or_else(|error| ShortKey::decode_pem(text.expose_secret()).map(|short| short.0).map_err(|_| error)) {
        Ok(key) if key.is_encrypted() => Err(Error::EncryptedKey { what: what.to_owned() }),
        Ok(key) => match key.algorithm() {
            Algorithm::Ecdsa { .. } | Algorithm::Ed25519 | Algorithm::Rsa { .. } => Ok(key),
            Algorithm::SkEcdsaSha2NistP256 | Algorithm::SkEd25519 => {
                Err(bad("its hardware key is used through an agent only"))
            }
            other => Err(bad(&format!("keys of the kind {other} are not supported"))),
        },
        Err(keys::Error::KeyIsEncrypted) => Err(Error::EncryptedKey { what: what.to_owned() }),
        Err(keys::Error::UnknownAlgorithm(_)) => Err(bad("keys of its kind are not supported")),
        // The reader's own text could contain a part of the key.
        Err(_) => Err(bad("it is damaged, or of a kind that is not supported")),
    }
}

/// Whether a key is encrypted in the form of PKCS#8, older OpenSSL or PuTTY. OpenSSH's own form is checked when it is
/// read.
fn is_mark_of_encryption(line: &str) -> bool {
    let putty = line.strip_prefix("Encryption:").is_some_and(|cipher| cipher.trim() != "none");
    line == "-----BEGIN ENCRYPTED PRIVATE KEY-----" || line == "Proc-Type: 4,ENCRYPTED" || putty
}

fn certificate(text: &str) -> Result<Certificate, Error> {
    let certificate = Certificate::from_openssh(&clean(text))
        .map_err(|_| bad_certificate("it is not an OpenSSH certificate (one line, as in a `-cert.pub` file)"))?;
    if !certificate.cert_type().is_user() {
        return Err(bad_certificate("it is the certificate of a host, not of a user"));
    }
    Ok(certificate)
}

fn bad_certificate(reason: &str) -> Error {
    Error::BadKey { what: "certificate".to_owned(), reason: reason.to_owned() }
}

/// Offers the agent's keys one after the other, `most` of them; only the given one if a key names it. An agent that
/// does not answer is only noted, since another credential may be accepted.
pub(super) async fn offer(
    login: &mut LoginUnderWay<'_>,
    socket: &Path,
    given: &Identities,
    most: usize,
) -> Result<bool, russh::Error> {
    let (mut agent, mut identities) = match open(login, socket).await {
        Ok(opened) => opened,
        Err(error) => {
            login.note(format!("agent at {}, which failed: {}", socket.display(), said(&error.to_string())));
            note_locked(login, given);
            return Ok(false);
        }
    };
    let certificate = given.certificate.as_ref();
    let named = given.named.as_ref().or_else(|| certificate.map(Certificate::public_key));
    if identities.is_empty() {
        login.note(format!("agent at {}, which has no keys", socket.display()));
    } else if let Some(named) = named {
        identities.retain(|identity| identity.public_key().key_data() == named);
        if identities.is_empty() {
            login.note(format!("agent at {}, which does not have the given key", socket.display()));
        }
    }
    if named.is_none() || identities.is_empty() {
        note_locked(login, given);
    }
    for (index, identity) in identities.iter().enumerate() {
        if index == most {
            login.note(format!("the agent's other {} keys were not tried", identities.len() - most));
            break;
        }
        if offer_one(login, &mut agent, identity, certificate).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Names the key with a passphrase that the agent is not known to have.
fn note_locked(login: &mut LoginUnderWay<'_>, given: &Identities) {
    if let Some(locked) = &given.locked {
        login.note(format!("{locked}, which has a passphrase: load it into the agent with ssh-add"));
    }
}

async fn open(login: &mut LoginUnderWay<'_>, socket: &Path) -> Result<(Client, Vec<AgentIdentity>), keys::Error> {
    let mut agent = client(socket).await?;
    let (handle, _) = login.handle();
    if let Some(binding) = handle.agent_session_binding().cloned() {
        // Needed for keys that are limited to certain hosts; agents before OpenSSH 8.9 do not support it.
        let _ = agent.bind_session(&binding, false).await;
    }
    let mut stream = agent.into_inner();
    let identities = identities(&mut stream).await?;
    Ok((AgentClient::connect(stream), identities))
}

/// The keys of an agent (draft-miller-ssh-agent, section 3.5) that the library can read. One that it cannot read
/// would hide all others, so each is given to it alone, and without the comment, which need not be UTF-8.
async fn identities(stream: &mut (impl AgentStream + Unpin)) -> Result<Vec<AgentIdentity>, keys::Error> {
    const REQUEST: [u8; 5] = [0, 0, 0, 1, 11];
    const ANSWER: u8 = 12;
    /// That of the library.
    const LARGEST: u32 = 256 << 10;

    stream.write_all(&REQUEST).await?;
    let length = stream.read_u32().await?;
    if length > LARGEST {
        return Err(keys::Error::AgentProtocolError);
    }
    let mut answer = Vec::new();
    stream.take(length.into()).read_to_end(&mut answer).await?;
    let Some((&ANSWER, mut rest)) = answer.split_first() else { return Ok(Vec::new()) };
    let mut identities = Vec::new();
    for _ in 0..u32::decode(&mut rest)? {
        let (blob, _comment) = (Vec::<u8>::decode(&mut rest)?, Vec::<u8>::decode(&mut rest)?);
        let length = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes();
        let alone = [&[ANSWER, 0, 0, 0, 1][..], &length(&blob), &blob, &[0; 4]].concat();
        let frame = [&length(&alone)[..], &alone].concat();
        match AgentClient::connect(join(&*frame, sink())).request_identities().await {
            Ok(one) => identities.extend(one),
            Err(error) => tracing::debug!(%error, "a key of the agent is not used: it cannot be read"),
        }
    }
    Ok(identities)
}

async fn offer_one(
    login: &mut LoginUnderWay<'_>,
    agent: &mut Client,
    identity: &AgentIdentity,
    certificate: Option<&Certificate>,
) -> Result<bool, russh::Error> {
    let key = identity.public_key().into_owned();
    let name = format!("agent's key {} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256));
    let certificate = match identity {
        AgentIdentity::Certificate { certificate, .. } => Some(certificate),
        AgentIdentity::PublicKey { .. } => certificate.filter(|given| given.public_key() == key.key_data()),
    };
    let mut holder = Holder { agent, identity };
    let (answer, tried) = match certificate {
        Some(certificate) => {
            let tried = format!("{name} with certificate {:?}", said(certificate.key_id()));
            (login.offer_certificate(certificate, &mut holder).await, tried)
        }
        None => {
            let hash = login.hash(&key.algorithm()).await?;
            let (handle, user) = login.handle();
            (handle.authenticate_publickey_with(user, key, hash, &mut holder).await, name)
        }
    };
    match answer {
        Ok(answer) => Ok(login.is_in(answer, Some(tried))),
        Err(AgentAuthError::Send(_)) => Err(russh::Error::SendError),
        // The key is locked or its use was refused: the next one may be accepted.
        Err(AgentAuthError::Key(error)) => {
            login.note(format!("{tried}, which the agent did not sign with: {}", said(&error.to_string())));
            Ok(false)
        }
    }
}

/// Signs with a key of the agent, also for a certificate that the agent does not have.
struct Holder<'a> {
    agent: &'a mut Client,
    identity: &'a AgentIdentity,
}

impl Signer for Holder<'_> {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, Self::Error> {
        Ok(self.agent.sign_request(self.identity, hash, to_sign).await?)
    }
}

/// A client of an agent, on any kind of stream.
type Client = AgentClient<Box<dyn AgentStream + Send + Unpin>>;

#[cfg(unix)]
async fn client(socket: &Path) -> Result<Client, keys::Error> {
    Ok(AgentClient::connect_uds(socket).await?.dynamic())
}

#[cfg(windows)]
async fn client(pipe: &Path) -> Result<Client, keys::Error> {
    Ok(AgentClient::connect_named_pipe(pipe).await?.dynamic())
}

#[cfg(test)]
mod tests {
    use russh::keys::signature::{Signer as _, Verifier as _};

    use super::*;

    /// RFC 8410, section 10.3: without and with the public key.
    const PKCS8: [&str; 2] = [
        "-----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
    -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----
    MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
    oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB
    Z9w7lshQhqowtrbLDFw4rXAxZuE=
    -----END PRIVATE KEY-----",
    ];

    /// Its number is 01 02 … 1f, 31 bytes.
    const SHORT: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
    b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
    1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQR6WTGAhgxAN8g8EnSYRcjuFCTdKX+t
    y4leNYJV0sfSsqjKJVgPJib+V5Bi/xuZ/5HCSg2gb7MrW+IBSMkkn1ZQAAAAmKRaprekWq
    a3AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHpZMYCGDEA3yDwS
    dJhFyO4UJN0pf63LiV41glXSx9KyqMolWA8mJv5XkGL/G5n/kcJKDaBvsytb4gFIySSfVl
    AAAAAfAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHwAAAAAB
    -----END OPENSSH PRIVATE KEY-----";

    fn with_key(text: &str) -> Credentials {
        Credentials { private_key: Some(text.into()), ..Credentials::default() }
    }

    /// It refused all of them.
    #[tokio::test]
    async fn a_key_of_an_agent_that_cannot_be_read_leaves_the_others() {
        let ed25519 = [&b"\0\0\0\x0bssh-ed25519\0\0\0\x20"[..], &[7; 32]].concat();
        let field = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        let listed = [
            [field(b"\0\0\0\x0essh-slhdsa-new\0\0\0\x01x"), field(b"of a kind to come")].concat(),
            [field(&ed25519), field(b"caf\xe9")].concat(),
        ];
        let answer = [&b"\x0c\0\0\0\x02"[..], &listed.concat()].concat();
        let (mut ours, mut agent) = tokio::io::duplex(4096);
        agent.write_all(&field(&answer)).await.unwrap();
        let read = identities(&mut ours).await.unwrap();
        let [AgentIdentity::PublicKey { key, .. }] = &*read else { panic!("{read:?}") };
        assert_eq!(key.algorithm(), Algorithm::Ed25519);
    }

    /// JSON and .env files write line breaks as two letters.
    #[test]
    fn a_key_in_one_line_is_read() {
        let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        for text in [PKCS8[0], PKCS8[1], SHORT] {
            for line_break in ["\\n", "\\r\\n"] {
                let one = format!("{}{line_break}\n", lines(text).replace('\n', line_break));
                let [whole, one] = [&lines(text), &one].map(|text| given(&with_key(text)).unwrap().keys);
                assert_eq!(whole[0].key.public_key(), one[0].key.public_key());
            }
        }
        // Of PuTTY's form, in lines: a comment is left as it is.
        assert_eq!(clean("Comment: C:\\new\nx"), "Comment: C:\\new\nx");
    }

    #[test]
    fn an_ed25519_key_may_be_in_pkcs8() {
        for text in PKCS8 {
            let identities = given(&with_key(text)).unwrap();
            let shown: Vec<String> = identities.keys.iter().map(ToString::to_string).collect();
            assert_eq!(shown, ["private key ssh-ed25519 SHA256:ebCT4wkJOqO5AIlHG03cHvn3Cr3ZZEEh8m81duHhR3Q"]);
        }
    }

    /// One ECDSA key of 512 is written so.
    #[test]
    fn an_ecdsa_key_whose_number_begins_with_a_zero_byte_signs() {
        let identities = given(&with_key(SHORT)).unwrap();
        let identity = &identities.keys[0];
        let fingerprint = "SHA256:Pnjk6Rp/207/nRFV1BYTYOVuYAbN3g0951glKgFDdzI";
        assert_eq!(identity.to_string(), format!("private key ecdsa-sha2-nistp256 {fingerprint}"));
        let signature = identity.key.try_sign(b"a login").unwrap();
        identity.key.public_key().key_data().verify(b"a login", &signature).unwrap();
    }

    #[test]
    fn an_encrypted_key_of_another_program_is_told_as_such() {
        for text in [
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: aes256-cbc\nComment: x",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES-EDE3-CBC,00\n\nMIIB",
        ] {
            let error = given(&with_key(text)).err().unwrap();
            assert!(matches!(error, Error::EncryptedKey { .. }), "{error}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_told() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
        for text in ["", "PLANTED", key] {
            let mut credentials = with_key(PKCS8[0]);
            credentials.certificate = Some(text.to_owned());
            let error = given(&credentials).err().unwrap();
            assert!(error.to_string().contains("it is not an OpenSSH certificate"), "{error}");
            assert!(!error.to_string().contains("PLANTED"));
        }
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(given(&Credentials::default()).unwrap().keys.is_empty());
    }
}
