//! The messages, clients and servers of go-plugin's own services, generated from `proto/plugin.proto` and
//! `proto/health.proto`.
#![allow(
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

pub mod plugin {
    tonic::include_proto!("plugin");
}

pub mod health {
    tonic::include_proto!("grpc.health.v1");
}
