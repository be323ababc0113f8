//! Messages that say what the provider offers.

use crate::{
    framework::{Diagnostics, Entry, Kind, Provider, Server},
    protocol::{
        calls::function::functions,
        convert,
        service::Call,
        tfplugin6::{
            ActionSchema, ServerCapabilities, get_metadata, get_provider_schema, get_resource_identity_schemas,
        },
    },
};

/// A map or list of the answer, from all things of a kind.
fn all<P: Provider, T, C: FromIterator<T>>(server: &Server<P>, kind: Kind, make: fn(&Entry<P::Client>) -> T) -> C {
    server.registry().of(kind).map(make).collect()
}

impl Call for get_metadata::Request {
    type Response = get_metadata::Response;
    const NAME: &'static str = "GetMetadata";

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        use get_metadata::{
            ActionMetadata, DataSourceMetadata, EphemeralMetadata, FunctionMetadata, ListResourceMetadata,
            ResourceMetadata,
        };
        Ok(get_metadata::Response {
            server_capabilities: Some(capabilities()),
            resources: all(server, Kind::Resource, |entry| ResourceMetadata { type_name: entry.name.to_owned() }),
            data_sources: all(server, Kind::DataSource, |entry| DataSourceMetadata {
                type_name: entry.name.to_owned(),
            }),
            ephemeral_resources: all(server, Kind::EphemeralResource, |entry| EphemeralMetadata {
                type_name: entry.name.to_owned(),
            }),
            list_resources: all(server, Kind::ListResource, |entry| ListResourceMetadata {
                type_name: entry.name.to_owned(),
            }),
            actions: all(server, Kind::Action, |entry| ActionMetadata { type_name: entry.name.to_owned() }),
            functions: all(server, Kind::Function, |entry| FunctionMetadata { name: entry.name.to_owned() }),
            ..Self::Response::default()
        })
    }
}

/// Asked once in a process, if at all.
impl Call for get_provider_schema::Request {
    type Response = get_provider_schema::Response;
    const NAME: &'static str = "GetProviderSchema";

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let schemas = |kind| all(server, kind, |entry| (entry.name.to_owned(), convert::schema(&entry.schema)));
        Ok(get_provider_schema::Response {
            provider: Some(convert::schema(server.schema())),
            resource_schemas: schemas(Kind::Resource),
            data_source_schemas: schemas(Kind::DataSource),
            ephemeral_resource_schemas: schemas(Kind::EphemeralResource),
            list_resource_schemas: schemas(Kind::ListResource),
            action_schemas: all(server, Kind::Action, |entry| {
                (entry.name.to_owned(), ActionSchema { schema: Some(convert::schema(&entry.schema)) })
            }),
            functions: functions(server),
            server_capabilities: Some(capabilities()),
            ..Self::Response::default()
        })
    }
}

impl Call for get_resource_identity_schemas::Request {
    type Response = get_resource_identity_schemas::Response;
    const NAME: &'static str = "GetResourceIdentitySchemas";

    async fn answer<P: Provider>(&self, server: &Server<P>) -> Result<Self::Response, Diagnostics> {
        let resources =
            server.registry().of(Kind::Resource).filter_map(|entry| Some((entry, entry.identity.as_ref()?)));
        Ok(get_resource_identity_schemas::Response {
            identity_schemas: resources
                .map(|(entry, schema)| (entry.name.to_owned(), convert::identity_schema(schema)))
                .collect(),
            diagnostics: Vec::new(),
        })
    }
}

/// Destroys are planned too, configurations are generated, and a core that knows the schemas already need not ask for
/// them in each process (plugin protocol, capabilities). Moves from other types are refused, with an error that says
/// more than the core's own.
fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        plan_destroy: true,
        get_provider_schema_optional: true,
        move_resource_state: true,
        generate_resource_config: true,
    }
}
