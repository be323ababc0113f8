//! What instances, cloud disks and private images have in common: each is listed, looked for, waited for, created once,
//! renamed and released the same way.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    client::Client,
    code::Code,
    context::Context,
    create::{Accepted, Choices, CreateOptions, Creation, create},
    endpoint::{Endpoint, Request},
    error::Error,
    flight::{Flight, Freshness},
    listing::{Listing, paged},
    pending::{Journal, ObjectKind},
    presence::Presence,
    progress::Stage,
    records::{Record, read},
    retry::{self, Retry},
    settings::Random,
    snapshots::{SNAPSHOT, Snapshots, shared},
    watch::{Poller, Sighting, Watch},
};

/// A kind of object that costs money, by what tells it from the others. The implementing type is its record in a list.
#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
pub trait Object: Record<Key: fmt::Display + fmt::Debug + Sync> + Clone + fmt::Debug {
    /// What a look at one shows: more than a list does where there is a detail endpoint.
    type Shown: Send + 'static;

    /// Its kind.
    const KIND: ObjectKind;
    /// The endpoint that lists all of the account.
    const LIST: Endpoint;
    /// The query parameter that searches the list by name or uid.
    const SEARCH: &'static str;
    /// How many are asked for one by one before a list of all is cheaper.
    const DETAILS_AT_MOST: usize = 0;

    /// The shared list of all.
    #[doc(hidden)]
    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>>;

    /// The shared wait.
    #[doc(hidden)]
    fn poller(watch: &Watch) -> &Arc<Poller<Self>>;

    /// A record of which nothing but the id is known; none for a text that is no id of this kind.
    fn of_id(id: &str) -> Option<Self>;

    /// Its name.
    fn name(&self) -> Option<&str>;

    /// Whether the service shows it as gone for good.
    fn is_released(&self) -> bool;

    /// Its status in words.
    fn status_text(&self) -> String;

    /// How far it is, for who looks on.
    fn step(&self) -> Stage {
        Stage::new(self.status_text())
    }

    /// The body of a rename, and its endpoint.
    #[doc(hidden)]
    fn rename_request(key: &Self::Key, name: &str) -> Request;

    /// The request that begins the release.
    #[doc(hidden)]
    fn release_request(key: &Self::Key) -> Request;

    /// Whether it exists, proved by two looks that use no snapshot. `hint` is a name or uid to search for.
    #[doc(hidden)]
    fn look(
        objects: &Objects<Self>,
        key: &Self::Key,
        hint: Option<&str>,
        context: &Context,
    ) -> impl Future<Output = Result<Presence<Self>, Error>> + Send;

    /// One, as a wait asks for it; none when it is missing for sure.
    #[doc(hidden)]
    fn one(
        objects: &Objects<Self>,
        key: &Self::Key,
        context: &Context,
    ) -> impl Future<Output = Result<Option<Self>, Error>> + Send {
        async move { Ok(objects.ask(context, Retry::Never).await?.find(key).cloned()) }
    }
}

/// Calls on one kind of object; made by [`Client::objects`].
#[derive(Debug, Clone)]
pub struct Objects<K> {
    pub(super) client: Client,
    kind: PhantomData<fn() -> K>,
}

impl Client {
    /// Calls on one kind of object.
    #[must_use]
    pub fn objects<K: Object>(&self) -> Objects<K> {
        Objects { client: self.clone(), kind: PhantomData }
    }
}

impl<K: Object> Objects<K> {
    /// Creates one, once, whatever happens on the way: see [`Accepted`].
    ///
    /// `key` identifies the wanted object between runs (working directory, workspace, configuration): the create
    /// that a killed run left behind under the same key is adopted instead of sending another one. Runs on a
    /// task of its own; when `context` ends, a request in flight has [`GRACE`](crate::api::GRACE) to tell its id.
    /// Whoever asked for it waits until it is ready, and renames it, through [`Self::wait`] and [`Self::rename`].
    ///
    /// # Errors
    /// The service's refusal; a journal that cannot be written (nothing was sent then); [`Error::Unsettled`]
    /// when it is unknown what became of the request, and [`Error::SeveralMatches`].
    ///
    /// ```no_run
    /// # use damodel::api::{Client, Context};
    /// # async fn example(client: Client, context: Context) -> Result<(), Box<dyn std::error::Error>> {
    /// use damodel::api::{CreateInstance, CreateOptions, ImageSelector, Journal, SpecSelector};
    ///
    /// let image = ImageSelector::Address("registry/image:1".to_owned());
    /// let request = CreateInstance {
    ///     name: Some("trainer".to_owned()),
    ///     ..CreateInstance::new("region-1", SpecSelector::Id(7), 1, image)
    /// };
    /// let journal = Journal::new("pending");
    /// let options = CreateOptions::default();
    /// let accepted = client.instances().create(request, "my-key", &journal, options, &context).await?;
    /// println!("{}", accepted.made.uid);
    /// if let Some(name) = &accepted.rename_to {
    ///     client.instances().rename(&accepted.made.uid, name, &context).await?;
    /// }
    /// accepted.entry.handed_over()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create<C: Creation<Object = K>>(
        &self,
        request: C,
        key: &str,
        journal: &Journal,
        options: CreateOptions<K>,
        context: &Context,
    ) -> Result<Accepted<K>, Error> {
        self.create_one_of(request.into(), key, journal, options, context).await
    }

    /// The same by the first of these requests that the service accepts: never more than one object comes of it. A
    /// refusal for want of stock or of CUDA leads to the next one, any other error ends it. Each is noted before it is
    /// sent.
    ///
    /// # Errors
    /// As [`Self::create`]; [`Error::NoneAccepted`] of several.
    pub async fn create_one_of<C: Creation<Object = K>>(
        &self,
        choices: Choices<C>,
        key: &str,
        journal: &Journal,
        options: CreateOptions<K>,
        context: &Context,
    ) -> Result<Accepted<K>, Error> {
        create(&self.client, choices, key, journal, options, context).await
    }

    /// All of them, at most 30 s old and not older than this client's last change.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn snapshot(&self, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(SNAPSHOT, context).await
    }

    /// All of them, asked for after this call; callers at the same time share the request.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn fresh(&self, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(Freshness::Fresh, context).await
    }

    /// All of them, asked for at this time or later.
    ///
    /// # Errors
    /// Any of a read.
    pub async fn since(&self, time: Instant, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        self.all(Freshness::Since(time), context).await
    }

    pub(super) async fn all(&self, freshness: Freshness, context: &Context) -> Result<Arc<Listing<K>>, Error> {
        let flight = K::flight(self.client.snapshots());
        shared(&self.client, context, flight, freshness, K::LIST, |client, context| async move {
            client.objects::<K>().ask(&context, Retry::AsConfigured).await
        })
        .await
    }

    /// All of them, by a request for this caller alone.
    pub(super) async fn ask(&self, context: &Context, retry: Retry) -> Result<Listing<K>, Error> {
        paged(&self.client, context, &Request::new(K::LIST), retry).await
    }

    /// Those that a search by name or uid finds, by a request of its own.
    pub(super) async fn search(&self, text: &str, context: &Context) -> Result<Listing<K>, Error> {
        let request = Request::new(K::LIST).query(K::SEARCH, text);
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// Whether one exists, proved: a refresh that says "gone" by mistake would make it anew. No look uses a snapshot.
    /// `hint` is its uid or name, by which the second look searches.
    ///
    /// # Errors
    /// Any of a read, other than 160003 of the detail.
    pub async fn look(&self, key: &K::Key, hint: Option<&str>, context: &Context) -> Result<Presence<K>, Error> {
        K::look(self, key, hint, context).await
    }

    /// Gives one another name.
    ///
    /// # Errors
    /// Any of a change that may be repeated; that it does not exist; 130001 when the name of an image exists.
    pub async fn rename(&self, key: &K::Key, name: &str, context: &Context) -> Result<(), Error> {
        self.client.change(context, K::rename_request(key, name)).await.map(drop)
    }

    /// Begins the release of one: its data are deleted for good, and the caller waits until it is gone. An image that
    /// an instance is being created of (130005) is waited for until `context` ends.
    ///
    /// # Errors
    /// Any of a change that may be repeated, and the service's refusal.
    pub async fn release(&self, key: &K::Key, context: &Context) -> Result<(), Error> {
        let mut waits = retry::busy(self.client.random());
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

    /// Waits until `until` says yes to what was seen of one, through the poller that all waits share.
    ///
    /// Wants to be told of a missing one too: right after a create it may not be visible yet.
    ///
    /// # Errors
    /// [`Error::WaitEnded`] with what was last seen when `context` ends, and a failure that waiting cannot mend.
    ///
    /// ```no_run
    /// # use damodel::api::{Client, Context, Error, InstanceUid};
    /// # async fn example(client: Client, uid: InstanceUid, context: Context) -> Result<(), Error> {
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
        key: &K::Key,
        context: &Context,
        until: impl FnMut(&Sighting<K>) -> bool + Send,
    ) -> Result<Sighting<K>, Error> {
        K::poller(self.client.poller()).wait(&self.client, key, context, until).await
    }
}

/// A record of which nothing but this field is known.
pub(super) fn bare<K: Record>(field: &str, id: &Value) -> Option<K> {
    let mut record = serde_json::Map::new();
    record.insert(field.to_owned(), id.clone());
    read(Value::Object(record).to_string().as_bytes())
}

/// The stem of the marker of an object for which no name is wanted; it then keeps that name.
const NAMELESS: &str = "tf";

/// How much of a create's key a marker holds.
const KEY_DIGITS: usize = 4;

/// How many random digits follow.
const RANDOM_DIGITS: usize = 8;

/// A name that nothing else has: `<name>-<4 hex of the key><8 hex random>`.
pub(super) fn mark(name: Option<&str>, key: &str, random: &Random) -> String {
    format!("{}-{}{:08x}", name.unwrap_or(NAMELESS), digits(key), random.next() & 0xffff_ffff)
}

/// Whose create sent a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// One of another configuration, or of one that is not known to be this.
    Another,
    /// One of this key.
    Own,
}

/// Whether `own` is the name that a create of `name` sends, and whether one with this key.
#[must_use]
pub fn marked(own: &str, name: Option<&str>, key: &str) -> Option<Marked> {
    let hex = own.strip_prefix(name.unwrap_or(NAMELESS))?.strip_prefix('-')?;
    let is_hex = hex.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    match hex.len() {
        // The form before markers held a part of the key.
        RANDOM_DIGITS if is_hex => Some(Marked::Another),
        length if is_hex && length == KEY_DIGITS + RANDOM_DIGITS => {
            Some(if hex.starts_with(digits(key)) { Marked::Own } else { Marked::Another })
        }
        _ => None,
    }
}

fn digits(key: &str) -> &str {
    key.get(..KEY_DIGITS).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_again() {
        let random = Random::new(|| 0xffff_ffff_0000_00ab);
        assert_eq!(mark(Some("web"), "beef0123", &random), "web-beef000000ab");
        assert_eq!(mark(None, "beef0123", &random), "tf-beef000000ab");
        assert_eq!(marked("web-beef000000ab", Some("web"), "beef0123"), Some(Marked::Own));
        assert_eq!(marked("web-beef000000ab", Some("web"), "cafe0123"), Some(Marked::Another));
        assert_eq!(marked("web-000000ab", Some("web"), "0000"), Some(Marked::Another));
        assert_eq!(marked("tf-beef000000ab", None, "beef0123"), Some(Marked::Own));
        for other in
            ["web", "web-1", "web-BEEF000000AB", "web-x-beef000000ab", "webb-beef000000ab", "web-beef000000abc"]
        {
            assert_eq!(marked(other, Some("web"), "beef0123"), None, "{other}");
        }
    }
}
