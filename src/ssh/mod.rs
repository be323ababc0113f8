//! SSH, for whoever drives a machine through it: sessions, bastions, host keys, commands, forwards, and HTTP
//! through a channel.
//!
//! [`connect`] waits until the server lets us in and runs a command; the [`Session`] it gives does the rest. Nothing
//! here knows of Terraform or of the service, and nothing else of the crate is named. The environment and the user's
//! own SSH settings are not read: what is used is in the [`Target`].
//!
//! Three rules hold everywhere. A host key that the pin refuses ends a connection before any credential is sent. No
//! secret reaches an argument list, a log, an error or `Debug`. Every wait ends: by a limit of [`SessionLimits`], by
//! the deadline of [`connect`], or by its token.
//!
//! The protocol is RFC 4251 to 4254 and 8332, with OpenSSH's extensions, as russh speaks it; russh and hyper are
//! imported here and in the sandbox alone.

mod connection;
mod error;
mod exec;
mod forward;
mod handler;
mod host_key;
pub mod http;
mod identity;
mod login;
mod session;

use std::{path::PathBuf, time::Duration};

use secrecy::SecretString;

pub use self::{
    error::Error,
    exec::{Exit, Output},
    forward::{Forward, Stream},
    host_key::{HostKey, Pin},
    http::Body,
    session::{Link, Session, connect, log_in},
};

/// The limits of a session. All have a safe default; the deadline of [`connect`] stands above
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLimits {
    /// The longest that one step of a connection may take: TCP, the handshake, the login, a channel. 20 s.
    pub connect: Duration,
    /// The silence after which the server is asked whether it is there. 10 s.
    pub keepalive: Duration,
    /// How many such questions in a row may go without an answer before the connection counts as lost. Zero: any
    /// number. 3.
    pub missed: usize,
    /// The longest that a command may take, from the request to the last byte. 2 min.
    pub command: Duration,
    /// The longest that an HTTP answer may be silent where its asker names no limit, before its head and between the
    /// pieces of its body, and that a client of a forward may leave untaken what came for it. 2 min.
    pub idle: Duration,
    /// How long a refused login is tried again, twice at most, since a fresh machine installs its keys late. Zero: not
    /// at all. 30 s.
    pub denied: Duration,
    /// How many bytes are kept of a command's stdout, and as many of its stderr: the first and the last. 1 MiB.
    pub output: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            keepalive: Duration::from_secs(10),
            missed: 3,
            command: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            denied: Duration::from_secs(30),
            output: 1 << 20,
        }
    }
}

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
    fn address(&self) -> String {
        address(&self.host, self.port)
    }
}

/// Host and port as an address is written.
fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// What a login is made with. All that is given is tried, in this order, each where the server takes its method:
/// the private key, the one of the file, the agent's, the password.
///
/// The password answers keyboard-interactive questions where the server takes no passwords otherwise.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// A private key in OpenSSH's form or in PEM (PKCS#1, PKCS#8, SEC1): Ed25519, ECDSA or RSA, not encrypted.
    pub private_key: Option<SecretString>,
    /// A file with such a key. A `~` is not expanded here.
    pub private_key_file: Option<PathBuf>,
    /// An OpenSSH user certificate, as in a `-cert.pub` file, for one of the keys or for one of the agent's.
    pub certificate: Option<String>,
    /// The password of the user.
    pub password: Option<SecretString>,
    /// The socket of an agent whose keys may be used; on Windows, its named pipe.
    pub agent: Option<PathBuf>,
}

impl Credentials {
    /// Tells whether the private key and the certificate can be used, without opening a file or asking anybody.
    ///
    /// # Errors
    ///
    /// [`Error::BadKey`] and [`Error::EncryptedKey`].
    pub fn check(&self) -> Result<(), Error> {
        identity::given(self).map(drop)
    }
}
