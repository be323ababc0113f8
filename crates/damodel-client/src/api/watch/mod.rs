//! Shared waits: one poller per kind for all waits.

mod poller;

use std::sync::Arc;

pub(super) use poller::Poller;

use crate::api::records::{CloudDisk, Instance, PrivateImage};

/// The observation of an object that is waited for.
#[derive(Debug, Clone)]
pub enum Sighting<T> {
    /// The service does not show it: its complete list lacks it.
    Missing,
    /// The service shows it like this.
    Present(Box<T>),
}

impl<T> Sighting<T> {
    /// The record, if there is one.
    pub fn record(&self) -> Option<&T> {
        match self {
            Self::Missing => None,
            Self::Present(record) => Some(record),
        }
    }
}

/// One poller per kind.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) cloud_disks: Arc<Poller<CloudDisk>>,
    pub(super) instances: Arc<Poller<Instance>>,
    pub(super) private_images: Arc<Poller<PrivateImage>>,
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures_util::future::join_all;
    use serde_json::{Value, json};
    use tokio::time::{Instant, sleep};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::api::{
        Client, Code, Context, Endpoint, Error, InstanceStatus, InstanceUid,
        testing::{self, Ledger, context, ok, page, query, raw, refusal, serve},
    };

    fn uid(number: usize) -> InstanceUid {
        InstanceUid::new(format!("ins-{number}"))
    }

    fn record(uid: &str, status: &str) -> Value {
        json!({"instance_uid": uid, "status": status})
    }

    fn running(seen: &Sighting<Instance>) -> bool {
        seen.record().is_some_and(|instance| instance.status == Some(InstanceStatus::Running))
    }

    /// A service whose instances run after this time.
    fn runs_after(seconds: u64, count: usize) -> (Client, Ledger) {
        let start = Instant::now();
        serve(move |request| async move {
            let status = if start.elapsed().as_secs() >= seconds { "Running" } else { "Creating" };
            match query(&request, "instance_uid") {
                Some(uid) => ok(&record(&uid, status)),
                None => {
                    let records: Vec<_> = (0..count).map(|number| record(uid(number).as_str(), status)).collect();
                    page(&records)
                }
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_is_seen_soon_and_seldom_asked_for() {
        for ready in [1, 20, 600] {
            let (client, ledger) = runs_after(ready, 1);
            let start = Instant::now();
            client.instances().wait(&uid(0), &context(3600), running).await.unwrap();
            let late = start.elapsed() - Duration::from_secs(ready);
            assert!(late <= Duration::from_secs(ready).mul_f64(0.1).max(Duration::from_millis(600)), "{late:?}");
            assert!(late <= Duration::from_secs(5), "{late:?}");
            assert!(ledger.all().len() as u64 <= 75 + ready / 3, "{}", ledger.all().len());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_waits_cost_what_one_costs() {
        let (alone, one) = runs_after(300, 1);
        alone.instances().wait(&uid(0), &context(3600), running).await.unwrap();
        let (client, hundred) = runs_after(300, 100);
        let (instances, context) = (client.instances(), context(3600));
        let uids: Vec<_> = (0..100).map(uid).collect();
        let outcomes = join_all(uids.iter().map(|uid| instances.wait(uid, &context, running))).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert!(hundred.all().len() <= 2 * one.all().len());
        assert!(hundred.all().iter().all(|asked| asked.request.endpoint == Endpoint::InstanceList));
        assert!(one.all().iter().all(|asked| asked.request.endpoint == Endpoint::InstanceDetail));
    }

    #[tokio::test(start_paused = true)]
    async fn the_youngest_wait_sets_the_pace_and_new_ones_do_not_starve_it() {
        let (client, ledger) = runs_after(100_000, 2);
        let instances = client.instances();
        let old = tokio::spawn({
            let instances = instances.clone();
            async move { instances.wait(&uid(0), &context(400), |_| false).await }
        });
        sleep(Duration::from_secs(300)).await;
        let before = ledger.all().len();
        for _ in 0..40 {
            let instances = instances.clone();
            tokio::spawn(async move { instances.wait(&uid(1), &context(100), |_| false).await });
            sleep(Duration::from_millis(250)).await;
        }
        let ticks = (ledger.all().len() - before) / 2;
        assert!((12..=210).contains(&ticks), "{ticks}");
        old.await.unwrap().unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_the_last_wait() {
        let (client, ledger) = runs_after(100_000, 1);
        client.instances().wait(&uid(0), &context(10), running).await.unwrap_err();
        let asked = ledger.all().len();
        sleep(Duration::from_secs(100)).await;
        assert!(ledger.all().len() <= asked + 1);
        client.instances().wait(&uid(0), &context(10), |_| true).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_runs_out_tells_what_was_last_seen() {
        let (client, _) = runs_after(100_000, 1);
        let error = client.instances().wait(&uid(0), &context(60), running).await.unwrap_err();
        let Error::WaitEnded(ended) = &error else { panic!("{error}") };
        assert_eq!(ended.last.as_deref(), Some("Creating"));
        assert!(ended.age.unwrap() < Duration::from_secs(5) && !ended.cancelled);
        assert!(error.to_string().starts_with("the wait for instance ins-0 timed out, last seen Creating"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_wait_ends_at_once() {
        let (client, _) = runs_after(100_000, 1);
        let cancel = CancellationToken::new();
        let context = Context::within(Duration::from_secs(600), &cancel);
        let start = Instant::now();
        let (instances, uid) = (client.instances(), uid(0));
        let stop = async {
            sleep(Duration::from_secs(7)).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(instances.wait(&uid, &context, running), stop);
        let Error::WaitEnded(ended) = outcome.unwrap_err() else { panic!("not ended") };
        assert!(ended.cancelled);
        assert_eq!(start.elapsed(), Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_passes_does_not_end_a_wait() {
        let start = Instant::now();
        let (client, ledger) = serve(move |request| async move {
            match start.elapsed().as_secs() {
                0..20 => raw(503, &[("retry-after", "9")], "busy"),
                20..120 => testing::lost(),
                _ => ok(&record(&query(&request, "instance_uid").unwrap(), "Running")),
            }
        });
        client.instances().wait(&uid(0), &context(600), running).await.unwrap();
        let asked: Vec<_> = ledger.all().iter().map(|asked| asked.at - start).collect();
        assert!(asked[1] - asked[0] >= Duration::from_secs(9), "{asked:?}");
        assert!(asked.len() < 16, "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_stays_ends_every_wait() {
        let (client, _) = serve(|_| async { refusal(100_042) });
        let (instances, context) = (client.instances(), context(600));
        let start = Instant::now();
        let uids: Vec<_> = (0..5).map(uid).collect();
        let outcomes = join_all(uids.iter().map(|uid| instances.wait(uid, &context, running))).await;
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().code(), Some(Code::PermissionDenied));
        }
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_released_instance_that_only_the_list_shows_is_seen() {
        let (client, _) = serve(|request| async move {
            if request.endpoint == Endpoint::InstanceDetail {
                refusal(160_003)
            } else {
                page(&[record("ins-0", "Released")])
            }
        });
        let seen = client.instances().wait(&uid(0), &context(60), |_| true).await.unwrap();
        assert!(seen.record().unwrap().is_released());
    }

    #[tokio::test(start_paused = true)]
    async fn missing_is_told_only_when_proved() {
        let asked = AtomicUsize::new(0);
        let (client, _) = serve(move |_| {
            let before = asked.fetch_add(1, Ordering::SeqCst);
            async move {
                match before {
                    0..5 => ok(&json!({"total": 5, "data": []})),
                    _ => page(&[]),
                }
            }
        });
        let (instances, context) = (client.instances(), context(600));
        let uids: Vec<_> = (0..5).map(uid).collect();
        let outcomes =
            join_all(uids.iter().map(|uid| instances.wait(uid, &context, |seen| seen.record().is_none()))).await;
        assert!(outcomes.into_iter().all(|outcome| matches!(outcome, Ok(Sighting::Missing))));
        let (client, _) = serve(|request| async move {
            if request.endpoint == Endpoint::InstanceDetail { refusal(160_003) } else { page(&[]) }
        });
        let seen = client.instances().wait(&uid(0), &context, |_| true).await.unwrap();
        assert!(matches!(seen, Sighting::Missing));
    }
}
