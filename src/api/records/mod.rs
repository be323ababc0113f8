//! What the service holds, as typed records, read leniently.

mod cloud_disk;
mod image;
mod instance;
mod spec;

use std::fmt;

use serde::de::DeserializeOwned;

pub use self::{
    cloud_disk::{CloudDisk, CloudDiskSpec},
    image::{PrivateImage, PublicImage},
    instance::{DetailFields, Instance, InstanceDetail, InstanceStatus, InstanceUid},
    spec::Spec,
};

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

/// A value that the service does not call secret and that may hold one, as an address with a token in it.
/// Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Guarded<T>(T);

impl<T> Guarded<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value: cut out what is secret before it goes anywhere.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[GUARDED]")
    }
}
