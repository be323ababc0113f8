//! How one gets into an instance, as the service tells it: for everything that logs in there.

use secrecy::SecretString;

use super::{Client, errors::Failure, words::title};
use crate::{
    api::{self, Context, InstanceStatus, InstanceUid},
    framework::{Diagnostic, Path},
};

/// The user whose password the service tells (service API, In-instance inference server guide: everything is in
/// `/root`).
pub(super) const USER: &str = "root";

/// The way into an instance. It is asked for when it is needed, so that no secret of it enters a plan or a state.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The instance.
    pub(super) uid: InstanceUid,
    /// What it is doing.
    pub(super) status: Option<InstanceStatus>,
    /// The address for SSH, once there is one.
    pub(super) host: Option<String>,
    /// The port for SSH.
    pub(super) port: Option<u16>,
    /// The password of [`USER`]; none for an instance that takes keys.
    pub(super) password: Option<SecretString>,
    /// The GPU model.
    pub(super) gpu_name: Option<String>,
}

impl Access {
    /// What a record of the service says.
    pub(super) fn of(instance: &api::Instance) -> Self {
        Self {
            uid: instance.uid.clone(),
            status: instance.status.clone(),
            host: instance.ssh_host.clone().filter(|host| !host.trim().is_empty()),
            port: instance.ssh_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0),
            password: instance.ssh_password.clone(),
            gpu_name: instance.gpu_name.clone(),
        }
    }

    /// Asks the service, and waits for an instance that is still being created.
    ///
    /// # Errors
    /// A diagnostic at `instance_id`: there is no such instance, it does not run, or the service cannot be asked. `now`
    /// says what the state is.
    pub(super) async fn to_running(
        uid: &InstanceUid,
        now: &str,
        client: &Client,
        limits: &Context,
    ) -> Result<Self, Diagnostic> {
        running(uid, now, client, limits).await.map(|instance| Self::of(&instance))
    }

    /// Whether one may hope to log in. An unknown status does not forbid it.
    pub(super) fn runs(&self) -> bool {
        use InstanceStatus::{Creating, Failed, Released, Stopped};
        !matches!(self.status, Some(Creating | Failed | Released | Stopped))
    }

    /// Why an instance that does not run accepts no login.
    pub(super) fn not_running(&self, now: &str) -> Diagnostic {
        let status = self.status.as_ref().map_or("in an unknown status", InstanceStatus::as_str);
        Diagnostic::error(
            format!("Instance {} is {status}", self.uid),
            format!(
                "Only a Running instance can be logged in to. Start it in the console, or wait until it runs. {now}"
            ),
        )
        .at(Path::to("instance_id"))
    }
}

/// The record of an instance that one may hope to log in to, once it is no longer being created.
///
/// # Errors
/// As [`Access::to_running`].
pub(super) async fn running(
    uid: &InstanceUid,
    now: &str,
    client: &Client,
    limits: &Context,
) -> Result<api::Instance, Diagnostic> {
    let instance = settled(uid, client, limits).await.map_err(|error| {
        let tried = format!("find the way into {}", title("instance", None, Some(uid.as_str())));
        Failure { error: &error, tried, now: now.to_owned() }.diagnostic(|_| false).at(Path::to("instance_id"))
    })?;
    let access = Access::of(&instance);
    if access.runs() { Ok(instance) } else { Err(access.not_running(now)) }
}

async fn settled(uid: &InstanceUid, client: &Client, limits: &Context) -> Result<api::Instance, api::Error> {
    let instances = client.api.instances();
    let instance = instances.detail(uid, limits).await?.instance;
    if instance.status != Some(InstanceStatus::Creating) {
        return Ok(instance);
    }
    let is_made = |instance: &api::Instance| instance.status != Some(InstanceStatus::Creating);
    instances.wait(uid, limits, |seen| seen.record().is_some_and(is_made)).await?;
    Ok(instances.detail(uid, limits).await?.instance)
}
