//! Records that another token made.

use super::*;

/// A client with another token, before a service that shows these.
fn another_token(records: fn(&str) -> Vec<Value>, marker: &str) -> (Client, Ledger) {
    let other = Settings { token: Some(TokenSource::Value("another".into())), ..testing::settings() };
    let records = records(marker);
    serve_with(other, move |request| {
        let records = records.clone();
        async move {
            match request.endpoint {
                Endpoint::InstanceCreate => ok(&json!({"instance_uid": "ins-9"})),
                Endpoint::InstanceDetail => match records.first() {
                    Some(record) => ok(record),
                    None => refusal(160_003),
                },
                _ => page(&records),
            }
        }
    })
}

#[rstest]
#[case::accepted(true, Phase::Accepted)]
#[case::sent(false, Phase::Sent)]
#[tokio::test(start_paused = true)]
async fn what_another_account_made_is_left_as_it_is(#[case] answered: bool, #[case] left: Phase) {
    let (_folder, journal) = journal();
    let marker = killed(&journal, answered).await;
    let before = journal.list().unwrap().entries.remove(0);
    let (client, ledger) = another_token(|_| Vec::new(), &marker);
    age(&journal, VISIBILITY_WINDOW);
    let before_bytes = std::fs::read(&before.path).unwrap();
    let accepted = create_one(&client, &next(&journal), 1800).await.unwrap();
    assert_eq!((accepted.made.uid.as_str(), accepted.origin), ("ins-9", Origin::Answered));
    assert_eq!(creates(&ledger), 1);
    assert_eq!(std::fs::read(&before.path).unwrap(), before_bytes);
    let phases = phases(&journal);
    assert!(phases.len() == 2 && phases.contains(&left), "{phases:?}");
}

#[rstest]
#[case::accepted(true)]
#[case::sent(false)]
#[tokio::test(start_paused = true)]
async fn what_is_seen_under_a_rotated_token_is_adopted(#[case] answered: bool) {
    let (_folder, journal) = journal();
    let marker = killed(&journal, answered).await;
    let shown = |marker: &str| vec![json!({"instance_uid": "ins-1", "instance_alias": marker, "status": "Running"})];
    let (client, ledger) = another_token(shown, &marker);
    let accepted = create_one(&client, &next(&journal), 1800).await.unwrap();
    assert_eq!((accepted.made.uid.as_str(), accepted.origin), ("ins-1", Origin::Adopted));
    assert_eq!(creates(&ledger), 0);
    let own = client.fingerprint(&context(60)).await.unwrap();
    assert_eq!(accepted.entry.record().account, own);
}

/// Makes every record older.
fn age(journal: &Journal, by: Duration) {
    for listed in journal.list().unwrap().entries {
        let text = std::fs::read_to_string(&listed.path).unwrap();
        let begun_at = listed.record.begun_at;
        let older = begun_at - by.as_secs().cast_signed();
        std::fs::write(&listed.path, text.replace(&begun_at.to_string(), &older.to_string())).unwrap();
    }
}
