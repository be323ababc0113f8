//! Instances: records and statuses.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::testing::{Reply, context, ok, page, refusal, serve};

fn uid() -> InstanceUid {
    InstanceUid::new("ins-1")
}

async fn looked(detail: fn() -> Reply, list: fn() -> Reply) -> Result<Presence<InstanceDetail>, Error> {
    let (client, _) =
        serve(
            move |request| async move { if request.endpoint == Endpoint::InstanceDetail { detail() } else { list() } },
        );
    client.instances().look(&uid(), None, &context(600)).await
}

fn shown(status: &str) -> Value {
    json!({"instance_uid": "ins-1", "status": status})
}

fn unknown() -> Reply {
    refusal(160_003)
}

fn others() -> Reply {
    page(&[json!({"instance_uid": "ins-2"})])
}

#[rstest]
#[case::alive(|| ok(&shown("Running")), others, "Present")]
#[case::released_by_detail(|| ok(&shown("Released")), others, "Released")]
#[case::released_by_list(unknown, || page(&[shown("Released")]), "Released")]
#[case::absent(unknown, others, "Absent")]
#[case::absent_from_an_empty_account(unknown, || page(&[]), "Absent")]
#[case::contradiction(unknown, || page(&[shown("Running")]), "Unproved")]
#[case::list_cut_short(unknown, || ok(&json!({"total": 9, "data": []})), "Unproved")]
#[case::list_without_total(unknown, || ok(&json!({"data": []})), "Unproved")]
#[case::list_with_an_odd_record(unknown, || page(&[json!({"status": "Running"})]), "Unproved")]
#[case::list_is_null(unknown, || ok(&json!(null)), "Unproved")]
#[tokio::test(start_paused = true)]
async fn absence_takes_two_proofs(#[case] detail: fn() -> Reply, #[case] list: fn() -> Reply, #[case] presence: &str) {
    let found = looked(detail, list).await.unwrap();
    assert!(format!("{found:?}").starts_with(presence), "{found:?}");
}

#[rstest]
#[case::detail_forbidden(|| refusal(100_042), others)]
#[case::detail_broken(|| refusal(100_014), others)]
#[case::list_forbidden(unknown, || refusal(100_042))]
#[tokio::test(start_paused = true)]
async fn any_other_error_is_an_error(#[case] detail: fn() -> Reply, #[case] list: fn() -> Reply) {
    looked(detail, list).await.unwrap_err();
}

#[rstest]
#[case(json!({"instance_uid": "ins-2"}))]
#[case(json!(null))]
#[case(json!({"status": "Running"}))]
#[tokio::test(start_paused = true)]
async fn a_detail_of_something_else_is_no_detail(#[case] result: Value) {
    let (client, _) = serve(move |_| {
        let reply = ok(&result);
        async move { reply }
    });
    let error = client.instances().detail(&uid(), &context(600)).await.unwrap_err();
    assert!(matches!(error, Error::Undecodable(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_looks_for_what_is_gone_share_their_lists() {
    let (client, ledger) = serve(|request| async move {
        if request.endpoint == Endpoint::InstanceDetail { refusal(160_003) } else { page(&[]) }
    });
    let (instances, context) = (client.instances(), context(600));
    let uids: Vec<_> = (0..1000).map(|number| InstanceUid::new(format!("ins-{number}"))).collect();
    let looks = uids.iter().map(|uid| instances.look(uid, None, &context));
    let found = futures_util::future::join_all(looks).await;
    assert!(found.iter().all(|presence| matches!(presence, Ok(Presence::Absent))));
    assert!(ledger.of(Endpoint::InstanceList).len() < 100, "{}", ledger.of(Endpoint::InstanceList).len());
}
