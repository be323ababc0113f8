//! The SSH client against a real OpenSSH server.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod connect;
mod host_key;
mod http;
mod login;
mod password;
/// Shared with the tests of the provider.
#[path = "../../../../tests/it/support"]
mod support {
    pub(crate) mod ports;
    pub(crate) mod program;
    #[expect(dead_code, reason = "for the tests of all crates")]
    pub(crate) mod record;
    pub(crate) mod sshd;
    pub(crate) mod wait;
}
