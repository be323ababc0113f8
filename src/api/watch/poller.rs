//! The poller: asks for all who wait, and tells each what it saw.

use std::{
    collections::{BTreeMap, BTreeSet},
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
    object::Object,
    retry::Retry,
    watch::{Sighting, pace},
};

/// How long one look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(120);

/// How many looks in a row may fail for good before those who wait are told.
const FAILED_LOOKS: u32 = 3;

/// Asks on behalf of all who wait. Its task lives while anybody does.
#[derive(Debug)]
pub(in crate::api) struct Poller<K: Object> {
    state: Mutex<State<K>>,
    joined: Notify,
}

#[derive(Debug)]
struct State<K: Object> {
    waits: BTreeMap<u64, Wait<K>>,
    next: u64,
    running: bool,
}

#[derive(Debug)]
struct Wait<K: Object> {
    key: K::Key,
    since: Instant,
    tell: watch::Sender<Told<K>>,
}

/// What a wait was last told.
#[derive(Debug)]
struct Told<T> {
    seen: Option<(Arc<Sighting<T>>, Instant)>,
    failed: Option<Error>,
    given_up: bool,
}

impl<K: Object> Default for Poller<K> {
    fn default() -> Self {
        Self { state: Mutex::new(State { waits: BTreeMap::new(), next: 0, running: false }), joined: Notify::new() }
    }
}

impl<K: Object> Poller<K> {
    /// Waits until `until` says yes. Cancel-safe: a dropped wait is forgotten.
    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = noun::<K>(), id = %key))]
    pub(in crate::api) async fn wait(
        self: &Arc<Self>,
        client: &Client,
        key: &K::Key,
        context: &Context,
        mut until: impl FnMut(&Sighting<K>) -> bool + Send,
    ) -> Result<Sighting<K>, Error> {
        let mut place = self.join(client, key);
        let mut task = client.settings().progress.task(noun::<K>(), key);
        let mut has_waited = false;
        loop {
            let told = context.run(place.told.changed()).await;
            let news = match told {
                Ok(Ok(())) => place.take_news(),
                Ok(Err(_)) => return Err(place.ended(key, Ended::DeadlinePassed)),
                Err(ended) => return Err(place.ended(key, ended)),
            };
            match news {
                News::GivenUp(error) => return Err(error),
                News::Nothing => {}
                News::Seen(sighting) => {
                    if until(&sighting) {
                        task.done(sighting.record().map(K::step));
                        if has_waited {
                            // What was asked before shows the thing as it was.
                            client.note_change();
                        }
                        return Ok(Sighting::clone(&sighting));
                    }
                    if let Some(record) = sighting.record() {
                        task.sees(record.step(), record.name());
                    }
                    has_waited = true;
                }
            }
        }
    }

    fn join(self: &Arc<Self>, client: &Client, key: &K::Key) -> Place<K> {
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
                tracing::debug!(noun = noun::<K>(), failures, %error, "a look at what is waited for failed");
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
        if keys.len() > K::DETAILS_AT_MOST {
            return match client.objects::<K>().ask(&context, Retry::Never).await {
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
        let objects = client.objects::<K>();
        let outcomes = join_all(keys.iter().map(|key| K::one(&objects, key, &context))).await;
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

    fn tell_all(&self, keys: &BTreeSet<K::Key>, listing: &Listing<K>) {
        for key in keys {
            match listing.find(key) {
                Some(record) => self.tell(key, Ok(Arc::new(sighting(Some(record.clone()))))),
                None if listing.complete => self.tell(key, Ok(Arc::new(Sighting::Missing))),
                // What an incomplete list lacks may be there.
                None => {}
            }
        }
    }

    fn tell(&self, key: &K::Key, news: Result<Arc<Sighting<K>>, Error>) {
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

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn noun<K: Object>() -> &'static str {
    K::KIND.noun()
}

fn sighting<T>(record: Option<T>) -> Sighting<T> {
    record.map_or(Sighting::Missing, |record| Sighting::Present(Box::new(record)))
}

/// Ends the waits of a poller whose task broke: nobody would tell them anything any more.
struct Running<'a, K: Object> {
    poller: &'a Poller<K>,
    ended: bool,
}

impl<K: Object> Drop for Running<'_, K> {
    fn drop(&mut self) {
        if !self.ended {
            let mut state = self.poller.lock();
            state.running = false;
            state.waits.clear();
        }
    }
}

/// A place among those who wait, given up when dropped.
struct Place<K: Object> {
    poller: Arc<Poller<K>>,
    number: u64,
    told: watch::Receiver<Told<K>>,
}

enum News<T> {
    GivenUp(Error),
    Nothing,
    Seen(Arc<Sighting<T>>),
}

impl<K: Object> Place<K> {
    fn take_news(&mut self) -> News<K> {
        let told = self.told.borrow_and_update();
        match (&told.failed, &told.seen) {
            (Some(error), _) if told.given_up => News::GivenUp(error.clone()),
            (None, Some((sighting, _))) => News::Seen(Arc::clone(sighting)),
            _ => News::Nothing,
        }
    }

    fn ended(&self, key: &K::Key, ended: Ended) -> Error {
        let told = self.told.borrow();
        let last = told.seen.as_ref().map(|(sighting, _)| match &**sighting {
            Sighting::Missing => "missing".to_owned(),
            Sighting::Present(record) => record.status_text(),
        });
        Error::WaitEnded(Box::new(WaitEnded {
            what: format!("{} {key}", noun::<K>()),
            last,
            age: told.seen.as_ref().map(|(_, at)| at.elapsed()),
            cause: told.failed.clone(),
            cancelled: ended == Ended::Cancelled,
        }))
    }
}

impl<K: Object> Drop for Place<K> {
    fn drop(&mut self) {
        self.poller.lock().waits.remove(&self.number);
        self.poller.joined.notify_one();
    }
}
