//! The service's client over real HTTP, without a provider.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
/// Shared with the tests of the provider.
#[path = "../../../../tests/it/support"]
mod support {
    pub(crate) mod create;
    pub(crate) mod ports;
    pub(crate) mod socks;
}
