//! Messages of data sources, ephemeral resources and functions, and the plans of actions.

use super::{Answered, Call, convert};
use crate::{
    framework::{CallError, Diagnostics, Kind, Provider, Server},
    protocol::tfplugin6::{
        ClientCapabilities, Deferred, FunctionError, call_function, close_ephemeral_resource, deferred::Reason,
        open_ephemeral_resource, plan_action, read_data_source, renew_ephemeral_resource,
    },
};

/// Why the core is asked to come again, if it is: the provider's configuration is not known yet.
fn deferred<P: Provider>(server: &Server<P>, client: Option<ClientCapabilities>) -> Option<Deferred> {
    let is_deferred = server.defers(client.is_some_and(|client| client.deferral_allowed));
    is_deferred.then(|| Deferred { reason: Reason::ProviderConfigUnknown.into() })
}

impl Call for read_data_source::Request {
    async fn answer<P: Provider>(&self, server: &Server<P>) -> Answered<Self> {
        let source = server.registry().find(Kind::DataSource, &self.type_name)?;
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
        let resource = server.registry().find(Kind::EphemeralResource, &self.type_name)?;
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

/// No open asks for a renewal. What is open stays so, and its close finds it.
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
        let action = server.registry().find(Kind::Action, &self.action_type)?;
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
    let found = server.registry().find(Kind::Function, &request.name).ok();
    let (function, signature) = found.and_then(|entry| Some((entry, entry.signature.as_ref()?))).ok_or_else(|| {
        CallError::whole(format!("No such function: this version of the provider has no {:?}", request.name))
    })?;
    let mut arguments = Vec::with_capacity(request.arguments.len());
    for (position, argument) in request.arguments.iter().enumerate() {
        let parameter = signature
            .parameter(position)
            .ok_or_else(|| CallError::whole(format!("it takes {} arguments", signature.parameters.len())))?;
        // An empty value is null: so OpenTofu sends it (plugin protocol, functions).
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
