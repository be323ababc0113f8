//! Saves of private images, whose names have no marker.

use jiff::Timestamp;

use super::*;
use crate::api::{InstanceUid, PrivateImage, SaveImage};

const ORIGIN: &str = "registry.example.com/model_library/pytorch:2.4";

fn request() -> SaveImage {
    SaveImage {
        original_images: vec!["pytorch:2.4".to_owned()],
        ..SaveImage::new(InstanceUid::new("ins-1"), "trained")
    }
}

async fn save_with(
    client: &Client,
    journal: &Journal,
    options: CreateOptions,
    seconds: u64,
) -> Result<Accepted<PrivateImage>, Error> {
    permitted(client, request().into(), journal, options, &context(seconds)).await
}

async fn save_one(client: &Client, journal: &Journal, seconds: u64) -> Result<Accepted<PrivateImage>, Error> {
    save_with(client, journal, CreateOptions::default(), seconds).await
}

fn patient() -> CreateOptions {
    CreateOptions { while_busy: WhileBusy::Wait, ..CreateOptions::default() }
}

fn saved() -> Reply {
    ok(&json!({"image_id": 5, "image_tag": "registry/user_private/trained:1"}))
}

/// A service that answers a save with `answer`, and lists `image` beside one of another name.
fn listing(answer: fn() -> Reply, image: Value) -> (Client, Ledger) {
    serve(move |request| {
        let other = json!({"image_id": 1, "image_name": "trained-2", "original_image": ORIGIN, "create_time": now()});
        let reply = if request.endpoint == Endpoint::ImageSave { answer() } else { page(&[other, image.clone()]) };
        async move { reply }
    })
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

#[tokio::test(start_paused = true)]
async fn the_name_is_sent_as_it_is() {
    let (_folder, journal) = journal();
    let (client, ledger) = serve(|_| async { saved() });
    let accepted = save_one(&client, &journal, 60).await.unwrap();
    let tag = Some("registry/user_private/trained:1".to_owned());
    assert_eq!((accepted.made.image_id, accepted.made.image_tag), (5, tag));
    assert_eq!((accepted.sent_name.as_str(), accepted.rename_to), ("trained", None));
    assert_eq!(accepted.origin, Origin::Answered);
    let asked = ledger.all();
    assert_eq!(asked[0].request.url.path(), "/api/instance/save_image_v2");
    assert_eq!(asked[0].body(), json!({"instance_uid": "ins-1", "image_name": "trained"}));
    assert_eq!(asked.len(), 1);
    accepted.entry.finish().unwrap();
    let journal = next(&journal);
    assert!(journal.seen(ObjectKind::PrivateImage, "5", None, "http://127.0.0.1:1").unwrap());
}

#[rstest]
#[case::lost(lost)]
#[case::gateway(|| raw(504, &[], "<html>"))]
#[case::internal(|| refusal(100_014))]
#[case::says_nothing(|| ok(&json!(null)))]
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_settled_by_name_origin_and_date(#[case] answer: fn() -> Reply) {
    let (_folder, journal) = journal();
    let image = json!({"image_id": 5, "image_name": "trained", "image_tag": "t", "original_image": ORIGIN,
        "create_time": now()});
    let (client, ledger) = listing(answer, image);
    let accepted = save_one(&client, &journal, 600).await.unwrap();
    assert_eq!((accepted.made.image_id, accepted.made.image_tag.as_deref()), (5, Some("t")));
    assert_eq!(accepted.origin, Origin::Found);
    assert_eq!(ledger.of(Endpoint::ImageSave).len(), 1);
}

#[rstest]
#[case::undated(json!({"original_image": ORIGIN}), true)]
#[case::no_origin(json!({"create_time": now()}), true)]
#[case::neither(json!({}), false)]
#[case::clock_behind(json!({"create_time": now() - 240}), true)]
#[case::old(json!({"create_time": now() - 3600, "original_image": ORIGIN}), false)]
#[case::another_origin(json!({"create_time": now(), "original_image": "registry/other:1"}), false)]
#[case::end_of_a_name(json!({"create_time": now(), "original_image": "registry/my-pytorch:2.4"}), false)]
#[case::short_origin(json!({"create_time": now(), "original_image": "pytorch:2.4"}), true)]
#[tokio::test(start_paused = true)]
async fn what_was_there_before_is_not_ours(#[case] fields: Value, #[case] ours: bool) {
    let (_folder, journal) = journal();
    let mut image = json!({"image_id": 5, "image_name": "trained"});
    image.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let (client, ledger) = listing(lost, image);
    let outcome = save_one(&client, &journal, 60).await;
    assert_eq!(outcome.is_ok(), ours, "{outcome:?}");
    assert_eq!(phases(&journal), [if ours { CreatePhase::Accepted } else { CreatePhase::Sent }]);
    assert_eq!(ledger.of(Endpoint::ImageSave).len(), 1);
}

#[rstest]
#[case::busy(130_002, 200)]
#[case::too_often(130_003, 200)]
#[case::too_often_with_a_status(130_003, 429)]
#[tokio::test(start_paused = true)]
async fn busy_codes_are_waited_out_when_asked(#[case] code: i64, #[case] status: u16) {
    let busy = move || {
        let mut reply = refusal(code);
        reply.as_mut().unwrap().status = status;
        reply
    };
    let (_folder, journal) = journal();
    let start = Instant::now();
    let (client, ledger) =
        serve(move |_| async move { if start.elapsed() < Duration::from_secs(900) { busy() } else { saved() } });
    let accepted = save_with(&client, &journal, patient(), 3600).await.unwrap();
    assert_eq!(accepted.made.image_id, 5);
    assert!(start.elapsed() < Duration::from_secs(945), "{:?}", start.elapsed());
    assert!((20..60).contains(&ledger.all().len()), "{}", ledger.all().len());
    accepted.entry.finish().unwrap();

    let (client, _) = serve(move |_| async move { busy() });
    let start = Instant::now();
    let error = save_with(&client, &journal, patient(), 120).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::from_number(code)));
    assert!(start.elapsed() <= Duration::from_secs(120) && start.elapsed() >= Duration::from_secs(80));
    assert!(phases(&journal).iter().all(|phase| *phase == CreatePhase::Finished));
}

#[rstest]
#[case::busy_by_default(130_002, CreateOptions::default())]
#[case::name(130_001, patient())]
#[case::count(130_008, patient())]
#[case::balance(100_038, patient())]
#[tokio::test(start_paused = true)]
async fn other_refusals_are_final(#[case] code: i64, #[case] options: CreateOptions) {
    let (_folder, journal) = journal();
    let (client, ledger) = serve(move |_| async move { refusal(code) });
    let error = save_with(&client, &journal, options, 600).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::from_number(code)));
    assert_eq!(ledger.all().len(), 1);
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_run_left_is_taken_up() {
    let (_folder, journal) = journal();
    let (client, _) = serve(|_| async { saved() });
    drop(save_one(&client, &journal, 60).await.unwrap());
    let (client, ledger) = listing(saved, json!({"image_id": 5, "image_name": "renamed"}));
    let accepted = save_one(&client, &next(&journal), 60).await.unwrap();
    assert_eq!((accepted.made.image_id, accepted.origin), (5, Origin::Adopted));
    assert!(ledger.of(Endpoint::ImageSave).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_search_by_name_has_the_last_word() {
    let (_folder, journal) = journal();
    let (client, _) = serve(|request| async move {
        match (request.endpoint, query(&request, "image_name").as_deref()) {
            (Endpoint::ImageSave, _) => lost(),
            (_, Some("trained")) => page(&[json!({"image_id": 5, "image_name": "trained", "create_time": now()})]),
            _ => page(&[]),
        }
    });
    save_one(&client, &journal, 5).await.unwrap_err();
    let accepted = save_one(&client, &next(&journal), 1800).await.unwrap();
    assert_eq!((accepted.made.image_id, accepted.origin), (5, Origin::Adopted));
}
