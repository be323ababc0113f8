//! The environment variables that the core sets for a plugin (plugin protocol, environment variables).

use std::{ffi::OsString, io::Write, ops::RangeInclusive, path::PathBuf, process::ExitCode};

use super::{Error, tls::ClientCertificate};

const COOKIE_NAME: &str = "TF_PLUGIN_MAGIC_COOKIE";

/// The value of Terraform and OpenTofu. It is not a secret: it only distinguishes a plugin host from a person.
const COOKIE: &str = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

const HELP: &str = "\
This binary is a plugin. These are not meant to be executed directly.
Run the program that consumes it, which is Terraform or OpenTofu:
`terraform init` installs the plugins that a configuration names,
and every other command loads them automatically.
";

/// The checked settings of the process that started this one.
#[derive(Clone, Debug)]
pub struct PluginEnvironment {
    /// The only certificate that a client may present; without one, connections are not encrypted.
    pub(super) client_certificate: Option<ClientCertificate>,
    /// Whether the host reads a field about multiplexed connections in the handshake line.
    pub(super) multiplex: bool,
    /// Ports to try on a system without unix sockets; 0 is any port.
    #[cfg_attr(not(windows), allow(dead_code, reason = "the other systems listen on a unix socket"))]
    pub(super) ports: RangeInclusive<u16>,
    /// The place of the unix socket.
    #[cfg_attr(windows, allow(dead_code, reason = "Windows listens on a port"))]
    pub(super) socket: SocketPlace,
}

/// The place of the unix socket, and the group that may use it.
#[cfg_attr(windows, allow(dead_code, reason = "Windows listens on a port"))]
#[derive(Clone, Debug, Default)]
pub(super) struct SocketPlace {
    /// The directory that the host requires.
    pub(super) directory: Option<PathBuf>,
    /// The group, by name or number, that may connect besides the user.
    pub(super) group: Option<String>,
    /// The user's directory for temporary files.
    pub(super) temporary: Option<PathBuf>,
}

impl PluginEnvironment {
    /// Reads the variables through `variable`, which returns the value of one. An empty value counts as unset.
    ///
    /// Fails if a certificate or a port is set but invalid, because the host could not connect then.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let raw = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| raw(name).map(|value| value.to_string_lossy().into_owned());
        Ok(Self {
            client_certificate: text("PLUGIN_CLIENT_CERT").map(|pem| ClientCertificate::from_pem(&pem)).transpose()?,
            multiplex: raw("PLUGIN_MULTIPLEX_GRPC").is_some(),
            ports: ports(text("PLUGIN_MIN_PORT"), text("PLUGIN_MAX_PORT"))?,
            socket: SocketPlace {
                directory: raw("PLUGIN_UNIX_SOCKET_DIR").map(PathBuf::from),
                group: text("PLUGIN_UNIX_SOCKET_GROUP"),
                temporary: raw("TMPDIR").map(PathBuf::from),
            },
        })
    }
}

fn ports(minimum: Option<String>, maximum: Option<String>) -> Result<RangeInclusive<u16>, Error> {
    let port = |text: &Option<String>| text.as_deref().map_or(Ok(0), str::parse::<u16>);
    match (port(&minimum), port(&maximum)) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(Error::Ports { minimum: minimum.unwrap_or_default(), maximum: maximum.unwrap_or_default() }),
    }
}

/// Whether the core started this process: it sets a magic cookie in the environment (plugin protocol, environment
/// variables).
///
/// `variable` reads one environment variable.
pub fn started_by_core(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable(COOKIE_NAME).is_some_and(|value| value == COOKIE)
}

/// Explains the program on standard error to a person who ran it by hand, and returns exit code 1.
#[must_use]
pub fn help() -> ExitCode {
    // A closed standard error must not cause a panic.
    let _ = std::io::stderr().write_all(HELP.as_bytes());
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use rstest::rstest;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<PluginEnvironment, Error> {
        PluginEnvironment::read(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_wishes_it_is_a_plain_server_and_an_empty_value_is_none() {
        let names = ["PLUGIN_CLIENT_CERT", "PLUGIN_UNIX_SOCKET_DIR", "PLUGIN_MIN_PORT", "TMPDIR"];
        for variables in [&[][..], &names.map(|name| (name, ""))] {
            let environment = read(variables).unwrap();
            assert!(environment.client_certificate.is_none());
            assert_eq!(environment.ports, 0..=0);
            assert!(environment.socket.directory.is_none() && environment.socket.temporary.is_none());
        }
    }

    #[test]
    fn every_wish_is_understood() {
        let environment = read(&[
            ("PLUGIN_PROTOCOL_VERSIONS", "6,5"),
            ("PLUGIN_UNIX_SOCKET_DIR", "/run/plugins"),
            ("PLUGIN_MIN_PORT", "10000"),
            ("PLUGIN_MAX_PORT", "25000"),
            ("TMPDIR", "/var/tmp"),
        ])
        .unwrap();
        assert_eq!(environment.ports, 10_000..=25_000);
        assert_eq!(environment.socket.directory, Some(PathBuf::from("/run/plugins")));
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
        let environment = PluginEnvironment::read(|name| (name == "TMPDIR").then(|| odd.clone())).unwrap();
        assert_eq!(environment.socket.temporary, Some(PathBuf::from(odd)));
    }

    #[test]
    fn only_the_exact_cookie_is_the_core() {
        let with = |value: Option<&str>| {
            started_by_core(|name| (name == "TF_PLUGIN_MAGIC_COOKIE").then(|| value.map(OsString::from)).flatten())
        };
        assert!(with(Some(COOKIE)));
        assert!(!with(Some("")));
        assert!(!with(Some(&COOKIE.to_uppercase())));
        assert!(!with(Some(&format!("{COOKIE} "))));
        assert!(!with(None));
    }
}
