//! The ephemeral resource `damodel_instance_access`: how to get into an instance, for the run alone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::model::Instance;
use crate::{
    api::{self, InstanceStatus, InstanceUid},
    framework::{
        Attr, Context, Diagnostic, EphemeralResource, Opened, Path, Schema, Secret, Type,
        schema::{Attribute, validator},
    },
    provider::{Client, client::limits, errors::Failure, presence::capitalized, words::title},
};

/// The user whose password the service tells.
const USER: &str = "root";

/// The ephemeral resource.
#[derive(Debug)]
pub(in crate::provider) struct Access;

/// Its configuration and result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Way {
    id: Attr<String>,
    ssh_host: Attr<String>,
    ssh_port: Attr<i64>,
    ssh_user: Attr<String>,
    ssh_password: Attr<Secret>,
    jupyter_url: Attr<String>,
    jupyter_token: Attr<Secret>,
}

impl EphemeralResource for Access {
    type Client = Client;
    type Model = Way;
    type Held = ();

    fn type_name(&self) -> &'static str {
        "damodel_instance_access"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "How to get into an instance, read while the run goes on. Nothing of it reaches the state or the plan, so that it goes \
             well with `store_credentials = false` of the instance. An instance that is still being created is waited for.",
            vec![
                Attribute::required("id", Type::String, "The instance's UID.")
                    .validate(validator::text("text that is not empty", |id| !id.trim().is_empty())),
                Attribute::computed("ssh_host", Type::String, "The address for SSH."),
                Attribute::computed("ssh_port", Type::Number, "The port for SSH."),
                Attribute::computed("ssh_user", Type::String, "The user of the password: `root`."),
                Attribute::computed("ssh_password", Type::String, "The password for SSH, when the service tells one.")
                    .sensitive(),
                Attribute::computed("jupyter_url", Type::String, "The notebook's address, without its token."),
                Attribute::computed("jupyter_token", Type::String, "The notebook's token.").sensitive(),
            ],
        )
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(10 * 60)
    }

    async fn open(&self, config: Way, context: Context<Client>) -> Opened<Way, ()> {
        let uid = InstanceUid::new(config.id.as_str().unwrap_or_default().trim());
        let title = title("instance", None, Some(uid.as_str()));
        let record = match running(&uid, &context).await {
            Ok(record) => record,
            Err(error) => {
                let failure =
                    Failure { error: &error, tried: format!("find the way into {title}"), now: String::new() };
                return Opened::failed(failure.diagnostic(|_| false).at(Path::to("id")));
            }
        };
        if let Some(status @ (InstanceStatus::Failed | InstanceStatus::Released | InstanceStatus::Stopped)) =
            &record.status
        {
            let said = Diagnostic::error(
                format!("{} is {status}", capitalized(&title)),
                "Only a Running instance lets anybody in. Nothing was opened.",
            );
            return Opened::failed(said.at(Path::to("id")));
        }
        let mut instance = Instance::default();
        instance.take_record(&record);
        Opened::ready(Way {
            id: config.id,
            ssh_host: instance.ssh_host,
            ssh_port: instance.ssh_port,
            ssh_user: USER.into(),
            ssh_password: instance.ssh_password,
            jupyter_url: instance.jupyter_url,
            jupyter_token: instance.jupyter_token,
        })
    }
}

/// The instance, once it is no longer being created.
async fn running(uid: &InstanceUid, context: &Context<Client>) -> Result<api::Instance, api::Error> {
    let (instances, limits) = (context.client.api.instances(), limits(context));
    let record = instances.detail(uid, &limits).await?.instance;
    if record.status != Some(InstanceStatus::Creating) {
        return Ok(record);
    }
    let is_made = |instance: &api::Instance| instance.status != Some(InstanceStatus::Creating);
    instances.wait(uid, &limits, |seen| seen.record().is_some_and(is_made)).await?;
    Ok(instances.detail(uid, &limits).await?.instance)
}
