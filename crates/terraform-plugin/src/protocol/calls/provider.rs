//! Messages of the provider (schemas, its configuration, checks of configurations), of data sources, ephemeral
//! resources and functions, and of plans of actions.

use std::collections::HashMap;

use super::{Answered, Call, Message as _, convert};
use crate::{
    framework::{CallError, Diagnostics, OfferKind, Offering, Provider, Server, Walk, server::ConfigureRequest},
    protocol::tfplugin6::{
        ActionSchema, ClientCapabilities, Deferred, Function, FunctionError, ServerCapabilities, call_function,
        close_ephemeral_resource, configure_provider, deferred::Reason, get_functions, get_metadata,
        get_provider_schema, get_resource_identity_schemas, open_ephemeral_resource, plan_action, read_data_source,
        renew_ephemeral_resource, validate_action_config, validate_data_resource_config,
        validate_ephemeral_resource_config, validate_list_resource_config, validate_provider_config,
        validate_resource_config,
    },
};

/// A map or list of the answer, from all offers of a kind.
fn all<P: Provider, T, C: FromIterator<T>>(
    server: &Server<P>,
    kind: OfferKind,
    make: impl Fn(String, &Offering) -> T,
) -> C {
    server.registry().of(kind).map(|entry| make(entry.name.to_owned(), entry)).collect()
}

/// The functions with their signatures.
fn functions<P: Provider>(server: &Server<P>) -> HashMap<String, Function> {
    let signatures = server.registry().signatures();
    signatures.map(|(name, signature)| (name.to_owned(), convert::function(signature))).collect()
}

impl Call for get_metadata::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        use get_metadata::{
            ActionMetadata, DataSourceMetadata, EphemeralMetadata, FunctionMetadata, ListResourceMetadata,
            ResourceMetadata,
        };
        let response = get_metadata::Response {
            server_capabilities: Some(capabilities()),
            resources: all(server, OfferKind::Resource, |type_name, _| ResourceMetadata { type_name }),
            data_sources: all(server, OfferKind::DataSource, |type_name, _| DataSourceMetadata { type_name }),
            ephemeral_resources: all(server, OfferKind::EphemeralResource, |type_name, _| EphemeralMetadata {
                type_name,
            }),
            list_resources: all(server, OfferKind::ListResource, |type_name, _| ListResourceMetadata { type_name }),
            actions: all(server, OfferKind::Action, |type_name, _| ActionMetadata { type_name }),
            functions: all(server, OfferKind::Function, |name, _| FunctionMetadata { name }),
            ..Self::Response::default()
        };
        Ok((response, Diagnostics::new()))
    }
}

/// Called at most once in a process.
impl Call for get_provider_schema::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let schemas = |kind| all(server, kind, |name, entry| (name, convert::schema(&entry.schema)));
        let response = get_provider_schema::Response {
            provider: Some(convert::schema(server.schema())),
            resource_schemas: schemas(OfferKind::Resource),
            data_source_schemas: schemas(OfferKind::DataSource),
            ephemeral_resource_schemas: schemas(OfferKind::EphemeralResource),
            list_resource_schemas: schemas(OfferKind::ListResource),
            action_schemas: all(server, OfferKind::Action, |name, entry| {
                (name, ActionSchema { schema: Some(convert::schema(&entry.schema)) })
            }),
            functions: functions(server),
            server_capabilities: Some(capabilities()),
            ..Self::Response::default()
        };
        Ok((response, Diagnostics::new()))
    }
}

/// OpenTofu calls this on configured providers; the functions do not depend on the configuration.
impl Call for get_functions::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let response = get_functions::Response { functions: functions(server), ..Self::Response::default() };
        Ok((response, Diagnostics::new()))
    }
}

impl Call for get_resource_identity_schemas::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resources =
            server.registry().of(OfferKind::Resource).filter_map(|entry| Some((entry, entry.identity.as_ref()?)));
        let schemas = resources.map(|(entry, schema)| (entry.name.to_owned(), convert::identity_schema(schema)));
        let identity_schemas = schemas.collect();
        Ok((get_resource_identity_schemas::Response { identity_schemas, diagnostics: Vec::new() }, Diagnostics::new()))
    }
}

/// Destroys are planned, configurations are generated, and a core that has the schemas need not read them in each
/// process (plugin protocol, capabilities). Moves from other types are refused with a more specific error than the
/// core's own.
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
            walk: if self.client_capabilities.is_some_and(|client| client.deferral_allowed) {
                Walk::Apply
            } else {
                Walk::Unknown
            },
        };
        Ok((Self::Response::default(), server.configure(request).await))
    }
}

macro_rules! validate {
    ($($message:ident: $find:ident, $write_only_allowed:expr;)*) => {
        $(impl Call for $message::Request {
            async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
                let write_only_allowed: fn(&Self) -> bool = $write_only_allowed;
                let entry = server.registry().$find(self.subject())?;
                let config = convert::read(&entry.ty, self.config.as_ref(), "configuration")?;
                Ok((Self::Response::default(), entry.validate(&config, write_only_allowed(self))))
            }
        })*
    };
}

validate! {
    validate_action_config: find_action, |_| true;
    validate_data_resource_config: find_data_source, |_| true;
    validate_ephemeral_resource_config: find_ephemeral_resource, |_| true;
    validate_list_resource_config: find_list, |_| true;
    // Cores before 1.11 would store write-only values in a plan; only this call has the capability that excludes them.
    validate_resource_config: find_resource, |request| {
        request.client_capabilities.is_some_and(|client| client.write_only_attributes_allowed)
    };
}

/// The deferral of a call, if the provider's configuration is still unknown and the core allows it.
fn deferred<P: Provider>(server: &Server<P>, client: Option<ClientCapabilities>) -> Option<Deferred> {
    let is_deferred = server.defers(client.is_some_and(|client| client.deferral_allowed));
    is_deferred.then(|| Deferred { reason: Reason::ProviderConfigUnknown.into() })
}

impl Call for read_data_source::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let source = server.registry().find_data_source(&self.type_name)?;
        let config = convert::read(&source.ty, self.config.as_ref(), "configuration")?;
        let deferred = deferred(server, self.client_capabilities);
        let (state, mut diagnostics) = match deferred {
            Some(_) => (config, Diagnostics::new()),
            None => server.read_data_source(source, &config).await?,
        };
        let state = convert::written(&source.ty, &state, &mut diagnostics);
        Ok((read_data_source::Response { state, deferred, diagnostics: Vec::new() }, diagnostics))
    }
}

impl Call for open_ephemeral_resource::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let resource = server.registry().find_ephemeral_resource(&self.type_name)?;
        let config = convert::read(&resource.ty, self.config.as_ref(), "configuration")?;
        let deferred = deferred(server, self.client_capabilities);
        let (result, key, mut diagnostics) = match deferred {
            Some(_) => (server.expected(resource, &config), String::new(), Diagnostics::new()),
            None => server.open(resource, &config).await?,
        };
        let response = open_ephemeral_resource::Response {
            result: convert::written(&resource.ty, &result, &mut diagnostics),
            private: Some(key.into_bytes()),
            deferred,
            ..Self::Response::default()
        };
        Ok((response, diagnostics))
    }
}

/// No open requests a renewal. The object stays open until its close.
impl Call for renew_ephemeral_resource::Request {
    async fn answer<P: Provider>(&self, _: &Server<P>) -> Answered<Self> {
        let private = self.private.clone();
        Ok((renew_ephemeral_resource::Response { private, ..Self::Response::default() }, Diagnostics::new()))
    }
}

impl Call for close_ephemeral_resource::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        server.close(&String::from_utf8_lossy(self.private.as_deref().unwrap_or_default()));
        Ok((Self::Response::default(), Diagnostics::new()))
    }
}

impl Call for plan_action::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let action = server.registry().find_action(&self.action_type)?;
        let config = convert::read(&action.ty, self.config.as_ref(), "configuration")?;
        let deferred = deferred(server, self.client_capabilities);
        let diagnostics = match deferred {
            Some(_) => Diagnostics::new(),
            None => server.plan_action(action, &config).await?,
        };
        Ok((plan_action::Response { deferred, ..Self::Response::default() }, diagnostics))
    }
}

impl Call for call_function::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let response = call(self, server).unwrap_or_else(|CallError { text, argument }| {
            let function_argument = argument.and_then(|argument| i64::try_from(argument).ok());
            call_function::Response { result: None, error: Some(FunctionError { text, function_argument }) }
        });
        Ok((response, Diagnostics::new()))
    }
}

fn call<P: Provider>(
    request: &call_function::Request,
    server: &Server<P>,
) -> Result<call_function::Response, CallError> {
    let function = server.registry().find_function(&request.name).map_err(|_| {
        CallError::whole(format!("No such function: this version of the provider has no {:?}", request.name))
    })?;
    let signature = function.signature();
    let mut arguments = Vec::with_capacity(request.arguments.len());
    for (position, argument) in request.arguments.iter().enumerate() {
        let parameter = signature
            .parameters
            .get(position)
            .ok_or_else(|| CallError::whole(format!("it takes {} arguments", signature.parameters.len())))?;
        // An empty value is null, in OpenTofu's form (plugin protocol, functions).
        let argument = convert::argument(&parameter.ty, argument);
        arguments.push(argument.map_err(|text| CallError { text, argument: Some(position) })?);
    }
    let result = function.call(arguments)?;
    let mut diagnostics = Diagnostics::new();
    let result = convert::written(&signature.returns, &result, &mut diagnostics);
    match diagnostics.into_iter().next() {
        Some(bug) => Err(CallError::whole(bug.detail)),
        None => Ok(call_function::Response { result, error: None }),
    }
}
