//! The journal of creates on a real file system.

use std::fs;

use super::*;
use crate::api::settings::Random;

const BASE: &str = "https://api.example.com";
const ACCOUNT: &str = "account-1";

fn wanted(key: &str) -> Wanted<'_> {
    Wanted { kind: ObjectKind::Instance, key, base_url: BASE, account: ACCOUNT, candidates: &[] }
}

fn begin(key: &str) -> Begin<'_> {
    Begin { wanted: wanted(key), marker: "web-00000001", wanted_name: Some("web"), candidate: None }
}

/// The journal of a run of another Terraform process.
fn next(journal: &Journal) -> Journal {
    let owner = Owner { process: 1, core: Some("1@1".to_owned()), examines: false };
    Journal::owned_by(journal.directory(), owner)
}

fn journal() -> (tempfile::TempDir, Journal, Random) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path().join("deep/pending"));
    (folder, journal, Random::default())
}

fn ids(id: &str) -> Ids {
    Ids { id: id.to_owned(), database_id: Some(7) }
}

/// The record that the next run claims.
fn claim(journal: &Journal, key: &str) -> Option<Entry> {
    claim_of(journal, &wanted(key))
}

fn claim_of(journal: &Journal, wanted: &Wanted<'_>) -> Option<Entry> {
    match next(journal).claim(wanted, &[], &Random::default()).unwrap() {
        Claim::Entry(entry) => Some(*entry),
        Claim::Foreign(_) | Claim::Held(_) | Claim::None => None,
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
    assert!(claim_of(&journal, &Wanted { base_url: "https://other.example.com", ..wanted("key") }).is_none());
    assert!(claim_of(&journal, &Wanted { kind: ObjectKind::CloudDisk, ..wanted("key") }).is_none());
    let entry = claim(&journal, "key").unwrap();
    assert_eq!(entry.record().phase, CreatePhase::Sent);
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
    accepted.accepted(ids("ins-1"), ACCOUNT, Some("req-1".to_owned())).unwrap();
    drop(accepted);
    let entry = claim(&journal, "key").unwrap();
    assert_eq!(entry.record().phase, CreatePhase::Accepted);
    assert_eq!(entry.record().ids, Some(ids("ins-1")));
    assert_eq!(entry.record().request_id.as_deref(), Some("req-1"));
}

#[test]
fn what_was_handed_over_is_reported_until_a_state_shows_it() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), ACCOUNT, None).unwrap();
    entry.handed_over().unwrap();
    assert!(claim(&journal, "key").is_none());
    let listed = journal.list().unwrap().entries;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].record.phase, CreatePhase::HandedOver);
    assert!(!listed[0].owner_lives);
    let next = next(&journal);
    assert_eq!(next.never_shown(ObjectKind::Instance, "key").unwrap(), ["ins-1"]);
    assert!(!next.seen(ObjectKind::Instance, "ins-2", BASE).unwrap());
    assert!(!next.seen(ObjectKind::Instance, "ins-1", "https://other.example.com").unwrap(), "ids of another service");
    assert!(next.seen(ObjectKind::Instance, "ins-1", BASE).unwrap());
    assert!(journal.list().unwrap().entries.is_empty());
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

/// A run is killed, or its connection closes, but Terraform has stored its answer.
#[test]
fn what_a_state_shows_is_not_taken_up_although_its_note_says_accepted() {
    let (_folder, journal, random) = journal();
    let accepted = |id: &str| {
        let mut entry = journal.begin(&begin("key"), &random).unwrap();
        entry.accepted(ids(id), ACCOUNT, None).unwrap();
        entry
    };
    drop(accepted("ins-1"));
    drop(accepted("ins-2"));
    drop(journal.begin(&begin("key"), &random).unwrap());
    let living = accepted("ins-3");
    // The next run.
    let next = next(&journal);
    assert!(!next.seen(ObjectKind::Instance, "ins-1", "https://other.example.com").unwrap(), "ids of another service");
    assert!(!next.seen(ObjectKind::CloudDisk, "ins-1", BASE).unwrap());
    assert!(next.seen(ObjectKind::Instance, "ins-1", BASE).unwrap());
    assert!(!next.seen(ObjectKind::Instance, "ins-1", BASE).unwrap(), "it is cleared");
    assert!(!next.seen(ObjectKind::Instance, "ins-3", BASE).unwrap(), "its owner lives");
    let (first, second) = (claim(&journal, "key").unwrap(), claim(&journal, "key").unwrap());
    assert_eq!(first.record().ids, Some(ids("ins-2")), "no state shows it");
    assert_eq!(second.record().phase, CreatePhase::Sent);
    assert!(claim(&journal, "key").is_none());
    living.handed_over().unwrap();
}

#[test]
fn what_was_taken_up_meanwhile_is_not_cleared() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), ACCOUNT, None).unwrap();
    drop(entry);
    let reader = next(&journal);
    assert!(!reader.seen(ObjectKind::Instance, "ins-2", BASE).unwrap());
    let adopted = claim(&journal, "key").unwrap();
    assert!(!reader.seen(ObjectKind::Instance, "ins-1", BASE).unwrap());
    assert_eq!(journal.list().unwrap().entries.len(), 1);
    adopted.handed_over().unwrap();
    assert!(next(&journal).seen(ObjectKind::Instance, "ins-1", BASE).unwrap());
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

/// Aliases of the provider are separate processes of one Terraform.
#[test]
fn a_parallel_create_of_the_same_run_is_no_obstacle_and_one_of_another_run_is() {
    let (_folder, journal, random) = journal();
    let _entry = journal.begin(&begin("key"), &random).unwrap();
    let claimed = |journal: &Journal| journal.claim(&wanted("key"), &[], &Random::default()).unwrap();
    let sibling = Owner { process: 1, ..Owner::current() };
    assert!(matches!(claimed(&Journal::owned_by(journal.directory(), sibling)), Claim::None));
    match claimed(&next(&journal)) {
        Claim::Held(Some(holder)) => assert_eq!(holder.process, std::process::id()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_of_another_account_is_examined_by_one_and_left_as_it_is() {
    let (_folder, journal, random) = journal();
    drop(journal.begin(&begin("key"), &random).unwrap());
    let path = journal.list().unwrap().entries.remove(0).path;
    let text = fs::read(&path).unwrap();
    let other = Wanted { account: "account-2", ..wanted("key") };
    let claimed =
        |passed_over: &[std::path::PathBuf]| next(&journal).claim(&other, passed_over, &Random::default()).unwrap();
    let Claim::Foreign(examined) = claimed(&[]) else { panic!("not examined") };
    match claimed(&[]) {
        Claim::Held(Some(holder)) => assert!(holder.examines),
        other => panic!("{other:?}"),
    }
    assert!(matches!(claimed(std::slice::from_ref(&path)), Claim::None));
    drop(examined);
    assert_eq!(fs::read(&path).unwrap(), text);
    let Claim::Foreign(examined) = claimed(&[]) else { panic!("not examined") };
    let entry = examined.take_over(&random).unwrap().unwrap();
    assert!(!path.exists());
    entry.discard().unwrap();
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

#[test]
fn an_answer_that_was_not_heard_is_adopted_again() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), ACCOUNT, None).unwrap();
    let handed = entry.handed_over().unwrap();
    assert!(claim(&journal, "key").is_none());
    handed.take_back().unwrap();
    assert_eq!(claim(&journal, "key").unwrap().record().ids, Some(ids("ins-1")));
}

#[test]
fn what_was_released_leaves_no_record() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), ACCOUNT, None).unwrap();
    entry.handed_over().unwrap();
    journal.released(ObjectKind::Instance, "ins-1", BASE).unwrap();
    assert_eq!(fs::read_dir(journal.directory()).unwrap().count(), 0);
}

#[test]
fn what_an_earlier_run_left_is_told_once_a_run() {
    let (_folder, journal, random) = journal();
    drop(journal.begin(&begin("key"), &random).unwrap());
    let mut entry = journal.begin(&begin("other"), &random).unwrap();
    entry.accepted(ids("ins-1"), ACCOUNT, None).unwrap();
    entry.handed_over().unwrap();
    let run = |core: &str| {
        let owner = Owner { process: 1, core: Some(core.to_owned()), examines: false };
        let left = Journal::owned_by(journal.directory(), owner).left_behind().unwrap();
        left.into_iter().map(|listed| listed.record.phase).collect::<Vec<_>>()
    };
    assert_eq!(run("1@1"), [CreatePhase::Sent]);
    assert_eq!(run("1@1"), [], "the apply of the same run");
    assert_eq!(run("2@2"), [CreatePhase::Sent], "what was handed over may be in a state that was not planned yet");
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
    assert!(!journal.seen(ObjectKind::Instance, "ins-1", BASE).unwrap());
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Journal::new(file.join("pending")).begin(&begin("key"), &Random::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot make"), "{error}");
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
    next(&journal).claim(&wanted("key"), &[], &Random::default()).unwrap_err();
    assert_eq!(journal.list().unwrap().unreadable.len(), 4);
}

#[test]
fn a_crash_between_handing_over_and_tidying_up_leads_to_the_same_thing() {
    let (_folder, journal, random) = journal();
    let mut entry = journal.begin(&begin("key"), &random).unwrap();
    entry.accepted(ids("ins-1"), ACCOUNT, None).unwrap();
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
    let entry = claim_of(&journal, &Wanted { account: "6f0c2a9d1b7e4c3d5a8b9e0f", ..wanted("3f1c") }).unwrap();
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
