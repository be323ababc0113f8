//! The provider damodel: its configuration, the list of everything that it offers, and a folder for each resource.
//!
//! A resource never uses the folder of another resource; shared code is in this folder. Depends on `framework`, `api`,
//! `model` and `ssh`.

mod access;
mod account_budget;
mod chat_completion;
mod choose;
mod client;
mod cloud_disk;
mod cloud_disk_specs;
mod configuration;
mod environment;
mod errors;
mod functions;
mod images;
mod instance;
mod left_behind;
mod lifecycle;
mod llama_chat;
mod llama_server;
mod meanings;
mod model;
mod model_files;
mod pricing;
mod private_image;
mod protection;
mod public_images;
mod rules;
mod specs;
mod ssh;
mod ssh_failure;
mod ssh_schema;
mod words;

use std::sync::Arc;

pub use client::{OnLeftover, OnUnreleasable, ProviderClient};
pub use configuration::Configuration;
pub use environment::Environment;

use crate::framework::{self, Diagnostics, Registry, Schema};

/// The provider's address in its registry, without a host.
pub const ADDRESS: &str = "damodel/damodel";

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
            .action(chat_completion::ChatAction)
            .action(llama_server::Restart)
            .data_source(chat_completion::ChatCompletion)
            .data_source(lifecycle::Plural::<cloud_disk::CloudDisks>::default())
            .data_source(lifecycle::Singular::<cloud_disk::DiskRecord>::default())
            .data_source(cloud_disk_specs::List)
            .data_source(lifecycle::Plural::<private_image::PrivateImages>::default())
            .data_source(lifecycle::Singular::<private_image::SingleImage>::default())
            .data_source(lifecycle::Plural::<instance::Instances>::default())
            .data_source(lifecycle::Singular::<instance::SingleInstance>::default())
            .data_source(model::File)
            .data_source(public_images::List)
            .data_source(public_images::Single)
            .data_source(specs::List)
            .data_source(specs::Single)
            .ephemeral_resource(instance::InstanceAccessResource)
            .function(functions::EstimateCost)
            .function(functions::ParseImageAddress)
            .function(model::ModelMemory)
            .function(specs::CheapestSpec)
            .ephemeral_resource(llama_server::Tunnel)
            .list_resource(lifecycle::ListAll::<cloud_disk::Filters>::default())
            .list_resource(lifecycle::ListAll::<instance::Filters>::default())
            .list_resource(lifecycle::ListAll::<private_image::Filters>::default())
    }

    fn validate(&self, config: &Configuration, diagnostics: &mut Diagnostics) {
        configuration::validate(config, diagnostics);
    }

    async fn configure(
        &self,
        config: Configuration,
        core_version: &str,
    ) -> Result<(Arc<ProviderClient>, Diagnostics), Diagnostics> {
        let (client, mut diagnostics) = configuration::configure(config, &self.environment, core_version)?;
        diagnostics.extend(left_behind::told(&client).await);
        Ok((client, diagnostics))
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::framework::{Ends, Server};

    #[test]
    fn every_schema_is_sound_and_every_model_fits_it() {
        let server = Server::new(Damodel::new(Environment::default()), Ends::default());
        assert_eq!(server.faults(), Vec::<String>::new());
    }
}
