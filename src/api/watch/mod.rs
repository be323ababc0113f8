//! Waiting, shared: one poller a kind for everyone who waits.

mod pace;
mod poller;

use std::sync::Arc;

pub(super) use poller::Poller;

use crate::api::records::{CloudDisk, Instance, PrivateImage};

/// What a poll saw of the object that is waited for.
#[derive(Debug, Clone)]
pub enum Sighting<T> {
    /// The service does not show it: its complete list lacks it.
    Missing,
    /// This is how it is.
    Present(Box<T>),
}

impl<T> Sighting<T> {
    /// The record, when there is one.
    pub fn record(&self) -> Option<&T> {
        match self {
            Self::Missing => None,
            Self::Present(record) => Some(record),
        }
    }
}

/// One poller a kind.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) cloud_disks: Arc<Poller<CloudDisk>>,
    pub(super) instances: Arc<Poller<Instance>>,
    pub(super) private_images: Arc<Poller<PrivateImage>>,
}

#[cfg(test)]
mod tests;
