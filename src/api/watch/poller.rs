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
    error::{Error, WaitEnded},
    listing::Listing,
    object::Object,
    retry::Retry,
};

/// The time limit of one look.
const LOOK_LIMIT: Duration = Duration::from_secs(120);

/// After this many consecutive permanent failures, all waits get the error.
const FAILED_LOOKS: u32 = 3;

/// Observes objects on behalf of all waits. Its task runs while there is a wait.
#[derive(Debug)]
pub(in crate::api) struct Poller<K: Object> {
    state: Mutex<Waits<K>>,
    joined: Notify,
}

#[derive(Debug)]
struct Waits<K: Object> {
    waits: BTreeMap<u64, Wait<K>>,
    next: u64,
    running: bool,
}

#[derive(Debug)]
struct Wait<K: Object> {
    key: K::Key,
    since: Instant,
    publish: watch::Sender<Published<K>>,
}

/// The last observation for a wait.
#[derive(Debug)]
struct Published<T> {
    seen: Option<(Arc<Sighting<T>>, Instant)>,
    failed: Option<Error>,
    given_up: bool,
}

impl<K: Object> Default for Poller<K> {
    fn default() -> Self {
        Self { state: Mutex::new(Waits { waits: BTreeMap::new(), next: 0, running: false }), joined: Notify::new() }
    }
}

impl<K: Object> Poller<K> {
    /// Waits until `until` returns true. Cancel-safe: a dropped wait is removed.
    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = noun::<K>(), id = %key))]
    pub(in crate::api) async fn wait(
        self: &Arc<Self>,
        client: &Client,
        key: &K::Key,
        context: &Context,
        mut until: impl FnMut(&Sighting<K>) -> bool + Send,
    ) -> Result<Sighting<K>, Error> {
        let mut subscription = self.join(client, key);
        let mut task = client.settings().progress.task(noun::<K>(), key);
        let mut has_waited = false;
        loop {
            let published = context.run(subscription.published.changed()).await;
            let update = match published {
                Ok(Ok(())) => subscription.take_update(),
                Ok(Err(_)) => return Err(subscription.ended(key, Ended::DeadlinePassed)),
                Err(ended) => return Err(subscription.ended(key, ended)),
            };
            match update {
                Update::GivenUp(error) => return Err(error),
                Update::Nothing => {}
                Update::Seen(sighting) => {
                    if until(&sighting) {
                        task.done(sighting.record().map(K::step));
                        if has_waited {
                            // Snapshots from before the wait show the object in its old status.
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

    fn join(self: &Arc<Self>, client: &Client, key: &K::Key) -> Subscription<K> {
        let (publish, published) = watch::channel(Published { seen: None, failed: None, given_up: false });
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waits.insert(number, Wait { key: key.clone(), since: Instant::now(), publish });
        if !state.running {
            state.running = true;
            tokio::spawn(Arc::clone(self).drive(client.clone()));
        }
        drop(state);
        self.joined.notify_one();
        Subscription { poller: Arc::clone(self), number, published }
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
                let pause = pause(youngest.elapsed(), fraction).max(after_failures(failures)).max(held);
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

    /// Looks once, in the cheaper way, and publishes the result; returns the error if nothing could be observed.
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
                    keys.iter().for_each(|key| self.publish(key, Err(error.clone())));
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
            self.publish(key, outcome.map(|record| Arc::new(sighting(record))));
        }
        failure.filter(|_| !seen_any)
    }

    fn tell_all(&self, keys: &BTreeSet<K::Key>, listing: &Listing<K>) {
        for key in keys {
            match listing.find(key) {
                Some(record) => self.publish(key, Ok(Arc::new(sighting(Some(record.clone()))))),
                None if listing.complete => self.publish(key, Ok(Arc::new(Sighting::Missing))),
                // An object that an incomplete list lacks may exist.
                None => {}
            }
        }
    }

    fn publish(&self, key: &K::Key, update: Result<Arc<Sighting<K>>, Error>) {
        for wait in self.lock().waits.values().filter(|wait| wait.key == *key) {
            wait.publish.send_modify(|published| match &update {
                Ok(sighting) => {
                    published.seen = Some((Arc::clone(sighting), Instant::now()));
                    published.failed = None;
                }
                Err(error) => published.failed = Some(error.clone()),
            });
        }
    }

    fn give_up(&self) {
        for wait in self.lock().waits.values() {
            wait.publish.send_modify(|published| published.given_up = published.failed.is_some());
        }
    }

    /// When the youngest wait began; `None`, which ends the task, without waits.
    fn youngest(&self) -> Option<Instant> {
        let mut state = self.lock();
        let youngest = state.waits.values().map(|wait| wait.since).max();
        state.running = youngest.is_some();
        youngest
    }

    fn lock(&self) -> MutexGuard<'_, Waits<K>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn noun<K: Object>() -> &'static str {
    K::KIND.noun()
}

fn sighting<T>(record: Option<T>) -> Sighting<T> {
    record.map_or(Sighting::Missing, |record| Sighting::Present(Box::new(record)))
}

/// Ends the waits of a poller whose task panicked: they would get no further update.
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

/// One wait. Dropping it removes it from the poller.
struct Subscription<K: Object> {
    poller: Arc<Poller<K>>,
    number: u64,
    published: watch::Receiver<Published<K>>,
}

enum Update<T> {
    GivenUp(Error),
    Nothing,
    Seen(Arc<Sighting<T>>),
}

impl<K: Object> Subscription<K> {
    fn take_update(&mut self) -> Update<K> {
        let published = self.published.borrow_and_update();
        match (&published.failed, &published.seen) {
            (Some(error), _) if published.given_up => Update::GivenUp(error.clone()),
            (None, Some((sighting, _))) => Update::Seen(Arc::clone(sighting)),
            _ => Update::Nothing,
        }
    }

    fn ended(&self, key: &K::Key, ended: Ended) -> Error {
        let published = self.published.borrow();
        let last = published.seen.as_ref().map(|(sighting, _)| match &**sighting {
            Sighting::Missing => "missing".to_owned(),
            Sighting::Present(record) => record.status_text(),
        });
        Error::WaitEnded(Box::new(WaitEnded {
            what: format!("{} {key}", noun::<K>()),
            last,
            age: published.seen.as_ref().map(|(_, at)| at.elapsed()),
            cause: published.failed.clone(),
            cancelled: ended == Ended::Cancelled,
        }))
    }
}

impl<K: Object> Drop for Subscription<K> {
    fn drop(&mut self) {
        self.poller.lock().waits.remove(&self.number);
        self.poller.joined.notify_one();
    }
}

/// The shortest pause, for a wait that has just begun.
const SHORTEST: Duration = Duration::from_millis(500);

/// The longest pause, before jitter.
const LONGEST: Duration = Duration::from_secs(4);

/// The longest pause after failures.
const LONGEST_AFTER_FAILURES: Duration = Duration::from_secs(30);

/// The pause before the next look: 8 % of the age of the youngest wait, plus or minus 15 %, so that a change is seen
/// within a tenth of the wait's duration, and within 5 s. `fraction` (0 to 1) is the jitter.
pub(super) fn pause(youngest: Duration, fraction: f64) -> Duration {
    youngest.mul_f64(0.08).clamp(SHORTEST, LONGEST).mul_f64(0.85 + 0.3 * fraction)
}

/// The shortest pause after this many consecutive failures; it doubles with each.
pub(super) fn after_failures(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        more => SHORTEST.saturating_mul(1 << more.min(16)).min(LONGEST_AFTER_FAILURES),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0)]
    #[case(6)]
    #[case(10)]
    #[case(60)]
    #[case(3600)]
    fn what_is_ready_is_seen_soon(#[case] seconds: u64) {
        let age = Duration::from_secs(seconds);
        for fraction in [0.0, 0.5, 1.0] {
            let pause = pause(age, fraction);
            assert!(pause < Duration::from_secs(5));
            assert!(pause <= age.mul_f64(0.1).max(SHORTEST.mul_f64(1.15)), "{pause:?}");
        }
    }

    #[test]
    fn failures_slow_it_down_to_a_limit() {
        assert_eq!(after_failures(0), Duration::ZERO);
        assert_eq!(after_failures(1), Duration::from_secs(1));
        assert_eq!(after_failures(3), Duration::from_secs(4));
        assert_eq!(after_failures(u32::MAX), LONGEST_AFTER_FAILURES);
    }
}
