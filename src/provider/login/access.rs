//! SSH access to an instance, as the service reports it, for everything that logs in to instances.

use secrecy::SecretString;

use crate::{
    api::{self, Context, InstanceStatus, InstanceUid},
    framework::{Attr, Diagnostic, Path},
    provider::{ProviderClient, StepContext, client::limits, errors::Failure, words::title},
};

/// The user of the reported password (service API, In-instance inference server guide: everything is in `/root`).
pub(crate) const USER: &str = "root";

/// The SSH access to an instance. It is requested when it is needed, so that no secret of it enters a plan or a state.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) uid: InstanceUid,
    /// The instance's status.
    pub(crate) status: Option<InstanceStatus>,
    /// The SSH address, if there is one yet.
    pub(crate) host: Option<String>,
    /// The SSH port.
    pub(crate) port: Option<u16>,
    /// The password of [`USER`]; `None` for an instance with key login.
    pub(crate) password: Option<SecretString>,
    pub(crate) gpu_name: Option<String>,
    /// The public address, if it has one.
    pub(crate) external_ip: Option<String>,
}

impl Access {
    /// The access in a record of the service.
    pub(crate) fn of(instance: &api::Instance) -> Self {
        Self {
            uid: instance.uid.clone(),
            status: instance.status.clone(),
            host: instance.ssh_host.clone().filter(|host| !host.trim().is_empty()),
            port: instance.ssh_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0),
            password: instance.ssh_password.clone(),
            gpu_name: instance.gpu_name.clone(),
            external_ip: instance.external_ip.clone().filter(|address| !address.trim().is_empty()),
        }
    }

    /// Requests the instance, and waits while it is being created.
    ///
    /// # Errors
    /// A diagnostic at `instance_id`: the instance does not exist or is not running, or the request failed. `now`
    /// describes the state.
    pub(crate) async fn to_running(
        uid: &InstanceUid,
        now: &str,
        client: &ProviderClient,
        limits: &Context,
    ) -> Result<Self, Diagnostic> {
        running(uid, now, client, limits).await.map(|instance| Self::of(&instance))
    }

    /// That to the instance of an argument, if it is set.
    ///
    /// # Errors
    /// As [`Self::to_running`].
    pub(crate) async fn of_configured(
        instance_id: &Attr<String>,
        context: &StepContext,
    ) -> Result<Option<Self>, Diagnostic> {
        let Some(id) = instance_id.as_str() else { return Ok(None) };
        let uid = InstanceUid::new(id.trim());
        Self::to_running(&uid, "", &context.client, &limits(context)).await.map(Some)
    }

    /// Whether a login may succeed. An unknown status does not exclude it.
    pub(crate) fn runs(&self) -> bool {
        use InstanceStatus::{Creating, Failed, Released, Stopped};
        !matches!(self.status, Some(Creating | Failed | Released | Stopped))
    }

    /// The diagnostic for an instance that is not running.
    pub(crate) fn not_running(&self, now: &str) -> Diagnostic {
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

/// The record of an instance whose creation has ended and that may accept a login.
///
/// # Errors
/// As [`Access::to_running`].
pub(crate) async fn running(
    uid: &InstanceUid,
    now: &str,
    client: &ProviderClient,
    limits: &Context,
) -> Result<api::Instance, Diagnostic> {
    let instance = once_created(uid, client, limits).await.map_err(|error| {
        let tried = format!("read the SSH address of {}", title("instance", None, Some(uid.as_str())));
        let failure = Failure { error: &error, tried, now: now.to_owned() }.on_instance(uid.as_str());
        failure.whole().at(Path::to("instance_id"))
    })?;
    let access = Access::of(&instance);
    if access.runs() { Ok(instance) } else { Err(access.not_running(now)) }
}

async fn once_created(
    uid: &InstanceUid,
    client: &ProviderClient,
    limits: &Context,
) -> Result<api::Instance, api::Error> {
    let instances = client.api.instances();
    let instance = instances.detail(uid, limits).await?.instance;
    if instance.status != Some(InstanceStatus::Creating) {
        return Ok(instance);
    }
    let is_made = |instance: &api::Instance| instance.status != Some(InstanceStatus::Creating);
    instances.wait(uid, limits, |seen| seen.record().is_some_and(is_made)).await?;
    Ok(instances.detail(uid, limits).await?.instance)
}
