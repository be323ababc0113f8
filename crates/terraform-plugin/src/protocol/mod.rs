//! The plugin protocol, version 6: the generated messages, the codec of values, the conversions, and the gRPC service
//! of a [`crate::framework::Provider`]. No other folder names a message of the protocol.
//!
//! A call passes through `service` (its own task, panics caught) and `calls` (decode, call
//! [`crate::framework::Server`], encode).

mod calls;
pub mod codec;
mod convert;
mod service;

pub use service::service;

/// The messages, the client and the server, generated from `proto/tfplugin6.proto`.
#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    clippy::nursery,
    reason = "generated code"
)]
pub mod tfplugin6 {
    tonic::include_proto!("tfplugin6");
}
