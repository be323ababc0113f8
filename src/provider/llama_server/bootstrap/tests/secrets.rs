//! Nothing secret is in a file of the instance, an argument or an environment, except the variables of the server in
//! its own.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use secrecy::{ExposeSecret, SecretString};

use super::{
    super::{Build, FailureKind, Job, JobFailure, JobReport, Phase, Question, Verb, program},
    home::{Home, PACKAGE, RTX, answer, chat, is_running, kill, start, until},
    model,
    observe::words,
};

const KEY: &str = "planted-api-key-4711";
const VALUE: &str = "planted-value-of-the-environment-4712";
const LIBRARIES: &str = "/planted-libraries-of-the-environment-4713";

fn job(home: &Home) -> Job {
    let mut job = home.job();
    job.api_key = Some(SecretString::from(KEY));
    for (name, value) in [("PLANTED", VALUE), ("LD_LIBRARY_PATH", LIBRARIES)] {
        job.environment.insert(name.to_owned(), SecretString::from(value));
    }
    job
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    // The links are those to the stand-ins.
    let entries = entries.filter(|path| path.is_dir() || path.is_file()).filter(|path| !path.is_symlink());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Looks for the secrets in all files of the instance, in all arguments and in all environments, of which only a
/// server's has its variables.
fn search(home: &Home) {
    for (pid, _) in home.processes() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment);
        // The words second: a process whose environment was seen before it became the server had none of the variables.
        let Some(words) = words(pid) else { continue };
        for secret in [KEY, VALUE, LIBRARIES] {
            assert!(!words.iter().any(|word| word.contains(secret)), "{pid}: {words:?}");
        }
        // A script is the second word.
        let is_server = words.iter().take(2).any(|word| word.ends_with("/llama-server"));
        let others = if is_server { &[KEY][..] } else { &[KEY, VALUE, LIBRARIES] };
        assert!(!others.iter().any(|secret| environment.contains(secret)), "{pid}: {words:?}");
    }
    for file in [home.path(""), "/dev/shm".into(), "/run".into()].iter().flat_map(|folder| files(folder)) {
        let Ok(content) = fs::read(&file) else { continue };
        let content = String::from_utf8_lossy(&content);
        let found = [KEY, VALUE, LIBRARIES].into_iter().find(|secret| content.contains(secret));
        assert_eq!(found, None, "{}", file.display());
    }
}

#[test]
fn secrets_are_in_no_file_and_no_argument_in_any_phase() {
    let home = Home::new().with_cuda(RTX);
    home.model(model::truncated());
    home.hold_compile();
    let job = job(&home);
    home.ensure(&job);
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    search(&home);
    home.begin(&job, Build::Source, Some(&failure));
    // The compile.
    until("no compile", || {
        search(&home);
        (home.compiles().len() == 1).then_some(())
    });
    home.model(model::working());
    home.release_compile();
    let report = home.look_until(Phase::Load);
    search(&home);
    let process = report.process.unwrap();
    let environment = fs::read_to_string(format!("/proc/{}/environ", process.pid)).unwrap();
    assert!(environment.contains(VALUE) && !environment.contains(KEY));
    let report = home.run(&Verb::Ready { process: &process.identity });
    assert_eq!(report.phase, Phase::Ready);
    search(&home);
    home.run(&Verb::Stop { owner: "owner" });
    search(&home);
}

/// A server that is tried, by a check and by the work, has the variables; what runs it has not.
#[test]
fn environment_is_in_no_process_beside_the_servers_that_are_tried() {
    let home = Home::new();
    let path = home.path(&format!("{PACKAGE}/llama-server"));
    home.package("stand-in/other", &[]);
    home.script(
        &format!("{PACKAGE}/llama-server"),
        "#!/bin/sh\ncase $* in *--version | --help | --list-devices) : >~/asked; read -r _ <~/go_on ;; esac\n\
         exec ~/stand-in/other/llama-server \"$@\"\n",
    );
    assert!(Command::new("mkfifo").arg(home.path("go_on")).status().unwrap().success());
    let watch = |is_over: &mut dyn FnMut() -> bool| {
        until("it does not end", || {
            if home.path("asked").exists() {
                search(&home);
                fs::remove_file(home.path("asked")).unwrap();
                fs::write(home.path("go_on"), "\n").unwrap();
            }
            is_over().then_some(())
        });
    };
    let job = job(&home);
    let question = [Question::new("servers").on(path.parent().unwrap().to_str().unwrap())];
    let mut check = home.spawn(&job.place, &Verb::Check { questions: &question, job: Some(&job) });
    watch(&mut || check.try_wait().unwrap().is_some());
    let mut begun = home.spawn(&job.place, &Verb::Ensure(&start(&home, &job)));
    watch(&mut || begun.try_wait().unwrap().is_some());
    watch(&mut || fs::read_to_string(home.record("status")).unwrap_or_default().contains("'load'"));
    search(&home);
}

/// Each start of the work reads the key and the environment anew.
#[test]
fn key_is_asked_of_clients_after_a_crash_too() {
    let home = Home::new();
    let job = Job { restarts: true, ..job(&home) };
    let first = home.serve(&job).process.unwrap();
    kill(first.pid, "KILL");
    let header = format!("Authorization: Bearer {KEY}\r\n");
    let second = home.until_ready_with(&job.place, &header);
    assert_eq!((second.restarts, second.has_key), (1, true));
    let second = second.process.unwrap();
    assert_ne!(second.identity, first.identity);
    let environment = fs::read_to_string(format!("/proc/{}/environ", second.pid)).unwrap();
    assert!(environment.contains(VALUE) && environment.contains(LIBRARIES) && !environment.contains(KEY));
    assert_eq!((chat(home.port, ""), chat(home.port, &header)), (401, 200));
    search(&home);
}

/// A sender that is killed leaves a part of the secrets in the pipe; a server without its key would be open to all.
#[test]
fn work_without_its_whole_key_starts_no_server() {
    let home = Home::new();
    let job = job(&home);
    let text = program(&job.place, &Verb::Ensure(&start(&home, &job)));
    let text = text.expose_secret();
    let cut = text.replacen("\n# end'\n", "'\n", 1);
    assert_ne!(cut, text);
    let report = answer(home.feed(&cut));
    assert_eq!((report.is_refused, report.failure.unwrap().kind), (true, FailureKind::Workspace));
    assert_eq!(home.processes(), []);
    let lost = text.replacen(KEY, "", 1);
    answer(home.feed(&lost));
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::Interrupted);
    assert_eq!(home.servers(), [0; 0]);
    home.serve(&job);
}

/// One that was ready before may have been taken for another: it is left to its operator.
#[test]
fn server_that_ignores_its_key_is_ended_before_it_is_ready() {
    let home = Home::new();
    let job = job(&home);
    home.ensure(&job);
    let process = home.look_until(Phase::Load).process.unwrap();
    let failure = JobFailure { kind: FailureKind::KeyIgnored, text: "200 OK".to_owned() };
    let failed = home.run(&Verb::Failed { process: &process.identity, failure: &failure });
    assert_eq!(failed.failure, Some(failure.clone()));
    assert!(!is_running(process.pid));
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::KeyIgnored);
    let process = home.serve(&job).process.unwrap();
    home.run(&Verb::Failed { process: &process.identity, failure: &failure });
    assert!(is_running(process.pid));
}

/// What the program of the server is told, and its key, as a script has them.
const READ_KEY: &str = "#!/bin/sh\ncase $1 in --*) exit 0 ;; esac\nread -r key\n";

#[test]
fn server_that_prints_its_secrets_does_not_bring_them_into_a_report() {
    let home = Home::new();
    let prints = "echo \"error: the key is $key, twice $key! $PLANTED\" >&2\nexit 3\n";
    home.script(&format!("{PACKAGE}/llama-server"), &format!("{READ_KEY}{prints}"));
    let job = Job { build: Build::Prebuilt, ..job(&home) };
    home.ensure(&job);
    home.look_until(Phase::Failed);
    let output = home.spawn(&job.place, &Verb::Look).wait_with_output().unwrap();
    let report = JobReport::parse(&output.stdout, &job.secrets()).unwrap();
    let text = format!("{report:?}");
    assert!(text.contains("the key is (redacted), twice (redacted)! (redacted)"), "{text}");
    assert!(!text.contains(KEY) && !text.contains(VALUE), "{text}");
}

#[test]
fn no_half_of_a_secret_is_left_where_a_text_is_cut() {
    let home = Home::new();
    // More than a report takes, and a line whose end is cut within the key.
    home.script(
        &format!("{PACKAGE}/llama-server"),
        "#!/bin/sh\ncase $1 in --*) exit 0 ;; esac\nread -r key\n\
         line=\"$PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED\"\n\
         awk -v line=\"$line $line\" 'BEGIN { while (i++ < 50) print line }'\n\
         printf 'error: %0385d%s\\n' 0 \"$key\"\nexit 3\n",
    );
    let job = Job { build: Build::Prebuilt, ..job(&home) };
    home.ensure(&job);
    home.look_until(Phase::Failed);
    let output = home.spawn(&job.place, &Verb::Look).wait_with_output().unwrap();
    let report = JobReport::parse(&output.stdout, &job.secrets()).unwrap();
    let failure = &report.failure.as_ref().unwrap().text;
    assert!(failure.contains("error: 000") && !failure.contains("0planted"), "{failure}");
    assert!(report.log_tail.len() > 10, "{report:?}");
    // A fingerprint may have these digits.
    let text = format!("{failure}{:?}", report.log_tail);
    assert!(!text.contains("4712") && !text.contains("4711"), "{text}");
}

#[test]
fn records_are_for_their_owner_alone() {
    let home = Home::new();
    home.ensure(&job(&home));
    home.look_until(Phase::Load);
    for file in files(&home.state()) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} {mode:o}", file.display());
    }
    assert_eq!(fs::metadata(home.state()).unwrap().mode() & 0o077, 0);
}

#[test]
fn changed_key_restarts_the_server_with_it() {
    let home = Home::new();
    let first = home.ensure(&job(&home));
    let mut job = job(&home);
    job.api_key = None;
    let second = answer(home.spawn(&job.place, &Verb::Ensure(&start(&home, &job))));
    assert_ne!(first.fingerprint, second.fingerprint);
    let settings = |report: &JobReport| report.fingerprint.as_ref().unwrap().split('-').next().unwrap().to_owned();
    assert_eq!(settings(&first), settings(&second));
    let process = home.look_until(Phase::Load).process.unwrap();
    assert!(!process.command_line.iter().any(|word| word == "--api-key-file"), "{process:?}");
}
