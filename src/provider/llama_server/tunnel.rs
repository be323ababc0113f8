//! The ephemeral resource `damodel_llama_tunnel`: a server's port on the computer that runs Terraform, for the run
//! alone.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::schema;
use crate::{
    framework::{
        Attr, Diagnostic, Diagnostics, EphemeralResource, Opened, Result, Schema, Secret, Type, schema::Attribute,
    },
    llama::DEFAULT_PORT,
    provider::{
        ProviderClient, StepContext,
        login::{self, Access, Login, Ssh, SshFailure, WriteOnly},
    },
    ssh::Forward,
};

/// The ephemeral resource.
#[derive(Debug)]
pub(in crate::provider) struct Tunnel;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct TunnelTarget {
    instance_id: Attr<String>,
    ssh: Attr<Ssh>,
    ssh_private_key: Attr<Secret>,
    ssh_password: Attr<Secret>,
    host_key: Attr<String>,
    port: Attr<i64>,
    local_url: Attr<String>,
    base_url: Attr<String>,
}

impl EphemeralResource for Tunnel {
    type Client = ProviderClient;
    type Model = TunnelTarget;
    type Held = Forward;

    fn type_name(&self) -> &'static str {
        "damodel_llama_tunnel"
    }

    fn schema(&self) -> Schema {
        let secret = |name: &'static str, description: &str| {
            Attribute::optional(name, Type::String, format!("{description} It may be an ephemeral value.")).sensitive()
        };
        Schema::new(
            "A tunnel to a server in an instance, such as a `damodel_llama_server`: a listener on 127.0.0.1 that \
             forwards through SSH during the run, and is not stored in state or plan. Opening it does not check that a \
             server listens on the port.",
            [
                login::schema::visit(login::schema::Visitor::Run),
                vec![
                    secret("ssh_private_key", "As `ssh.private_key`.").validate(login::schema::private_key()),
                    secret("ssh_password", "As `ssh.password`."),
                    schema::port("The port of the server in the instance."),
                    Attribute::computed(
                        "local_url",
                        Type::String,
                        "The local address of the server: `http://127.0.0.1:…`.",
                    ),
                    Attribute::computed(
                        "base_url",
                        Type::String,
                        "The base address for an OpenAI-style client: `local_url` and `/v1`.",
                    ),
                ],
            ]
            .concat(),
        )
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(10 * 60)
    }

    fn validate(&self, config: &TunnelTarget, diagnostics: &mut Diagnostics) {
        Login::validate(&config.ssh, !config.instance_id.is_null(), &config.secrets(), diagnostics);
    }

    async fn open(&self, config: TunnelTarget, context: StepContext) -> Result<Opened<TunnelTarget, Forward>> {
        let mut warnings = Diagnostics::new();
        let opened = Box::pin(open(&config, &context, &mut warnings)).await;
        let forward = opened.map_err(|failed| Diagnostics::from(failed).with(warnings.clone()))?;
        let local_url = format!("http://{}", forward.local_address());
        let base_url = format!("{local_url}/v1").into();
        Ok(Opened::ready(TunnelTarget { local_url: local_url.into(), base_url, ..config })
            .holding(forward)
            .with(warnings))
    }
}

impl TunnelTarget {
    fn secrets(&self) -> WriteOnly {
        WriteOnly { private_key: self.ssh_private_key.clone(), password: self.ssh_password.clone() }
    }
}

async fn open(
    config: &TunnelTarget,
    context: &StepContext,
    warnings: &mut Diagnostics,
) -> Result<Forward, Box<Diagnostic>> {
    let access = Access::of_configured(&config.instance_id, context).await.map_err(Box::new)?;
    let login = Login { write_only: config.secrets(), ..Login::visit(&config.ssh, &config.host_key) };
    let port = config.port.known().and_then(|port| u16::try_from(*port).ok()).unwrap_or(DEFAULT_PORT);
    let tried = format!("open a tunnel to port {port} of the instance");
    let (link, _) = login.open(access.as_ref(), &tried, context, warnings).await?;
    let forwarded = Arc::new(link).forward("127.0.0.1", port).await;
    forwarded.map_err(|error| Box::new(SshFailure { error: &error, tried, now: String::new() }.diagnostic()))
}
