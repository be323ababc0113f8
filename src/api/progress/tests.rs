//! Progress files, written and followed.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::*;

fn journal() -> (TempDir, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path().join("pending"));
    (folder, journal)
}

fn files(journal: &Journal) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory(journal)).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn lines(look: &Look) -> Vec<String> {
    let line = |told: &Told| {
        let event = &told.event;
        let percent = event.percent.map(|percent| format!(" {percent}")).unwrap_or_default();
        let ended = event.ended.map(|ended| format!(" {ended:?}")).unwrap_or_default();
        format!("{} {}{percent}{ended}", event.id, event.phase)
    };
    look.told.iter().map(line).collect()
}

fn percent(phase: &str, percent: u8) -> Step {
    Step { percent: Some(percent), ..Step::new(phase) }
}

#[test]
fn what_changes_is_told_once_and_the_end_always() {
    let (_folder, journal) = journal();
    let progress = Progress::beside(&journal);
    let mut follower = Follower::beside(&journal);
    assert_eq!((follower.look().unwrap().alive, files(&journal).len()), (0, 0));
    let mut image = progress.task("private image", 951);
    let mut idle = progress.task("instance", "ins-1");
    image.sees(percent("creating", 10), Some("base"));
    image.sees(percent("creating", 10), None);
    let look = follower.look().unwrap();
    assert_eq!((look.alive, lines(&look)), (1, vec!["951 creating 10".to_owned()]));
    assert_eq!(look.told[0].event.name.as_deref(), Some("base"));
    image.sees(percent("creating", 250), None);
    image.done(Some(Step::new("ready")));
    idle.sees(Step::new("Creating"), None);
    drop(idle);
    drop(progress.task("instance", "never seen"));
    let look = follower.look().unwrap();
    assert_eq!(lines(&look), ["951 creating 100", "951 ready Done", "ins-1 Creating", "ins-1 Creating Stopped"]);
    drop(progress);
    let look = follower.look().unwrap();
    assert_eq!((look.alive, lines(&look)), (0, Vec::new()));
}

#[test]
fn earlier_runs_are_experience() {
    let (_folder, journal) = journal();
    let progress = Progress::beside(&journal);
    let mut task = progress.task("instance", "ins-1");
    task.sees(Step::new("Creating"), None);
    task.done(None);
    drop(progress);
    let mut follower = Follower::beside(&journal);
    assert!(follower.look().unwrap().told.is_empty());
    let progress = Progress::beside(&journal);
    let mut task = progress.task("instance", "ins-2");
    task.sees(Step::new("Creating"), None);
    let mut other = progress.task("instance", "ins-2");
    other.sees(Step::new("Releasing"), None);
    let look = follower.look().unwrap();
    assert!(look.told[0].usual.is_some() && look.told[1].usual.is_none(), "{look:?}");
}

#[test]
fn a_line_that_is_not_whole_waits_and_one_of_another_format_is_passed_over() {
    let (_folder, journal) = journal();
    let progress = Progress::beside(&journal);
    let mut task = progress.task("instance", "ins-1");
    task.sees(Step::new("Creating"), None);
    let file = files(&journal).into_iter().find(|file| file.extension().unwrap() == "jsonl").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let newer = text.replace("\"version\":1", "\"version\":2");
    let (begin, end) = text.split_at(10);
    fs::write(&file, format!("{newer}no json\n{begin}")).unwrap();
    let mut follower = Follower::beside(&journal);
    assert_eq!(lines(&follower.look().unwrap()), Vec::<String>::new());
    fs::write(&file, format!("{newer}no json\n{begin}{end}")).unwrap();
    assert_eq!(lines(&follower.look().unwrap()), ["ins-1 Creating"]);
}

#[test]
fn files_are_bounded_in_size_and_number() {
    let (_folder, journal) = journal();
    for _ in 0..3 {
        let progress = Progress::beside(&journal);
        let mut task = progress.task("instance", "ins-1");
        for number in 0..4000 {
            task.sees(Step { detail: Some("x".repeat(1000)), ..Step::new(number.to_string()) }, None);
        }
        let size: u64 = files(&journal).iter().map(|file| file.metadata().unwrap().len()).max().unwrap();
        assert!((500_000..=512 * 1024).contains(&size), "{size}");
        fs::remove_dir_all(directory(&journal)).unwrap();
    }
    fs::create_dir_all(directory(&journal)).unwrap();
    for number in 0..40 {
        fs::write(directory(&journal).join(format!("run-{number:014}-1.jsonl")), "").unwrap();
    }
    let progress = Progress::beside(&journal);
    progress.task("instance", "ins-1").sees(Step::new("Creating"), None);
    assert_eq!(files(&journal).iter().filter(|file| file.extension().unwrap() == "jsonl").count(), 17);
}

#[test]
fn nothing_fails_where_nothing_can_be_written() {
    let (folder, journal) = journal();
    fs::write(folder.path().join("pending-progress"), "a file where a folder should be").unwrap();
    let progress = Progress::beside(&journal);
    progress.task("instance", "ins-1").sees(Step::new("Creating"), None);
    Progress::default().task("instance", "ins-1").sees(Step::new("Creating"), None);
}

#[cfg(unix)]
#[test]
fn nobody_else_reads_them() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, journal) = journal();
    let progress = Progress::beside(&journal);
    progress.task("instance", "ins-1").sees(Step::new("Creating"), None);
    assert_eq!(fs::metadata(directory(&journal)).unwrap().permissions().mode() & 0o777, 0o700);
    for file in files(&journal) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
