//! The journal of creates on a real file system.

use std::fs;

use rstest::rstest;

use super::{run::RecordHolder, *};

const BASE: &str = "https://api.example.com";
const NAME: Option<&str> = Some("web");

fn account() -> AccountFingerprints {
    AccountFingerprints { token: "account".to_owned(), program: None }
}

fn begin() -> Begin {
    Begin {
        kind: ObjectKind::Instance,
        wanted_name: NAME.map(str::to_owned),
        request: "request".to_owned(),
        marker: "web-00000001".to_owned(),
        base_url: BASE.to_owned(),
        account: account(),
        candidate: None,
    }
}

/// The journal of a run of another Terraform process.
fn of_core(journal: &Journal, core: u32) -> Journal {
    Journal::made_by(journal.directory(), Maker { process: core, core: Some(format!("{core}@1")) })
}

fn journal() -> (tempfile::TempDir, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path().join("deep/pending"));
    (folder, journal)
}

fn ids(id: &str) -> Ids {
    Ids { id: id.to_owned(), uid: None }
}

fn accepted(journal: &Journal, id: &str) -> Entry {
    let mut entry = journal.begin(begin()).unwrap();
    entry.accepted(ids(id), &account(), None).unwrap();
    entry
}

fn left(journal: &Journal) -> Vec<PendingCreate> {
    journal.left(ObjectKind::Instance, NAME, "request").unwrap().0
}

fn files(journal: &Journal) -> usize {
    fs::read_dir(journal.directory()).unwrap().count()
}

/// Who sees which record: its run lasts or is gone, belongs to the same Terraform process or to another one.
#[rstest]
#[case::own_core_lives(true, true, [false, false])]
#[case::other_core_lives(true, false, [false, false])]
#[case::own_core_is_gone(false, true, [true, false])]
#[case::other_core_is_gone(false, false, [true, true])]
fn a_record_is_left_when_its_run_is_gone(#[case] lives: bool, #[case] is_own_core: bool, #[case] is_left: [bool; 2]) {
    let (_folder, maker) = journal();
    drop(accepted(&maker, "ins-1"));
    accepted(&maker, "ins-2").finish().unwrap();
    if !lives {
        maker.end();
    }
    let reader = if is_own_core { Journal::new(maker.directory()) } else { of_core(&maker, 1) };
    let phases: Vec<_> = left(&reader).iter().map(|left| left.record.phase).collect();
    let expected = is_left.into_iter().zip([CreatePhase::Accepted, CreatePhase::Finished]);
    assert_eq!(phases, expected.filter(|(is_left, _)| *is_left).map(|(_, phase)| phase).collect::<Vec<_>>());
    let held = reader.left(ObjectKind::Instance, NAME, "request").unwrap().1;
    let maker_process = Some(std::process::id());
    assert_eq!(held.and_then(|maker| Some(maker?.process)), maker_process.filter(|_| lives && !is_own_core));
    assert!(reader.left(ObjectKind::Instance, NAME, "other").unwrap().1.is_none(), "another request is not waited for");
    for (kind, name) in [(ObjectKind::CloudDisk, NAME), (ObjectKind::Instance, None)] {
        assert!(reader.left(kind, name, "request").unwrap().0.is_empty(), "another family");
    }
    let elsewhere = Scope { directory: "elsewhere".to_owned(), ..Scope::default() };
    assert!(reader.within(elsewhere).left(ObjectKind::Instance, NAME, "request").unwrap().1.is_none());
}

#[test]
fn of_many_that_take_at_once_each_record_goes_to_one() {
    let (_folder, journal) = journal();
    for number in 0..3 {
        drop(accepted(&journal, &format!("ins-{number}")));
    }
    journal.end();
    let taken: Vec<Vec<Entry>> = std::thread::scope(|scope| {
        let take = |core| {
            let journal = of_core(&journal, core);
            left(&journal).iter().filter_map(|left| journal.take(left).unwrap()).collect()
        };
        let threads: Vec<_> = (1..=8).map(|core| scope.spawn(move || take(core))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().flatten().count(), 3);
    let report = journal.list().unwrap();
    assert!(report.entries.len() == 3 && report.entries.iter().all(|listed| listed.owner_lives));
    assert!(taken.iter().flatten().all(|entry| entry.record().ids.is_some()));
}

#[test]
fn a_finished_record_stays_until_a_state_shows_the_object() {
    let (_folder, journal) = journal();
    let mut entry = journal.begin(begin()).unwrap();
    entry.accepted(Ids { uid: Some("u-1".to_owned()), ..ids("1") }, &account(), None).unwrap();
    entry.finish().unwrap();
    journal.end();
    let next = of_core(&journal, 1);
    let seen = |id: &str, uid: Option<&str>, base: &str| next.seen(ObjectKind::Instance, id, uid, base).unwrap();
    assert!(!seen("2", None, BASE));
    assert!(!seen("1", Some("u-2"), BASE), "another object has this number");
    assert!(!seen("1", Some("u-1"), "https://other.example.com"), "ids of another service");
    assert!(!next.seen(ObjectKind::CloudDisk, "1", None, BASE).unwrap());
    assert!(seen("1", Some("u-1"), BASE));
    assert!(!seen("1", Some("u-1"), BASE), "it is cleared");
    assert!(journal.list().unwrap().entries.is_empty());
}

/// A run is killed, or its connection closes, but Terraform has stored its answer.
#[test]
fn what_a_state_shows_is_cleared_unless_a_run_works_on_it() {
    let (_folder, journal) = journal();
    drop(accepted(&journal, "ins-1"));
    let next = of_core(&journal, 1);
    assert!(!next.seen(ObjectKind::Instance, "ins-1", None, BASE).unwrap());
    journal.end();
    assert!(of_core(&journal, 2).seen(ObjectKind::Instance, "ins-1", None, BASE).unwrap());
}

#[test]
fn unfinished_creates_are_reported_once_by_a_terraform_process() {
    let (_folder, journal) = journal();
    drop(accepted(&journal, "ins-1"));
    accepted(&journal, "ins-2").finish().unwrap();
    let mut refused = journal.begin(begin()).unwrap();
    refused.refused().unwrap();
    drop(refused);
    assert!(of_core(&journal, 1).left_behind().unwrap().is_empty(), "its run lasts");
    journal.end();
    let reported = |core| of_core(&journal, core).left_behind().unwrap().len();
    assert_eq!([reported(1), reported(1), reported(2), reported(1)], [1, 0, 1, 0]);
    // The next run that writes removes the files of runs that are gone.
    of_core(&journal, 3).begin(begin()).unwrap().discard().unwrap();
    assert_eq!(files(&journal), 3);
}

#[test]
fn a_record_that_cannot_be_finished_is_removed_or_reported() {
    let (_folder, journal) = journal();
    let entry = accepted(&journal, "ins-1");
    let path = journal.list().unwrap().entries.remove(0).path;
    let done = path.to_str().unwrap().replace(".json", ".done.json");
    // A directory that is not empty cannot be replaced.
    fs::create_dir_all(format!("{done}/x")).unwrap();
    entry.finish().unwrap();
    assert!(!path.exists());
    let entry = accepted(&journal, "ins-2");
    fs::remove_dir_all(journal.directory()).unwrap();
    fs::write(journal.directory(), "").unwrap();
    let error = entry.finish().unwrap_err();
    assert!(error.to_string().contains(".json"), "{error}");
}

#[test]
fn a_run_leaves_no_file_of_its_own() {
    let (_folder, journal) = journal();
    journal.begin(begin()).unwrap().discard().unwrap();
    assert_eq!(files(&journal), 1);
    let directory = journal.directory().to_owned();
    drop(journal);
    assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn a_missing_directory_is_empty_and_one_that_cannot_be_made_is_an_error() {
    let (folder, journal) = journal();
    assert!(journal.list().unwrap().entries.is_empty() && left(&journal).is_empty());
    assert!(!journal.seen(ObjectKind::Instance, "ins-1", None, BASE).unwrap());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Journal::new(file.join("pending")).begin(begin()).unwrap_err();
    assert!(error.to_string().starts_with("cannot make"), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_reported_and_left() {
    let (_folder, journal) = journal();
    drop(journal.begin(begin()).unwrap());
    let newer = r#"{"version": 2, "kind": "instance"}"#;
    for (name, text) in
        [("a.json", "{\"version\": 1"), ("b.json", newer), ("c.json", "{}"), ("d.json", "{\"version\": 1}")]
    {
        fs::write(journal.directory().join(name), text).unwrap();
    }
    let report = journal.list().unwrap();
    assert_eq!((report.entries.len(), report.unreadable.len()), (1, 4));
    assert_eq!(report.unreadable[1].reason, "its format is 2, and this program reads 1");
    of_core(&journal, 1).left(ObjectKind::Instance, NAME, "request").unwrap_err();
    assert_eq!(journal.list().unwrap().unreadable.len(), 4);
}

#[test]
fn a_run_whose_file_cannot_be_read_is_somebody() {
    let (_folder, journal) = journal();
    drop(accepted(&journal, "ins-1"));
    let entry = journal.list().unwrap().entries.remove(0);
    let run = run::Run::new(journal.directory().to_owned(), Maker { process: 1, core: None });
    assert!(matches!(run.holder(&entry.path), RecordHolder::Other(Some(_))));
    journal.end();
    assert!(matches!(run.holder(&entry.path), RecordHolder::Gone));
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, journal) = journal();
    let _entry = journal.begin(begin()).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(journal.directory()), 0o700);
    for file in fs::read_dir(journal.directory()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

/// CIFS and shared folders of virtual machines sync no directory; nor does procfs.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_without_a_sync_is_no_error() {
    let directory = std::path::Path::new("/proc");
    assert_eq!(fs::File::open(directory).unwrap().sync_all().unwrap_err().raw_os_error(), Some(22));
    files::sync_directory(directory).unwrap();
}
