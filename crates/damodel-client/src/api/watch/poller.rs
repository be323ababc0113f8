//! The poller: observes the objects of all waits, as often as the youngest wait needs it.

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

use super::Sighting;
use crate::api::{
    client::Client,
    context::{Context, Ended},
    error::{Cause, Error, WaitEnded},
    listing::Listing,
    object::Object,
    retry::{FAILED_LOOK, Retry, waits},
};

/// The time limit of one look.
const LOOK_LIMIT: Duration = Duration::from_secs(120);

/// After this many consecutive permanent failures, all waits get the error.
const FAILED_LOOKS: u32 = 3;

/// Observes objects on behalf of all waits. Its task runs while there is a wait.
#[derive(Debug)]
pub(in crate::api) struct Poller<K: Object> {
    waits: Mutex<Registry<K>>,
    joined: Notify,
    last_look: watch::Sender<LastLook<K>>,
}

#[derive(Debug)]
struct Registry<K: Object> {
    /// Key and begin of each wait.
    waits: BTreeMap<u64, (K::Key, Instant)>,
    next: u64,
    running: bool,
}

/// The outcome of a look for one object.
type Seen<K> = Result<Arc<Sighting<K>>, Error>;

/// What a look observed of the objects that were waited for when it began. An object whose state it does
/// not show is not in it.
#[derive(Debug)]
struct LastLook<K: Object> {
    seen: BTreeMap<K::Key, Seen<K>>,
    /// Whether waits end with the error.
    given_up: bool,
}

/// The cost of a look.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    took: Duration,
    records: usize,
}

impl<K: Object> Default for Poller<K> {
    fn default() -> Self {
        Self {
            waits: Mutex::new(Registry { waits: BTreeMap::new(), next: 0, running: false }),
            joined: Notify::new(),
            last_look: watch::Sender::new(LastLook { seen: BTreeMap::new(), given_up: false }),
        }
    }
}

impl<K: Object> Poller<K> {
    /// Waits until `until` returns true for what a look shows of the object. Cancel-safe: a dropped wait is removed.
    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = noun::<K>(), id = %key))]
    pub(in crate::api) async fn wait(
        self: &Arc<Self>,
        client: &Client,
        key: &K::Key,
        context: &Context,
        mut until: impl FnMut(&Sighting<K>) -> bool + Send,
    ) -> Result<Sighting<K>, Error> {
        let mut looks = self.last_look.subscribe();
        let _joined = self.join(client, key);
        let mut task = client.settings().progress.task(noun::<K>(), key);
        let mut last = Observed::<K> { seen: None, failed: None };
        loop {
            // The poller has the sender, so the channel is never closed.
            if let Err(ended) = context.run(looks.changed()).await {
                return Err(last.ended(key, ended));
            }
            let look = {
                let look = looks.borrow_and_update();
                look.seen.get(key).map(|seen| (seen.clone(), look.given_up))
            };
            let sighting = match look {
                None => continue,
                Some((Err(error), true)) => return Err(error),
                Some((Err(error), false)) => {
                    last.failed = Some(error);
                    continue;
                }
                Some((Ok(sighting), _)) => sighting,
            };
            if until(&sighting) {
                task.done(sighting.record().map(K::step));
                if last.seen.is_some() {
                    // Snapshots from before the wait show the object in its old status.
                    client.note_change();
                }
                return Ok(Sighting::clone(&sighting));
            }
            if let Some(record) = sighting.record() {
                task.sees(record.step(), record.name());
            }
            last = Observed { seen: Some((sighting, Instant::now())), failed: None };
        }
    }

    fn join(self: &Arc<Self>, client: &Client, key: &K::Key) -> Joined<K> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waits.insert(number, (key.clone(), Instant::now()));
        if !state.running {
            state.running = true;
            tokio::spawn(Arc::clone(self).drive(client.clone()));
        }
        drop(state);
        self.joined.notify_one();
        Joined { poller: Arc::clone(self), number }
    }

    async fn drive(self: Arc<Self>, client: Client) {
        let mut running = Running { poller: &self, ended: false };
        let mut last_look = Instant::now();
        let (mut cost, mut permanent, mut held) = (Cost::default(), 0, Duration::ZERO);
        let mut after_failures = waits(FAILED_LOOK, client.random());
        loop {
            let fraction = client.random().fraction();
            loop {
                let Some(youngest) = self.youngest() else {
                    running.ended = true;
                    return;
                };
                let pause = pause(youngest.elapsed(), cost, fraction);
                tokio::select! {
                    () = sleep_until(last_look + pause.max(held)) => break,
                    () = self.joined.notified() => {}
                }
            }
            let begun = Instant::now();
            let (seen, failed);
            (seen, failed, cost) = self.look(&client).await;
            last_look = Instant::now();
            cost.took = last_look - begun;
            permanent = if failed.as_ref().is_some_and(Error::is_permanent) { permanent + 1 } else { 0 };
            let given_up = permanent == FAILED_LOOKS;
            match failed {
                Some(error) => {
                    held = after_failures.next().unwrap_or_default().max(error.retry_after().unwrap_or_default());
                    tracing::debug!(noun = noun::<K>(), %error, "a look at what is waited for failed");
                }
                None => {
                    held = Duration::ZERO;
                    after_failures = waits(FAILED_LOOK, client.random());
                }
            }
            if given_up {
                permanent = 0;
            }
            self.last_look.send_replace(LastLook { seen, given_up });
        }
    }

    /// Looks once, in the cheaper way; returns the error too if nothing could be observed.
    async fn look(&self, client: &Client) -> (BTreeMap<K::Key, Seen<K>>, Option<Error>, Cost) {
        let keys = self.keys();
        let context = Context::within(LOOK_LIMIT, &CancellationToken::new());
        let objects = client.objects::<K>();
        if keys.len() > K::DETAILS_AT_MOST {
            return match objects.ask(&context, Retry::Never).await {
                Ok(listing) => {
                    let cost = Cost { records: listing.records.len(), ..Cost::default() };
                    (keys.into_iter().filter_map(|key| sighted(key, &listing)).collect(), None, cost)
                }
                Err(error) => {
                    let seen = keys.into_iter().map(|key| (key, Err(error.clone()))).collect();
                    (seen, Some(error), Cost::default())
                }
            };
        }
        let outcomes = join_all(keys.iter().map(|key| K::one(&objects, key, &context))).await;
        let failure = outcomes.iter().find_map(|outcome| outcome.as_ref().err().cloned());
        let failure = failure.filter(|_| outcomes.iter().all(Result::is_err));
        let cost = Cost { records: keys.len(), ..Cost::default() };
        let outcomes = outcomes.into_iter().map(|outcome| outcome.map(|record| Arc::new(sighting(record))));
        (keys.into_iter().zip(outcomes).collect(), failure, cost)
    }

    fn keys(&self) -> BTreeSet<K::Key> {
        self.lock().waits.values().map(|(key, _)| key.clone()).collect()
    }

    /// When the youngest wait began; `None`, which ends the task, without waits.
    fn youngest(&self) -> Option<Instant> {
        let mut state = self.lock();
        let youngest = state.waits.values().map(|(_, since)| *since).max();
        state.running = youngest.is_some();
        youngest
    }

    fn lock(&self) -> MutexGuard<'_, Registry<K>> {
        self.waits.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn noun<K: Object>() -> &'static str {
    K::KIND.noun()
}

/// What a list shows of an object. An object that an incomplete list lacks may exist.
fn sighted<K: Object>(key: K::Key, listing: &Listing<K>) -> Option<(K::Key, Seen<K>)> {
    let record = listing.find(&key).cloned();
    (record.is_some() || listing.complete).then(|| (key, Ok(Arc::new(sighting(record)))))
}

fn sighting<T>(record: Option<T>) -> Sighting<T> {
    record.map_or(Sighting::Missing, |record| Sighting::Present(Box::new(record)))
}

/// Ends the waits of a poller whose task panicked: they would get no further look.
struct Running<'a, K: Object> {
    poller: &'a Poller<K>,
    ended: bool,
}

impl<K: Object> Drop for Running<'_, K> {
    fn drop(&mut self) {
        if !self.ended {
            let failed = || Error::NoAnswer { endpoint: K::LIST, cause: Cause::new("the task that looks ended") };
            let seen = self.poller.keys().into_iter().map(|key| (key, Err(failed()))).collect();
            self.poller.lock().running = false;
            self.poller.last_look.send_replace(LastLook { seen, given_up: true });
        }
    }
}

/// One wait. Dropping it removes it from the poller.
struct Joined<K: Object> {
    poller: Arc<Poller<K>>,
    number: u64,
}

impl<K: Object> Drop for Joined<K> {
    fn drop(&mut self) {
        self.poller.lock().waits.remove(&self.number);
        self.poller.joined.notify_one();
    }
}

/// The last observation of a wait, and the error of a later look.
struct Observed<K> {
    seen: Option<(Arc<Sighting<K>>, Instant)>,
    failed: Option<Error>,
}

impl<K: Object> Observed<K> {
    fn ended(self, key: &K::Key, ended: Ended) -> Error {
        let last = self.seen.as_ref().map(|(sighting, _)| match &**sighting {
            Sighting::Missing => "missing".to_owned(),
            Sighting::Present(record) => record.status_text(),
        });
        Error::WaitEnded(Box::new(WaitEnded {
            what: format!("{} {key}", noun::<K>()),
            last,
            age: self.seen.map(|(_, at)| at.elapsed()),
            cause: self.failed,
            cancelled: ended == Ended::Cancelled,
        }))
    }
}

/// The shortest pause, for a wait that has just begun, while a look returns few records.
const SHORTEST: Duration = Duration::from_millis(50);

/// The shortest pause while a look returns more than [`FEW`] records.
const SHORTEST_OF_MANY: Duration = Duration::from_millis(500);

/// So many records at most are few.
const FEW: usize = 200;

/// The longest pause that the age of a wait causes.
const LONGEST: Duration = Duration::from_secs(4);

/// The pause before the next look: a tenth of the age of the youngest wait or a little less, so that a change is seen
/// within a tenth of the wait's duration, and within 5 s. It is at least four times what the last look took. `fraction`
/// (0 to 1) is the jitter.
fn pause(youngest: Duration, last: Cost, fraction: f64) -> Duration {
    let shortest = if last.records > FEW { SHORTEST_OF_MANY } else { SHORTEST };
    let by_age = youngest.div_f64(10.0).min(LONGEST).mul_f64(0.85 + 0.15 * fraction).max(shortest);
    by_age.max(last.took.saturating_mul(4).min(LOOK_LIMIT))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FREE: Cost = Cost { took: Duration::ZERO, records: 1 };

    #[rstest]
    #[case::at_first(0, FREE, 50)]
    #[case::a_tenth_of_the_age(3000, FREE, 300)]
    #[case::never_more_than_four_seconds(3_600_000, FREE, 4000)]
    #[case::many_records(0, Cost { records: 201, ..FREE }, 500)]
    #[case::few_records(0, Cost { records: 200, ..FREE }, 50)]
    #[case::four_times_what_it_took(0, Cost { took: Duration::from_millis(300), ..FREE }, 1200)]
    fn pause_keeps_to_its_bounds(#[case] age_ms: u64, #[case] last: Cost, #[case] longest_ms: u64) {
        let [shortest, longest] = [0.0, 1.0].map(|it| pause(Duration::from_millis(age_ms), last, it));
        assert_eq!(longest, Duration::from_millis(longest_ms));
        assert!(shortest >= longest.mul_f64(0.84), "{shortest:?}");
    }
}
