//! The services that a plugin host expects beside the plugin itself (plugin protocol, other gRPC services).

use std::future::ready;

use futures_util::{Stream, StreamExt, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming, codegen::BoxStream, service::Routes};

use self::{
    health::{
        HealthCheckRequest, HealthCheckResponse,
        health_check_response::ServingStatus,
        health_server::{Health, HealthServer},
    },
    plugin::{
        ConnInfo, Empty, StdioData,
        grpc_broker_server::{GrpcBroker, GrpcBrokerServer},
        grpc_controller_server::{GrpcController, GrpcControllerServer},
        grpc_stdio_server::{GrpcStdio, GrpcStdioServer},
    },
};

/// Generated from `proto/plugin.proto`.
#[expect(
    clippy::allow_attributes_without_reason,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
pub(super) mod plugin {
    tonic::include_proto!("plugin");
}

/// Generated from `proto/health.proto`.
#[expect(
    clippy::allow_attributes_without_reason,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
mod health {
    tonic::include_proto!("grpc.health.v1");
}

/// Adds the host's services to `routes`. The Shutdown call cancels `stopping`, and a cancelled `stopping` ends the
/// streams they hold open, so that the server can finish without waiting for the client to close them.
pub(super) fn add(routes: Routes, stopping: &CancellationToken) -> Routes {
    routes
        .add_service(GrpcControllerServer::new(Controller(stopping.clone())))
        .add_service(GrpcStdioServer::new(Stdio(stopping.clone())))
        .add_service(GrpcBrokerServer::new(Broker(stopping.clone())))
        .add_service(HealthServer::new(Serving))
}

/// A stream that says nothing more, and ends when the process is going to.
fn silence<T: Send + 'static>(stopping: &CancellationToken) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
    stream::pending().take_until(stopping.clone().cancelled_owned())
}

/// Ends the process when asked to. Without it the host waits two seconds and kills.
#[derive(Debug)]
struct Controller(CancellationToken);

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        tracing::debug!("the host asked for the shutdown");
        self.0.cancel();
        Ok(Response::new(Empty {}))
    }
}

/// Would forward what the plugin prints; nothing is printed, as the host takes it for a mistake.
#[derive(Debug)]
struct Stdio(CancellationToken);

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<BoxStream<StdioData>>, Status> {
        Ok(Response::new(Box::pin(silence(&self.0))))
    }
}

/// Would open further connections; the host keeps the stream open for as long as it lives.
#[derive(Debug)]
struct Broker(CancellationToken);

#[tonic::async_trait]
impl GrpcBroker for Broker {
    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<BoxStream<ConnInfo>>, Status> {
        // What the host says is taken off the wire and passed over; our half ends with its half.
        let unanswered = request.into_inner().filter_map(|_| ready(None));
        let unanswered = unanswered.take_until(self.0.clone().cancelled_owned());
        Ok(Response::new(Box::pin(unanswered)))
    }
}

/// The standard health service, for the name "plugin" that go-plugin asks for. It is well while the process lives.
#[derive(Debug)]
struct Serving;

#[tonic::async_trait]
impl Health for Serving {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        if matches!(request.get_ref().service.as_str(), "" | "plugin") {
            Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
        } else {
            Err(Status::not_found("unknown service"))
        }
    }

    /// Hosts do not watch.
    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<BoxStream<HealthCheckResponse>>, Status> {
        Err(Status::unimplemented("ask with Check"))
    }
}
