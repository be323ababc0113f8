//! The poller: asks for all who wait, and tells each what it saw.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::api::{
    client::Client,
    context::{Context, Ended},
    error::{Error, WaitEnded},
    listing::Listing,
    progress::Step,
    records::Record,
    watch::{Sighting, pace},
};

/// How long one look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(120);

/// How many looks in a row may fail for good before those who wait are told.
const FAILED_LOOKS: u32 = 3;

/// A kind of thing that can be waited for.
pub(super) trait Source: fmt::Debug + Send + Sync + 'static {
    type Record: Record<Key: fmt::Display + fmt::Debug + Sync> + Clone + fmt::Debug;

    /// What one calls it.
    const NOUN: &'static str;
    /// Up to this many are asked for one by one; more come cheaper in a list. 0 where there is no detail.
    const DETAILS_AT_MOST: usize = 0;

    /// Asks for one, once; none when the service says that there is no such thing. A kind that has a detail
    /// asks for that instead of its list.
    fn one(
        client: &Client,
        key: &<Self::Record as Record>::Key,
        context: &Context,
    ) -> impl Future<Output = Result<Option<Self::Record>, Error>> + Send {
        async move { Ok(Self::all(client, context).await?.find(key).cloned()) }
    }

    /// Asks for all, once.
    fn all(client: &Client, context: &Context) -> impl Future<Output = Result<Listing<Self::Record>, Error>> + Send;

    /// Status and progress, for people.
    fn describe(record: &Self::Record) -> String;

    /// The same for who looks on.
    fn step(record: &Self::Record) -> Step {
        Step::new(Self::describe(record))
    }

    /// What it is called at the moment.
    fn name(record: &Self::Record) -> Option<&str>;
}

/// Asks on behalf of all who wait. Its task lives while anybody does.
#[derive(Debug)]
pub(super) struct Poller<S: Source> {
    state: Mutex<State<S>>,
    joined: Notify,
}

#[derive(Debug)]
struct State<S: Source> {
    waits: BTreeMap<u64, Wait<S>>,
    next: u64,
    running: bool,
}

#[derive(Debug)]
struct Wait<S: Source> {
    key: <S::Record as Record>::Key,
    since: Instant,
    tell: watch::Sender<Told<S::Record>>,
}

/// What a wait was last told.
#[derive(Debug)]
struct Told<T> {
    seen: Option<(Arc<Sighting<T>>, Instant)>,
    failed: Option<Error>,
    given_up: bool,
}

impl<S: Source> Default for Poller<S> {
    fn default() -> Self {
        Self { state: Mutex::new(State { waits: BTreeMap::new(), next: 0, running: false }), joined: Notify::new() }
    }
}

impl<S: Source> Poller<S> {
    /// Waits until `until` says yes. Cancel-safe: a dropped wait is forgotten.
    pub(super) async fn wait(
        self: &Arc<Self>,
        client: &Client,
        key: &<S::Record as Record>::Key,
        context: &Context,
        mut until: impl FnMut(&Sighting<S::Record>) -> bool + Send,
    ) -> Result<Sighting<S::Record>, Error> {
        let mut place = self.join(client, key);
        let mut task = client.settings().progress.task(S::NOUN, key);
        let mut has_waited = false;
        loop {
            let told = context.run(place.told.changed()).await;
            let news = match told {
                Ok(Ok(())) => place.take_news(),
                Ok(Err(_)) => return Err(place.ended::<S>(key, Ended::DeadlinePassed)),
                Err(ended) => return Err(place.ended::<S>(key, ended)),
            };
            match news {
                News::GivenUp(error) => return Err(error),
                News::Nothing => {}
                News::Seen(sighting) => {
                    if until(&sighting) {
                        task.done(sighting.record().map(S::step));
                        if has_waited {
                            // What was asked before shows the thing as it was.
                            client.note_change();
                        }
                        return Ok(Sighting::clone(&sighting));
                    }
                    if let Some(record) = sighting.record() {
                        task.sees(S::step(record), S::name(record));
                    }
                    has_waited = true;
                }
            }
        }
    }

    fn join(self: &Arc<Self>, client: &Client, key: &<S::Record as Record>::Key) -> Place<S> {
        let (tell, told) = watch::channel(Told { seen: None, failed: None, given_up: false });
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waits.insert(number, Wait { key: key.clone(), since: Instant::now(), tell });
        if !state.running {
            state.running = true;
            tokio::spawn(Arc::clone(self).drive(client.clone()));
        }
        drop(state);
        self.joined.notify_one();
        Place { poller: Arc::clone(self), number, told }
    }

    async fn drive(self: Arc<Self>, client: Client) {
        let mut running = Running { poller: &self, ended: false };
        let mut last_look = Instant::now();
        let (mut failures, mut permanent, mut held) = (0, 0, Duration::ZERO);
        loop {
            let fraction = client.random().fraction();
            loop {
                let Some(youngest) = self.youngest() else {
                    running.ended = true;
                    return;
                };
                let pause = pace::pause(youngest.elapsed(), fraction).max(pace::after_failures(failures)).max(held);
                tokio::select! {
                    () = sleep_until(last_look + pause) => break,
                    () = self.joined.notified() => {}
                }
            }
            let failed = self.look(&client).await;
            last_look = Instant::now();
            held = failed.as_ref().and_then(Error::retry_after).unwrap_or_default();
            failures = if failed.is_some() { failures + 1 } else { 0 };
            permanent = if failed.as_ref().is_some_and(Error::is_permanent) { permanent + 1 } else { 0 };
            if let Some(error) = failed {
                tracing::debug!(noun = S::NOUN, failures, %error, "a look at what is waited for failed");
                if permanent == FAILED_LOOKS {
                    permanent = 0;
                    self.give_up();
                }
            }
        }
    }

    /// Looks once, in the cheaper way, and tells everybody; the failure, when nothing could be seen.
    async fn look(&self, client: &Client) -> Option<Error> {
        let keys: BTreeSet<_> = self.lock().waits.values().map(|wait| wait.key.clone()).collect();
        let context = Context::within(LOOK_LIMIT, &CancellationToken::new());
        if keys.len() > S::DETAILS_AT_MOST {
            return match S::all(client, &context).await {
                Ok(listing) => {
                    self.tell_all(&keys, &listing);
                    None
                }
                Err(error) => {
                    keys.iter().for_each(|key| self.tell(key, Err(error.clone())));
                    Some(error)
                }
            };
        }
        let outcomes = join_all(keys.iter().map(|key| S::one(client, key, &context))).await;
        let mut failure = None;
        let mut seen_any = false;
        for (key, outcome) in keys.iter().zip(outcomes) {
            match &outcome {
                Ok(_) => seen_any = true,
                Err(error) => failure = Some(error.clone()),
            }
            self.tell(key, outcome.map(|record| Arc::new(sighting(record))));
        }
        failure.filter(|_| !seen_any)
    }

    fn tell_all(&self, keys: &BTreeSet<<S::Record as Record>::Key>, listing: &Listing<S::Record>) {
        for key in keys {
            match listing.find(key) {
                Some(record) => self.tell(key, Ok(Arc::new(sighting(Some(record.clone()))))),
                None if listing.complete => self.tell(key, Ok(Arc::new(Sighting::Missing))),
                // What an incomplete list lacks may be there.
                None => {}
            }
        }
    }

    fn tell(&self, key: &<S::Record as Record>::Key, news: Result<Arc<Sighting<S::Record>>, Error>) {
        for wait in self.lock().waits.values().filter(|wait| wait.key == *key) {
            wait.tell.send_modify(|told| match &news {
                Ok(sighting) => {
                    told.seen = Some((Arc::clone(sighting), Instant::now()));
                    told.failed = None;
                }
                Err(error) => told.failed = Some(error.clone()),
            });
        }
    }

    fn give_up(&self) {
        for wait in self.lock().waits.values() {
            wait.tell.send_modify(|told| told.given_up = told.failed.is_some());
        }
    }

    /// When the youngest wait began; none, and the end of the task, when nobody waits.
    fn youngest(&self) -> Option<Instant> {
        let mut state = self.lock();
        let youngest = state.waits.values().map(|wait| wait.since).max();
        state.running = youngest.is_some();
        youngest
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn sighting<T>(record: Option<T>) -> Sighting<T> {
    record.map_or(Sighting::Missing, |record| Sighting::Present(Box::new(record)))
}

/// Ends the waits of a poller whose task broke: nobody would tell them anything any more.
struct Running<'a, S: Source> {
    poller: &'a Poller<S>,
    ended: bool,
}

impl<S: Source> Drop for Running<'_, S> {
    fn drop(&mut self) {
        if !self.ended {
            let mut state = self.poller.lock();
            state.running = false;
            state.waits.clear();
        }
    }
}

/// A place among those who wait, given up when dropped.
struct Place<S: Source> {
    poller: Arc<Poller<S>>,
    number: u64,
    told: watch::Receiver<Told<S::Record>>,
}

enum News<T> {
    GivenUp(Error),
    Nothing,
    Seen(Arc<Sighting<T>>),
}

impl<S: Source> Place<S> {
    fn take_news(&mut self) -> News<S::Record> {
        let told = self.told.borrow_and_update();
        match (&told.failed, &told.seen) {
            (Some(error), _) if told.given_up => News::GivenUp(error.clone()),
            (None, Some((sighting, _))) => News::Seen(Arc::clone(sighting)),
            _ => News::Nothing,
        }
    }

    fn ended<R: Source<Record = S::Record>>(&self, key: &<S::Record as Record>::Key, ended: Ended) -> Error {
        let told = self.told.borrow();
        let last = told.seen.as_ref().map(|(sighting, _)| match &**sighting {
            Sighting::Missing => "missing".to_owned(),
            Sighting::Present(record) => R::describe(record),
        });
        Error::WaitEnded(Box::new(WaitEnded {
            what: format!("{} {key}", R::NOUN),
            last,
            age: told.seen.as_ref().map(|(_, at)| at.elapsed()),
            cause: told.failed.clone(),
            cancelled: ended == Ended::Cancelled,
        }))
    }
}

impl<S: Source> Drop for Place<S> {
    fn drop(&mut self) {
        self.poller.lock().waits.remove(&self.number);
        self.poller.joined.notify_one();
    }
}
