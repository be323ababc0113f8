//! The instance endpoints (service API, Instances).

use std::sync::Arc;

use serde_json::json;

use crate::api::{
    client::Client,
    code::Code,
    context::Context,
    endpoint::Endpoint,
    error::{Error, UnreadAnswer},
    flight::Flight,
    listing::{Listing, paged},
    object::{Object, Objects, bare},
    pending::Kind,
    presence::Presence,
    records::{Instance, InstanceDetail, InstanceUid, read},
    request::Request,
    retry::Retry,
    snapshots::Snapshots,
    watch::{Poller, Watch},
};

impl Client {
    /// Calls on instances.
    #[must_use]
    pub fn instances(&self) -> Objects<Instance> {
        self.objects()
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

impl Objects<Instance> {
    /// The instances that a filter selects, by a request of its own.
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

    /// One instance with all its fields, by a request of its own.
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
}

#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
impl Object for Instance {
    type Shown = InstanceDetail;

    const KIND: Kind = Kind::Instance;
    const LIST: Endpoint = Endpoint::InstanceList;
    const SEARCH: &'static str = "query";
    const DETAILS_AT_MOST: usize = 2;

    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>> {
        &snapshots.instances
    }

    fn poller(watch: &Watch) -> &Arc<Poller<Self>> {
        &watch.instances
    }

    fn of_id(id: &str) -> Option<Self> {
        bare("instance_uid", &json!(id))
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn is_released(&self) -> bool {
        Self::is_released(self)
    }

    fn status_text(&self) -> String {
        self.status.as_ref().map_or_else(|| "without a status".to_owned(), ToString::to_string)
    }

    fn rename_request(uid: &InstanceUid, name: &str) -> Request {
        Request::new(Endpoint::InstanceRename).body(&json!({ "instance_uid": uid.as_str(), "name": name }))
    }

    /// The instance, its system disk and data disk are deleted for good.
    fn release_request(uid: &InstanceUid) -> Request {
        Request::new(Endpoint::InstanceRelease).body(&json!({ "instance_uid": uid.as_str() }))
    }

    async fn look(
        objects: &Objects<Self>,
        uid: &InstanceUid,
        _hint: Option<&str>,
        context: &Context,
    ) -> Result<Presence<Self>, Error> {
        match objects.detail(uid, context).await {
            Ok(detail) if detail.instance.is_released() => return Ok(Presence::Released),
            Ok(detail) => return Ok(Presence::Present(Box::new(detail))),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {}
            Err(error) => return Err(error),
        }
        let listing = objects.fresh(context).await?;
        Ok(match listing.find(uid) {
            Some(record) if record.is_released() => Presence::Released,
            Some(_) => {
                Presence::Unproved { reason: "its detail reports that it does not exist, and the list shows it" }
            }
            None if listing.complete => Presence::Absent,
            None => {
                Presence::Unproved { reason: "its detail reports that it does not exist, and the list is not complete" }
            }
        })
    }

    async fn one(objects: &Objects<Self>, uid: &InstanceUid, context: &Context) -> Result<Option<Self>, Error> {
        match objects.ask_detail(uid, context, Retry::Never).await {
            Ok(detail) => Ok(Some(detail.instance)),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {
                // Alone it proves nothing, and a released instance may be in the list only.
                let listing = objects.ask(context, Retry::Never).await?;
                match listing.find(uid) {
                    None if !listing.complete => Err(error),
                    found => Ok(found.cloned()),
                }
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
