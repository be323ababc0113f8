//! Lists that come in pages.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::transport::Outgoing;
use crate::api::{
    endpoint::Endpoint,
    records::Instance,
    testing::{Reply, context, ok, query, serve},
};

fn instances(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({"instance_uid": format!("ins-{number:04}")})).rev().collect()
}

fn number(request: &Outgoing, name: &str) -> usize {
    query(request, name).unwrap().parse().unwrap()
}

/// A service that gives `cap` records a page at most, and takes 0 for `zero`.
fn cut(all: &[Value], request: &Outgoing, cap: usize, zero: usize) -> Reply {
    let size = match number(request, "page_size") {
        0 => zero,
        size => size,
    }
    .min(cap);
    let start = number(request, "page").saturating_sub(1) * size;
    let data: Vec<_> = all.iter().skip(start).take(size).collect();
    ok(&json!({"total": all.len(), "page": 1, "page_size": size, "data": data}))
}

async fn list(client: &Client) -> Listing<Instance> {
    let request = Request::new(Endpoint::InstanceList);
    paged(client, &context(60), &request, Retry::AsConfigured).await.unwrap()
}

#[rstest]
#[case::no_cap(300, usize::MAX, usize::MAX, 1)]
#[case::empty(0, usize::MAX, usize::MAX, 1)]
#[case::cap_of_100(300, 100, 100, 3)]
#[case::cap_of_100_uneven(301, 100, 100, 4)]
#[case::cap_of_250(300, 250, 250, 2)]
#[case::zero_is_ten(300, usize::MAX, 10, 4)]
#[case::zero_is_none(300, usize::MAX, 0, 4)]
#[case::cap_of_50(120, 50, 50, 4)]
#[tokio::test(start_paused = true)]
async fn every_page_size_leads_to_the_total(
    #[case] count: usize,
    #[case] cap: usize,
    #[case] zero: usize,
    #[case] requests: usize,
) {
    let all = instances(count);
    let (client, ledger) = serve(move |request| {
        let reply = cut(&all, &request, cap, zero);
        async move { reply }
    });
    let listing = list(&client).await;
    assert!(listing.complete);
    assert_eq!(listing.records.len(), count);
    assert!(listing.records.is_sorted_by_key(|instance| instance.uid.clone()));
    assert_eq!(ledger.all().len(), requests);
}

#[rstest]
#[case::short_of_total(json!({"total": 3, "data": [{"instance_uid": "a"}]}), 1, 0)]
#[case::no_total(json!({"data": [{"instance_uid": "a"}]}), 1, 0)]
#[case::bare_array(json!([{"instance_uid": "a"}]), 1, 0)]
#[case::odd_record(json!({"total": 2, "data": [{"instance_uid": "a"}, {"status": "Running"}]}), 1, 1)]
#[case::more_than_total(json!({"total": 1, "data": [{"instance_uid": "a"}, {"instance_uid": "b"}]}), 2, 0)]
#[case::null(json!(null), 0, 0)]
#[tokio::test(start_paused = true)]
async fn a_list_that_proves_nothing_is_not_complete(
    #[case] result: Value,
    #[case] records: usize,
    #[case] skipped: usize,
) {
    let (client, _) = serve(move |_| {
        let reply = ok(&result);
        async move { reply }
    });
    let listing = list(&client).await;
    assert!(!listing.complete);
    assert_eq!((listing.records.len(), listing.skipped), (records, skipped));
}

#[rstest]
#[case(json!({"total": 0, "data": null}))]
#[case(json!({"total": "0", "data": []}))]
#[tokio::test(start_paused = true)]
async fn an_empty_list_is_complete(#[case] result: Value) {
    let (client, _) = serve(move |_| {
        let reply = ok(&result);
        async move { reply }
    });
    assert!(list(&client).await.complete);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changes_between_pages_is_asked_for_again() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let (client, ledger) = serve(move |request| {
        let before = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let all = instances(if before == 0 { 150 } else { 149 });
        let reply = cut(&all, &request, 100, 100);
        async move { reply }
    });
    let listing = list(&client).await;
    assert!(listing.complete);
    assert_eq!(listing.records.len(), 149);
    assert_eq!(ledger.all().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_always_changes_is_given_as_incomplete() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let (client, _) = serve(move |request| {
        let before = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let reply = cut(&instances(150 + before), &request, 100, 100);
        async move { reply }
    });
    assert!(!list(&client).await.complete);
}
