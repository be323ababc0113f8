//! The code generated from `proto/plugin.proto` and `proto/health.proto`.

#[expect(
    clippy::allow_attributes_without_reason,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
pub(super) mod plugin {
    tonic::include_proto!("plugin");
}

#[expect(
    clippy::allow_attributes_without_reason,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
pub(super) mod health {
    tonic::include_proto!("grpc.health.v1");
}
