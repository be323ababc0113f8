//! The instance endpoints (service API, Instances).

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;

use crate::api::{
    client::Client,
    code::Code,
    context::Context,
    create::{Accepted, CreateOptions, create},
    create_instance::{CreateInstance, CreatedInstance},
    endpoint::Endpoint,
    error::{Error, UnreadAnswer},
    flight::Freshness,
    listing::{Listing, paged},
    marker,
    pending::{Journal, Kind},
    presence::Presence,
    records::{Instance, InstanceDetail, InstanceUid, read},
    request::Request,
    retry::Retry,
    snapshots::{SNAPSHOT, shared},
    watch::Sighting,
};

/// Calls on instances; made by [`Client::instances`].
#[derive(Debug, Clone)]
pub struct Instances {
    client: Client,
}

impl Client {
    /// Calls on instances.
    #[must_use]
    pub fn instances(&self) -> Instances {
        Instances { client: self.clone() }
    }
}

/// Which instances a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Search by UID or name.
    pub query: Option<String>,
    /// One status, as the service writes it.
    pub status: Option<String>,
}

impl Instances {
    /// Creates an instance, once, whatever happens on the way: see [`Accepted`].
    ///
    /// `key` identifies the wanted thing between runs (working directory, workspace, configuration): the create
    /// that a killed run left behind under the same key is taken up instead of sending another one. Runs on a
    /// task of its own; when `context` ends, a request in flight has [`GRACE`](crate::api::GRACE) to tell its id.
    ///
    /// # Errors
    /// The service's refusal; a journal that cannot be written (nothing was sent then); [`Error::Unsettled`]
    /// when it is unknown what became of the request, and [`Error::SeveralMatches`].
    ///
    /// ```no_run
    /// # async fn example(client: damodel::api::Client, context: damodel::api::Context) -> Result<(), Box<dyn std::error::Error>> {
    /// use damodel::api::{CreateInstance, CreateOptions, ImageSelector, Journal, SpecSelector};
    ///
    /// let request = CreateInstance {
    ///     name: Some("trainer".to_owned()),
    ///     ..CreateInstance::new("region-1", SpecSelector::Id(7), 1, ImageSelector::Address("registry/image:1".to_owned()))
    /// };
    /// let journal = Journal::new("pending");
    /// let accepted = client.instances().create(request, "my-key", &journal, CreateOptions::default(), &context).await?;
    /// println!("{}", accepted.made.uid);
    /// if let Some(name) = &accepted.rename_to {
    ///     client.instances().rename(&accepted.made.uid, name, &context).await?;
    /// }
    /// accepted.entry.handed_over()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create(
        &self,
        request: CreateInstance,
        key: &str,
        journal: &Journal,
        options: CreateOptions,
        context: &Context,
    ) -> Result<Accepted<CreatedInstance>, Error> {
        create(&self.client, request, key, journal, options, context).await
    }

    /// The instances that a filter selects, asked for now.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn list(&self, filter: &InstanceFilter, context: &Context) -> Result<Listing<Instance>, Error> {
        let mut request = Request::new(Endpoint::InstanceList);
        if let Some(query) = &filter.query {
            request = request.query("query", query);
        }
        if let Some(status) = &filter.status {
            request = request.query("status", status);
        }
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// All instances, at most 30 s old and not older than this client's last change.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn snapshot(&self, context: &Context) -> Result<Arc<Listing<Instance>>, Error> {
        self.all(SNAPSHOT, context).await
    }

    /// All instances, asked for after this call; callers at the same time share the request.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn fresh(&self, context: &Context) -> Result<Arc<Listing<Instance>>, Error> {
        self.all(Freshness::Fresh, context).await
    }

    pub(super) async fn all(&self, freshness: Freshness, context: &Context) -> Result<Arc<Listing<Instance>>, Error> {
        let flight = &self.client.snapshots().instances;
        shared(&self.client, context, flight, freshness, Endpoint::InstanceList, |client, context| async move {
            client.instances().list(&InstanceFilter::default(), &context).await
        })
        .await
    }

    /// One instance with all its fields, asked for now.
    ///
    /// # Errors
    /// Any of a read; 160003 when the account has no such instance (which alone proves nothing: [`Self::look`]).
    pub async fn detail(&self, uid: &InstanceUid, context: &Context) -> Result<InstanceDetail, Error> {
        self.ask_detail(uid, context, Retry::AsConfigured).await
    }

    pub(super) async fn ask_detail(
        &self,
        uid: &InstanceUid,
        context: &Context,
        retry: Retry,
    ) -> Result<InstanceDetail, Error> {
        let endpoint = Endpoint::InstanceDetail;
        let request = Request::new(endpoint).query("instance_uid", uid);
        let answer = self.client.read(context, &request, retry).await?;
        read::<InstanceDetail>(&answer.result).filter(|detail| detail.instance.uid == *uid).ok_or_else(|| {
            Error::Undecodable(Box::new(UnreadAnswer {
                endpoint,
                status: 200,
                reason: "the result is not the instance that was asked for".to_owned(),
                ids: answer.ids,
                retry_after: None,
            }))
        })
    }

    /// Whether an instance exists, proved: a refresh that says "gone" by mistake would make it anew.
    ///
    /// Neither look uses a snapshot.
    ///
    /// # Errors
    /// Any of a read, other than 160003 of the detail.
    pub async fn look(&self, uid: &InstanceUid, context: &Context) -> Result<Presence, Error> {
        match self.detail(uid, context).await {
            Ok(detail) if detail.instance.is_released() => {
                return Ok(Presence::Released(Box::new(detail.instance)));
            }
            Ok(detail) => return Ok(Presence::Present(Box::new(detail))),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {}
            Err(error) => return Err(error),
        }
        let listed_at = Instant::now();
        let listing = self.fresh(context).await?;
        Ok(match listing.find(uid) {
            Some(record) if record.is_released() => Presence::Released(Box::new(record.clone())),
            Some(_) => Presence::Unproved { reason: "its detail says that it does not exist, and the list shows it" },
            None if listing.complete => Presence::Absent { listed_at, others: listing.records.len() },
            None => {
                Presence::Unproved { reason: "its detail says that it does not exist, and the list is not complete" }
            }
        })
    }

    /// Gives an instance another name.
    ///
    /// # Errors
    /// Any of a change that may be repeated; 160003 when there is no such instance.
    pub async fn rename(&self, uid: &InstanceUid, name: &str, context: &Context) -> Result<(), Error> {
        let body = json!({ "instance_uid": uid.as_str(), "name": name });
        self.client.change(context, Request::new(Endpoint::InstanceRename).body(&body)).await.map(drop)
    }

    /// Begins the release of an instance: its machine, system disk and data disk are deleted for good. The
    /// caller waits for Released.
    ///
    /// # Errors
    /// Any of a change that may be repeated; 160013 and 160003 when it is gone already, 160012 when its status
    /// or billing forbids it.
    pub async fn release(&self, uid: &InstanceUid, context: &Context) -> Result<(), Error> {
        let body = json!({ "instance_uid": uid.as_str() });
        self.client.change(context, Request::new(Endpoint::InstanceRelease).body(&body)).await.map(drop)
    }

    /// Waits until `until` says yes to what was seen of an instance, through the poller that all waits share.
    ///
    /// Wants to be told of a missing one too: right after a create it may not be visible yet.
    ///
    /// # Errors
    /// [`Error::WaitEnded`] with what was last seen when `context` ends, and a failure that waiting cannot mend.
    ///
    /// ```no_run
    /// # async fn example(client: damodel::api::Client, uid: damodel::api::InstanceUid, context: damodel::api::Context) -> Result<(), damodel::api::Error> {
    /// use damodel::api::{InstanceStatus, Sighting};
    ///
    /// let seen = client.instances().wait(&uid, &context, |seen| match seen {
    ///     Sighting::Present(instance) => {
    ///         matches!(instance.status, Some(InstanceStatus::Running | InstanceStatus::Failed))
    ///     }
    ///     Sighting::Missing => false,
    /// }).await?;
    /// # let _ = seen;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait(
        &self,
        uid: &InstanceUid,
        context: &Context,
        until: impl FnMut(&Sighting<Instance>) -> bool + Send,
    ) -> Result<Sighting<Instance>, Error> {
        self.client.poller().instance(&self.client, uid, context, until).await
    }

    /// Living instances of a list that are named `<name>-<8 hex>` and whose create nobody answers for: what a run may
    /// have left behind whose journal is lost, or that was in another folder. `key` is that of the create that asks.
    #[must_use]
    pub fn look_alikes<'a>(
        listing: &'a Listing<Instance>,
        name: &str,
        journal: &Journal,
        key: &str,
    ) -> Vec<&'a Instance> {
        let explained = journal.explained(Kind::Instance, key);
        let is_unexplained = |instance: &&Instance| {
            !instance.is_released()
                && instance
                    .name
                    .as_deref()
                    .is_some_and(|own| marker::marks(own, name) && !explained.iter().any(|known| known == own))
        };
        listing.records.iter().filter(is_unexplained).collect()
    }
}

#[cfg(test)]
mod tests;
