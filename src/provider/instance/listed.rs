//! The data sources of instances: one instance with all reported attributes, and all instances of the account.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::schema::{Instance, schema};
use crate::{
    api::{self, Code, InstanceFilter, Listing, Object as _},
    framework::{
        Attr, Diagnostic, Diagnostics, Path, Schema, Secret, StepContext, Type, is_set, project,
        schema::{Attribute, AttributeType, Nesting, Requirement},
        value::Number,
    },
    provider::{
        ProviderClient,
        client::limits,
        errors::Failure,
        lifecycle::{self, ManagedExt as _, PluralModel, state, unreadable},
    },
};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Instances {
    query: Attr<String>,
    status: Attr<String>,
    instances: Attr<Vec<InstanceRecord>>,
}

/// One instance of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct InstanceRecord {
    #[serde(default)]
    instance_uid: Attr<String>,
    name: Attr<String>,
    status: Attr<String>,
    region: Attr<String>,
    capacity_type: Attr<String>,
    gpu_name: Attr<String>,
    gpu_num: Attr<i64>,
    spec_id: Attr<i64>,
    spec_type: Attr<String>,
    payment_type: Attr<String>,
    image_id: Attr<i64>,
    image_name: Attr<String>,
    image_type: Attr<String>,
    ssh_host: Attr<String>,
    ssh_port: Attr<i64>,
    login_method: Attr<String>,
    ssh_pubkey_name: Attr<String>,
    external_ip: Attr<String>,
    internal_ip: Attr<String>,
    jupyter_url: Attr<String>,
    start_time: Attr<String>,
    stop_time: Attr<String>,
    release_time: Attr<String>,
}

impl PluralModel for Instances {
    type Filters = Filters;
    type Row = InstanceRecord;

    const TYPE_NAME: &'static str = "damodel_instances";

    fn schema() -> Schema {
        let mut attributes = arguments("`Creating`, `Running`, `Stopped`, `Released`, `Failed`, …");
        attributes.push(Attribute::computed(
            "instances",
            AttributeType::Nested(Nesting::List, self::attributes()),
            "The instances that match, by UID, without their secrets.",
        ));
        Schema::new(
            "The instances of the account. Released ones are shown as long as the service lists them.",
            attributes,
        )
    }

    fn rows(&mut self) -> &mut Attr<Vec<InstanceRecord>> {
        &mut self.instances
    }

    fn row(instance: &api::Instance) -> InstanceRecord {
        let mut state = Instance { store_credentials: Attr::Known(false), ..Instance::default() };
        state.take_instance(instance);
        let record: InstanceRecord = project(&state).unwrap_or_default();
        InstanceRecord { instance_uid: instance.uid.as_str().into(), ..record }
    }
}

/// The filters of the data source and of the list resource, which supports fewer statuses.
fn arguments(statuses: &str) -> Vec<Attribute> {
    vec![
        Attribute::optional("query", Type::String, "A part of the UID or name."),
        Attribute::optional("status", Type::String, format!("Only instances with this status: {statuses}")),
    ]
}

/// The filters, which are also the configuration of the list resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Filters {
    query: Attr<String>,
    status: Attr<String>,
}

impl lifecycle::Filters for Filters {
    type Managed = Instance;

    fn schema() -> Schema {
        Schema::new(
            "The instances of the account. Released ones are left out, and passwords and tokens are null.",
            arguments("`Creating`, `Running`, `Stopped`, `Failed`, …"),
        )
    }

    async fn matching(&self, context: &StepContext<ProviderClient>) -> Result<Arc<Listing<api::Instance>>, Diagnostic> {
        let filter = InstanceFilter { query: self.query.known().cloned(), status: self.status.known().cloned() };
        let (instances, limits) = (context.client.api.instances(), limits(context));
        let listing = if filter == InstanceFilter::default() {
            instances.snapshot(&limits).await
        } else {
            instances.list(&filter, &limits).await.map(Arc::new)
        };
        listing.map_err(|error| {
            let failure = Failure { error: &error, tried: "list the instances".to_owned(), now: String::new() };
            failure.diagnostic(|name| is_set(self, name))
        })
    }

    /// A complete state needs the instance's detail.
    async fn state(
        record: api::Instance,
        whole: bool,
        context: &StepContext<ProviderClient>,
    ) -> Result<Option<Instance>, Diagnostic> {
        let mut state: Instance = state(&record);
        if !whole {
            return Ok(Some(state));
        }
        let (client, limits) = (context.client.as_ref(), limits(context));
        match client.api.instances().detail(&record.uid, &limits).await {
            Ok(detail) if detail.instance.is_released() => Ok(None),
            Ok(detail) => {
                state.take_detail(&detail);
                state.complete_image(client, &limits).await;
                Ok(Some(state))
            }
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => Ok(None),
            Err(error) => {
                let tried = format!("read {}", state.title());
                Err(Failure { error: &error, tried, now: String::new() }.whole())
            }
        }
    }
}

fn attributes() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        text("instance_uid", "The UID."),
        text("name", "The name."),
        text("status", "The status."),
        text("region", "The region."),
        text("capacity_type", "`ondemand` or `spot`."),
        text("gpu_name", "The GPU model."),
        number("gpu_num", "How many GPUs."),
        number("spec_id", "The specification's number."),
        text("spec_type", "The specification's code."),
        text("payment_type", "The payment type."),
        number("image_id", "The image's number."),
        text("image_name", "The image's name."),
        text("image_type", "`public` or `private`."),
        text("ssh_host", "The address for SSH."),
        number("ssh_port", "The port for SSH."),
        text("login_method", "`ssh_key` or `password`."),
        text("ssh_pubkey_name", "The name of the registered public key."),
        text("external_ip", "The public address."),
        text("internal_ip", "The address within the service's network."),
        text("jupyter_url", "The notebook's address, without its token."),
        text("start_time", "When it started (RFC 3339, UTC)."),
        text("stop_time", "When it stopped (RFC 3339, UTC)."),
        text("release_time", "When it was or will be released (RFC 3339, UTC)."),
    ]
}

/// The configuration and result of the data source: the reported attributes of the resource.
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
            "One instance, by id or by name, with everything that the service reports. Its password and token are \
             stored in the state.",
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

    async fn read(self, instance: &api::Instance, context: &StepContext<ProviderClient>) -> Result<Self, Diagnostic> {
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

/// An attribute of the resource as a result of the data source; `None` for attributes that the service never reports.
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
    if NEVER_REPORTED.contains(&&*attribute.name) {
        return None;
    }
    let mut result = Attribute::computed(attribute.name, attribute.ty, attribute.description);
    result.sensitive = attribute.sensitive;
    match &*result.name {
        "id" => {
            result.requirement = Requirement::OptionalComputed;
            result.description = "The instance's UID. Either this or `name`.".to_owned();
        }
        "name" => {
            result.requirement = Requirement::OptionalComputed;
            result.description = "The instance's name, which must be unique. Either this or `id`.".to_owned();
        }
        _ => {}
    }
    Some(result)
}
