//! The ephemeral resource `damodel_instance_access`: the address and credentials of an instance, for one run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schema::Instance;
use crate::{
    api::InstanceUid,
    framework::{Attr, EphemeralResource, Opened, Path, Result, Schema, Secret, Type, schema::Attribute},
    provider::{ProviderClient, StepContext, client::limits, login, rules},
};

#[derive(Debug)]
pub(in crate::provider) struct InstanceAccessResource;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct InstanceAccess {
    id: Attr<String>,
    ssh_host: Attr<String>,
    ssh_port: Attr<i64>,
    ssh_user: Attr<String>,
    ssh_password: Attr<Secret>,
    jupyter_url: Attr<String>,
    jupyter_token: Attr<Secret>,
}

impl EphemeralResource for InstanceAccessResource {
    type Client = ProviderClient;
    type Model = InstanceAccess;
    type Held = ();

    fn type_name(&self) -> &'static str {
        "damodel_instance_access"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The login of an instance, read during the run and never stored in state or plan. If the instance is \
             still being created, the run waits for it.",
            vec![
                Attribute::required("id", Type::String, "The instance's UID.").validate(rules::instance_uid()),
                Attribute::computed("ssh_host", Type::String, "The address for SSH."),
                Attribute::computed("ssh_port", Type::Number, "The port for SSH."),
                Attribute::computed("ssh_user", Type::String, "The user to log in as: `root`."),
                Attribute::computed("ssh_password", Type::String, "The password for SSH, if the service shows one.")
                    .sensitive(),
                Attribute::computed("jupyter_url", Type::String, "The notebook's address, without its token."),
                Attribute::computed("jupyter_token", Type::String, "The notebook's token.").sensitive(),
            ],
        )
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(10 * 60)
    }

    async fn open(&self, config: InstanceAccess, context: StepContext) -> Result<Opened<InstanceAccess, ()>> {
        let uid = InstanceUid::new(config.id.as_str().unwrap_or_default().trim());
        let found = login::running(&uid, "No connection was opened.", &context.client, &limits(&context)).await;
        let record = found.map_err(|failed| failed.at(Path::to("id")))?;
        let mut instance = Instance { store_credentials: Attr::Known(true), ..Instance::default() };
        instance.take_instance(&record);
        Ok(Opened::ready(InstanceAccess {
            id: config.id,
            ssh_host: instance.ssh_host,
            ssh_port: instance.ssh_port,
            ssh_user: login::USER.into(),
            ssh_password: instance.ssh_password,
            jupyter_url: instance.jupyter_url,
            jupyter_token: instance.jupyter_token,
        }))
    }
}
