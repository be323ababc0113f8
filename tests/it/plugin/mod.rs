//! The handshake with Terraform, through a real process.

mod end;
mod foreign;
mod quotes;
mod stall;
mod tls;

use std::process::{Command, Stdio};

use serde_json::Value;
use terraform_plugin::{
    plugin::proto::health::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient},
    testing::{COOKIE, ClientIdentity, PluginProcess},
};
use tokio::net::UnixStream;
use tonic::Code;

use crate::support::plugin::BINARY;

/// The plugin's health check.
pub(crate) async fn check(channel: tonic::transport::Channel) -> ServingStatus {
    let request = HealthCheckRequest { service: "plugin".to_owned() };
    let answer = HealthClient::new(channel).check(request).await.unwrap();
    answer.into_inner().status()
}

#[tokio::test]
async fn the_handshake_line_has_six_fields_and_a_certificate_without_padding() {
    let plugin = PluginProcess::start(BINARY).await;
    let [core, version, network, address, protocol, certificate] = plugin.handshake.fields.as_slice() else {
        panic!("{:?}", plugin.handshake);
    };
    assert_eq!([core, version, network, protocol], ["1", "6", "unix", "grpc"]);
    assert!(address.contains("/plugin"), "{address}");
    assert!(!certificate.contains('='), "{certificate}");
    // A DER sequence, not a PEM text.
    let der = plugin.handshake.certificate.as_ref().unwrap();
    assert_eq!(der.first(), Some(&0x30));

    assert_eq!(check(plugin.connect().await).await, ServingStatus::Serving);
    let ended = plugin.shut_down().await;
    assert_eq!(ended.stdout, "", "nothing follows the handshake line");
    assert_eq!(ended.stderr, "", "silence is a feature");
}

#[tokio::test]
async fn without_a_client_certificate_nothing_is_encrypted() {
    let plugin = PluginProcess::launch(PluginProcess::command(BINARY), None).await;
    assert_eq!(plugin.handshake.fields.len(), 6);
    assert!(plugin.handshake.certificate.is_none());
    assert_eq!(check(plugin.connect().await).await, ServingStatus::Serving);
    plugin.shut_down().await;
}

#[tokio::test]
async fn version_six_is_chosen_whatever_is_offered() {
    for offered in ["6,5", "5,6", "", "4,5"] {
        let mut command = PluginProcess::command(BINARY);
        command.env("PLUGIN_PROTOCOL_VERSIONS", offered);
        let plugin = PluginProcess::launch(command, None).await;
        assert_eq!(plugin.handshake.fields.get(1).unwrap(), "6", "{offered:?}");
        plugin.shut_down().await;
    }
}

#[test]
fn without_the_cookie_a_person_gets_help() {
    for cookie in [None, Some("nonsense")] {
        let mut command = Command::new(BINARY);
        command.env_remove(COOKIE.0).stdin(Stdio::null());
        if let Some(cookie) = cookie {
            command.env(COOKIE.0, cookie);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let help = String::from_utf8(output.stderr).unwrap();
        assert!(help.contains("This binary is a plugin"), "{help}");
        assert!(help.contains("not meant to be executed directly"), "{help}");
        assert!(help.contains("Usage:"), "{help}");
    }
}

#[test]
fn a_start_that_fails_says_why_and_leaves_no_handshake() {
    let output =
        Command::new(BINARY).env(COOKIE.0, COOKIE.1).env("PLUGIN_CLIENT_CERT", "no certificate").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.contains("PLUGIN_CLIENT_CERT"), "{reason}");
}

#[tokio::test]
async fn only_known_services_are_healthy() {
    let plugin = PluginProcess::start(BINARY).await;
    let request = HealthCheckRequest { service: "tfplugin5.Provider".to_owned() };
    let mut client = HealthClient::new(plugin.connect().await);
    let refusal = client.check(request).await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound);
    plugin.shut_down().await;
}

#[tokio::test]
async fn a_probe_that_says_nothing_is_passed_over() {
    for identity in [Some(ClientIdentity::generate()), None] {
        let plugin = PluginProcess::launch(PluginProcess::command(BINARY), identity).await;
        for _ in 0..10 {
            drop(UnixStream::connect(plugin.handshake.socket()).await.unwrap());
        }
        assert_eq!(check(plugin.connect().await).await, ServingStatus::Serving);
        assert_eq!(plugin.shut_down().await.stderr, "");
    }
}

#[tokio::test]
async fn what_is_logged_is_hclog() {
    let mut command = PluginProcess::command(BINARY);
    command.env("TF_LOG", "trace");
    let plugin = PluginProcess::launch(command, Some(ClientIdentity::generate())).await;
    let ended = plugin.shut_down().await;
    assert!(!ended.stderr.is_empty());
    for line in ended.stderr.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for key in ["@level", "@message", "@module", "@timestamp"] {
            assert!(line[key].is_string(), "{line}");
        }
        // Libraries log warnings and errors only.
        assert!(line["@module"].as_str().unwrap().starts_with("provider"), "{line}");
        let fraction = line["@timestamp"].as_str().unwrap().split('.').nth(1);
        assert_eq!(fraction.unwrap().len(), "123456Z".len(), "{line}");
    }
}
