use std::fs;

use super::{journal::Begin, *};
use crate::api::settings::Random;

const BASE: &str = "https://api.example.com";
const ACCOUNT: &str = "account-1";

fn begin(key: &'static str) -> Begin<'static> {
    Begin {
        kind: Kind::Instance,
        key,
        marker: "web-00000001",
        wanted_name: Some("web"),
        base_url: BASE,
        account: ACCOUNT,
    }
}

fn journal() -> (tempfile::TempDir, Journal, Random) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path().join("deep/pending"));
    (folder, journal, Random::default())
}

fn ids(id: &str) -> Ids {
    Ids { id: id.to_owned(), database_id: Some(7) }
}

fn claim(journal: &Journal, key: &str) -> Option<Entry> {
    claim_of(journal, Kind::Instance, key, BASE)
}

fn claim_of(journal: &Journal, kind: Kind, key: &str, base_url: &str) -> Option<Entry> {
    match journal.claim(kind, key, base_url, ACCOUNT, &Random::default()).unwrap() {
        Claim::Entry(entry) => Some(*entry),
        Claim::None | Claim::Owned => None,
    }
}

#[test]
fn an_entry_of_a_living_owner_is_not_claimed() {
    let (_folder, journal, random) = journal();
    let entry = journal.begin(&begin("key"), &random).unwrap();
    assert!(claim(&journal, "key").is_none());
    assert!(journal.list().unwrap().entries[0].owner_lives);
    drop(entry);
    assert!(!journal.list().unwrap().entries[0].owner_lives);
    assert!(claim(&journal, "key").is_some());
}

#[test]
fn what_a_killed_run_left_is_claimed_once_and_by_its_key_alone() {
    let (_folder, journal, random) = journal();
    drop(journal.begin(&begin("key"), &random).unwrap());
    assert!(claim(&journal, "other").is_none());
    assert!(claim_of(&journal, Kind::Instance, "key", "https://other.example.com").is_none());
    assert!(claim_of(&journal, Kind::CloudDisk, "key", BASE).is_none());
    let entry = claim(&journal, "key").unwrap();
    assert_eq!(entry.record().phase, Phase::Sent);
    assert_eq!(entry.record().marker, "web-00000001");
    assert!(claim(&journal, "key").is_none());
}

#[test]
fn of_many_that_claim_at_once_each_entry_goes_to_one() {
    let (_folder, journal, random) = journal();
    for _ in 0..3 {
        drop(journal.begin(&begin("key"), &random).unwrap());
    }
    let claimed: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| claim(&journal, "key"))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), 3);
    assert_eq!(journal.list().unwrap().entries.len(), 3);
}

#[test]
fn an_accepted_entry_comes_before_a_sent_one_and_keeps_its_ids() {
    let (_folder, journal, random) = journal();
    drop(journal.begin(&begin("key"), &random).unwrap());
    let mut accepted = journal.begin(&begin("key"), &random).unwrap();
    accepted.accepted(ids("ins-1"), Some("req-1".to_owned())).unwrap();
    drop(accepted);
    let entry = claim(&journal, "key").unwrap();
    assert_eq!(entry.record().phase, Phase::Accepted);
    assert_eq!(entry.record().ids, Some(ids("ins-1")));
    assert_eq!(entry.record().request_id.as_deref(), Some("req-1"));
}

#[test]
fn what_was_handed_over_is_reported_until_a_state_shows_it() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), None).unwrap();
    entry.handed_over().unwrap();
    assert!(claim(&journal, "key").is_none());
    let listed = journal.list().unwrap().entries;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].record.phase, Phase::HandedOver);
    assert!(!listed[0].owner_lives);
    assert_eq!(journal.explained(Kind::Instance, "another"), ["web-00000001"]);
    assert!(!journal.seen(Kind::Instance, "ins-2", BASE).unwrap());
    assert!(journal.seen(Kind::Instance, "ins-1", BASE).unwrap());
    assert!(journal.list().unwrap().entries.is_empty());
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

/// A run dies or believes that nobody hears it, and the core has stored its answer all the same.
#[test]
fn what_a_state_shows_is_not_taken_up_although_its_note_says_accepted() {
    let (_folder, journal, random) = journal();
    let accepted = |id: &str| {
        let mut entry = journal.begin(&begin("key"), &random).unwrap();
        entry.accepted(ids(id), None).unwrap();
        entry
    };
    drop(accepted("ins-1"));
    drop(accepted("ins-2"));
    drop(journal.begin(&begin("key"), &random).unwrap());
    let living = accepted("ins-3");
    // The next run.
    let next = Journal::new(journal.directory());
    assert!(!next.seen(Kind::Instance, "ins-1", "https://other.example.com").unwrap(), "ids of another service");
    assert!(!next.seen(Kind::CloudDisk, "ins-1", BASE).unwrap());
    assert!(next.seen(Kind::Instance, "ins-1", BASE).unwrap());
    assert!(!next.seen(Kind::Instance, "ins-1", BASE).unwrap(), "it is cleared");
    assert!(!next.seen(Kind::Instance, "ins-3", BASE).unwrap(), "its owner lives");
    let (first, second) = (claim(&next, "key").unwrap(), claim(&next, "key").unwrap());
    assert_eq!(first.record().ids, Some(ids("ins-2")), "no state shows it");
    assert_eq!(second.record().phase, Phase::Sent);
    assert!(claim(&next, "key").is_none());
    living.handed_over().unwrap();
}

#[test]
fn what_was_taken_up_meanwhile_is_not_cleared() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), None).unwrap();
    drop(entry);
    let next = Journal::new(journal.directory());
    assert!(!next.seen(Kind::Instance, "ins-2", BASE).unwrap());
    let adopted = claim(&journal, "key").unwrap();
    assert!(!next.seen(Kind::Instance, "ins-1", BASE).unwrap());
    assert_eq!(journal.list().unwrap().entries.len(), 1);
    adopted.handed_over().unwrap();
    assert!(next.seen(Kind::Instance, "ins-1", BASE).unwrap());
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

#[test]
fn what_was_not_found_under_another_token_is_only_reported() {
    let (_folder, journal, random) = journal();
    journal.begin(&begin("key"), &random).unwrap().unexplained().unwrap();
    assert!(claim(&journal, "key").is_none());
    let listed = journal.list().unwrap().entries.remove(0);
    assert_eq!(listed.record.phase, Phase::Unexplained);
    journal.forget(&listed).unwrap();
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

#[test]
fn a_discarded_create_leaves_nothing() {
    let (_folder, journal, random) = journal();
    journal.begin(&begin("key"), &random).unwrap().discard().unwrap();
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_does_not_exist_is_empty() {
    let (_folder, journal, _) = journal();
    assert!(journal.list().unwrap().entries.is_empty());
    assert!(claim(&journal, "key").is_none());
    assert!(!journal.seen(Kind::Instance, "ins-1", BASE).unwrap());
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Journal::new(file.join("pending")).begin(&begin("key"), &Random::default()).unwrap_err();
    assert!(error.to_string().starts_with("the journal of creates could not make"), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_reported_and_left() {
    let (_folder, journal, random) = journal();
    drop(journal.begin(&begin("key"), &random).unwrap());
    let newer = r#"{"version": 2, "kind": "instance"}"#;
    for (name, text) in
        [("a.json", "{\"version\": 1"), ("b.json", newer), ("c.json", "{}"), ("d.json", "{\"version\": 1}")]
    {
        fs::write(journal.directory().join(name), text).unwrap();
    }
    let report = journal.list().unwrap();
    assert_eq!((report.entries.len(), report.unreadable.len()), (1, 4));
    assert_eq!(report.unreadable[1].reason, "its format is 2, and this program reads 1");
    assert!(claim(&journal, "key").is_some());
    assert_eq!(journal.list().unwrap().unreadable.len(), 4);
}

#[test]
fn a_crash_between_handing_over_and_tidying_up_leads_to_the_same_thing() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), None).unwrap();
    let file = journal.list().unwrap().entries.remove(0).path;
    let text = fs::read(&file).unwrap();
    entry.handed_over().unwrap();
    fs::write(&file, text).unwrap();
    let again = claim(&journal, "key").unwrap();
    assert_eq!(again.record().ids, Some(ids("ins-1")));
    again.handed_over().unwrap();
    assert_eq!(journal.list().unwrap().entries.len(), 1);
}

#[test]
fn the_file_of_the_first_format_stays_readable() {
    let (_folder, journal, _) = journal();
    fs::create_dir_all(journal.directory()).unwrap();
    let text = include_str!("../../../tests/fixtures/api/pending-v1.json");
    fs::write(journal.directory().join("instance-0000000000000001.json"), text).unwrap();
    let entry = claim(&journal, "3f1c").unwrap();
    assert_eq!(entry.record().ids, Some(Ids { id: "ins-7a1".to_owned(), database_id: Some(4711) }));
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, journal, random) = journal();
    let _entry = journal.begin(&begin("key"), &random).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(journal.directory()), 0o700);
    assert_eq!(mode(&journal.list().unwrap().entries[0].path), 0o600);
}

#[test]
fn randomness_that_is_none_is_an_error_and_no_endless_search() {
    let (_folder, journal, _) = journal();
    let constant = Random::new(|| 7);
    let _first = journal.begin(&begin("key"), &constant).unwrap();
    journal.begin(&begin("key"), &constant).unwrap_err();
}

#[test]
fn what_a_dead_run_sent_is_explained_to_its_own_next_create_only() {
    let (_folder, journal, random) = journal();
    let owned = journal.begin(&begin("key"), &random).unwrap();
    let explained = |key| journal.explained(Kind::Instance, key);
    assert_eq!(explained("of another folder"), ["web-00000001"], "its owner lives");
    drop(owned);
    assert_eq!(explained("key"), ["web-00000001"]);
    assert_eq!(explained("of another folder"), Vec::<String>::new());
    claim(&journal, "key").unwrap().unexplained().unwrap();
    assert_eq!(explained("of another folder"), ["web-00000001"], "it is reported");
}
