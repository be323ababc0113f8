//! Nothing secret is in a file of the instance, an argument or an environment, except the variables of the server in
//! its own.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use damodel_llama::{Build, FailureKind, Fingerprint, Job, JobFailure, JobReport, Phase, Question, Verb, program};
use nix::sys::signal::Signal;
use secrecy::{ExposeSecret, SecretString};

use super::{
    home::{Home, answer, chat, header, start, until_so},
    process::{environment, is_running, kill, words},
    stand_in::{PACKAGE, truncated, working},
};

const KEY: &str = "planted-api-key-4711";
const VALUE: &str = "planted-value-of-the-environment-4712";
const LIBRARIES: &str = "/planted-libraries-of-the-environment-4713";

fn job(home: &Home) -> Job {
    let variables = [("PLANTED", VALUE), ("LD_LIBRARY_PATH", LIBRARIES)];
    let environment = variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    Job { api_key: Some(KEY.into()), environment, ..home.job() }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    // The links are those to the stand-ins.
    let entries = entries.filter(|path| path.is_dir() || path.is_file()).filter(|path| !path.is_symlink());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Looks for the secrets in all files of the instance, in all arguments and in all environments, of which only a
/// server's has its variables. The login's variables with our names are nowhere either.
fn search(home: &Home) {
    for (pid, _) in home.processes() {
        let environment = environment(pid);
        // The words second: a process whose environment was seen before it became the server had none of the variables.
        let Some(words) = words(pid) else { continue };
        for secret in [KEY, VALUE, LIBRARIES] {
            assert!(!words.iter().any(|word| word.contains(secret)), "{pid}: {words:?}");
        }
        // A script is the second word.
        let is_server = words.iter().take(2).any(|word| word.ends_with("/llama-server"));
        let others = if is_server { &[KEY][..] } else { &[KEY, VALUE, LIBRARIES] };
        assert!(!others.iter().any(|secret| environment.contains(secret)), "{pid}: {words:?}");
        let is_of_the_login = environment.contains("DAMODEL_RUN=") && environment.contains("=of the login");
        assert!(!is_of_the_login, "{pid}: {words:?}");
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
    let home = Home::new().with_cuda();
    home.model(truncated());
    home.hold_compile();
    home.fails(&job(&home));
    search(&home);
    // The compile.
    let job = Job { build: Build::Source, restarts: true, ..job(&home) };
    home.ensure(&job);
    until_so("no compile", || {
        search(&home);
        home.compiles() == 1
    });
    home.model(working());
    home.release_compile();
    home.look_until(Phase::Load);
    search(&home);
    let first = home.until_ready(&job).process.unwrap();
    search(&home);
    let has_variables = |pid: u32| {
        let environment = environment(pid);
        assert!(environment.contains(VALUE) && environment.contains(LIBRARIES) && !environment.contains(KEY));
    };
    has_variables(first.pid);
    // Records are for their owner alone.
    for file in files(&home.state()) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} {mode:o}", file.display());
    }
    assert_eq!(fs::metadata(home.state()).unwrap().mode() & 0o077, 0);
    // Each start of the work reads the key and the environment again.
    kill(first.pid, Signal::SIGKILL);
    let second = home.until_ready(&job);
    assert_eq!((second.restarts, second.has_key), (1, true));
    let second = second.process.unwrap();
    assert_ne!(second.identity, first.identity);
    has_variables(second.pid);
    assert_eq!((chat(home.port, ""), chat(home.port, &header(&job))), (401, 200));
    search(&home);
    home.stop();
    search(&home);
}

/// A server that is tried, by a check and by the work, has the variables; what runs it has not.
#[test]
fn environment_is_in_no_process_beside_the_servers_that_are_tried() {
    let home = Home::new();
    let path = home.path(&format!("{PACKAGE}/llama-server"));
    home.package("stand-in/other", "[]");
    home.script(
        &format!("{PACKAGE}/llama-server"),
        "#!/bin/sh\ncase $* in *--version | --help | --list-devices) : >~/asked\n\
         until read -r _ <~/go_on; do :; done ;; esac\nexec ~/stand-in/other/llama-server \"$@\"\n",
    );
    assert!(Command::new("mkfifo").arg(home.path("go_on")).status().unwrap().success());
    let watch = |is_over: &mut dyn FnMut() -> bool| {
        until_so("it does not end", || {
            if home.path("asked").exists() {
                search(&home);
                fs::remove_file(home.path("asked")).unwrap();
                fs::write(home.path("go_on"), "\n").unwrap();
            }
            is_over()
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
    // A question that was answered may still be ending.
    until_so("a refused work goes on", || home.processes().is_empty());
    let lost = text.replacen(KEY, "", 1);
    answer(home.feed(&lost));
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::Interrupted);
    assert_eq!(home.servers(), [0; 0]);
}

/// One that was ready before may have been taken for another: it is left to its operator.
#[test]
fn server_that_ignores_its_key_is_ended_before_it_is_ready() {
    let home = Home::new();
    let mut job = job(&home);
    let first = home.ensure(&job);
    let process = home.loading(&job);
    let failure = JobFailure { kind: FailureKind::KeyIgnored, text: "200 OK".to_owned() };
    let failed = home.run(&Verb::Failed { process: &process.identity, failure: &failure });
    assert_eq!(failed.failure, Some(failure.clone()));
    assert!(!is_running(process.pid));
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::KeyIgnored);
    let process = home.serve(&job).process.unwrap();
    home.run(&Verb::Failed { process: &process.identity, failure: &failure });
    assert!(is_running(process.pid));
    // Without a key it is another job, with the same settings.
    job.api_key = None;
    let second = home.ensure(&job);
    assert_ne!(first.fingerprint, second.fingerprint);
    assert_eq!(first.hashes().unwrap().0, second.hashes().unwrap().0);
    assert_eq!(second.fingerprint, Some(Fingerprint::of(&job).to_string()));
    let words = home.loading(&job).command_line;
    assert!(!words.iter().any(|word| word == "--api-key-file"), "{words:?}");
}

/// What a server prints of its secrets is redacted, and no half of one is left where a text is cut.
#[test]
fn server_that_prints_its_secrets_does_not_bring_them_into_a_report() {
    let home = Home::new();
    let job = job(&home);
    let secrets: Vec<SecretString> = job.api_key.iter().chain(job.environment.values()).cloned().collect();
    // The second prints more than a report takes, and a line whose end is cut within the key.
    for (prints, failure_has, lines) in [
        ("echo \"error: the key is $key, twice $key! $PLANTED\" >&2", "is (redacted), twice (redacted)! (redacted)", 0),
        (
            "line=\"$PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED $PLANTED\"\n\
             awk -v line=\"$line $line\" 'BEGIN { while (i++ < 50) print line }'\n\
             printf 'error: %0385d%s\\n' 0 \"$key\"",
            "error: 000",
            10,
        ),
    ] {
        let text = format!("#!/bin/sh\ncase $1 in --*) exit 0 ;; esac\nread -r key\n{prints}\nexit 3\n");
        fs::remove_file(home.path(PACKAGE).join("llama-server")).unwrap();
        home.script(&format!("{PACKAGE}/llama-server"), &text);
        home.fails(&job);
        let output = home.spawn(&job.place, &Verb::Look).wait_with_output().unwrap();
        let report = JobReport::parse(&output.stdout, &secrets).unwrap();
        let failure = &report.failure.as_ref().unwrap().text;
        assert!(failure.contains(failure_has) && report.log_tail.len() >= lines, "{report:?}");
        // A fingerprint may have these digits.
        let text = format!("{failure}{:?}", report.log_tail);
        assert!(!["0planted", "4711", "4712"].iter().any(|part| text.contains(part)), "{text}");
    }
}
