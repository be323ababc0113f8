//! The endpoints of the OpenAPI, one file for each or for a few similar ones. The chat endpoint, which has no envelope,
//! is in `chat`.
//!
//! An endpoint is a value of [`Endpoint`], listed in [`ENDPOINTS`]; a new one is one file and one line.

mod call;
mod cloud_disks;
mod images;
mod instance_create;
mod instance_disks;
mod instances;
mod specs;

pub(super) use self::call::{CallContext, CreationWish, Endpoint, EndpointInput};

/// All endpoints of the sandbox.
pub(super) const ENDPOINTS: [&Endpoint; 17] = [
    &instance_create::ENDPOINT,
    &instances::LIST,
    &instances::DETAIL,
    &instances::ENDPOINT,
    &instances::RELEASE,
    &cloud_disks::ENDPOINT,
    &cloud_disks::LIST,
    &cloud_disks::RENAME,
    &cloud_disks::RESIZE,
    &cloud_disks::RELEASE,
    &cloud_disks::SPEC_LIST,
    &images::PUBLIC_LIST,
    &images::PRIVATE_LIST,
    &images::ENDPOINT,
    &images::RENAME,
    &images::DELETE,
    &specs::LIST,
];
