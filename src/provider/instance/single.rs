//! The data source `damodel_instance`: one instance with all that the service reports.

use serde::{Deserialize, Serialize};

use super::{model::Instance, schema::schema};
use crate::{
    api::{self, Object as _},
    framework::{
        Attr, Context, Diagnostic, Diagnostics, Path, Schema, Secret, project,
        schema::{Attribute, Presence},
        value::Number,
    },
    provider::{
        Client,
        client::limits,
        errors::Failure,
        lifecycle::{self, unreadable},
    },
};

/// The configuration and result of the data source: the attributes of the resource that the service reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct SingleInstance {
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

impl lifecycle::SingularModel for SingleInstance {
    type Managed = Instance;

    fn schema() -> Schema {
        Schema::new(
            "One instance, by id or by name, with all that the service reports. Its password and token enter the \
             state.",
            schema().attributes.into_iter().filter_map(as_result).collect(),
        )
    }

    fn validate(&self, diagnostics: &mut Diagnostics) {
        if self.id.is_null() == self.name.is_null() && !self.id.is_unknown() && !self.name.is_unknown() {
            diagnostics.error_at(Path::to("id"), "Which instance?", "Set either id (the UID) or name.");
        }
    }

    fn named(&self) -> Option<api::Instance> {
        self.id.as_str().and_then(api::Instance::of_id)
    }

    fn matches(&self) -> impl Fn(&api::Instance) -> bool + Send + Sync {
        |instance| instance.name.as_deref() == self.name.as_str()
    }

    async fn read(self, instance: &api::Instance, context: &Context<Client>) -> Result<Self, Diagnostic> {
        let (client, limits) = (context.client.as_ref(), limits(context));
        let detail = client.api.instances().detail(&instance.uid, &limits).await.map_err(|error| {
            let tried = format!("read instance {}", instance.uid);
            Failure { error: &error, tried, now: String::new() }.whole()
        })?;
        let mut state = Instance::default();
        state.take_detail(&detail);
        state.complete_image(client, &limits).await;
        project(&state).map_err(unreadable)
    }
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
