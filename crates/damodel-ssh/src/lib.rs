//! An SSH client: sessions, bastions, host keys, commands, forwards, and HTTP through a channel.
//!
//! [`connect`] waits until the server accepts the login and runs a command, and returns a [`Session`]. This layer is
//! independent of Terraform and of the service, and depends on no other crate of ours. It does not read the
//! environment or the user's SSH settings: the [`Target`] contains everything that it uses.
//!
//! Three rules: a connection ends before any credential is sent if the pin rejects the host key. No secret is in an
//! argument list, a log, an error or `Debug`. Every wait ends, with a limit of [`SessionLimits`], the deadline of
//! [`connect`] or its token.
//!
//! The protocol is RFC 4251 to 4254 and 8332 with OpenSSH's extensions, as implemented by russh. Only this layer and
//! the sandbox import russh and hyper.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

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
mod short_key;
mod stream;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use secrecy::SecretString;

pub use self::{
    error::Error,
    exec::{Exit, Output},
    forward::Forward,
    host_key::{HostKey, Pin},
    http::Body,
    session::{Link, Session, connect, log_in},
    stream::Stream,
};

/// The limits of a session. All have a safe default; the deadline of [`connect`] overrides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLimits {
    /// The longest time for one step of a connection: TCP, handshake, a channel. A login and its test command may take
    /// longer, up to the deadline. Default 20 s.
    pub connect: Duration,
    /// The silence after which a keepalive is sent. Default 10 s.
    pub keepalive: Duration,
    /// The number of unanswered keepalives after which the connection counts as lost; zero for any number. Default 3.
    pub missed: usize,
    /// The longest time for a command, from the request to the last byte. Default 2 min.
    pub command: Duration,
    /// The longest silence of an HTTP answer if the caller sets no other limit, before its head and between the pieces
    /// of its body; and the longest time that a client of a forward may leave data unread. Default 2 min.
    pub idle: Duration,
    /// The longest time for which a refused login is repeated, at most twice: a new instance may install its keys late.
    /// Zero for no repetition. Default 30 s.
    pub denied: Duration,
    /// The number of bytes that are kept of a command's stdout, and of its stderr: the first and the last ones. Default
    /// 1 MiB.
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

/// A server, its credentials and its bastion.
#[derive(Debug, Clone)]
pub struct Target {
    /// A name or an address; an IPv6 address without brackets. With a bastion, the bastion resolves the name.
    pub host: String,
    /// The TCP port, usually 22.
    pub port: u16,
    /// The user.
    pub user: String,
    /// The credentials.
    pub credentials: Credentials,
    /// The accepted host key. `None` accepts any, and the caller can keep the one of the session.
    pub pin: Option<Pin>,
    /// The bastion through which the server is reached, with its own user, credentials and pin.
    pub bastion: Option<Box<Self>>,
    /// Whether a login has sent the password without a pin.
    pub given_away: GivenAway,
}

/// The host key of a server to which a login sent a password without a pin, whatever became of the login. Clones share
/// it.
#[derive(Debug, Clone, Default)]
pub struct GivenAway(Arc<OnceLock<HostKey>>);

impl GivenAway {
    /// The host key.
    #[must_use]
    pub fn host_key(&self) -> Option<&HostKey> {
        self.0.get()
    }
}

impl Target {
    /// Host and port as one text, such as `[::1]:22`.
    fn address(&self) -> String {
        address(&self.host, self.port)
    }
}

/// Host and port as one text.
fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The credentials of a login. All of them are tried, if the server supports their method, in this order: the private
/// key, the key file, the agent's keys, the password.
///
/// The password also answers keyboard-interactive prompts if the server supports no other password login.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// A private key in OpenSSH's form or in PEM (PKCS#1, PKCS#8, SEC1): Ed25519, ECDSA or RSA. One that is encrypted
    /// names the only key of the agent that is tried.
    pub private_key: Option<SecretString>,
    /// A file with such a key, or with the public half of a key that the agent has. A `~` is not expanded here.
    pub private_key_file: Option<PathBuf>,
    /// An OpenSSH user certificate, as in a `-cert.pub` file, for one of these keys or of the agent's.
    pub certificate: Option<String>,
    /// The password of the user.
    pub password: Option<SecretString>,
    /// The socket of an agent whose keys may be used; on Windows, its named pipe.
    pub agent: Option<PathBuf>,
}
