//! What a create does about records on a service: the way of each decision. All cases are in the table of `decide`.

use super::*;
use crate::creation::pending::Begin;

const BASE: &str = "http://127.0.0.1:1";
const MARKER: &str = "web-aaaa00000001";

/// The configuration that a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Here,
    /// The same remote backend, used from another directory.
    OtherDirectory,
    OtherBackend,
}

/// The account of a record, and whether this token shows its object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Own,
    OtherSeen,
    OtherUnseen,
    ProgramUnseen,
}

/// What the create does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Adopt,
    /// It sends its request. The record is kept.
    Send,
    /// It finds a leftover of this kind.
    Find(LeftoverKind),
}

use CreatePhase::{Accepted as AcceptedPhase, Finished, Sent};
use Does::{Adopt, Find, Send};
use LeftoverKind::Unfinished;
use Of::{OtherSeen, OtherUnseen, Own, ProgramUnseen};
use Place::{Here, OtherBackend, OtherDirectory};

fn scope(from: Place) -> Scope {
    Scope {
        stack: "stack".to_owned(),
        workspace: "default".to_owned(),
        directory: if from == Here { "here" } else { "there" }.to_owned(),
        backend: if from == OtherBackend { "other" } else { "s3" }.to_owned(),
        is_local: false,
    }
}

/// A service that shows these objects.
fn showing(records: Vec<Value>) -> (Client, Ledger) {
    showing_to(TokenSource::Value(testing::TOKEN.into()), records)
}

fn showing_to(token: TokenSource, records: Vec<Value>) -> (Client, Ledger) {
    serve_with(Settings { token: Some(token), ..testing::settings() }, move |request| {
        let records = records.clone();
        async move {
            // Without any time between them, two requests would be one.
            tokio::time::sleep(Duration::from_millis(1)).await;
            match request.endpoint {
                Endpoint::InstanceCreate => ok(&json!({"instance_uid": "ins-9"})),
                Endpoint::InstanceDetail => records.first().map_or_else(|| refusal(160_003), ok),
                _ => page(&records),
            }
        }
    })
}

/// Leaves a record of a run of another Terraform process, which is gone.
async fn left(directory: &std::path::Path, from: Place, of: Of, phase: CreatePhase, request: &str, client: &Client) {
    let maker = Maker { process: 1, core: Some("1@1".to_owned()) };
    let journal = Journal::made_by(directory, maker).within(scope(from));
    let mut account = client.account(&context(60)).await.unwrap();
    account.program = account.program.filter(|_| of == ProgramUnseen);
    if of != Own {
        "another".clone_into(&mut account.token);
    }
    let begin = Begin {
        kind: ObjectKind::Instance,
        wanted_name: Some("web".to_owned()),
        request: request.to_owned(),
        marker: MARKER.to_owned(),
        base_url: BASE.to_owned(),
        account,
        candidate: None,
    };
    let account = begin.account.clone();
    let mut entry = journal.begin(begin).unwrap();
    if phase != Sent {
        entry.accepted(Ids { id: "ins-1".to_owned(), uid: None }, &account, None).unwrap();
    }
    if phase == Finished {
        entry.finish().unwrap();
    }
    journal.end();
    age(&Journal::new(directory));
}

#[rstest]
// The same request.
#[case(Here, Own, Sent, true, Adopt)]
#[case(Here, OtherSeen, AcceptedPhase, true, Adopt)]
#[case(Here, OtherUnseen, Sent, true, Send)]
#[case(OtherBackend, Own, AcceptedPhase, true, Adopt)]
#[case(OtherDirectory, Own, Finished, true, Find(LeftoverKind::Finished))]
#[case(OtherBackend, Own, Finished, true, Send)]
// Another request.
#[case(OtherDirectory, Own, Sent, false, Find(Unfinished))]
#[case(Here, Own, Finished, false, Send)]
#[case(OtherBackend, Own, AcceptedPhase, false, Send)]
#[tokio::test(start_paused = true)]
async fn a_create_does_with_a_record(
    #[case] from: Place,
    #[case] of: Of,
    #[case] phase: CreatePhase,
    #[case] is_same: bool,
    #[case] does: Does,
) {
    let folder = tempfile::tempdir().unwrap();
    let is_seen = matches!(of, Own | OtherSeen);
    let object = json!({"instance_uid": "ins-1", "instance_alias": MARKER, "status": "Running"});
    let (client, ledger) = showing(if is_seen { vec![object] } else { Vec::new() });
    let same = request_hash(&request());
    left(folder.path(), from, of, phase, if is_same { &same } else { "other" }, &client).await;
    let before = files(folder.path());
    let journal = Journal::new(folder.path()).within(scope(Here));
    let (guard, accepted) = guarded(&client, &journal, Permits::default(), CreateOptions::default()).await;
    let accepted = accepted.unwrap();
    let found: Vec<_> = guard.0.into_iter().flat_map(Result::unwrap).collect();
    let kinds: Vec<_> = found.iter().map(|leftover| leftover.kind).collect();
    match does {
        Adopt => assert_eq!((accepted.made.uid.as_str(), accepted.origin), ("ins-1", Origin::Adopted)),
        Send => assert_eq!((accepted.made.uid.as_str(), kinds), ("ins-9", vec![])),
        Find(kind) => {
            assert_eq!((accepted.made.uid.as_str(), kinds), ("ins-9", vec![kind]));
            assert_eq!(found[0].id.as_deref(), Some("ins-1"));
        }
    }
    assert_eq!(creates(&ledger), usize::from(does != Adopt));
    let kept = files(folder.path());
    assert!(does == Adopt || before.iter().all(|file| kept.contains(file)), "{before:?} {kept:?}");
}

/// A program that prints another token each time: its record is waited for, and left if its object is not seen.
#[tokio::test]
async fn a_record_of_the_same_token_program_is_neither_removed_nor_sent_again() {
    let program = TokenSource::Command(vec!["printf".to_owned(), testing::TOKEN.to_owned()]);
    for phase in [Sent, AcceptedPhase] {
        let folder = tempfile::tempdir().unwrap();
        let (client, ledger) = showing_to(program.clone(), Vec::new());
        left(folder.path(), Here, ProgramUnseen, phase, &request_hash(&request()), &client).await;
        let before = files(folder.path());
        let journal = Journal::new(folder.path()).within(scope(Here));
        let accepted = create_one(&client, &journal, 60).await.unwrap();
        assert_eq!((accepted.made.uid.as_str(), creates(&ledger)), ("ins-9", 1));
        assert_ne!(accepted.sent_name, MARKER);
        assert!(before.iter().all(|file| files(folder.path()).contains(file)));
    }
}

/// The records of a folder, as they are.
fn files(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    paths
        .filter(|path| path.to_str().unwrap().contains("instance-"))
        .map(|path| {
            let text = std::fs::read(&path).unwrap();
            (path, text)
        })
        .collect()
}

/// A record of this account whose object does not exist stops nothing, and is removed with proof.
#[rstest]
#[case(AcceptedPhase, true)]
#[case(Finished, true)]
#[case(Sent, false)]
#[tokio::test(start_paused = true)]
async fn what_made_nothing_is_removed(#[case] phase: CreatePhase, #[case] is_same: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (client, ledger) = showing(Vec::new());
    let same = request_hash(&request());
    left(folder.path(), Here, Own, phase, if is_same { &same } else { "other" }, &client).await;
    let journal = Journal::new(folder.path()).within(scope(Here));
    let (guard, accepted) = guarded(&client, &journal, Permits::default(), CreateOptions::default()).await;
    assert_eq!(accepted.unwrap().made.uid.as_str(), "ins-9");
    assert!(guard.0.unwrap().unwrap().is_empty());
    assert_eq!((creates(&ledger), phases(&journal)), (1, vec![AcceptedPhase]));
}

/// A renamed object of an unfinished create is in another state, perhaps: a copied folder must not take it.
#[tokio::test(start_paused = true)]
async fn what_has_no_marker_any_more_is_not_adopted_from_elsewhere() {
    for (from, leftovers) in [(OtherDirectory, 1), (OtherBackend, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let object = json!({"instance_uid": "ins-1", "instance_alias": "web", "status": "Running"});
        let (client, _) = showing(vec![object]);
        left(folder.path(), from, Own, AcceptedPhase, &request_hash(&request()), &client).await;
        let journal = Journal::new(folder.path()).within(scope(Here));
        let (guard, accepted) = guarded(&client, &journal, Permits::default(), CreateOptions::default()).await;
        assert_eq!(accepted.unwrap().made.uid.as_str(), "ins-9");
        let found = guard.0.unwrap().unwrap();
        assert!(found.len() == leftovers && found.iter().all(|leftover| leftover.kind == Unfinished), "{found:?}");
    }
}

#[rstest]
#[case("Running", LeftoverKind::Marked)]
#[case("Running", LeftoverKind::Named)]
#[tokio::test(start_paused = true)]
async fn an_object_without_a_record_is_found_by_its_name(#[case] status: &str, #[case] kind: LeftoverKind) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path()).within(scope(Here));
    let digits = scope(Here).digits(ObjectKind::Instance, Some("web"));
    let own = if kind == LeftoverKind::Marked { format!("web-{digits}00000001") } else { "web".to_owned() };
    let object =
        |uid: &str, name: &str, status: &str| json!({"instance_uid": uid, "instance_alias": name, "status": status});
    let other_family = scope(OtherBackend).digits(ObjectKind::Instance, Some("web"));
    let (client, _) = showing(vec![
        object("ins-1", &own, status),
        object("ins-2", &own, "Released"),
        object("ins-3", &own, "Releasing"),
        object("ins-4", &own, "Failed"),
        object("ins-5", &format!("web-{other_family}00000001"), status),
        object("ins-6", "web-2", status),
    ]);
    let options = CreateOptions { unique_names: true, ..CreateOptions::default() };
    let (guard, accepted) = guarded(&client, &journal, Permits::default(), options).await;
    accepted.unwrap();
    let found = guard.0.unwrap().unwrap();
    let found: Vec<_> = found.iter().map(|leftover| (leftover.kind, leftover.id.as_deref())).collect();
    assert_eq!(found, [(kind, Some("ins-1"))]);
}

/// A list that lacks something is no proof, unless only records of other names are unreadable.
#[rstest]
#[case(json!({"instance_alias": "other"}), true)]
#[case(json!({"instance_alias": "web"}), false)]
#[case(json!({"status": "Running"}), false)]
#[tokio::test(start_paused = true)]
async fn leftovers_are_judged_from_a_complete_list(#[case] unreadable: Value, #[case] is_judged: bool) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path()).within(scope(Here));
    let (client, ledger) = showing(vec![unreadable]);
    let (guard, _) = guarded(&client, &journal, Permits::default(), CreateOptions::default()).await;
    assert_eq!(guard.0.unwrap().is_ok(), is_judged);
    assert_eq!(ledger.of(Endpoint::InstanceList).len() > 1, !is_judged, "it is asked for a second time");
}

/// A create waits for the run of a killed Terraform process that is still ending, for 15 s and the same request only.
#[tokio::test(start_paused = true)]
async fn a_living_run_of_another_terraform_process_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (client, ledger) = showing(Vec::new());
    let other = Journal::made_by(folder.path(), Maker { process: 1, core: Some("1@1".to_owned()) }).within(scope(Here));
    let begin = |request: String| Begin {
        kind: ObjectKind::Instance,
        wanted_name: Some("web".to_owned()),
        request,
        marker: MARKER.to_owned(),
        base_url: BASE.to_owned(),
        account: AccountFingerprints { token: String::new(), program: None },
        candidate: None,
    };
    let entry = other.begin(begin(request_hash(&request()))).unwrap();
    let journal = Journal::new(folder.path()).within(scope(Here));
    let start = Instant::now();
    let error = create_one(&client, &journal, 60).await.unwrap_err();
    assert!(matches!(&error, Error::HeldElsewhere(held) if held.process == Some(1)), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(15) && creates(&ledger) == 0);
    entry.discard().unwrap();
    let _entry = other.begin(begin("other".to_owned())).unwrap();
    create_one(&client, &Journal::new(folder.path()).within(scope(Here)), 60).await.unwrap();
}

/// An accepted create that a list does not show may be billed.
#[tokio::test]
async fn an_accepted_create_may_be_invisible_for_ten_minutes() {
    for (seconds, is_gone) in [(130, false), (590, false), (610, true)] {
        let folder = tempfile::tempdir().unwrap();
        let (client, _) = showing(Vec::new());
        left(folder.path(), Here, Own, AcceptedPhase, "other", &client).await;
        let mut record = Journal::new(folder.path()).list().unwrap().entries.remove(0).record;
        record.begun_at = jiff::Timestamp::now().as_second() - seconds;
        let found = client.objects::<Instance>().examine(&record, &context(60)).await.unwrap();
        assert_eq!(matches!(found, Found::Gone), is_gone, "{seconds}: {found:?}");
    }
}

/// A service shows names in other letters or without blanks: the object of a lost answer is found all the same.
#[rstest]
#[case("WEB-AAAA00000001")]
#[case(" Web-aaaa00000001")]
#[tokio::test(start_paused = true)]
async fn a_marker_is_found_in_other_letters(#[case] shown: &str) {
    let folder = tempfile::tempdir().unwrap();
    let object = json!({"instance_uid": "ins-1", "instance_alias": shown, "status": "Running"});
    let (client, ledger) = showing(vec![object]);
    left(folder.path(), Here, Own, Sent, &request_hash(&request()), &client).await;
    let journal = Journal::new(folder.path()).within(scope(Here));
    let accepted = create_one(&client, &journal, 60).await.unwrap();
    assert_eq!((accepted.made.uid.as_str(), creates(&ledger)), ("ins-1", 0));
}

/// Makes every record older than the time in which its object may be invisible.
fn age(journal: &Journal) {
    for listed in journal.list().unwrap().entries {
        let text = std::fs::read_to_string(&listed.path).unwrap();
        let begun_at = listed.record.begun_at;
        let older = begun_at - ACCEPTED_WINDOW.as_secs().cast_signed();
        std::fs::write(&listed.path, text.replace(&begun_at.to_string(), &older.to_string())).unwrap();
    }
}
