//! Cloud disks: records and changes.

use std::time::Duration;

use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::api::{
    Code, Sighting,
    testing::{Reply, context, ok, page, query, refusal, serve},
};

fn null() -> Reply {
    ok(&json!(null))
}

#[tokio::test(start_paused = true)]
async fn changes_send_what_is_documented() {
    let (client, ledger) = serve(|_| async { null() });
    let (disks, context) = (client.cloud_disks(), context(60));
    disks.rename(&21, "new", &context).await.unwrap();
    disks.resize(21, 200, &context).await.unwrap();
    disks.release(&21, &context).await.unwrap();
    let sent: Vec<_> = ledger.all().iter().map(|asked| (asked.request.url.path().to_owned(), asked.body())).collect();
    let expected = [
        ("/api/storage/cloud_disk/rename".to_owned(), json!({"id": 21, "name": "new"})),
        ("/api/storage/cloud_disk/resize".to_owned(), json!({"id": 21, "size_gb": 200})),
        ("/api/storage/cloud_disk/release".to_owned(), json!({"id": 21})),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test(start_paused = true)]
async fn a_resize_is_waited_for_by_size_and_status() {
    let start = Instant::now();
    let (client, ledger) = serve(move |_| async move {
        let (size, status) = match start.elapsed().as_secs() {
            0..10 => (100, 6),
            10..20 => (200, 3),
            _ => (200, 6),
        };
        page(&[json!({"id": 21, "size_gb": size, "status": status})])
    });
    let grown = |seen: &Sighting<CloudDisk>| {
        seen.record().is_some_and(|disk| disk.size_gb == Some(200) && disk.status == Some(6))
    };
    client.cloud_disks().wait(&21, &context(600), grown).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(20) && start.elapsed() < Duration::from_secs(23));
    assert!(ledger.all().iter().all(|asked| asked.request.endpoint == Endpoint::CloudDiskList));
    let error = client.cloud_disks().wait(&21, &context(30), |_| false).await.unwrap_err();
    assert!(error.to_string().contains("cloud disk 21 timed out, last seen mounted with 200 GB"));
}

fn others() -> Reply {
    page(&[json!({"id": 1})])
}

#[rstest]
#[case::alive(|| page(&[json!({"id": 21, "status": 6})]), others, "Present")]
#[case::released(|| page(&[json!({"id": 21, "status": 7})]), others, "Released")]
#[case::absent(others, others, "Absent")]
#[case::absent_from_an_empty_account(|| page(&[]), || page(&[]), "Absent")]
#[case::contradiction(others, || page(&[json!({"id": 21})]), "Unproved")]
#[case::list_cut_short(|| ok(&json!({"total": 9, "data": []})), others, "Unproved")]
#[case::list_without_total(|| ok(&json!({"data": []})), others, "Unproved")]
#[case::list_is_null(null, others, "Unproved")]
#[case::search_cut_short(others, || ok(&json!({"total": 9, "data": []})), "Unproved")]
#[tokio::test(start_paused = true)]
async fn absence_takes_two_proofs(#[case] list: fn() -> Reply, #[case] search: fn() -> Reply, #[case] presence: &str) {
    let (client, _) = serve(move |request| async move {
        match query(&request, "name_or_uid").as_deref() {
            Some("disk-21") => search(),
            _ => list(),
        }
    });
    let found = client.cloud_disks().look(&21, Some("disk-21"), &context(600)).await.unwrap();
    assert!(format!("{found:?}").starts_with(presence), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_name_the_second_look_is_a_list_and_errors_are_errors() {
    let (client, ledger) = serve(|_| async { others() });
    let found = client.cloud_disks().look(&21, None, &context(600)).await.unwrap();
    assert!(matches!(found, Presence::Absent));
    assert_eq!(ledger.all().len(), 2);
    let (client, _) = serve(|_| async { refusal(100_042) });
    let error = client.cloud_disks().look(&21, None, &context(600)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::PermissionDenied));
}

#[tokio::test(start_paused = true)]
async fn specifications_are_asked_for_once_and_filters_are_sent() {
    let (client, ledger) = serve(|_| async { page(&[json!({"id": 2, "spec_alias": "fast", "max_size_g": "2048"})]) });
    let (disks, context) = (client.cloud_disks(), context(60));
    let all = CloudDiskSpecFilter::default();
    let (first, second) = tokio::join!(disks.specs(&all, &context), disks.specs(&all, &context));
    assert_eq!(first.unwrap().records[0].max_size_g, Some(2048));
    assert_eq!(second.unwrap().records[0].json["spec_alias"], "fast");
    assert_eq!(ledger.all().len(), 1);
    assert_eq!(ledger.all()[0].request.url.query(), None);
    let filter = CloudDiskSpecFilter {
        spec_alias: Some("fa".to_owned()),
        spec_types: vec![1, 3],
        support_ib_network: Some(false),
    };
    disks.specs(&filter, &context).await.unwrap();
    let query = ledger.all()[1].request.url.query().unwrap().to_owned();
    assert_eq!(query, "spec_alias=fa&spec_types=1%2C3&support_ib_network=0");
}

#[tokio::test(start_paused = true)]
async fn specifications_that_come_in_pages_are_followed() {
    let (client, _) = serve(|request| async move {
        let number: i64 = query(&request, "page").map_or(1, |page| page.parse().unwrap());
        let data: Vec<_> = (10 * (number - 1)..(10 * number).min(25)).map(|id| json!({"id": id})).collect();
        ok(&json!({"total": 25, "data": data}))
    });
    let listing = client.cloud_disks().specs(&CloudDiskSpecFilter::default(), &context(60)).await.unwrap();
    assert!(listing.complete);
    assert_eq!(listing.records.len(), 25);
}
