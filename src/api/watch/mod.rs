//! Waiting, shared: one poller a kind for everyone who waits.

mod pace;
mod poller;
mod sources;

use std::sync::Arc;

use crate::api::{
    client::Client,
    context::Context,
    error::Error,
    records::{CloudDisk, Instance, InstanceUid, PrivateImage},
};
use poller::Poller;

/// What a poll saw of the thing that is waited for.
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

/// The pollers, one a kind.
#[derive(Debug, Default)]
pub(super) struct Watch {
    cloud_disks: Arc<Poller<sources::CloudDisks>>,
    instances: Arc<Poller<sources::Instances>>,
    private_images: Arc<Poller<sources::PrivateImages>>,
}

impl Watch {
    pub(super) async fn cloud_disk(
        &self,
        client: &Client,
        id: i64,
        context: &Context,
        until: impl FnMut(&Sighting<CloudDisk>) -> bool + Send,
    ) -> Result<Sighting<CloudDisk>, Error> {
        self.cloud_disks.wait(client, &id, context, until).await
    }

    pub(super) async fn instance(
        &self,
        client: &Client,
        uid: &InstanceUid,
        context: &Context,
        until: impl FnMut(&Sighting<Instance>) -> bool + Send,
    ) -> Result<Sighting<Instance>, Error> {
        self.instances.wait(client, uid, context, until).await
    }

    pub(super) async fn private_image(
        &self,
        client: &Client,
        image_id: i64,
        context: &Context,
        until: impl FnMut(&Sighting<PrivateImage>) -> bool + Send,
    ) -> Result<Sighting<PrivateImage>, Error> {
        self.private_images.wait(client, &image_id, context, until).await
    }
}

#[cfg(test)]
mod tests;
