//! Messages of the provider: what it offers, its configuration, and checks of configurations.

use std::collections::HashMap;

use super::{Answered, Call, Message as _, convert};
use crate::{
    framework::{Diagnostics, Entry, Kind, Provider, Server, server::ConfigureRequest},
    protocol::tfplugin6::{
        ActionSchema, Function, ServerCapabilities, configure_provider, get_functions, get_metadata,
        get_provider_schema, get_resource_identity_schemas, validate_action_config, validate_data_resource_config,
        validate_ephemeral_resource_config, validate_list_resource_config, validate_provider_config,
        validate_resource_config,
    },
};

/// A map or list of the answer, from all objects of a kind.
fn all<P: Provider, T, C: FromIterator<T>>(
    server: &Server<P>,
    kind: Kind,
    make: impl Fn(String, &Entry<P::Client>) -> T,
) -> C {
    server.registry().of(kind).map(|entry| make(entry.name.to_owned(), entry)).collect()
}

/// The functions with what they take and give.
fn functions<P: Provider>(server: &Server<P>) -> HashMap<String, Function> {
    let described = |name, entry: &Entry<_>| Some((name, convert::function(entry.signature.as_ref()?)));
    all::<_, _, Vec<_>>(server, Kind::Function, described).into_iter().flatten().collect()
}

impl Call for get_metadata::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        use get_metadata::{
            ActionMetadata, DataSourceMetadata, EphemeralMetadata, FunctionMetadata, ListResourceMetadata,
            ResourceMetadata,
        };
        let response = get_metadata::Response {
            server_capabilities: Some(capabilities()),
            resources: all(server, Kind::Resource, |type_name, _| ResourceMetadata { type_name }),
            data_sources: all(server, Kind::DataSource, |type_name, _| DataSourceMetadata { type_name }),
            ephemeral_resources: all(server, Kind::EphemeralResource, |type_name, _| EphemeralMetadata { type_name }),
            list_resources: all(server, Kind::ListResource, |type_name, _| ListResourceMetadata { type_name }),
            actions: all(server, Kind::Action, |type_name, _| ActionMetadata { type_name }),
            functions: all(server, Kind::Function, |name, _| FunctionMetadata { name }),
            ..Self::Response::default()
        };
        Ok((response, Diagnostics::new()))
    }
}

/// Asked once in a process, if at all.
impl Call for get_provider_schema::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let schemas = |kind| all(server, kind, |name, entry| (name, convert::schema(&entry.schema)));
        let response = get_provider_schema::Response {
            provider: Some(convert::schema(server.schema())),
            resource_schemas: schemas(Kind::Resource),
            data_source_schemas: schemas(Kind::DataSource),
            ephemeral_resource_schemas: schemas(Kind::EphemeralResource),
            list_resource_schemas: schemas(Kind::ListResource),
            action_schemas: all(server, Kind::Action, |name, entry| {
                (name, ActionSchema { schema: Some(convert::schema(&entry.schema)) })
            }),
            functions: functions(server),
            server_capabilities: Some(capabilities()),
            ..Self::Response::default()
        };
        Ok((response, Diagnostics::new()))
    }
}

/// Asked by OpenTofu of configured providers; what there is does not depend on the configuration.
impl Call for get_functions::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let response = get_functions::Response { functions: functions(server), ..Self::Response::default() };
        Ok((response, Diagnostics::new()))
    }
}

impl Call for get_resource_identity_schemas::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resources =
            server.registry().of(Kind::Resource).filter_map(|entry| Some((entry, entry.identity.as_ref()?)));
        let schemas = resources.map(|(entry, schema)| (entry.name.to_owned(), convert::identity_schema(schema)));
        let identity_schemas = schemas.collect();
        Ok((get_resource_identity_schemas::Response { identity_schemas, diagnostics: Vec::new() }, Diagnostics::new()))
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

impl Call for validate_provider_config::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let config = convert::read(&server.schema().ty(), self.config.as_ref(), "provider's configuration")?;
        Ok((Self::Response::default(), server.validate_provider(&config)))
    }
}

impl Call for configure_provider::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let request = ConfigureRequest {
            config: convert::read(&server.schema().ty(), self.config.as_ref(), "provider's configuration")?,
            core_version: self.terraform_version.clone(),
        };
        Ok((Self::Response::default(), server.configure(request).await))
    }
}

macro_rules! validate {
    ($($message:ident: $kind:ident, $write_only_allowed:expr;)*) => {
        $(impl Call for $message::Request {
            async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
                let write_only_allowed: fn(&Self) -> bool = $write_only_allowed;
                let entry = server.registry().find(Kind::$kind, self.subject())?;
                let config = convert::read(&entry.ty, self.config.as_ref(), "configuration")?;
                Ok((Self::Response::default(), entry.validate(&config, write_only_allowed(self))))
            }
        })*
    };
}

validate! {
    validate_action_config: Action, |_| true;
    validate_data_resource_config: DataSource, |_| true;
    validate_ephemeral_resource_config: EphemeralResource, |_| true;
    validate_list_resource_config: ListResource, |_| true;
    // Cores before 1.11 would keep write-only values in a plan; only this call says whether the core is one of them.
    validate_resource_config: Resource, |request| {
        request.client_capabilities.is_some_and(|client| client.write_only_attributes_allowed)
    };
}
