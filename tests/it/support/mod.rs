//! Support for tests of several topics.

pub(crate) mod create;
pub(crate) mod damage;
pub(crate) mod files;
pub(crate) mod gguf;
pub(crate) mod plugin;
pub(crate) mod ports;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod seeds;
pub(crate) mod socks;
#[expect(dead_code, reason = "shared with the tests of damodel-ssh")]
pub(crate) mod sshd;
pub(crate) mod terraform;
pub(crate) mod tls_front;
pub(crate) mod wait;
