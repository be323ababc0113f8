//! The program of the bootstrap run by real shells, and model files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(unix)]
mod bootstrap;
mod model;
/// Shared with the tests of the provider.
#[path = "../../../../tests/it/support"]
mod support {
    pub(crate) mod damage;
    pub(crate) mod files;
    pub(crate) mod gguf;
    pub(crate) mod ports;
    pub(crate) mod program;
    #[expect(dead_code, reason = "for the tests of all crates")]
    pub(crate) mod record;
    pub(crate) mod wait;
}
