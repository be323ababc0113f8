//! The services that a plugin host expects beside the plugin itself (plugin protocol, other gRPC services).

use std::future::ready;

use futures_util::{Stream, StreamExt, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming, codegen::BoxStream, service::Routes};

use super::{
    generated::{
        health::health_server::HealthServer,
        plugin::{
            ConnInfo, Empty, StdioData,
            grpc_broker_server::{GrpcBroker, GrpcBrokerServer},
            grpc_controller_server::{GrpcController, GrpcControllerServer},
            grpc_stdio_server::{GrpcStdio, GrpcStdioServer},
        },
    },
    health::Health,
};

/// Adds the host's services to `routes`. The Shutdown call cancels `stop`, and a cancelled `stop` ends the streams
/// they hold open, so that the server can finish without waiting for the client to close them.
pub(super) fn add(routes: Routes, stop: &CancellationToken) -> Routes {
    routes
        .add_service(GrpcControllerServer::new(Controller(stop.clone())))
        .add_service(GrpcStdioServer::new(Stdio(stop.clone())))
        .add_service(GrpcBrokerServer::new(Broker(stop.clone())))
        .add_service(HealthServer::new(Health(stop.clone())))
}

/// A stream that says nothing more, and ends when the process is going to.
pub(super) fn silence<T: Send + 'static>(
    stop: &CancellationToken,
) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
    stream::pending().take_until(stop.clone().cancelled_owned())
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

#[cfg(test)]
mod tests;
