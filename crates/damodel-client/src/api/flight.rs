//! One shared request for all callers who wait for the same value.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use tokio::time::Instant;

use crate::api::error::Error;

/// A value that is fetched on demand, with one request for all concurrent callers.
///
/// Errors are returned to the waiting callers and not kept. Dropping one waiter does not affect the others; when all
/// are dropped, the fetch ends.
#[derive(Debug)]
pub(super) struct Flight<T> {
    state: Arc<Mutex<State<T>>>,
}

#[derive(Debug)]
struct State<T> {
    kept: Option<Kept<T>>,
    in_flight: Option<InFlight<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    value: Arc<T>,
    age: Age,
}

#[derive(Debug)]
struct InFlight<T> {
    outcome: WeakShared<BoxFuture<'static, Result<Arc<T>, Error>>>,
    age: Age,
}

/// When a value was requested, under which stamp, and how long the fetch took; `None` while it is in flight.
#[derive(Debug, Clone, Copy)]
struct Age {
    asked_at: Instant,
    stamp: u64,
    took: Option<Duration>,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { state: Arc::new(Mutex::new(State { kept: None, in_flight: None })) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Requested after the caller's call: for waits and proofs.
    Fresh,
    /// Requested at this time or later, regardless of changes: for repeated looks.
    Since(Instant),
    /// At most this old, and requested under the current stamp.
    Within(Duration),
    /// For refreshes and plans: at most 30 s old, or ten times as old as its fetch took, and requested under the
    /// current stamp.
    Snapshot,
    /// Like a snapshot, under any stamp.
    Catalogue,
}

/// The greatest age of a snapshot that was fetched fast.
const SNAPSHOT_LASTS: Duration = Duration::from_secs(30);

impl Freshness {
    fn accepts(self, value: Age, caller: Age) -> bool {
        let age = caller.asked_at.saturating_duration_since(value.asked_at);
        let is_snapshot = value.took.is_none_or(|took| age <= SNAPSHOT_LASTS.max(took.saturating_mul(10)));
        match self {
            Self::Fresh => value.asked_at >= caller.asked_at,
            Self::Since(instant) => value.asked_at >= instant,
            Self::Within(longest) => age <= longest && value.stamp == caller.stamp,
            Self::Snapshot => is_snapshot && value.stamp == caller.stamp,
            Self::Catalogue => is_snapshot,
        }
    }
}

impl<T: Send + Sync + 'static> Flight<T> {
    /// The value, as fresh as requested. `stamp` counts the events that outdate a value.
    ///
    /// A fetch in flight that is too old is awaited first, so that any number of callers costs at most two fetches.
    /// Cancel-safe.
    pub(super) async fn get<F>(
        &self,
        freshness: Freshness,
        stamp: impl Fn() -> u64,
        fetch: impl Fn() -> F,
    ) -> Result<Arc<T>, Error>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let asked_at = Instant::now();
        loop {
            let caller = Age { asked_at, stamp: stamp(), took: None };
            match self.join(freshness, caller, &fetch) {
                Joined::Kept(value) => return Ok(value),
                Joined::InFlight(outcome) => return outcome.await,
                Joined::TooOld(outcome) => drop(outcome.await),
            }
        }
    }

    fn join<F>(&self, freshness: Freshness, caller: Age, fetch: &impl Fn() -> F) -> Joined<T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut state = lock(&self.state);
        if let Some(kept) = &state.kept
            && freshness.accepts(kept.age, caller)
        {
            return Joined::Kept(Arc::clone(&kept.value));
        }
        if let Some(in_flight) = &state.in_flight
            && let Some(outcome) = in_flight.outcome.upgrade()
        {
            if freshness.accepts(in_flight.age, caller) {
                return Joined::InFlight(outcome);
            }
            if outcome.peek().is_none() {
                return Joined::TooOld(outcome);
            }
        }
        let age = Age { asked_at: Instant::now(), ..caller };
        let work = fetch();
        let shared = Arc::clone(&self.state);
        let outcome = async move {
            let value = Arc::new(work.await?);
            let age = Age { took: Some(age.asked_at.elapsed()), ..age };
            lock(&shared).kept = Some(Kept { value: Arc::clone(&value), age });
            Ok(value)
        }
        .boxed()
        .shared();
        state.in_flight = outcome.downgrade().map(|outcome| InFlight { outcome, age });
        Joined::InFlight(outcome)
    }
}

enum Joined<T> {
    Kept(Arc<T>),
    InFlight(Shared<BoxFuture<'static, Result<Arc<T>, Error>>>),
    TooOld(Shared<BoxFuture<'static, Result<Arc<T>, Error>>>),
}

fn lock<T>(state: &Mutex<State<T>>) -> std::sync::MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, AtomicUsize, Ordering},
        time::Duration,
    };

    use futures_util::future::join_all;

    use super::*;
    use crate::api::error::Missing;

    struct Rig {
        flight: Flight<usize>,
        fetches: Arc<AtomicUsize>,
        stamp: AtomicU64,
    }

    impl Rig {
        fn new() -> Self {
            Self { flight: Flight::default(), fetches: Arc::default(), stamp: AtomicU64::new(0) }
        }

        async fn get(&self, freshness: Freshness) -> Result<Arc<usize>, Error> {
            let fetch = || {
                let fetches = Arc::clone(&self.fetches);
                async move {
                    let number = fetches.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(number)
                }
            };
            self.flight.get(freshness, || self.stamp.load(Ordering::SeqCst), fetch).await
        }
    }

    const OLD_WILL_DO: Freshness = Freshness::Snapshot;

    #[tokio::test(start_paused = true)]
    async fn fifty_callers_cost_one_fetch_until_it_is_too_old() {
        let rig = Rig::new();
        join_all((0..50).map(|_| rig.get(OLD_WILL_DO))).await;
        rig.get(OLD_WILL_DO).await.unwrap();
        assert_eq!(rig.fetches.load(Ordering::SeqCst), 1);
        tokio::time::advance(Duration::from_secs(31)).await;
        rig.get(OLD_WILL_DO).await.unwrap();
        assert_eq!(rig.fetches.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_long_to_get_is_kept_ten_times_as_long() {
        let flight = Flight::<()>::default();
        let fetches = AtomicUsize::new(0);
        let get = || {
            let fetch = || {
                fetches.fetch_add(1, Ordering::SeqCst);
                async {
                    tokio::time::sleep(Duration::from_secs(7)).await;
                    Ok(())
                }
            };
            flight.get(OLD_WILL_DO, || 0, fetch)
        };
        for (wait, expected) in [(0, 1), (62, 1), (2, 2)] {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            get().await.unwrap();
            assert_eq!(fetches.load(Ordering::SeqCst), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_want_it_fresh_share_the_next_fetch() {
        let rig = Rig::new();
        let early = rig.get(OLD_WILL_DO);
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            join_all((0..50).map(|_| rig.get(Freshness::Fresh))).await
        };
        let (early, late) = tokio::join!(early, late);
        assert_eq!(*early.unwrap(), 0);
        assert!(late.into_iter().all(|value| *value.unwrap() == 1));
        assert_eq!(rig.fetches.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_while_it_flies_or_after_makes_it_old() {
        let rig = Rig::new();
        let early = rig.get(OLD_WILL_DO);
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            rig.stamp.fetch_add(1, Ordering::SeqCst);
            rig.get(OLD_WILL_DO).await
        };
        let (_, late) = tokio::join!(early, late);
        assert_eq!(*late.unwrap(), 1);
        rig.stamp.fetch_add(1, Ordering::SeqCst);
        assert_eq!(*rig.get(OLD_WILL_DO).await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_waiter_hangs_nobody() {
        let rig = Arc::new(Rig::new());
        let first = tokio::spawn({
            let rig = Arc::clone(&rig);
            async move { rig.get(OLD_WILL_DO).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        let second = tokio::spawn({
            let rig = Arc::clone(&rig);
            async move { rig.get(OLD_WILL_DO).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        first.abort();
        assert_eq!(*second.await.unwrap().unwrap(), 0);
        assert_eq!(rig.fetches.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_goes_to_those_who_waited_and_is_not_kept() {
        let flight = Flight::<usize>::default();
        let fetches = Arc::new(AtomicUsize::new(0));
        let get = || {
            flight.get(
                Freshness::Fresh,
                || 0,
                || {
                    let fetches = Arc::clone(&fetches);
                    async move {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        match fetches.fetch_add(1, Ordering::SeqCst) {
                            0 => Err(Error::Missing(Missing::BaseUrl)),
                            later => Ok(later),
                        }
                    }
                },
            )
        };
        let outcomes = join_all((0..5).map(|_| get())).await;
        assert!(outcomes.iter().all(Result::is_err));
        assert_eq!(*get().await.unwrap(), 1);
    }
}
