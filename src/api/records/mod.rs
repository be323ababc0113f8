//! What the service holds, as typed records, read leniently.

mod cloud_disk;
mod guarded;
mod image;
mod instance;
mod spec;

pub use cloud_disk::{CloudDisk, CloudDiskSpec};
pub use guarded::Guarded;
pub use image::{PrivateImage, PublicImage};
pub use instance::{DetailFields, Instance, InstanceDetail, InstanceStatus, InstanceUid};
pub use spec::Spec;

use serde::de::DeserializeOwned;

/// A record of a list: it has a key, by which lists are ordered and pages are told apart.
pub trait Record: DeserializeOwned + Send + Sync + 'static {
    /// What tells two records apart.
    type Key: Ord + Clone + Send;

    /// The record's key.
    fn key(&self) -> Self::Key;
}

/// Reads one record; none when it lacks its key.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}
