//! Creates with several choices.

use super::*;
use crate::creation::pending::Begin;

/// Three candidates, by their specifications.
fn candidates() -> Choices<CreateInstance> {
    let candidate = |spec| CreateInstance { spec: SpecSelector::Id(spec), is_candidate: true, ..request() };
    Choices::new(candidate(7), vec![candidate(8), candidate(9)])
}

async fn create_one_of(
    client: &Client,
    journal: &Journal,
    options: CreateOptions,
) -> Result<Accepted<Instance>, Error> {
    permitted(client, candidates(), journal, options, &context(1800)).await
}

/// Serves creates with these answers in order, and repeats the last one.
fn answering(answers: &'static [fn() -> Reply]) -> (Client, Ledger) {
    let asked = AtomicUsize::new(0);
    serve(move |request| {
        let answer = match request.endpoint {
            Endpoint::InstanceCreate => {
                let place = asked.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                answers[place]()
            }
            _ => page(&[]),
        };
        async move { answer }
    })
}

/// The specifications in the requests of creates.
fn asked_for(ledger: &Ledger) -> Vec<i64> {
    let creates = ledger.of(Endpoint::InstanceCreate);
    let bodies = creates.iter().map(|request| serde_json::to_value(request.body()).unwrap());
    bodies.map(|body| body["spec_id"].as_i64().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_want_of_stock_or_cuda_leads_to_the_next_candidate() {
    let (_folder, journal) = journal();
    let (client, ledger) = answering(&[|| refusal(160_014), || refusal(160_032), made]);
    let accepted = create_one_of(&client, &journal, CreateOptions::default()).await.unwrap();
    assert_eq!((accepted.choice, accepted.made.uid.as_str(), asked_for(&ledger)), (2, "ins-1", vec![7, 8, 9]));
    let record = accepted.entry.record();
    assert_eq!((record.candidate.as_deref(), record.refused), (Some("1 \u{d7} spec_id 9 in r1"), false));
    assert_eq!(ledger.of(Endpoint::InstanceList).len(), 1, "the search for leftovers");
}

#[tokio::test(start_paused = true)]
async fn any_other_error_ends_a_create_with_candidates() {
    let (_folder, journal) = journal();
    let (client, ledger) = answering(&[|| refusal(100_038), made]);
    let error = create_one_of(&client, &journal, CreateOptions::default()).await.unwrap_err();
    assert_eq!((error.code(), asked_for(&ledger)), (Some(Code::BalanceNotEnough), vec![7]));
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_round_the_candidates_that_stock_can_help() {
    let (_folder, journal) = journal();
    let (client, ledger) =
        answering(&[|| refusal(160_032), || refusal(160_001), || refusal(160_001), || refusal(160_001), made]);
    let accepted = create_one_of(&client, &journal, patient(Duration::from_secs(600))).await.unwrap();
    assert_eq!((accepted.choice, asked_for(&ledger)), (2, vec![7, 8, 9, 8, 9]));
    accepted.entry.discard().unwrap();
    let (client, ledger) = answering(&[|| refusal(160_001)]);
    let Error::NoneAccepted(refusals) = create_one_of(&client, &journal, CreateOptions::default()).await.unwrap_err()
    else {
        panic!("accepted")
    };
    let codes: Vec<_> = refusals.iter().map(|refusal| (refusal.choice, refusal.error.code())).collect();
    let lacking = Some(Code::ResourceInsufficient);
    assert_eq!(codes, [(0, lacking), (1, lacking), (2, lacking)]);
    assert_eq!(asked_for(&ledger), [7, 8, 9].repeat(6));
    assert!(phases(&journal).is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_one_refusal_of_each_candidate_is_not_the_end() {
    let (_folder, journal) = journal();
    let no_stock: fn() -> Reply = || refusal(160_001);
    let answers: &'static [fn() -> Reply] = Box::leak(Box::new([no_stock, no_stock, no_stock, no_stock, made]));
    let (client, ledger) = answering(answers);
    let start = Instant::now();
    let accepted = create_one_of(&client, &journal, CreateOptions::default()).await.unwrap();
    assert_eq!((accepted.choice, asked_for(&ledger)), (1, vec![7, 8, 9, 7, 8]));
    assert!(start.elapsed() <= Duration::from_secs(1));
    accepted.entry.discard().unwrap();
    // A single specification is requested once.
    let (client, ledger) = answering(&[|| refusal(160_001)]);
    let error = create_one(&client, &journal, 60).await.unwrap_err();
    assert_eq!((error.code(), ledger.of(Endpoint::InstanceCreate).len()), (Some(Code::ResourceInsufficient), 1));
}

/// Each request whose answer is lost, and that made nothing, is sent once more, whatever came before it.
#[tokio::test(start_paused = true)]
async fn answers_lost_between_two_refusals_do_not_end_a_wait() {
    let (_folder, journal) = journal();
    let (client, ledger) =
        answering(&[lost, || refusal(160_001), || refusal(160_001), || refusal(160_001), lost, made]);
    let accepted = create_one_of(&client, &journal, patient(Duration::from_secs(600))).await.unwrap();
    assert_eq!((accepted.choice, asked_for(&ledger)), (0, vec![7, 7, 8, 9, 7, 7]));
}

#[tokio::test(start_paused = true)]
async fn a_run_killed_after_a_refusal_goes_on_with_the_next_candidate_at_once() {
    let (_folder, journal) = journal();
    let (client, ledger) = answering(&[made]);
    let account = client.account(&context(60)).await.unwrap();
    let base_url = client.settings().base_url.as_ref().unwrap().to_string();
    let begin = Begin {
        kind: ObjectKind::Instance,
        wanted_name: Some("web".to_owned()),
        request: request_hash(candidates().at(0)),
        marker: "web-beef00000001".to_owned(),
        base_url,
        account,
        candidate: Some("1 \u{d7} spec_id 7 in r1".to_owned()),
    };
    let mut entry = journal.begin(begin).unwrap();
    entry.refused().unwrap();
    drop(entry);
    let journal = next(&journal);
    assert!(journal.left_behind().unwrap().is_empty(), "nothing was made");
    let start = Instant::now();
    let accepted = create_one_of(&client, &journal, CreateOptions::default()).await.unwrap();
    assert_eq!((accepted.choice, accepted.sent_name.as_str()), (1, "web-beef00000001"));
    assert_eq!((asked_for(&ledger), ledger.of(Endpoint::InstanceList).len()), (vec![8], 1));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_run_made_of_another_candidate_is_left_alone() {
    let (_folder, journal) = journal();
    let (client, _) = answering(&[|| refusal(160_001), made]);
    drop(create_one_of(&client, &journal, CreateOptions::default()).await.unwrap());
    assert_eq!(phases(&journal), [CreatePhase::Accepted]);
    // The second candidate is no longer in the list.
    let (client, ledger) = answering(&[made]);
    let only = CreateInstance { is_candidate: true, ..request() };
    let (journal, options) = (next(&journal), CreateOptions::default());
    let made = permitted(&client, only.into(), &journal, options, &context(60)).await.unwrap();
    assert_eq!((made.origin, asked_for(&ledger)), (Origin::Answered, vec![7]));
    assert_eq!(phases(&journal).len(), 2);
}
