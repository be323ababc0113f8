use std::collections::{BTreeMap, HashMap};

use crate::{
    framework::{Diagnostics, Provider, Schema},
    protocol::{
        convert,
        service::{Call, Driver},
        tfplugin6::{
            ActionSchema, Schema as WireSchema, ServerCapabilities, get_metadata, get_provider_schema,
            get_resource_identity_schemas,
        },
    },
};

impl Call for get_metadata::Request {
    type Response = get_metadata::Response;
    const NAME: &'static str = "GetMetadata";

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let schemas = driver.server.schemas();
        Ok(get_metadata::Response {
            server_capabilities: Some(capabilities()),
            data_sources: schemas
                .data_sources
                .keys()
                .map(|&name| get_metadata::DataSourceMetadata { type_name: name.to_owned() })
                .collect(),
            resources: schemas
                .resources
                .keys()
                .map(|&name| get_metadata::ResourceMetadata { type_name: name.to_owned() })
                .collect(),
            list_resources: schemas
                .list_resources
                .keys()
                .map(|&name| get_metadata::ListResourceMetadata { type_name: name.to_owned() })
                .collect(),
            actions: schemas
                .actions
                .keys()
                .map(|&name| get_metadata::ActionMetadata { type_name: name.to_owned() })
                .collect(),
            functions: schemas
                .functions
                .keys()
                .map(|&name| get_metadata::FunctionMetadata { name: name.to_owned() })
                .collect(),
            ephemeral_resources: schemas
                .ephemeral_resources
                .keys()
                .map(|&name| get_metadata::EphemeralMetadata { type_name: name.to_owned() })
                .collect(),
            ..Self::Response::default()
        })
    }
}

impl Call for get_provider_schema::Request {
    type Response = get_provider_schema::Response;
    const NAME: &'static str = "GetProviderSchema";

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let schemas = driver.server.schemas();
        let response = driver.schemas.get_or_init(|| get_provider_schema::Response {
            provider: Some(convert::schema(&schemas.provider)),
            resource_schemas: by_name(&schemas.resources),
            data_source_schemas: by_name(&schemas.data_sources),
            ephemeral_resource_schemas: by_name(&schemas.ephemeral_resources),
            list_resource_schemas: by_name(&schemas.list_resources),
            action_schemas: schemas
                .actions
                .iter()
                .map(|(&name, schema)| (name.to_owned(), ActionSchema { schema: Some(convert::schema(schema)) }))
                .collect(),
            functions: schemas
                .functions
                .iter()
                .map(|(&name, signature)| (name.to_owned(), convert::function(signature)))
                .collect(),
            server_capabilities: Some(capabilities()),
            ..Self::Response::default()
        });
        Ok(response.clone())
    }
}

impl Call for get_resource_identity_schemas::Request {
    type Response = get_resource_identity_schemas::Response;
    const NAME: &'static str = "GetResourceIdentitySchemas";

    async fn answer<P: Provider>(&self, driver: &Driver<P>) -> Result<Self::Response, Diagnostics> {
        let identities = driver.server.schemas().identities.iter();
        Ok(get_resource_identity_schemas::Response {
            identity_schemas: identities
                .map(|(&name, schema)| (name.to_owned(), convert::identity_schema(schema)))
                .collect(),
            diagnostics: Vec::new(),
        })
    }
}

/// Destroys are planned too, configurations are generated, and a core that knows the schemas already need not ask for them in each process
/// (plugin protocol, capabilities). Moves from other types are refused, with an error that says more than the core's own.
fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        plan_destroy: true,
        get_provider_schema_optional: true,
        move_resource_state: true,
        generate_resource_config: true,
    }
}

fn by_name(schemas: &BTreeMap<&'static str, Schema>) -> HashMap<String, WireSchema> {
    schemas.iter().map(|(&name, schema)| (name.to_owned(), convert::schema(schema))).collect()
}
