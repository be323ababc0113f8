//! Everything that the provider offers, in one list. No file of this folder names it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Configuration, Environment, ProviderClient, chat_completion, cloud_disk, cloud_disk_specs, columns, configuration,
    instance, llama_server, model, pending::warn_of_pending, private_image, public_images, specs,
};
use crate::{
    api::Context,
    framework::{self, ConfigureContext, Diagnostics, OfferKind, Registry, Schema, Value, Walk, schema::Requirement},
};

/// The provider's address in its registry, without a host.
pub const ADDRESS: &str = "damodel/damodel";

/// The names of the record fields whose values logs may show.
pub(crate) fn loggable_fields() -> BTreeSet<&'static str> {
    let tables = [
        cloud_disk::COLUMNS,
        cloud_disk_specs::COLUMNS,
        instance::COLUMNS,
        private_image::COLUMNS,
        public_images::COLUMNS,
        specs::COLUMNS,
    ];
    tables.into_iter().flat_map(columns::logged).collect()
}

/// The arguments of each resource, with their defaults as JSON.
pub(crate) fn arguments() -> BTreeMap<&'static str, BTreeMap<String, Option<String>>> {
    let registry = framework::Provider::registry(&Damodel::new(Environment::default()));
    registry.of(OfferKind::Resource).map(|resource| (resource.name, arguments_of(&resource.schema))).collect()
}

fn arguments_of(schema: &Schema) -> BTreeMap<String, Option<String>> {
    let arguments = schema.attributes.iter().filter(|attribute| attribute.requirement != Requirement::Computed);
    arguments.map(|one| (one.name.to_string(), one.default.as_ref().map(default))).collect()
}

/// A default as JSON.
fn default(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        value => serde_json::Value::from(value.as_str()).to_string(),
    }
}

/// The provider.
#[derive(Debug)]
pub struct Damodel {
    environment: Environment,
}

impl Damodel {
    /// The provider with this environment.
    pub fn new(environment: Environment) -> Self {
        Self { environment }
    }
}

impl framework::Provider for Damodel {
    type Client = ProviderClient;
    type Model = Configuration;

    fn schema(&self) -> Schema {
        configuration::schema()
    }

    fn registry(&self) -> Registry<ProviderClient> {
        Registry::new()
            .resource(cloud_disk::Resource::default())
            .resource(instance::Resource::default())
            .resource(llama_server::Resource)
            .resource(private_image::Resource::default())
            .action(llama_server::Restart)
            .data_source(chat_completion::ChatCompletion)
            .data_source(cloud_disk::plural())
            .data_source(cloud_disk::singular())
            .data_source(cloud_disk_specs::plural())
            .data_source(cloud_disk_specs::singular())
            .data_source(private_image::plural())
            .data_source(private_image::singular())
            .data_source(instance::plural())
            .data_source(instance::singular())
            .data_source(model::File)
            .data_source(public_images::plural())
            .data_source(public_images::singular())
            .data_source(specs::plural())
            .data_source(specs::singular())
            .ephemeral_resource(instance::InstanceAccessResource)
            .function(model::ModelMemory)
            .ephemeral_resource(llama_server::Tunnel)
            .list_resource(cloud_disk::list_all())
            .list_resource(instance::list_all())
            .list_resource(private_image::list_all())
    }

    fn validate(&self, config: &Configuration, diagnostics: &mut Diagnostics) {
        configuration::validate(config, diagnostics);
    }

    async fn configure(
        &self,
        config: Configuration,
        context: ConfigureContext<'_>,
    ) -> Result<(Arc<ProviderClient>, Diagnostics), Diagnostics> {
        let limits = Context { cancel: context.stopping.clone(), deadline: context.deadline };
        let (client, mut diagnostics) =
            configuration::configure(config, &self.environment, loggable_fields(), &context, &limits).await?;
        if context.walk != Walk::Apply {
            diagnostics.extend(warn_of_pending(&client, &limits).await);
        }
        Ok((client, diagnostics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::LOGGABLE,
        framework::{Ends, Server},
    };

    /// A name is added here only after it was asked whether its values can be secrets.
    #[test]
    fn only_these_names_may_be_logged() {
        const NAMES: &str = "action auto_renew capacity_type cloud_disks code code_n cpu_core create_time data \
             data_disk_expand_size data_disk_mount_path data_disk_price data_disk_size disk_name error \
             exist_disks external_ip gpu_mem gpu_memory gpu_name gpu_num gpu_price highest_cuda id image \
             image_id image_name image_status image_tag image_type image_uuid instance_alias \
             instance_hostname instance_id instance_uid internal_ip label login_method max_gpu_count \
             max_size_g memory_size mount_path multiple_mounting name new_disks original_image page \
             page_size payment_type purchase_duration push_progress query region release_time \
             release_with_instance rent_deadline request_id response_metadata result service size_gb \
             spec_alias spec_id spec_type ssh_host ssh_port ssh_pubkey_id ssh_pubkey_name start_time status \
             stop_time storage_class_type support_power_type total total_page trace_id uid updated_at \
             version";
        let names: BTreeSet<&str> = loggable_fields().into_iter().chain(LOGGABLE).collect();
        assert_eq!(names, NAMES.split(' ').collect());
    }

    #[test]
    fn every_schema_is_sound_and_every_model_fits_it() {
        let server = Server::new(Damodel::new(Environment::default()), Ends::default());
        assert_eq!(server.unsound(), Vec::<String>::new());
    }
}
