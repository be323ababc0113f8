//! What the plugin reads from its environment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rstest::rstest;

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Environment, Error> {
    Environment::read(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
}

#[test]
fn an_empty_environment_is_a_plain_server() {
    let environment = read(&[]).unwrap();
    assert!(environment.client_certificate.is_none());
    assert!(!environment.multiplex);
    assert_eq!(environment.ports, 0..=0);
    assert!(environment.socket.directory.is_none());
    assert!(environment.socket.temporary.is_none());
}

#[test]
fn empty_values_count_as_none() {
    let environment = read(&[
        ("PLUGIN_CLIENT_CERT", ""),
        ("PLUGIN_MULTIPLEX_GRPC", ""),
        ("PLUGIN_UNIX_SOCKET_DIR", ""),
        ("PLUGIN_UNIX_SOCKET_GROUP", ""),
        ("PLUGIN_MIN_PORT", ""),
        ("TMPDIR", ""),
    ])
    .unwrap();
    assert!(environment.client_certificate.is_none());
    assert!(!environment.multiplex);
    assert!(environment.socket.directory.is_none());
    assert!(environment.socket.group.is_none());
    assert!(environment.socket.temporary.is_none());
}

#[test]
fn every_wish_is_understood() {
    let environment = read(&[
        ("PLUGIN_PROTOCOL_VERSIONS", "6,5"),
        ("PLUGIN_MULTIPLEX_GRPC", "true"),
        ("PLUGIN_UNIX_SOCKET_DIR", "/run/plugins"),
        ("PLUGIN_UNIX_SOCKET_GROUP", "staff"),
        ("PLUGIN_MIN_PORT", "10000"),
        ("PLUGIN_MAX_PORT", "25000"),
        ("TMPDIR", "/var/tmp"),
    ])
    .unwrap();
    assert!(environment.multiplex);
    assert_eq!(environment.ports, 10_000..=25_000);
    assert_eq!(environment.socket.directory, Some(PathBuf::from("/run/plugins")));
    assert_eq!(environment.socket.group.as_deref(), Some("staff"));
    assert_eq!(environment.socket.temporary, Some(PathBuf::from("/var/tmp")));
}

#[rstest]
#[case("ten", "25000")]
#[case("10000", "")]
#[case("25000", "10000")]
#[case("10000", "70000")]
#[case("-1", "25000")]
fn a_port_range_that_is_none_is_refused(#[case] minimum: &str, #[case] maximum: &str) {
    let error = read(&[("PLUGIN_MIN_PORT", minimum), ("PLUGIN_MAX_PORT", maximum)]).unwrap_err();
    assert!(matches!(error, Error::Ports { .. }), "{error}");
}

#[rstest]
#[case("junk")]
#[case("-----BEGIN CERTIFICATE----- MIIB -----END CERTIFICATE-----")]
#[case("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n")]
fn a_client_certificate_that_is_none_is_refused(#[case] pem: &str) {
    let error = read(&[("PLUGIN_CLIENT_CERT", pem)]).unwrap_err();
    assert!(matches!(error, Error::ClientCertificate { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn paths_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt;

    let odd = OsString::from_vec(vec![b'/', 0xff]);
    let environment = Environment::read(|name| (name == "TMPDIR").then(|| odd.clone())).unwrap();
    assert_eq!(environment.socket.temporary, Some(PathBuf::from(odd)));
}
