//! The clients that the plugin accepts, through a real process.

use std::io;

use rustls::{
    AlertDescription, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};
use terraform_plugin::testing::{ClientIdentity, PluginProcess, client_config};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use crate::{plugin::check, support::plugin::BINARY};

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// The alert with which the plugin refuses `identity`.
async fn refusal(
    plugin: &PluginProcess,
    identity: Option<&ClientIdentity>,
    version: &'static SupportedProtocolVersion,
) -> AlertDescription {
    let server = plugin.handshake.certificate.as_ref().unwrap();
    let config = client_config(server, identity, &[version]);
    // In TLS 1.3 the client is done before the server has checked its certificate.
    let error = match plugin.tls(config).await {
        Err(error) => error,
        Ok(mut stream) => stream.read_u8().await.unwrap_err(),
    };
    alert(&error).unwrap_or_else(|| panic!("{error:?}"))
}

fn alert(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

#[tokio::test]
async fn the_right_client_is_let_in_and_http2_negotiated() {
    let plugin = PluginProcess::start(BINARY).await;
    let server = plugin.handshake.certificate.as_ref().unwrap();
    for version in VERSIONS {
        let config = client_config(server, plugin.identity.as_ref(), &[version]);
        let stream = plugin.tls(config).await.unwrap();
        let (_, session) = stream.get_ref();
        assert_eq!(session.alpn_protocol(), Some(b"h2".as_slice()));
        assert_eq!(session.protocol_version(), Some(version.version));
    }
    check(plugin.connect().await).await;
    assert_eq!(plugin.shut_down().await.stderr, "");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let plugin = PluginProcess::start(BINARY).await;
    assert_eq!(refusal(&plugin, None, &TLS13).await, AlertDescription::CertificateRequired);
    assert_eq!(refusal(&plugin, None, &TLS12).await, AlertDescription::CertificateRequired);
    still_serves(plugin, 2).await;
}

#[tokio::test]
async fn a_client_with_another_certificate_is_refused() {
    let plugin = PluginProcess::start(BINARY).await;
    let other = ClientIdentity::generate();
    for version in VERSIONS {
        assert_eq!(refusal(&plugin, Some(&other), version).await, AlertDescription::AccessDenied);
    }
    still_serves(plugin, 2).await;
}

#[tokio::test]
async fn a_client_that_has_the_certificate_but_not_its_key_is_refused() {
    let plugin = PluginProcess::start(BINARY).await;
    let right = plugin.identity.as_ref().unwrap();
    let thief = right.with_key_of(&ClientIdentity::generate());
    for version in VERSIONS {
        assert_eq!(refusal(&plugin, Some(&thief), version).await, AlertDescription::DecryptError);
    }
    still_serves(plugin, 2).await;
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_is_refused() {
    let plugin = PluginProcess::start(BINARY).await;
    let mut stream = UnixStream::connect(plugin.handshake.socket()).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer.first(), Some(&TLS_ALERT), "{answer:?}");
    still_serves(plugin, 1).await;
}

/// The type of a TLS record with an alert.
const TLS_ALERT: u8 = 21;

/// The right client connects after those that were `refused`, each of which is logged as a warning.
async fn still_serves(plugin: PluginProcess, refused: usize) {
    check(plugin.connect().await).await;
    let log = plugin.shut_down().await.stderr;
    let warnings = log.lines().filter(|line| line.contains("refused a connection") && line.contains("\"warn\""));
    assert_eq!(warnings.count(), refused, "{log}");
}
