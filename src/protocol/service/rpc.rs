use std::result;

use tokio_stream::Once;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{
    Service,
    call::{Call, run},
    stream::{EventStream, StreamCall, stream},
};
use crate::{
    framework::Provider,
    protocol::tfplugin6::{
        apply_resource_change, call_function, close_ephemeral_resource, configure_provider, configure_state_store,
        delete_state, generate_resource_config, get_functions, get_metadata, get_provider_schema,
        get_resource_identity_schemas, get_states, import_resource_state, invoke_action, list_resource, lock_state,
        move_resource_state, open_ephemeral_resource, plan_action, plan_resource_change,
        provider_server::Provider as Rpc, read_data_source, read_resource, read_state_bytes, renew_ephemeral_resource,
        stop_provider, unlock_state, upgrade_resource_identity, upgrade_resource_state, validate_action_config,
        validate_data_resource_config, validate_ephemeral_resource_config, validate_list_resource_config,
        validate_provider_config, validate_resource_config, validate_state_store, write_state_bytes,
    },
};

type Result<T> = result::Result<Response<T>, Status>;

impl<P: Provider> Service<P> {
    async fn call<C: Call>(&self, request: Request<C>) -> Result<C::Response> {
        let response = run(self.driver.clone(), &self.work, request.into_inner()).await;
        Ok(Response::new(response))
    }

    /// Answers a call with a stream of events.
    fn stream<C: StreamCall>(&self, request: Request<C>) -> Result<EventStream<C::Event>> {
        Ok(Response::new(stream(self.driver.clone(), &self.work, request.into_inner())))
    }

    /// Answers a call that takes a stream of answers with one.
    async fn single<C: Call>(&self, request: Request<C>) -> Result<Once<result::Result<C::Response, Status>>> {
        let response = run(self.driver.clone(), &self.work, request.into_inner()).await;
        Ok(Response::new(tokio_stream::once(Ok(response))))
    }
}

/// All calls of the protocol, in its order.
#[async_trait]
impl<P: Provider> Rpc for Service<P> {
    async fn get_metadata(&self, request: Request<get_metadata::Request>) -> Result<get_metadata::Response> {
        self.call(request).await
    }

    async fn get_provider_schema(
        &self,
        request: Request<get_provider_schema::Request>,
    ) -> Result<get_provider_schema::Response> {
        self.call(request).await
    }

    async fn get_resource_identity_schemas(
        &self,
        request: Request<get_resource_identity_schemas::Request>,
    ) -> Result<get_resource_identity_schemas::Response> {
        self.call(request).await
    }

    async fn validate_provider_config(
        &self,
        request: Request<validate_provider_config::Request>,
    ) -> Result<validate_provider_config::Response> {
        self.call(request).await
    }

    async fn configure_provider(
        &self,
        request: Request<configure_provider::Request>,
    ) -> Result<configure_provider::Response> {
        self.call(request).await
    }

    /// At once, and not in a task: the core holds a lock while it asks (plugin protocol, StopProvider).
    async fn stop_provider(&self, _: Request<stop_provider::Request>) -> Result<stop_provider::Response> {
        self.driver.server.stop();
        tracing::debug!(tf_rpc = "StopProvider", "answered");
        Ok(Response::new(stop_provider::Response::default()))
    }

    async fn validate_resource_config(
        &self,
        request: Request<validate_resource_config::Request>,
    ) -> Result<validate_resource_config::Response> {
        self.call(request).await
    }

    async fn upgrade_resource_state(
        &self,
        request: Request<upgrade_resource_state::Request>,
    ) -> Result<upgrade_resource_state::Response> {
        self.call(request).await
    }

    async fn upgrade_resource_identity(
        &self,
        request: Request<upgrade_resource_identity::Request>,
    ) -> Result<upgrade_resource_identity::Response> {
        self.call(request).await
    }

    async fn read_resource(&self, request: Request<read_resource::Request>) -> Result<read_resource::Response> {
        self.call(request).await
    }

    async fn plan_resource_change(
        &self,
        request: Request<plan_resource_change::Request>,
    ) -> Result<plan_resource_change::Response> {
        self.call(request).await
    }

    async fn apply_resource_change(
        &self,
        request: Request<apply_resource_change::Request>,
    ) -> Result<apply_resource_change::Response> {
        self.call(request).await
    }

    async fn import_resource_state(
        &self,
        request: Request<import_resource_state::Request>,
    ) -> Result<import_resource_state::Response> {
        self.call(request).await
    }

    async fn move_resource_state(
        &self,
        request: Request<move_resource_state::Request>,
    ) -> Result<move_resource_state::Response> {
        self.call(request).await
    }

    async fn generate_resource_config(
        &self,
        request: Request<generate_resource_config::Request>,
    ) -> Result<generate_resource_config::Response> {
        self.call(request).await
    }

    async fn validate_data_resource_config(
        &self,
        request: Request<validate_data_resource_config::Request>,
    ) -> Result<validate_data_resource_config::Response> {
        self.call(request).await
    }

    async fn read_data_source(
        &self,
        request: Request<read_data_source::Request>,
    ) -> Result<read_data_source::Response> {
        self.call(request).await
    }

    async fn validate_ephemeral_resource_config(
        &self,
        request: Request<validate_ephemeral_resource_config::Request>,
    ) -> Result<validate_ephemeral_resource_config::Response> {
        self.call(request).await
    }

    async fn open_ephemeral_resource(
        &self,
        request: Request<open_ephemeral_resource::Request>,
    ) -> Result<open_ephemeral_resource::Response> {
        self.call(request).await
    }

    async fn renew_ephemeral_resource(
        &self,
        request: Request<renew_ephemeral_resource::Request>,
    ) -> Result<renew_ephemeral_resource::Response> {
        self.call(request).await
    }

    async fn close_ephemeral_resource(
        &self,
        request: Request<close_ephemeral_resource::Request>,
    ) -> Result<close_ephemeral_resource::Response> {
        self.call(request).await
    }

    async fn get_functions(&self, request: Request<get_functions::Request>) -> Result<get_functions::Response> {
        self.call(request).await
    }

    async fn call_function(&self, request: Request<call_function::Request>) -> Result<call_function::Response> {
        self.call(request).await
    }

    async fn validate_list_resource_config(
        &self,
        request: Request<validate_list_resource_config::Request>,
    ) -> Result<validate_list_resource_config::Response> {
        self.call(request).await
    }

    type ListResourceStream = EventStream<list_resource::Event>;

    async fn list_resource(&self, request: Request<list_resource::Request>) -> Result<Self::ListResourceStream> {
        self.stream(request)
    }

    async fn validate_state_store_config(
        &self,
        request: Request<validate_state_store::Request>,
    ) -> Result<validate_state_store::Response> {
        self.call(request).await
    }

    async fn configure_state_store(
        &self,
        request: Request<configure_state_store::Request>,
    ) -> Result<configure_state_store::Response> {
        self.call(request).await
    }

    type ReadStateBytesStream = Once<result::Result<read_state_bytes::Response, Status>>;

    async fn read_state_bytes(
        &self,
        request: Request<read_state_bytes::Request>,
    ) -> Result<Self::ReadStateBytesStream> {
        self.single(request).await
    }

    /// The first chunk says what is written.
    async fn write_state_bytes(
        &self,
        request: Request<Streaming<write_state_bytes::RequestChunk>>,
    ) -> Result<write_state_bytes::Response> {
        let first = request.into_inner().message().await?.unwrap_or_default();
        self.call(Request::new(first)).await
    }

    async fn lock_state(&self, request: Request<lock_state::Request>) -> Result<lock_state::Response> {
        self.call(request).await
    }

    async fn unlock_state(&self, request: Request<unlock_state::Request>) -> Result<unlock_state::Response> {
        self.call(request).await
    }

    async fn get_states(&self, request: Request<get_states::Request>) -> Result<get_states::Response> {
        self.call(request).await
    }

    async fn delete_state(&self, request: Request<delete_state::Request>) -> Result<delete_state::Response> {
        self.call(request).await
    }

    async fn validate_action_config(
        &self,
        request: Request<validate_action_config::Request>,
    ) -> Result<validate_action_config::Response> {
        self.call(request).await
    }

    async fn plan_action(&self, request: Request<plan_action::Request>) -> Result<plan_action::Response> {
        self.call(request).await
    }

    type InvokeActionStream = EventStream<invoke_action::Event>;

    async fn invoke_action(&self, request: Request<invoke_action::Request>) -> Result<Self::InvokeActionStream> {
        self.stream(request)
    }
}
