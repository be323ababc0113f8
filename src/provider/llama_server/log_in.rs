//! Logins to the instance of a server.

use std::time::Duration;

use super::model::{LlamaServer, Records};
use crate::{
    api::InstanceUid,
    framework::{Attr, Diagnostic, Diagnostics, Outcome, Path, Private},
    llama::InstanceSession,
    provider::{
        ProviderClient, StepContext,
        client::limits,
        lifecycle::absence,
        login::{Access, Login, NoLogin},
    },
    ssh,
};

/// The longest login of a refresh.
const MAX_OF_A_REFRESH: Duration = Duration::from_secs(20);

/// The longest login of a destroy that may abandon the server.
const MAX_OF_AN_ABANDONING_DESTROY: Duration = Duration::from_secs(60);

/// A login to change something.
pub(super) struct LoggedIn {
    pub(super) instance: InstanceSession,
    /// The service's access data, if there is an instance.
    pub(super) access: Option<Access>,
}

/// Logs in to change something: waits for the instance and its SSH server. The warnings about host keys that are not
/// pinned are added to `said` whatever follows.
///
/// # Errors
/// The login failed; `now` is the resulting state, in a sentence.
pub(super) async fn log_in(
    server: &LlamaServer,
    config: &LlamaServer,
    private: &mut Private,
    now: &str,
    context: &StepContext,
    said: &mut Diagnostics,
) -> Result<LoggedIn, Diagnostic> {
    let access = match server.instance_id.as_str() {
        Some(id) => {
            let (uid, limits) = (InstanceUid::new(id.trim()), limits(context));
            let access = Access::to_running(&uid, now, &context.client, &limits).await?;
            absence::seen(private, &witness_key(&uid), &context.client, &limits).await;
            Some(access)
        }
        None => None,
    };
    let effort = LoginEffort { patience: None, limits: ssh::SessionLimits::default() };
    match effort.open(server, config, access.as_ref(), private, context, said).await {
        Ok(instance) => Ok(LoggedIn { instance, access }),
        Err(error) => Err(error.diagnostic(format!("log in to run {}", server.title()), access.as_ref(), now)),
    }
}

/// The result of a change with what its login said, without the warning about a host key that its state pins.
pub(super) fn with_unpinned(
    outcome: Outcome<LlamaServer>,
    said: Diagnostics,
    client: &ProviderClient,
) -> Outcome<LlamaServer> {
    let is_pinned = outcome.state.as_ref().is_some_and(|state| state.host_key.is_known());
    outcome.with(if is_pinned { without_own_key(said, client) } else { said })
}

/// The diagnostics of a login without the warning about the server's host key. The next login of this run without the
/// key warns.
pub(super) fn without_own_key(said: Diagnostics, client: &ProviderClient) -> Diagnostics {
    let is_own = |diagnostic: &Diagnostic| !diagnostic.is_error() && diagnostic.path == Some(pin_argument());
    let (own, others): (Vec<_>, Vec<_>) = said.into_iter().partition(is_own);
    own.iter().for_each(|warning| client.forget_unpinned(warning));
    others.into_iter().collect()
}

/// How long a login is tried.
pub(super) struct LoginEffort {
    /// The time limit; `None` for that of `ssh.timeout`.
    patience: Option<Duration>,
    limits: ssh::SessionLimits,
}

impl LoginEffort {
    /// A refresh keeps others waiting, and does not repeat a refused login.
    pub(super) fn of_a_refresh() -> Self {
        let limits = ssh::SessionLimits { denied: Duration::ZERO, ..ssh::SessionLimits::default() };
        Self { patience: Some(MAX_OF_A_REFRESH), limits }
    }

    /// A destroy repeats a refused login for 5 s. One that may abandon the server tries for a minute at most.
    pub(super) fn of_a_destroy(abandons: bool) -> Self {
        Self {
            patience: abandons.then_some(MAX_OF_AN_ABANDONING_DESTROY),
            limits: ssh::SessionLimits { denied: Duration::from_secs(5), ..ssh::SessionLimits::default() },
        }
    }

    /// Logs in. The warnings about host keys that are not pinned are added to `said` whatever follows.
    pub(super) async fn open(
        self,
        server: &LlamaServer,
        config: &LlamaServer,
        access: Option<&Access>,
        private: &Private,
        context: &StepContext,
        said: &mut Diagnostics,
    ) -> Result<InstanceSession, NoLogin> {
        let login = server.login_with(config, private);
        let target = login.target(access, &context.client)?;
        let place = server.records().ok_or_else(|| {
            let text = "Its workspace or its port is not in the state. Import it again.";
            NoLogin::Refused(Box::new(Diagnostic::error(format!("{} is unknown", server.title()), text)))
        })?;
        let downloads = server.sources();
        let tokens = downloads.iter().filter_map(|file| server.source_token(file, config, &context.client).ok()?);
        let secrets = server.key(config).into_iter().chain(server.variables().into_values()).chain(tokens).collect();
        let patience = self.patience.map_or_else(|| login.timeout(), |patience| patience.min(login.timeout()));
        let ends = (patience, context.deadline);
        let opening = InstanceSession::open(target.clone(), place, secrets, self.limits, ends, &context.stopping);
        let instance = opening.await;
        let session = instance.as_ref().ok().map(InstanceSession::session);
        said.extend(login.unpinned(&target, session, pin_argument(), &context.client));
        let mut instance = instance?;
        instance.progress = context.client.api.settings().progress.clone();
        instance.silence = context.client.environment.silence;
        Ok(instance)
    }
}

impl LlamaServer {
    /// The login, with the bastion's key that an earlier login has shown.
    pub(super) fn login_with(&self, config: &Self, private: &Private) -> Login {
        let known_bastion = self.bastion_address().and_then(|address| private.bastion(&address));
        self.login(config, known_bastion)
    }

    /// The address of its bastion.
    fn bastion_address(&self) -> Option<String> {
        self.ssh.known()?.bastion.known()?.address()
    }

    /// Takes over the host keys of a login.
    pub(super) fn take_login(&mut self, instance: &InstanceSession, private: &mut Private) {
        self.host_key = Attr::Known(instance.host_key());
        private.note_bastion(self.bastion_address().zip(instance.bastion_host_key()));
    }
}

/// The argument that pins the host key of a server's instance.
pub(super) fn pin_argument() -> Path {
    Path::to("ssh").attribute("host_key")
}

/// The key under which an instance is a witness for others; the instance itself writes the same.
pub(super) fn witness_key(uid: &InstanceUid) -> String {
    format!("instance/{uid}")
}
