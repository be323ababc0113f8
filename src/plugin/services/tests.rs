//! The services beside the provider's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tonic::Code;

use super::*;
use crate::plugin::generated::{
    health::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient},
    plugin::{
        grpc_broker_client::GrpcBrokerClient, grpc_controller_client::GrpcControllerClient,
        grpc_stdio_client::GrpcStdioClient,
    },
};

fn health(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test]
async fn shutdown_is_answered_and_stops_the_process() {
    let stop = CancellationToken::new();
    let mut client = GrpcControllerClient::new(GrpcControllerServer::new(Controller(stop.clone())));
    client.shutdown(Empty {}).await.unwrap();
    assert!(stop.is_cancelled());
    // Asking twice is no mistake.
    client.shutdown(Empty {}).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stdio_is_silent_and_ends_with_the_process() {
    let stop = CancellationToken::new();
    let mut client = GrpcStdioClient::new(GrpcStdioServer::new(Stdio(stop.clone())));
    let mut output = client.stream_stdio(()).await.unwrap().into_inner();
    let hour = std::time::Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, output.message()).await.is_err());
    stop.cancel();
    assert_eq!(output.message().await.unwrap(), None);
}

#[tokio::test]
async fn the_broker_takes_what_it_is_told_and_ends_with_the_process() {
    let stop = CancellationToken::new();
    let mut client = GrpcBrokerClient::new(GrpcBrokerServer::new(Broker(stop.clone())));
    let told = stream::iter([ConnInfo::default()]).chain(stream::pending());
    let mut answers = client.start_stream(told).await.unwrap().into_inner();
    stop.cancel();
    assert_eq!(answers.message().await.unwrap(), None);
}

#[tokio::test]
async fn the_broker_ends_with_the_client() {
    let stop = CancellationToken::new();
    let mut client = GrpcBrokerClient::new(GrpcBrokerServer::new(Broker(stop)));
    let told = stream::iter([ConnInfo::default()]);
    let mut answers = client.start_stream(told).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap(), None);
}

#[tokio::test]
async fn the_plugin_and_the_server_as_a_whole_are_healthy() {
    let mut client = HealthClient::new(HealthServer::new(Health(CancellationToken::new())));
    for service in ["", "plugin"] {
        let answer = client.check(health(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    let refusal = client.check(health("tfplugin6.Provider")).await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound);
}

#[tokio::test]
async fn a_watch_tells_the_status_at_once_and_ends_with_the_process() {
    let stop = CancellationToken::new();
    let mut client = HealthClient::new(HealthServer::new(Health(stop.clone())));
    let statuses = [("plugin", ServingStatus::Serving), ("other", ServingStatus::ServiceUnknown)];
    let mut watches = Vec::new();
    for (service, status) in statuses {
        let mut watch = client.watch(health(service)).await.unwrap().into_inner();
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!(first.status(), status);
        watches.push(watch);
    }
    stop.cancel();
    for mut watch in watches {
        assert_eq!(watch.message().await.unwrap(), None);
    }
}
