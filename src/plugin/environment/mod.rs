//! What the core tells a plugin through environment variables (plugin protocol, environment variables).

use std::{ffi::OsString, ops::RangeInclusive, path::PathBuf};

use super::{Error, tls::ClientCertificate};

/// The wishes of the process that started us, checked.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The only certificate a client may present; without one, nothing is encrypted.
    pub(super) client_certificate: Option<ClientCertificate>,
    /// Whether the host wants to be told about multiplexed connections in the handshake line.
    pub(super) multiplex: bool,
    /// Ports to try where there are no unix sockets; 0 is any port.
    #[cfg_attr(not(windows), allow(dead_code, reason = "the other systems listen on a unix socket"))]
    pub(super) ports: RangeInclusive<u16>,
    /// Where the unix socket goes.
    #[cfg_attr(windows, allow(dead_code, reason = "Windows listens on a port"))]
    pub(super) socket: SocketPlace,
}

/// Where the unix socket goes, and who may use it.
#[cfg_attr(windows, allow(dead_code, reason = "Windows listens on a port"))]
#[derive(Clone, Debug, Default)]
pub(super) struct SocketPlace {
    /// The directory the host insists on.
    pub(super) directory: Option<PathBuf>,
    /// The group, by name or number, that may connect besides the user.
    pub(super) group: Option<String>,
    /// The user's directory for temporary files.
    pub(super) temporary: Option<PathBuf>,
}

impl Environment {
    /// Reads the variables through `variable`, which gives the value of one. An empty value counts as none.
    ///
    /// Fails when a certificate or a port is set and cannot be understood, as the host could not connect
    /// then.
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

#[cfg(test)]
mod tests;
