//! What instances, cloud disks and private images share: their ids, the request that creates one, and the calls to
//! list, look, wait, rename and release.

use std::{borrow::Borrow, fmt, future::Future, marker::PhantomData, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    client::Client,
    code::Code,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::{Flight, Freshness},
    listing::Listing,
    pages::paged,
    presence::Presence,
    progress::Stage,
    records::{Record, read},
    retry::{BUSY, Retry, waits},
    snapshots::Snapshots,
    watch::{Poller, Sighting, Watch},
};

/// The kind of an object, in the order of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// An instance.
    Instance,
    /// A cloud disk.
    CloudDisk,
    /// A private image.
    PrivateImage,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Instance, Self::CloudDisk, Self::PrivateImage];

    /// The word in file names and texts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud_disk",
            Self::Instance => "instance",
            Self::PrivateImage => "private_image",
        }
    }

    /// The noun in texts.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud disk",
            Self::Instance => "instance",
            Self::PrivateImage => "private image",
        }
    }
}

/// Whether a service that changes the letters of a name, or cuts its blanks, may show the one name for the other.
#[must_use]
pub fn is_same_name(shown: &str, name: &str) -> bool {
    let letters = |name: &str| name.split_whitespace().collect::<String>().to_lowercase();
    letters(shown) == letters(name)
}

/// The ids of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The id that operations use, as text.
    pub id: String,
    /// Its unique id, if that is another one and known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl Ids {
    /// Whether an object with this id and uid is the same one. Ids may be numbers that another service uses too.
    #[must_use]
    pub fn is(&self, id: &str, uid: Option<&str>) -> bool {
        self.id == id && self.uid.as_deref().zip(uid).is_none_or(|(own, other)| own == other)
    }
}

/// A kind of billed object, described by its differences from the others. The implementing type is its record in a
/// list.
#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
pub trait Object: Record<Key: fmt::Display + fmt::Debug + Sync> + Clone + fmt::Debug {
    /// The result of a look: more than a list shows if there is a detail endpoint.
    type Shown: Borrow<Self> + Send + 'static;

    /// The kind.
    const KIND: ObjectKind;
    /// The endpoint that lists all of the account.
    const LIST: Endpoint;
    /// The query parameter that searches the list by name or uid.
    const SEARCH: &'static str;
    /// Up to this many objects are requested one by one; for more, a list of all is cheaper.
    const DETAILS_AT_MOST: usize = 0;

    /// The shared list of all.
    #[doc(hidden)]
    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>>;

    /// The shared wait.
    #[doc(hidden)]
    fn poller(watch: &Watch) -> &Arc<Poller<Self>>;

    /// A record with only its id; `None` if the text is not an id of this kind.
    fn of_id(id: &str) -> Option<Self>;

    /// Its name.
    fn name(&self) -> Option<&str>;

    /// Its unique id, if the id is a number, which another service may use too.
    fn uid(&self) -> Option<&str>;

    /// Whether the service shows it as released.
    fn is_released(&self) -> bool;

    /// Whether it exists and will go on existing.
    fn is_living(&self) -> bool {
        !self.is_released()
    }

    /// Its ids for a record.
    #[doc(hidden)]
    fn ids(&self) -> Ids {
        Ids { id: self.key().to_string(), uid: self.uid().map(str::to_owned) }
    }

    /// Its status in words.
    fn status_text(&self) -> String;

    /// A record in a list as the result of a look; `None` if a look shows more.
    fn as_shown(&self) -> Option<Self::Shown>;

    /// Its phase, for the progress file.
    fn step(&self) -> Stage {
        Stage::new(self.status_text())
    }

    /// The request that renames it.
    #[doc(hidden)]
    fn rename_request(key: &Self::Key, name: &str) -> Request;

    /// The request that starts the release.
    #[doc(hidden)]
    fn release_request(key: &Self::Key) -> Request;

    /// Whether it exists, proved by two looks without snapshots. `hint` is a name or uid to search for.
    #[doc(hidden)]
    fn look(
        objects: &Objects<Self>,
        key: &Self::Key,
        hint: Option<&str>,
        context: &Context,
    ) -> impl Future<Output = Result<Presence<Self::Shown>, Error>> + Send;

    /// The object, requested for a wait; `None` if it is certainly missing.
    #[doc(hidden)]
    fn one(
        objects: &Objects<Self>,
        key: &Self::Key,
        context: &Context,
    ) -> impl Future<Output = Result<Option<Self>, Error>> + Send {
        async move { Ok(objects.ask(context, Retry::Never).await?.find(key).cloned()) }
    }
}

/// A configured object, and the request that creates it.
pub trait Creation: Send + Sync + 'static {
    /// The kind of the object.
    type Object: Object;

    /// The endpoint that creates it.
    const ENDPOINT: Endpoint;

    /// The configured name.
    fn wanted_name(&self) -> Option<&str>;

    /// Whether the name that is sent has a marker. Otherwise the configured name is unique.
    const IS_MARKED: bool = true;

    /// The request's body, with the name that is sent.
    fn body(&self, marker: &str) -> Value;

    /// The name of this request among several choices; `None` if it is the only one.
    fn candidate(&self) -> Option<String> {
        None
    }

    /// The configured object as JSON without a marker. It is equal for equal configurations, because records contain
    /// its hash, and equal for all choices of one create.
    fn wanted(&self) -> Value {
        self.body(self.wanted_name().unwrap_or_default())
    }

    /// Whether a create that sent this name at this time, in Unix seconds, created the object.
    #[doc(hidden)]
    fn made(&self, object: &Self::Object, marker: &str, _begun_at: i64, _client: &Client) -> bool {
        object.name().is_some_and(|name| is_same_name(name, marker))
    }
}

/// Calls on one kind of object; made by [`Client::objects`].
#[derive(Debug, Clone)]
pub struct Objects<K> {
    pub(super) client: Client,
    kind: PhantomData<fn() -> K>,
}

impl Client {
    /// The calls on one kind of object.
    #[must_use]
    pub fn objects<K: Object>(&self) -> Objects<K> {
        Objects { client: self.clone(), kind: PhantomData }
    }
}

impl<K: Object> Objects<K> {
    /// All objects, at most 30 s old and not older than this client's last change.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn snapshot(&self, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(Freshness::Snapshot, context).await
    }

    /// All objects, at most 30 s old; changes of this client may be missing.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn recent(&self, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(Freshness::Catalogue, context).await
    }

    /// All objects, requested after this call; concurrent callers share the request.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn fresh(&self, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(Freshness::Fresh, context).await
    }

    /// All objects, requested at this time or later.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn since(&self, time: Instant, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(Freshness::Since(time), context).await
    }

    pub(crate) async fn all(&self, freshness: Freshness, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        let flight = K::flight(self.client.snapshots());
        self.client
            .shared(context, flight, freshness, K::LIST, |client, context| async move {
                client.objects::<K>().ask(&context, Retry::AsConfigured).await
            })
            .await
    }

    /// All objects, in a separate request.
    pub(super) async fn ask(&self, context: &Context, retry: Retry) -> Result<Listing<K>, Error> {
        paged(&self.client, context, &Request::new(K::LIST), retry).await
    }

    /// The objects that a search by name or uid finds, in a separate request.
    pub(crate) async fn search(&self, text: &str, context: &Context) -> Result<Listing<K>, Error> {
        let request = Request::new(K::LIST).query(K::SEARCH, text);
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// Whether the object exists, with proof: a wrong "gone" in a refresh would create it again. No look uses a
    /// snapshot. `hint` is its uid or name, for the search of the second look.
    ///
    /// # Errors
    /// Those of a read, except 160003 of the detail.
    pub async fn look(&self, key: &K::Key, hint: Option<&str>, context: &Context) -> Result<Presence<K::Shown>, Error> {
        K::look(self, key, hint, context).await
    }

    /// Renames the object.
    ///
    /// # Errors
    /// Those of a repeatable change; that the object does not exist; 130001 if an image with the name exists.
    pub async fn rename(&self, key: &K::Key, name: &str, context: &Context) -> Result<(), Error> {
        self.client.change(context, K::rename_request(key, name)).await.map(drop)
    }

    /// Starts the release of the object: its data are deleted permanently, and the caller waits until it is gone. If an
    /// instance is being created from an image (130005), this waits until `context` ends.
    ///
    /// # Errors
    /// Those of a repeatable change, and the service's refusal.
    pub async fn release(&self, key: &K::Key, context: &Context) -> Result<(), Error> {
        let mut waits = waits(BUSY, self.client.random());
        loop {
            let error = match self.client.change(context, K::release_request(key)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.code() != Some(Code::ImageUsedByInstance) => return Err(error),
                Err(error) => error,
            };
            let wait = waits.next().unwrap_or_default().max(error.retry_after().unwrap_or_default());
            if wait >= context.remaining() || context.sleep(wait).await.is_err() {
                return Err(error);
            }
        }
    }

    /// Waits until `until` returns true for an observation, through the poller that all waits share.
    ///
    /// `until` must handle a missing object too: right after a create it may not be visible yet.
    ///
    /// # Errors
    /// [`Error::WaitEnded`] with the last observation when `context` ends, and permanent failures.
    ///
    /// ```no_run
    /// # use damodel_client::api::{Client, Context, Error, InstanceUid};
    /// # async fn example(client: Client, uid: InstanceUid, context: Context) -> Result<(), Error> {
    /// use damodel_client::api::{InstanceStatus, Sighting};
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
        key: &K::Key,
        context: &Context,
        until: impl FnMut(&Sighting<K>) -> bool + Send,
    ) -> Result<Sighting<K>, Error> {
        K::poller(self.client.poller()).wait(&self.client, key, context, until).await
    }
}

/// A record with only this field.
pub(super) fn bare<K: Record>(field: &str, id: &Value) -> Option<K> {
    let mut record = serde_json::Map::new();
    record.insert(field.to_owned(), id.clone());
    read(Value::Object(record).to_string().as_bytes())
}

/// Looks for an object in a list of all and, if the list lacks it, by a search or, without a hint, in another list.
pub(super) async fn look_in_lists<K: Object<Shown = K>>(
    objects: &Objects<K>,
    key: &K::Key,
    hint: Option<&str>,
    context: &Context,
) -> Result<Presence<K>, Error> {
    let listing = objects.fresh(context).await?;
    match listing.find(key) {
        Some(record) if record.is_released() => return Ok(Presence::Released),
        Some(record) => return Ok(Presence::Present(Box::new(record.clone()))),
        None if !listing.complete => return Ok(Presence::Unproved { reason: "the list is not complete" }),
        None => {}
    }
    let second = match hint {
        Some(hint) => objects.search(hint, context).await?,
        None => objects.ask(context, Retry::AsConfigured).await?,
    };
    Ok(if second.find(key).is_some() {
        Presence::Unproved { reason: "the list of all objects does not contain it, but a second lookup finds it" }
    } else if second.complete {
        Presence::Absent
    } else {
        Presence::Unproved {
            reason: "the list of all objects does not contain it, and the answer to a second lookup is not complete",
        }
    })
}
