//! The standard health service, for the name "plugin" that go-plugin asks for.

use std::future::ready;

use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, codegen::BoxStream};

use super::{
    generated::health::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_server},
    services::silence,
};

/// Serves while the process does; the token ends the streams of those who watch.
#[derive(Debug)]
pub(super) struct Health(pub(super) CancellationToken);

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        if knows(request.get_ref()) {
            Ok(Response::new(answer(ServingStatus::Serving)))
        } else {
            Err(Status::not_found("unknown service"))
        }
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<BoxStream<HealthCheckResponse>>, Status> {
        // Unlike a check, a watch of an unknown service is answered: it may come up later.
        let status = if knows(request.get_ref()) { ServingStatus::Serving } else { ServingStatus::ServiceUnknown };
        let answers = stream::once(ready(Ok(answer(status)))).chain(silence(&self.0));
        Ok(Response::new(Box::pin(answers)))
    }
}

fn knows(request: &HealthCheckRequest) -> bool {
    matches!(request.service.as_str(), "" | "plugin")
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
