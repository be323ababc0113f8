//! Where a session leads.

use crate::ssh::{Credentials, Pin};

/// A server, how to log in there, and through what it is reached.
#[derive(Debug, Clone)]
pub struct Target {
    /// A name or an address; an IPv6 address without brackets. Resolved by the bastion when there is one.
    pub host: String,
    /// The TCP port, usually 22.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// What the login is made with.
    pub credentials: Credentials,
    /// The host key that is accepted. `None` accepts any: the session tells which it was, for the caller to keep.
    pub pin: Option<Pin>,
    /// A server that opens the connection for us, with a user, credentials and a pin of its own.
    pub bastion: Option<Box<Self>>,
}

impl Target {
    /// Host and port as an address is written, `[::1]:22`.
    pub(super) fn address(&self) -> String {
        address(&self.host, self.port)
    }
}

/// Host and port as an address is written.
pub(super) fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
