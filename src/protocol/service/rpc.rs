//! The table of the provider's gRPC methods.

use std::{future::Future, pin::Pin, result};

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait, codegen::BoxStream};

use super::{
    Service,
    call::{Call, run},
    stream::{StreamCall, stream},
};
use crate::{
    framework::{Provider, server::Caller},
    protocol::tfplugin6::{
        apply_resource_change, call_function, close_ephemeral_resource, configure_provider, generate_resource_config,
        get_functions, get_metadata, get_provider_schema, get_resource_identity_schemas, import_resource_state,
        invoke_action, list_resource, move_resource_state, open_ephemeral_resource, plan_action, plan_resource_change,
        provider_server::Provider as Rpc, read_data_source, read_resource, renew_ephemeral_resource, stop_provider,
        upgrade_resource_identity, upgrade_resource_state, validate_action_config, validate_data_resource_config,
        validate_ephemeral_resource_config, validate_list_resource_config, validate_provider_config,
        validate_resource_config,
    },
};

type Result<T> = result::Result<Response<T>, Status>;

impl<P: Provider> Service<P> {
    async fn call<C: Call>(&self, request: Request<C>) -> Result<C::Response> {
        let caller = self.caller(&request);
        Ok(Response::new(run(self.server.clone(), &self.work, caller, request.into_inner()).await))
    }

    /// Answers a call with a stream of events.
    fn stream<C: StreamCall>(&self, request: Request<C>) -> Result<BoxStream<C::Event>> {
        let caller = self.caller(&request);
        Ok(Response::new(Box::pin(stream(self.server.clone(), &self.work, caller, request.into_inner()))))
    }

    fn caller<C>(&self, request: &Request<C>) -> Caller {
        self.server.caller(request.extensions().get::<CancellationToken>())
    }
}

/// Calls with one answer, each in the form that `async_trait` gives it.
macro_rules! calls {
    ($($name:ident)*) => {
        $(fn $name<'life0, 'async_trait>(
            &'life0 self,
            request: Request<$name::Request>,
        ) -> Pin<Box<dyn Future<Output = Result<$name::Response>> + Send + 'async_trait>>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(self.call(request))
        })*
    };
}

/// The calls for what this provider has. Cores make no others: no schema offers state stores.
#[async_trait]
impl<P: Provider> Rpc for Service<P> {
    calls! {
        apply_resource_change call_function close_ephemeral_resource configure_provider generate_resource_config
        get_functions get_metadata get_provider_schema get_resource_identity_schemas import_resource_state
        move_resource_state open_ephemeral_resource plan_action plan_resource_change read_data_source read_resource
        renew_ephemeral_resource upgrade_resource_identity upgrade_resource_state validate_action_config
        validate_data_resource_config validate_ephemeral_resource_config validate_list_resource_config
        validate_provider_config validate_resource_config
    }

    /// At once, and not in a task: the core holds a lock while it asks (plugin protocol, StopProvider).
    async fn stop_provider(&self, _: Request<stop_provider::Request>) -> Result<stop_provider::Response> {
        self.server.stop();
        tracing::debug!(tf_rpc = "StopProvider", "answered");
        Ok(Response::new(stop_provider::Response::default()))
    }

    async fn list_resource(&self, request: Request<list_resource::Request>) -> Result<BoxStream<list_resource::Event>> {
        self.stream(request)
    }

    async fn invoke_action(&self, request: Request<invoke_action::Request>) -> Result<BoxStream<invoke_action::Event>> {
        self.stream(request)
    }
}
