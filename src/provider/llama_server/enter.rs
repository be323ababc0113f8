//! From a model to an instance with a login.

use std::time::Duration;

use super::{
    machine::InstanceSession,
    model::{LlamaServer, Records},
};
use crate::{
    api::InstanceUid,
    framework::{Attr, Diagnostic, Private, StepContext},
    provider::{
        ProviderClient,
        access::Access,
        client::limits,
        lifecycle::absence,
        ssh::NoTarget,
        ssh_failure::{SshFailure, no_credentials},
    },
    ssh,
};

/// The longest that a refresh tries to log in.
const REFRESH: Duration = Duration::from_secs(20);

/// Why nobody is logged in.
#[derive(Debug)]
pub(super) enum NoEntrance {
    /// There is nothing to log in with: write-only values are not here.
    NoCredentials,
    /// An argument, or the machine's state.
    Refused(Box<Diagnostic>),
    /// SSH said no, or nothing.
    Ssh(Box<ssh::Error>),
}

impl NoEntrance {
    /// What the operator reads. `tried` reads after "Cannot", and `now` is what state things are in.
    pub(super) fn diagnostic(&self, tried: String, access: Option<&Access>, now: &str) -> Diagnostic {
        match self {
            Self::NoCredentials => no_credentials(access, now),
            Self::Refused(diagnostic) => (**diagnostic).clone(),
            Self::Ssh(error) => SshFailure { error, tried, now: now.to_owned() }.diagnostic(),
        }
    }
}

/// Logs in to change something: the instance is waited for, and so is its SSH server.
pub(super) async fn enter(
    server: &LlamaServer,
    config: &LlamaServer,
    private: &mut Private,
    now: &str,
    context: &StepContext<ProviderClient>,
) -> Result<(InstanceSession, Option<Access>), Diagnostic> {
    let access = match server.instance_id.as_str() {
        Some(id) => {
            let (uid, limits) = (InstanceUid::new(id), limits(context));
            let access = Access::to_running(&uid, now, &context.client, &limits).await?;
            absence::seen(private, &witness_key(&uid), &context.client, &limits).await;
            Some(access)
        }
        None => None,
    };
    let attempt = LoginEffort { patience: None, limits: ssh::SessionLimits::default() };
    match attempt.open(server, config, access.as_ref(), private, context).await {
        Ok(machine) => Ok((machine, access)),
        Err(error) => Err(error.diagnostic(format!("log in to run {}", server.title()), access.as_ref(), now)),
    }
}

/// How hard a login is tried.
pub(super) struct LoginEffort {
    /// The longest that it takes; none for `ssh.timeout`.
    patience: Option<Duration>,
    limits: ssh::SessionLimits,
}

impl LoginEffort {
    /// That of a refresh, which keeps many others waiting: a refused login stays refused.
    pub(super) fn of_a_refresh() -> Self {
        let limits = ssh::SessionLimits { denied: Duration::ZERO, ..ssh::SessionLimits::default() };
        Self { patience: Some(REFRESH), limits }
    }

    /// That of a destroy.
    pub(super) fn of_a_destroy() -> Self {
        Self {
            patience: None,
            limits: ssh::SessionLimits { denied: Duration::from_secs(5), ..ssh::SessionLimits::default() },
        }
    }

    /// Logs in.
    pub(super) async fn open(
        self,
        server: &LlamaServer,
        config: &LlamaServer,
        access: Option<&Access>,
        private: &Private,
        context: &StepContext<ProviderClient>,
    ) -> Result<InstanceSession, NoEntrance> {
        let known_bastion = server.bastion_address().and_then(|address| private.bastion(&address));
        let login = server.login(config, known_bastion);
        let target = login.target(access, &context.client).map_err(|none| match none {
            NoTarget::NoCredentials => NoEntrance::NoCredentials,
            NoTarget::Refused(diagnostic) => NoEntrance::Refused(diagnostic),
        })?;
        let place = server.records().ok_or_else(|| {
            let text = "Its workspace or its port is not in the state. Import it again.";
            NoEntrance::Refused(Box::new(Diagnostic::error(format!("{} is not known", server.title()), text)))
        })?;
        // What an import knows so far is no job, and has no secrets.
        let secrets = server.job(config, access).map(|job| job.secrets()).unwrap_or_default();
        let patience = self.patience.map_or_else(|| login.timeout(), |patience| patience.min(login.timeout()));
        let ends = (patience, context.deadline);
        let machine = InstanceSession::open(target, place, secrets, self.limits, ends, &context.stopping).await;
        let mut machine = machine.map_err(|error| NoEntrance::Ssh(Box::new(error)))?;
        machine.progress = context.client.api.settings().progress.clone();
        Ok(machine)
    }
}

impl LlamaServer {
    /// Where its bastion is, as the notes of it say.
    pub(super) fn bastion_address(&self) -> Option<String> {
        self.ssh.known()?.bastion.known()?.address()
    }

    /// Notes what the login showed.
    pub(super) fn take_login(&mut self, machine: &InstanceSession, private: &mut Private) {
        self.host_key = Attr::Known(machine.host_key());
        private.note_bastion(self.bastion_address().zip(machine.bastion_host_key()));
    }
}

/// The key under which an instance is a witness for others; the instance itself writes the same.
pub(super) fn witness_key(uid: &InstanceUid) -> String {
    format!("instance/{uid}")
}
