//! The login with the credentials of a target.

use std::time::Duration;

use russh::{
    AgentAuthError, MethodKind, MethodSet, Signer,
    client::{AuthResult, Handle, KeyboardInteractiveAuthResponse},
    keys::{
        self, Algorithm, Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg, agent::AgentIdentity, signature,
        ssh_encoding::Encode,
    },
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use super::{
    Credentials, Error, Target,
    error::{is_lasting, said},
    handler::{Handler, PeerFacts},
    identity::{self, Identities, SshIdentity},
};

/// Tries all credentials whose method the server supports.
pub(super) async fn login(
    handle: &mut Handle<Handler>,
    facts: &PeerFacts,
    target: &Target,
    identities: &Identities,
    limit: Duration,
) -> Result<(), Error> {
    let unreachable = |reason: String| Error::Unreachable { address: target.address(), reason };
    let mut login = LoginUnderWay { handle, facts, user: &target.user, offered: MethodSet::empty(), tried: Vec::new() };
    let Ok(outcome) = timeout(limit, login.run(target, identities)).await else {
        return Err(unreachable("it does not finish the login".to_owned()));
    };
    let LoginUnderWay { offered, mut tried, .. } = login;
    let excluded = |reason: &str| Error::Excluded {
        address: target.address(),
        user: target.user.clone(),
        reason: reason.to_owned(),
        is_bastion: false,
    };
    match outcome {
        Ok(true) => return Ok(()),
        // The connection failed before the server judged the credentials. sshd with PAM says why, and then ends it.
        Ok(false) | Err(_) if facts.is_gone() && !facts.is_dismissed() => {
            return Err(match facts.banner() {
                Some(banner) if is_lasting(&banner) => excluded(&banner),
                Some(banner) => unreachable(format!("{}; the server said: {banner}", facts.end())),
                None => unreachable(facts.end()),
            });
        }
        Err(error) if !facts.is_dismissed() => return Err(unreachable(said(&error.to_string()))),
        Ok(false) | Err(_) => {}
    }
    if facts.is_dismissed() {
        tried.push(facts.end());
    }
    // An expired password is a question, or a text before the refusal.
    if let Some(reason) = tried.iter().cloned().chain(facts.banner()).find(|text| is_lasting(text)) {
        return Err(excluded(&reason));
    }
    let offered = offered.iter().map(|method| <&str>::from(method).to_owned()).collect();
    let (address, user) = (target.address(), target.user.clone());
    Err(Error::Denied { address, user, tried, offered, is_bastion: false })
}

/// A login in progress.
pub(super) struct LoginUnderWay<'a> {
    handle: &'a mut Handle<Handler>,
    facts: &'a PeerFacts,
    user: &'a str,
    /// The methods that the server supports, according to its last answer.
    offered: MethodSet,
    /// The credentials that were tried, for the error.
    tried: Vec<String>,
}

impl LoginUnderWay<'_> {
    /// Whether a credential was accepted.
    async fn run(&mut self, target: &Target, identities: &Identities) -> Result<bool, russh::Error> {
        let credentials = &target.credentials;
        // The answer lists the methods; a server without authentication accepts this login.
        let asked = self.handle.authenticate_none(self.user).await?;
        if self.is_in(asked, None) {
            return Ok(true);
        }
        for identity in &identities.keys {
            if self.takes(MethodKind::PublicKey) && self.offer_key(identity).await? {
                return Ok(true);
            }
        }
        if let Some(socket) = &credentials.agent
            && self.takes(MethodKind::PublicKey)
            && identity::offer(self, socket, identities, self.keys_to_offer(credentials)).await?
        {
            return Ok(true);
        }
        match &credentials.password {
            Some(password) if self.takes(MethodKind::Password) => {
                self.gives_away(target);
                let asked = self.handle.authenticate_password(self.user, password.expose_secret()).await?;
                if self.is_in(asked, Some("password".to_owned())) {
                    return Ok(true);
                }
                // The server may require a second method, keyboard-interactive.
                let asks_more = self.tried.last().is_some_and(|tried| tried.ends_with(MORE));
                Ok(asks_more && self.takes(MethodKind::KeyboardInteractive) && self.answer(password, target).await?)
            }
            Some(password) if self.takes(MethodKind::KeyboardInteractive) => self.answer(password, target).await,
            _ => Ok(false),
        }
    }

    /// Records that the password is sent. Before it is: the server may never answer.
    fn gives_away(&self, target: &Target) {
        if let (None, Some(key)) = (&target.pin, self.facts.host_key()) {
            let _ = target.given_away.0.set(key.clone());
        }
    }

    /// The number of the agent's keys to offer at most: a password that follows must have its turn.
    fn keys_to_offer(&self, credentials: &Credentials) -> usize {
        /// Servers disconnect after six refused credentials (sshd's MaxAuthTries).
        const BEFORE_A_PASSWORD: usize = 4;

        let takes_password = self.takes(MethodKind::Password) || self.takes(MethodKind::KeyboardInteractive);
        if credentials.password.is_some() && takes_password { BEFORE_A_PASSWORD } else { usize::MAX }
    }

    fn takes(&self, method: MethodKind) -> bool {
        self.offered.contains(&method)
    }

    /// Records an answer, and the credential that was tried. Whether the login has succeeded.
    pub(super) fn is_in(&mut self, answer: AuthResult, tried: Option<String>) -> bool {
        let AuthResult::Failure { remaining_methods, partial_success } = answer else { return true };
        if !remaining_methods.is_empty() {
            self.offered = remaining_methods;
        }
        self.tried.extend(tried.map(|tried| if partial_success { tried + MORE } else { tried }));
        false
    }

    /// Records a credential that could not be tried.
    pub(super) fn note(&mut self, what: String) {
        self.tried.push(what);
    }

    pub(super) fn handle(&mut self) -> (&mut Handle<Handler>, String) {
        (self.handle, self.user.to_owned())
    }

    /// The hash for signatures of an RSA key; `None` for other keys. Never SHA-1.
    pub(super) async fn hash(&self, algorithm: &Algorithm) -> Result<Option<HashAlg>, russh::Error> {
        if !matches!(algorithm, Algorithm::Rsa { .. }) {
            return Ok(None);
        }
        let known = self.handle.best_supported_rsa_hash().await?.flatten();
        Ok(known.or(Some(HashAlg::Sha512)))
    }

    /// Offers a key, first with its certificate and then without.
    async fn offer_key(&mut self, identity: &SshIdentity) -> Result<bool, russh::Error> {
        if let Some(certificate) = &identity.certificate {
            let tried = format!("{identity} with certificate {:?}", said(certificate.key_id()));
            let answer = self.offer_certificate(certificate, &mut Own(&identity.key)).await;
            let answer = answer.map_err(|error| match error {
                AgentAuthError::Send(_) => russh::Error::SendError,
                AgentAuthError::Key(error) => error.into(),
            })?;
            if self.is_in(answer, Some(tried)) {
                return Ok(true);
            }
        }
        let hash = self.hash(&identity.key.algorithm()).await?;
        let key = PrivateKeyWithHashAlg::new(identity.key.clone(), hash);
        let answer = self.handle.authenticate_publickey(self.user, key).await?;
        Ok(self.is_in(answer, Some(identity.to_string())))
    }

    /// Offers a certificate, whose key the signer has.
    pub(super) async fn offer_certificate<S: Signer>(
        &mut self,
        certificate: &Certificate,
        signer: &mut S,
    ) -> Result<AuthResult, S::Error> {
        // Our keys and the agent can sign with SHA-512, whatever the server lists.
        let is_rsa = matches!(certificate.algorithm(), Algorithm::Rsa { .. });
        let hash = is_rsa.then_some(HashAlg::Sha512);
        self.handle.authenticate_certificate_with(self.user, certificate.clone(), hash, signer).await
    }

    /// Answers one prompt for a password. Other prompts are not answered.
    async fn answer(&mut self, password: &SecretString, target: &Target) -> Result<bool, russh::Error> {
        /// Servers send one prompt, and some send an empty round after it.
        const ROUNDS: usize = 5;

        let mut is_told = false;
        let mut answer = self.handle.authenticate_keyboard_interactive_start(self.user, None).await?;
        for _ in 0..ROUNDS {
            let prompts = match answer {
                KeyboardInteractiveAuthResponse::Success => return Ok(true),
                KeyboardInteractiveAuthResponse::Failure { remaining_methods, partial_success } => {
                    let answer = AuthResult::Failure { remaining_methods, partial_success };
                    return Ok(self.is_in(answer, Some("password, as an answer (keyboard-interactive)".to_owned())));
                }
                KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
            };
            let answers = match &*prompts {
                [] => Vec::new(),
                [prompt] if !prompt.echo && !is_told => {
                    is_told = true;
                    self.gives_away(target);
                    vec![password.expose_secret().to_owned()]
                }
                [prompt, ..] => {
                    let question = said(&prompt.prompt);
                    self.note(format!("keyboard-interactive, which requires more than a password: {question:?}"));
                    return Ok(false);
                }
            };
            answer = self.handle.authenticate_keyboard_interactive_respond(answers).await?;
        }
        Ok(false)
    }
}

/// The note on a credential that was accepted but not sufficient.
const MORE: &str = " (accepted, but the server requires more)";

/// Signs with a local key in the form of RFC 4252, section 7.
struct Own<'a>(&'a PrivateKey);

impl Signer for Own<'_> {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        _: Option<HashAlg>,
        mut to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, Self::Error> {
        let signature = signature::Signer::try_sign(self.0, &to_sign).map_err(|_| keys::Error::KeyIsCorrupt)?;
        signature.encode_prefixed(&mut to_sign).map_err(keys::Error::from)?;
        Ok(to_sign)
    }
}
