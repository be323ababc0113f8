//! Creates on a scripted service and paused time.

mod choices;
mod cloud_disks;
mod decide;
mod found;
mod private_images;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use rstest::rstest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::{
    AccountFingerprints, Client, CloudDisk, Code, CreateInstance, Creation, Endpoint, Ids, ImageSelector, Instance,
    ObjectKind, Outgoing, Random, Settings, SpecSelector, TokenSource, WaitEnding,
    testing::{self, Ledger, Reply, context, lost, never_sent, ok, page, query, raw, refusal, serve, serve_with},
};

/// An empty journal, in a folder that is removed with the first value.
fn journal() -> (tempfile::TempDir, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path());
    (folder, journal)
}

/// The journal of the next run.
fn next(journal: &Journal) -> Journal {
    journal.end();
    Journal::new(journal.directory())
}

fn phases(journal: &Journal) -> Vec<CreatePhase> {
    journal.list().unwrap().entries.into_iter().map(|listed| listed.record.phase).collect()
}

/// A guard that keeps what was found and permits everything.
#[derive(Default)]
struct Permits(Option<Result<Vec<Leftover>, Error>>);

impl Guard for Permits {
    fn judge(&mut self, found: Result<Vec<Leftover>, Error>) -> Permission {
        self.0 = Some(found);
        Permission::Send
    }

    async fn permit(&mut self, _attempt: Attempt) -> Permission {
        Permission::Send
    }
}

/// Creates what nothing forbids.
async fn permitted<C: Creation>(
    client: &Client,
    choices: Choices<C>,
    journal: &Journal,
    options: CreateOptions,
    context: &Context,
) -> Result<Accepted<C::Object>, Error> {
    create(client, choices, Permits::default(), journal, options, context).await.1
}

fn request() -> CreateInstance {
    CreateInstance {
        name: Some("web".to_owned()),
        ..CreateInstance::new("r1", SpecSelector::Id(7), 1, ImageSelector::Public(3))
    }
}

fn patient(wait: Duration) -> CreateOptions {
    CreateOptions { wait_for_capacity: Some(wait), ..CreateOptions::default() }
}

fn made() -> Reply {
    ok(&json!({"instance_id": 11, "instance_uid": "ins-1", "payment_type": "Hourly", "release_time": 0}))
}

async fn create_with(
    client: &Client,
    journal: &Journal,
    options: CreateOptions,
    context: &Context,
) -> Result<Accepted<Instance>, Error> {
    permitted(client, request().into(), journal, options, context).await
}

async fn create_one(client: &Client, journal: &Journal, seconds: u64) -> Result<Accepted<Instance>, Error> {
    create_with(client, journal, CreateOptions::default(), &context(seconds)).await
}

/// A guard that permits some requests. The caller is gone when it is asked.
struct Asked {
    times: usize,
    permits: usize,
    ends: CancellationToken,
}

impl Guard for Asked {
    fn judge(&mut self, _found: Result<Vec<Leftover>, Error>) -> Permission {
        Permission::Send
    }

    async fn permit(&mut self, _attempt: Attempt) -> Permission {
        self.times += 1;
        self.ends.cancel();
        if self.times <= self.permits { Permission::Send } else { Permission::Refuse }
    }
}

async fn guarded<G: Guard>(
    client: &Client,
    journal: &Journal,
    guard: G,
    options: CreateOptions,
) -> (G, Result<Accepted<Instance>, Error>) {
    create(client, request().into(), guard, journal, options, &context(1800)).await
}

/// A service without instances, whose creates a closure answers.
fn answering_creates<F>(answer: impl Fn(Outgoing) -> F + Send + Sync + 'static) -> (Client, Ledger)
where
    F: Future<Output = Reply> + Send + 'static,
{
    serve(move |request| {
        let answer = (request.endpoint == Endpoint::InstanceCreate).then(|| answer(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => page(&[]),
            }
        }
    })
}

fn creates(ledger: &Ledger) -> usize {
    ledger.of(Endpoint::InstanceCreate).len()
}

/// A service that loses the answer of a create and shows the object some lists later.
struct Late {
    lists_until_shown: usize,
    made: Mutex<Vec<String>>,
    lists: AtomicUsize,
    answer: fn() -> Reply,
}

impl Late {
    fn serve(lists_until_shown: usize, answer: fn() -> Reply) -> (Client, Ledger) {
        let late = Arc::new(Self { lists_until_shown, made: Mutex::default(), lists: AtomicUsize::new(0), answer });
        serve(move |request| {
            let reply = late.reply(&request);
            async move { reply }
        })
    }

    fn reply(&self, request: &Outgoing) -> Reply {
        if request.endpoint == Endpoint::InstanceCreate {
            let body: Value = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
            self.made.lock().unwrap().push(body["instance_alias"].as_str().unwrap().to_owned());
            return (self.answer)();
        }
        let shown = self.lists.fetch_add(1, Ordering::SeqCst) >= self.lists_until_shown;
        let made = self.made.lock().unwrap();
        let records: Vec<Value> = made
            .iter()
            .enumerate()
            .filter(|_| shown)
            .map(|(number, name)| json!({"instance_uid": format!("ins-{number}"), "instance_alias": name}))
            .collect();
        page(&records)
    }
}

#[tokio::test(start_paused = true)]
async fn the_name_that_is_sent_carries_a_marker_and_the_file_lies_there_first() {
    let (_folder, journal) = journal();
    let (client, ledger) = answering_creates({
        let journal = journal.clone();
        move |request| {
            let listed = journal.list().unwrap().entries.remove(0).record;
            let body: Value = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
            assert_eq!(listed.phase, CreatePhase::Sent);
            assert_eq!(body["instance_alias"], listed.marker.as_str());
            async { made() }
        }
    });
    let accepted = create_one(&client, &journal, 60).await.unwrap();
    assert_eq!(accepted.made.uid.as_str(), "ins-1");
    assert_eq!(accepted.made.instance_id, Some(11));
    assert_eq!(accepted.origin, Origin::Answered);
    assert_eq!(accepted.rename_to.as_deref(), Some("web"));
    assert!(is_marked(&accepted.sent_name, ObjectKind::Instance, "web", journal.scope()));
    assert_eq!(accepted.ids.request_id.as_deref(), Some("req-1"));
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
    accepted.entry.finish().unwrap();
    assert_eq!(phases(&journal), [CreatePhase::Finished]);
    let body = ledger.of(Endpoint::InstanceCreate)[0].body();
    let sent: Vec<_> = body.as_object().unwrap().keys().cloned().collect();
    let documented = [
        "data_disk_expand_size",
        "gpu_num",
        "image_id",
        "image_type",
        "instance_alias",
        "payment_type",
        "region",
        "spec_id",
    ];
    assert_eq!(sent, documented);
}

#[tokio::test(start_paused = true)]
async fn without_a_journal_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (client, ledger) = serve(|_| async { made() });
    let error = create_one(&client, &Journal::new(file), 60).await.unwrap_err();
    assert!(matches!(error, Error::Journal(_)), "{error}");
    assert!(ledger.all().is_empty());
}

#[rstest]
#[case::lost(lost)]
#[case::gateway(|| raw(504, &[], "<html>"))]
#[case::internal(|| refusal(100014))]
#[case::cut(|| raw(200, &[], "{\"result\":{\"instance_u"))]
#[case::says_nothing(|| ok(&json!(null)))]
#[tokio::test(start_paused = true)]
async fn a_create_without_an_answer_is_found_by_its_marker_and_never_sent_again(#[case] answer: fn() -> Reply) {
    let (_folder, journal) = journal();
    let (client, ledger) = Late::serve(4, answer);
    let accepted = create_one(&client, &journal, 1800).await.unwrap();
    assert_eq!(accepted.made.uid.as_str(), "ins-0");
    assert_eq!(accepted.origin, Origin::Found);
    assert_eq!(creates(&ledger), 1);
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
}

#[tokio::test(start_paused = true)]
async fn a_create_without_an_answer_that_made_nothing_is_sent_once_more_and_then_ended() {
    let (_folder, journal) = journal();
    let (client, ledger) =
        serve(|request| async move { if request.endpoint == Endpoint::InstanceCreate { lost() } else { page(&[]) } });
    let start = Instant::now();
    let error = create_one(&client, &journal, 1800).await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    assert_eq!(creates(&ledger), 2);
    assert!(start.elapsed() < VISIBILITY_WINDOW * 2 + Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_lists_prove_nothing_stays_in_the_journal() {
    let (_folder, journal) = journal();
    let (client, ledger) = serve(|request| async move {
        if request.endpoint == Endpoint::InstanceCreate { lost() } else { ok(&json!({"total": 9, "data": []})) }
    });
    let error = create_one(&client, &journal, 1800).await.unwrap_err();
    let Error::Unsettled(unsettled) = &error else { panic!("{error}") };
    assert!(is_marked(&unsettled.marker, ObjectKind::Instance, "web", journal.scope()));
    assert!(matches!(unsettled.cause, Some(Error::NoAnswer { .. })));
    assert!(!unsettled.cancelled);
    assert_eq!(creates(&ledger), 1);
    assert_eq!(phases(&journal), [CreatePhase::Sent]);
}

#[tokio::test(start_paused = true)]
async fn two_things_with_one_marker_are_both_named() {
    let (_folder, journal) = journal();
    let listed = |error: Error| match error {
        Error::SeveralMatches { found, .. } => found,
        other => panic!("{other}"),
    };
    let fixed = Settings { random: Random::new(|| 0xeca2_fb78), ..testing::settings() };
    let (client, _) = serve_with(fixed, |request| async move {
        if request.endpoint == Endpoint::InstanceCreate {
            return lost();
        }
        let marker = format!("web-{}eca2fb78", Scope::default().digits(ObjectKind::Instance, Some("web")));
        page(&[
            json!({"instance_uid": "a", "instance_alias": marker}),
            json!({"instance_uid": "b", "instance_alias": marker}),
        ])
    });
    let error = create_one(&client, &journal, 60).await.unwrap_err();
    assert_eq!(listed(error), ["a", "b"]);
    assert_eq!(phases(&journal), [CreatePhase::Sent]);
}

#[rstest]
#[case::refused(never_sent)]
#[case::limited(|| raw(429, &[("retry-after", "2")], "slow down"))]
#[tokio::test(start_paused = true)]
async fn what_was_not_processed_is_sent_again(#[case] failure: fn() -> Reply) {
    let (_folder, journal) = journal();
    let asked = AtomicUsize::new(0);
    let (client, ledger) = answering_creates(move |_| {
        let early = asked.fetch_add(1, Ordering::SeqCst) < 3;
        async move { if early { failure() } else { made() } }
    });
    let accepted = create_one(&client, &journal, 600).await.unwrap();
    assert_eq!(accepted.origin, Origin::Answered);
    let asked = ledger.of(Endpoint::InstanceCreate);
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|one| one.body()["instance_alias"] == accepted.sent_name.as_str()));
}

#[rstest]
#[case::parameter(|| refusal(100002))]
#[case::balance(|| refusal(100038))]
#[case::stock(|| refusal(160001))]
#[case::token(|| refusal(100006))]
#[case::refused(never_sent)]
#[case::forbidden(|| raw(403, &[], "<html>"))]
#[tokio::test(start_paused = true)]
async fn what_was_refused_leaves_no_trace(#[case] failure: fn() -> Reply) {
    let (_folder, journal) = journal();
    let (client, ledger) = answering_creates(move |_| async move { failure() });
    let error = create_one(&client, &journal, 600).await.unwrap_err();
    assert!(!matches!(error, Error::Unsettled(_)), "{error}");
    assert!(phases(&journal).is_empty());
    assert_eq!(ledger.of(Endpoint::InstanceList).len(), 1, "the search for leftovers");
}

#[tokio::test(start_paused = true)]
async fn an_undocumented_refusal_is_believed_when_nothing_shows_up() {
    let (_folder, journal) = journal();
    let (client, ledger) = Late::serve(usize::MAX, || refusal(199_999));
    let start = Instant::now();
    let error = create_one(&client, &journal, 1800).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Other(199_999)));
    assert!(start.elapsed() >= VISIBILITY_WINDOW && start.elapsed() < VISIBILITY_WINDOW + Duration::from_secs(30));
    assert_eq!(creates(&ledger), 1);
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn stock_is_waited_for_politely_when_asked() {
    let (_folder, journal) = journal();
    let start = Instant::now();
    let settings = Settings { progress: progress::beside(&journal), ..testing::settings() };
    let (client, ledger) = serve_with(settings, move |_| async move {
        if start.elapsed() < Duration::from_secs(600) { refusal(160_004) } else { made() }
    });
    let options = patient(Duration::from_secs(1200));
    let accepted = create_with(&client, &journal, options, &context(3600)).await.unwrap();
    accepted.entry.finish().unwrap();
    // Another thread writes the events, in real time.
    let begun = std::time::Instant::now();
    let events = loop {
        let events = progress::Follower::beside(&journal).look().unwrap().events;
        if events.iter().any(|seen| seen.event.ended.is_some()) {
            break events;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the wait has no end in {events:?}");
        tokio::task::yield_now().await;
    };
    let phases: Vec<_> = events.iter().map(|seen| (seen.event.phase.as_str(), seen.event.ended)).collect();
    assert_eq!(phases, [("waiting for stock", None), ("waiting for stock", Some(WaitEnding::Done))]);
    assert!((8..40).contains(&creates(&ledger)), "{}", creates(&ledger));

    let options = patient(Duration::from_secs(60));
    let (client, _) = serve(|_| async { refusal(160_001) });
    let start = Instant::now();
    let error = create_with(&client, &journal, options, &context(3600)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::ResourceInsufficient));
    assert!(start.elapsed() >= Duration::from_secs(60) && start.elapsed() < Duration::from_secs(200));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_capacity_takes_nothing_from_the_time_of_the_create() {
    let (_folder, journal) = journal();
    let start = Instant::now();
    let (client, _) =
        serve(
            move |_| async move { if start.elapsed() < Duration::from_secs(3600) { refusal(160_001) } else { made() } },
        );
    let options = patient(Duration::from_secs(7200));
    let accepted = create_with(&client, &journal, options, &context(1800)).await.unwrap();
    // The whole time is left for the wait that follows; a paused clock is exact to its tick.
    let left = accepted.deadline - Instant::now();
    assert!(left > Duration::from_secs(1799) && left <= Duration::from_secs(1800), "{left:?}");

    // Other waits keep the time limit.
    let (client, _) = answering_creates(|_| async { raw(429, &[("retry-after", "100")], "slow down") });
    let options = patient(Duration::from_secs(7200));
    let start = Instant::now();
    create_with(&client, &journal, options, &context(60)).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_wanted_any_more_after_a_wait_for_capacity_is_not_sent_again() {
    let (_folder, journal) = journal();
    let (client, ledger) = serve(|_| async { refusal(160_001) });
    let guard = Asked { times: 0, permits: 3, ends: CancellationToken::new() };
    let (guard, outcome) = guarded(&client, &journal, guard, patient(Duration::from_secs(7200))).await;
    assert!(matches!(outcome.unwrap_err(), Error::Withdrawn { .. }));
    assert_eq!((guard.times, creates(&ledger)), (4, 3));
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_for_a_caller_that_is_gone() {
    let (_folder, journal) = journal();
    let (client, ledger) = serve(|_| async { made() });
    let caller_gone = CancellationToken::new();
    let guard = Asked { times: 0, permits: 1, ends: caller_gone.clone() };
    let options = CreateOptions { caller_gone, ..CreateOptions::default() };
    let error = guarded(&client, &journal, guard, options).await.1.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert_eq!(creates(&ledger), 0);
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_killed_after_sending_is_taken_up() {
    let (_folder, journal) = journal();
    let (client, ledger) = Late::serve(6, lost);
    // The killed run: it ends after the request was sent.
    create_one(&client, &journal, 2).await.unwrap_err();
    assert_eq!(phases(&journal), [CreatePhase::Sent]);
    let accepted = create_one(&client, &next(&journal), 1800).await.unwrap();
    assert_eq!(accepted.made.uid.as_str(), "ins-0");
    assert_eq!(creates(&ledger), 1);
    // Killed again, after the acceptance and before the answer.
    drop(accepted);
    let accepted = create_one(&client, &next(&journal), 1800).await.unwrap();
    assert_eq!(accepted.origin, Origin::Adopted);
    assert_eq!(accepted.made.uid.as_str(), "ins-0");
    assert_eq!(creates(&ledger), 1);
    // Finished: the next create of the same configuration is a new one.
    accepted.entry.finish().unwrap();
    let (client, ledger) = serve(|_| async { made() });
    let accepted = create_one(&client, &next(&journal), 60).await.unwrap();
    assert_eq!(accepted.origin, Origin::Answered);
    assert_eq!(creates(&ledger), 1);
}

#[tokio::test(start_paused = true)]
async fn a_create_that_made_nothing_is_sent_again_after_the_window_with_its_marker() {
    let (_folder, journal) = journal();
    let (client, _) = Late::serve(usize::MAX, lost);
    let marker = match create_one(&client, &journal, 5).await.unwrap_err() {
        Error::Unsettled(unsettled) => unsettled.marker,
        other => panic!("{other}"),
    };
    let (client, ledger) =
        serve(|request| async move { if request.endpoint == Endpoint::InstanceCreate { made() } else { page(&[]) } });
    let start = Instant::now();
    let accepted = create_one(&client, &next(&journal), 1800).await.unwrap();
    assert!(start.elapsed() + Duration::from_secs(2) >= VISIBILITY_WINDOW);
    assert_eq!(accepted.sent_name, marker);
    assert_eq!(creates(&ledger), 1);
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_proves_nothing_does_not_lead_to_a_second_create() {
    let (_folder, journal) = journal();
    let (client, _) = Late::serve(usize::MAX, lost);
    create_one(&client, &journal, 5).await.unwrap_err();
    let (client, ledger) = serve(|_| async { ok(&json!({"total": 9, "data": []})) });
    let error = create_one(&client, &next(&journal), 1800).await.unwrap_err();
    assert!(matches!(error, Error::Unsettled(_)), "{error}");
    assert_eq!(creates(&ledger), 0);
    assert_eq!(phases(&journal), [CreatePhase::Sent]);
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_read_stop_a_create() {
    let (_folder, journal) = journal();
    std::fs::write(journal.directory().join("instance-1.json"), "{").unwrap();
    let (client, ledger) = serve(|_| async { made() });
    let error = create_one(&client, &journal, 60).await.unwrap_err();
    assert!(error.to_string().contains("instance-1.json"), "{error}");
    assert!(ledger.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_flight_waits_for_the_id() {
    let (_folder, journal) = journal();
    let (client, _) = answering_creates(|_| async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        made()
    });
    let cancel = CancellationToken::new();
    let context = Context::within(Duration::from_secs(60), &cancel);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    let (accepted, ()) = tokio::join!(create_with(&client, &journal, CreateOptions::default(), &context), stop);
    assert_eq!(accepted.unwrap().made.uid.as_str(), "ins-1");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_looking_ends_at_once_and_keeps_the_entry() {
    let (_folder, journal) = journal();
    let (client, _) = Late::serve(usize::MAX, lost);
    let cancel = CancellationToken::new();
    let context = Context::within(Duration::from_secs(600), &cancel);
    let start = Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(create_with(&client, &journal, CreateOptions::default(), &context), stop);
    let Error::Unsettled(unsettled) = outcome.unwrap_err() else { panic!("settled") };
    assert!(unsettled.cancelled);
    assert_eq!(start.elapsed(), Duration::from_secs(20));
    assert_eq!(phases(&journal), [CreatePhase::Sent]);
}

/// Kills a run after its create was accepted, or before the answer arrived; returns the create's marker.
async fn killed(journal: &Journal, answered: bool) -> String {
    let (client, _) = Late::serve(usize::MAX, if answered { made } else { lost });
    match create_one(&client, journal, 5).await {
        Ok(accepted) => accepted.sent_name,
        Err(Error::Unsettled(unsettled)) => unsettled.marker,
        Err(other) => panic!("{other}"),
    }
}

#[rstest]
#[case::accepted(true, CreatePhase::Accepted)]
#[case::sent(false, CreatePhase::Sent)]
#[tokio::test(start_paused = true)]
async fn what_was_released_since_is_made_anew(#[case] answered: bool, #[case] left: CreatePhase) {
    let (_folder, journal) = journal();
    let marker = killed(&journal, answered).await;
    assert_eq!(phases(&journal), [left]);
    let released = marker.clone();
    let (client, ledger) = serve(move |request| {
        let record = json!({"instance_uid": "ins-1", "instance_alias": released, "status": "Released"});
        async move {
            match request.endpoint {
                Endpoint::InstanceCreate => ok(&json!({"instance_uid": "ins-2"})),
                Endpoint::InstanceDetail => refusal(160_003),
                _ => page(&[record]),
            }
        }
    });
    // Both runs draw from the same seed.
    let _ = client.random().next();
    let accepted = create_one(&client, &next(&journal), 600).await.unwrap();
    assert_eq!(accepted.made.uid.as_str(), "ins-2");
    assert_ne!(accepted.sent_name, marker);
    assert_eq!(creates(&ledger), 1);
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
}

/// It may be too young to be shown. The run does not say that nothing was created: the state gets the object, as after
/// a lookup that failed.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_shown_before_the_run_ends_is_adopted() {
    let (_folder, journal) = journal();
    killed(&journal, true).await;
    let (client, ledger) = serve(|request| async move {
        if request.endpoint == Endpoint::InstanceDetail { refusal(160_003) } else { page(&[]) }
    });
    let accepted = create_one(&client, &next(&journal), 30).await.unwrap();
    assert_eq!((accepted.made.uid.as_str(), accepted.origin), ("ins-1", Origin::Adopted));
    assert_eq!(creates(&ledger), 0);
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
}
