//! The gRPC service: the table of its calls, each answered in a task of its own, with its span, its log line and its
//! panics caught.

mod call;

use std::{future::Future, pin::Pin, result, sync::Arc};

use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status, async_trait, codegen::BoxStream, service::Routes};

pub(super) use self::call::{Answer, Answered, Call, Events, Message, StreamCall};
use self::call::{run, stream};
use super::tfplugin6::{
    self, call_function, invoke_action, list_resource,
    provider_server::{Provider as Rpc, ProviderServer},
    stop_provider,
};
use crate::framework::{Diagnostics, Ends, Provider, Server, server::Caller};

/// Largest message either way: what the usual servers take (plugin protocol, sizes and connection).
const LARGEST_MESSAGE: usize = 256 << 20;

/// The service that offers a provider, as routes for a gRPC server.
///
/// `work` counts the calls under way, so that they can be waited for.
///
/// A request may have a `CancellationToken` as an extension, which is cancelled when its caller is gone.
pub fn service<P: Provider>(provider: P, ends: Ends, work: TaskTracker) -> Routes {
    let service = Service { server: Arc::new(Server::new(provider, ends)), work };
    Routes::new(
        ProviderServer::new(service)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE),
    )
}

struct Service<P: Provider> {
    server: Arc<Server<P>>,
    work: TaskTracker,
}

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

/// The calls with one answer that may hold diagnostics: the name of each, and the field of its request that names what
/// it is about. Cores make no others: no schema offers state stores.
macro_rules! calls {
    ($($name:literal $message:ident $(.$subject:ident)?;)*) => {
        $(impl Message for tfplugin6::$message::Request {
            type Response = tfplugin6::$message::Response;
            const NAME: &'static str = $name;

            $(fn subject(&self) -> &str {
                &self.$subject
            })?
        }

        impl Answer for tfplugin6::$message::Response {
            fn say(&mut self, diagnostics: Diagnostics) {
                self.diagnostics.extend(super::convert::diagnostics(diagnostics));
            }
        })*

        #[async_trait]
        impl<P: Provider> Rpc for Service<P> {
            // Each in the form that `async_trait` gives it.
            $(fn $message<'life0, 'async_trait>(
                &'life0 self,
                request: Request<tfplugin6::$message::Request>,
            ) -> Pin<Box<dyn Future<Output = Result<tfplugin6::$message::Response>> + Send + 'async_trait>>
            where
                'life0: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(self.call(request))
            })*

            /// At once, and not in a task: the core holds a lock while it asks (plugin protocol, StopProvider).
            async fn stop_provider(&self, _: Request<stop_provider::Request>) -> Result<stop_provider::Response> {
                self.server.stop();
                tracing::debug!(tf_rpc = "StopProvider", "answered");
                Ok(Response::new(stop_provider::Response::default()))
            }

            async fn call_function(
                &self,
                request: Request<call_function::Request>,
            ) -> Result<call_function::Response> {
                self.call(request).await
            }

            async fn list_resource(
                &self,
                request: Request<list_resource::Request>,
            ) -> Result<BoxStream<list_resource::Event>> {
                self.stream(request)
            }

            async fn invoke_action(
                &self,
                request: Request<invoke_action::Request>,
            ) -> Result<BoxStream<invoke_action::Event>> {
                self.stream(request)
            }
        }
    };
}

calls! {
    "ApplyResourceChange" apply_resource_change.type_name;
    "CloseEphemeralResource" close_ephemeral_resource.type_name;
    "ConfigureProvider" configure_provider;
    "GenerateResourceConfig" generate_resource_config.type_name;
    "GetFunctions" get_functions;
    "GetMetadata" get_metadata;
    "GetProviderSchema" get_provider_schema;
    "GetResourceIdentitySchemas" get_resource_identity_schemas;
    "ImportResourceState" import_resource_state.type_name;
    "MoveResourceState" move_resource_state.target_type_name;
    "OpenEphemeralResource" open_ephemeral_resource.type_name;
    "PlanAction" plan_action.action_type;
    "PlanResourceChange" plan_resource_change.type_name;
    "ReadDataSource" read_data_source.type_name;
    "ReadResource" read_resource.type_name;
    "RenewEphemeralResource" renew_ephemeral_resource.type_name;
    "UpgradeResourceIdentity" upgrade_resource_identity.type_name;
    "UpgradeResourceState" upgrade_resource_state.type_name;
    "ValidateActionConfig" validate_action_config.type_name;
    "ValidateDataResourceConfig" validate_data_resource_config.type_name;
    "ValidateEphemeralResourceConfig" validate_ephemeral_resource_config.type_name;
    "ValidateListResourceConfig" validate_list_resource_config.type_name;
    "ValidateProviderConfig" validate_provider_config;
    "ValidateResourceConfig" validate_resource_config.type_name;
}
