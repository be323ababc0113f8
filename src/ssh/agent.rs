//! Keys that an agent holds.

use std::path::Path;

use russh::{
    AgentAuthError, Signer,
    keys::{
        self, Certificate, HashAlg,
        agent::{
            AgentIdentity,
            client::{AgentClient, AgentStream},
        },
    },
};

use crate::ssh::{error::said, login::Login};

/// Servers hang up after six refused credentials (sshd's MaxAuthTries): some are left for what follows.
const MOST: usize = 4;

/// Offers the agent's keys, one after the other. An agent that cannot be asked is noted: another credential may do.
pub(super) async fn offer(
    login: &mut Login<'_>,
    socket: &Path,
    certificate: Option<&Certificate>,
) -> Result<bool, russh::Error> {
    let (mut agent, identities) = match open(login, socket).await {
        Ok(opened) => opened,
        Err(error) => {
            login.note(format!("agent at {}, which failed: {}", socket.display(), said(&error.to_string())));
            return Ok(false);
        }
    };
    if identities.is_empty() {
        login.note(format!("agent at {}, which holds no key", socket.display()));
    }
    for (index, identity) in identities.iter().enumerate() {
        if index == MOST {
            login.note(format!("the agent's other {} keys were not tried", identities.len() - MOST));
            break;
        }
        if offer_one(login, &mut agent, identity, certificate).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn open(login: &mut Login<'_>, socket: &Path) -> Result<(Client, Vec<AgentIdentity>), keys::Error> {
    let mut agent = client(socket).await?;
    let (handle, _) = login.handle();
    if let Some(binding) = handle.agent_session_binding().cloned() {
        // Lets it use keys that are limited to certain hosts; agents before OpenSSH 8.9 do not know the question.
        let _ = agent.bind_session(&binding, false).await;
    }
    let identities = agent.request_identities().await?;
    Ok((agent, identities))
}

async fn offer_one(
    login: &mut Login<'_>,
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
        // Locked away, or its owner said no: the next one may do.
        Err(AgentAuthError::Key(error)) => {
            login.note(format!("{tried}, which the agent did not sign with: {}", said(&error.to_string())));
            Ok(false)
        }
    }
}

/// Signs as the key that the agent holds, even for a certificate that it does not know.
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

/// A client of any agent.
type Client = AgentClient<Box<dyn AgentStream + Send + Unpin>>;

#[cfg(unix)]
async fn client(socket: &Path) -> Result<Client, keys::Error> {
    Ok(AgentClient::connect_uds(socket).await?.dynamic())
}

#[cfg(windows)]
async fn client(pipe: &Path) -> Result<Client, keys::Error> {
    Ok(AgentClient::connect_named_pipe(pipe).await?.dynamic())
}
