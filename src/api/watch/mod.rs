//! Waiting, shared: one poller a kind for everyone who waits.

mod pace;
mod poller;

use std::sync::Arc;

use crate::api::{
    client::Client,
    code::Code,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    listing::{Listing, paged},
    records::{Instance, InstanceUid},
    request::Request,
    retry::Retry,
};
use poller::{Poller, Source};

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
    instances: Arc<Poller<Instances>>,
}

impl Watch {
    pub(super) async fn instance(
        &self,
        client: &Client,
        uid: &InstanceUid,
        context: &Context,
        until: impl FnMut(&Sighting<Instance>) -> bool + Send,
    ) -> Result<Sighting<Instance>, Error> {
        self.instances.wait(client, uid, context, until).await
    }
}

#[derive(Debug)]
struct Instances;

impl Source for Instances {
    type Record = Instance;

    const NOUN: &'static str = "instance";
    const DETAILS_AT_MOST: usize = 2;

    async fn one(client: &Client, uid: &InstanceUid, context: &Context) -> Result<Option<Instance>, Error> {
        match client.instances().ask_detail(uid, context, Retry::Never).await {
            Ok(detail) => Ok(Some(detail.instance)),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {
                // Alone it proves nothing, and a released instance may be in the list only.
                let listing = Self::all(client, context).await?;
                match listing.find(uid) {
                    None if !listing.complete => Err(error),
                    found => Ok(found.cloned()),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn all(client: &Client, context: &Context) -> Result<Listing<Instance>, Error> {
        paged(client, context, &Request::new(Endpoint::InstanceList), Retry::Never).await
    }

    fn describe(instance: &Instance) -> String {
        instance.status.as_ref().map_or_else(|| "without a status".to_owned(), ToString::to_string)
    }
}

#[cfg(test)]
mod tests;
