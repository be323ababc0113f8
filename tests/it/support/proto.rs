//! The wire definitions, generated for the tests.
#![expect(
    clippy::allow_attributes_without_reason,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]

pub(crate) mod plugin {
    tonic::include_proto!("plugin");
}

pub(crate) mod health {
    tonic::include_proto!("grpc.health.v1");
}
