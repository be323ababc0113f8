//! Nothing secret is in a file of the instance but the key's own, nor in an argument.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use secrecy::SecretString;

use super::{
    super::{Build, Job, JobReport, Phase, Verb},
    home::{Home, PACKAGE, RTX, answer, start, until},
    model,
};

const KEY: &str = "planted-api-key-4711";
const VALUE: &str = "planted-value-of-the-environment-4712";

fn job(home: &Home) -> Job {
    let mut job = home.job();
    job.api_key = Some(SecretString::from(KEY));
    job.environment.insert("PLANTED".to_owned(), SecretString::from(VALUE));
    job
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    // The links are those to the stand-ins.
    let entries = entries.filter(|path| !path.is_symlink());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Looks for the secrets in all files of the instance and in all arguments.
fn search(home: &Home) {
    for (pid, words) in home.processes() {
        for secret in [KEY, VALUE] {
            assert!(!words.iter().any(|word| word.contains(secret)), "{pid}: {words:?}");
        }
    }
    for file in files(&home.path("")) {
        let Ok(content) = fs::read(&file) else { continue };
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains(VALUE), "{}", file.display());
        if content.contains(KEY) {
            assert!(file.starts_with(home.state()) && file.ends_with("api_key"), "{}", file.display());
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        }
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
    // The compilers do not have them in their environment either.
    for (pid, words) in home.processes() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let holds = |secret: &str| String::from_utf8_lossy(&environment).contains(secret);
        let is_shell = words.iter().any(|word| word.ends_with("bootstrap.sh"));
        assert!(!holds(KEY) && (is_shell || !holds(VALUE)), "{words:?}");
    }
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
    home.run(&Verb::Destroy { owner: "owner" });
    assert!(!files(&home.path("")).iter().any(|file| file.ends_with("api_key")));
}

#[test]
fn server_that_prints_its_secrets_does_not_bring_them_into_a_report() {
    let home = Home::new();
    home.script(
        &format!("{PACKAGE}/llama-server"),
        "#!/bin/sh\ncase $1 in --*) exit 0 ;; esac\ncat ~/workspace/.damodel/*/runs/*/api_key >&2\n\
         echo \"error: the key is $(cat ~/workspace/.damodel/*/runs/*/api_key), twice $(cat \
         ~/workspace/.damodel/*/runs/*/api_key)! $PLANTED\" >&2\nexit 3\n",
    );
    let job = Job { build: Build::Prebuilt, ..job(&home) };
    home.ensure(&job);
    // Without the secrets at hand, as in a refresh, the key is kept out all the same.
    let report = home.look_until(Phase::Failed);
    let text = format!("{report:?}");
    assert!(text.contains("the key is (redacted), twice (redacted)!"), "{text}");
    assert!(!text.contains(KEY), "{text}");
    // With them, the environment too.
    let output = home.spawn(&job.place, &Verb::Look).wait_with_output().unwrap();
    let report = JobReport::parse(&output.stdout, &job.secrets()).unwrap();
    let text = format!("{report:?}");
    assert!(text.contains("(redacted)") && !text.contains(KEY) && !text.contains(VALUE), "{text}");
}

#[test]
fn no_half_of_a_secret_is_left_where_a_text_is_cut() {
    let home = Home::new();
    // More than a report takes, and a line whose end is cut within the key.
    home.script(
        &format!("{PACKAGE}/llama-server"),
        "#!/bin/sh\ncase $1 in --*) exit 0 ;; esac\n\
         line=\"$PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED\"\n\
         awk -v line=\"$line $line\" 'BEGIN { while (i++ < 50) print line }'\n\
         printf 'error: %0385d%s\\n' 0 \"$(cat ~/workspace/.damodel/*/runs/*/api_key)\"\nexit 3\n",
    );
    let job = Job { build: Build::Prebuilt, ..job(&home) };
    home.ensure(&job);
    home.look_until(Phase::Failed);
    let output = home.spawn(&job.place, &Verb::Look).wait_with_output().unwrap();
    let report = JobReport::parse(&output.stdout, &job.secrets()).unwrap();
    let failure = &report.failure.as_ref().unwrap().text;
    assert!(failure.contains("error: 000") && !failure.contains("0planted"), "{failure}");
    assert!(report.log_tail.len() > 10, "{report:?}");
    let text = format!("{report:?}");
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
    assert!(!home.record("api_key").exists());
}
