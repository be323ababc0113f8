//! The data source `damodel_instance`: one instance with all that the service reports.

use serde::{Deserialize, Serialize};

use super::{model::Instance, schema::schema};
use crate::{
    api::InstanceUid,
    framework::{
        Attr, Context, DataSource, Diagnostic, Diagnostics, Outcome, Path, Private, Schema, Secret, project,
        schema::{Attribute, Presence},
        value::Number,
    },
    provider::{
        Client,
        choose::{Choice, Takes},
        client::limits,
        errors::Failure,
    },
};

/// The data source.
#[derive(Debug)]
pub(in crate::provider) struct Single;

/// Its configuration and result: the attributes of the resource that the service reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct One {
    id: Attr<String>,
    name: Attr<String>,
    instance_id: Attr<i64>,
    status: Attr<String>,
    region: Attr<String>,
    capacity_type: Attr<String>,
    payment_type: Attr<String>,
    gpu_name: Attr<String>,
    gpu_num: Attr<i64>,
    spec_id: Attr<i64>,
    spec_type: Attr<String>,
    image: Attr<String>,
    image_id: Attr<i64>,
    image_name: Attr<String>,
    image_type: Attr<String>,
    login_method: Attr<String>,
    ssh_pubkey_name: Attr<String>,
    ssh_host: Attr<String>,
    ssh_port: Attr<i64>,
    ssh_password: Attr<Secret>,
    external_ip: Attr<String>,
    internal_ip: Attr<String>,
    jupyter_url: Attr<String>,
    jupyter_token: Attr<Secret>,
    start_time: Attr<String>,
    stop_time: Attr<String>,
    release_time: Attr<String>,
    cpu_core: Attr<String>,
    memory_size: Attr<String>,
    gpu_memory: Attr<String>,
    sys_disk_size_gb: Attr<i64>,
    data_disk_size_gb: Attr<i64>,
    gpu_price: Attr<Number>,
    data_disk_price: Attr<Number>,
    rent_deadline: Attr<String>,
    support_power: Attr<bool>,
    cloud_disks: Attr<Vec<String>>,
    services: Attr<Vec<String>>,
    shutdown_status: Attr<String>,
    shutdown_stage: Attr<String>,
    shutdown_push_progress: Attr<String>,
}

impl DataSource for Single {
    type Client = Client;
    type Model = One;

    fn type_name(&self) -> &'static str {
        "damodel_instance"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "One instance, by id or by name, with all that the service reports. Its password and token enter the state.",
            schema().attributes.into_iter().filter_map(as_result).collect(),
        )
    }

    fn validate(&self, config: &One, diagnostics: &mut Diagnostics) {
        if config.id.is_null() == config.name.is_null() && !config.id.is_unknown() && !config.name.is_unknown() {
            diagnostics.error_at(Path::to("id"), "Which instance?", "Set either id (the UID) or name.");
        }
    }

    async fn read(&self, config: One, context: Context<Client>) -> Outcome<One> {
        match find(&config, &context).await {
            Ok(found) => Outcome::present(found, Private::default()),
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}

async fn find(config: &One, context: &Context<Client>) -> Result<One, Diagnostic> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let failed = |error: &crate::api::Error, tried: String| Failure { error, tried, now: String::new() }.whole();
    let uid = match (config.id.as_str(), config.name.as_str()) {
        (Some(id), _) => InstanceUid::new(id),
        (None, name) => {
            let listing = client.api.instances().snapshot(&limits).await;
            let listing = listing.map_err(|error| failed(&error, "list the instances".to_owned()))?;
            let choice = Choice {
                what: "instance",
                takes: Takes::TheOnlyOne,
                label: |instance: &crate::api::Instance| {
                    format!("{} {:?}", instance.uid, instance.name.as_deref().unwrap_or_default())
                },
            };
            choice
                .one(&listing.records, |instance| !instance.is_released() && instance.name.as_deref() == name)?
                .uid
                .clone()
        }
    };
    let detail = client.api.instances().detail(&uid, &limits).await;
    let detail = detail.map_err(|error| failed(&error, format!("read instance {uid}")))?;
    let mut instance = Instance::default();
    instance.take_detail(&detail);
    instance.complete_image(client, &limits).await;
    project(&instance).map_err(|error| Diagnostic::error("The provider could not read a value", error.to_string()))
}

/// An attribute of the resource as a result here; none for what the service never reports.
fn as_result(attribute: Attribute) -> Option<Attribute> {
    const NEVER_REPORTED: [&str; 17] = [
        "auto_renew",
        "data_disk_expand_size_gb",
        "data_disk_mount_path",
        "deletion_protection",
        "estimated_cost",
        "price_ceiling",
        "candidates",
        "exist_disks",
        "hostname",
        "new_disks",
        "object_mounts",
        "on_unreleasable",
        "purchase_duration",
        "ssh_pubkey_id",
        "store_credentials",
        "wait_for_capacity",
        "wait_for_running",
    ];
    if NEVER_REPORTED.contains(&attribute.name.as_str()) {
        return None;
    }
    let mut result = Attribute::computed(&attribute.name, attribute.ty, attribute.description);
    result.sensitive = attribute.sensitive;
    match attribute.name.as_str() {
        "id" => {
            result.presence = Presence::OptionalComputed;
            result.description = "The instance's UID. Either this or `name`.".to_owned();
        }
        "name" => {
            result.presence = Presence::OptionalComputed;
            result.description = "The instance's name, which only one may have. Either this or `id`.".to_owned();
        }
        _ => {}
    }
    Some(result)
}
