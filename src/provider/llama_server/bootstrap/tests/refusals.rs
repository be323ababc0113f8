//! What is told at once, leaves everything as it was, and never leads to a compile.

use std::{fs, net::TcpListener, path::Path, process::Command};

use rstest::rstest;

use super::{
    super::{Build, FailureKind, Job, Phase, Verb},
    home::{Home, PACKAGE, RTX, V100, no_inference, until},
};

/// Ensures a job that is refused: nothing may come of it.
fn refusal(home: &Home, job: &Job) -> (FailureKind, String) {
    let before = home.servers();
    let report = home.ensure(job);
    assert_ne!(report.phase, Phase::Compile);
    assert_eq!(home.servers(), before);
    assert!(report.is_refused);
    let failure = report.failure.unwrap();
    (failure.kind, failure.text)
}

#[test]
fn missing_model_is_told_with_what_there_is() {
    let home = Home::new();
    fs::create_dir(home.path("public-storage/model/more")).unwrap();
    fs::write(home.path("public-storage/model/more/other.gguf"), "GGUF\n").unwrap();
    let mut job = home.job();
    job.model = "~/models/none.gguf".to_owned();
    let (kind, text) = refusal(&home, &job);
    let root = home.path("");
    let root = root.to_str().unwrap();
    assert_eq!(kind, FailureKind::MissingModel);
    assert_eq!(
        text,
        format!(
            "no model at {root}models/none.gguf. Available:\n{root}public-storage/model/more/other.gguf\n\
             {root}public-storage/model/tiny.gguf"
        )
    );
    assert_eq!(home.look().phase, Phase::Absent);
}

/// Before anything is ended: the option and the path are named.
#[rstest]
#[case(&["--mmproj", "/no/such"], Some("--mmproj names /no/such"))]
#[case(&["-md=/no/such"], Some("-md names /no/such"))]
#[case(&["--lora", "{home}/here,/no/such"], Some("--lora names /no/such"))]
#[case(&["--lora_scaled", "{home}/here:0.5,/no/such:2"], Some("--lora_scaled names /no/such"))]
#[case(&["--chat-template-file", "~/here"], Some("--chat-template-file names ~/here"))]
#[case(&["--grammar-file", "none"], Some("--grammar-file names none"))]
#[case(&["--mmproj", "{home}/here", "--lora", "{home}/here:0.5", "--grammar-file", "../here", "-np", "/no"], None)]
fn file_that_an_option_names_must_be_there(#[case] words: &[&str], #[case] expected: Option<&str>) {
    let home = Home::new();
    fs::write(home.path("here"), "").unwrap();
    fs::create_dir(home.path("workspace")).unwrap();
    let root = home.path("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    let job = Job { extra_args: words.iter().map(|word| word.replace("{home}", root)).collect(), ..home.job() };
    match expected {
        Some(expected) => {
            let (_, text) = refusal(&home, &job);
            assert!(text.contains(expected), "{text}");
        }
        None => assert!(!home.check(&job).is_refused),
    }
}

#[rstest]
#[case::with_ss(&[])]
#[case::without_ss(&["ss"])]
fn port_in_use_is_told_with_who_uses_it(#[case] missing: &[&str]) {
    let home = Home::new().without(missing).with_cuda(V100);
    let taken = TcpListener::bind(("0.0.0.0", home.port)).unwrap();
    let (kind, text) = refusal(&home, &home.job());
    assert_eq!(kind, FailureKind::PortInUse);
    let pid = std::process::id();
    assert!(text.starts_with(&format!("port {} is in use by process {pid} (", home.port)), "{text}");
    drop(taken);
    assert_eq!(home.ensure(&home.job()).failure, None);
}

#[test]
fn port_that_is_taken_when_the_server_starts_leads_to_no_compile() {
    let home = Home::new().with_cuda(RTX);
    // Between the check and the start: the server's --help takes the port, in place of someone who was faster.
    home.script(
        &format!("{PACKAGE}/llama-server"),
        "#!/bin/sh\n[ \"$1\" != --help ] || while [ ! -e ~/taken ]; do : >~/asked; sleep 0.05; done\n\
         echo \"couldn't bind HTTP server socket\" >&2; exit 1\n",
    );
    home.ensure(&home.job());
    until("it is not asked", || home.path("asked").exists().then_some(()));
    let taken = TcpListener::bind(("127.0.0.1", home.port)).unwrap();
    fs::write(home.path("taken"), "").unwrap();
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::PortInUse, "{failure:?}");
    drop(taken);
    assert_eq!(home.compiles(), [""; 0]);
}

#[test]
fn workspace_that_cannot_be_written_is_told_with_the_reason() {
    let home = Home::new();
    fs::write(home.path("file"), "").unwrap();
    let mut job = home.job();
    job.place.workspace = "~/file/workspace".to_owned();
    let (kind, text) = refusal(&home, &job);
    assert_eq!(kind, FailureKind::Workspace);
    assert!(text.contains("Not a directory"), "{text}");
}

/// The stand-in for a stale mount: `ls` does not return for the workspace.
#[test]
fn verb_touches_nothing_in_a_workspace_that_does_not_answer() {
    let home = Home::new();
    let served = home.serve(&home.job());
    home.script("bin/ls", "#!/bin/sh\ncase $* in *workspace*) exec /bin/sleep 600 ;; esac\nexec /bin/ls \"$@\"\n");
    home.hurry();
    for verb in [Verb::Look, Verb::Stop { owner: "owner" }, Verb::Destroy { owner: "owner" }, Verb::RollBack] {
        let report = home.run(&verb);
        let failure = report.failure.unwrap();
        assert_eq!((report.is_refused, failure.kind), (true, FailureKind::NoAnswer), "{verb:?}");
        assert!(failure.text.contains("workspace does not answer"), "{}", failure.text);
    }
    assert!(home.check(&home.job()).is_refused);
    for file in ["bin/ls", "bin/sleep"] {
        fs::remove_file(home.path(file)).unwrap();
    }
    assert_eq!(home.look().process, served.process);
}

/// A small file system for the workspace; only root may mount one.
struct Small<'a>(&'a Home);

impl<'a> Small<'a> {
    #[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
    fn mount(home: &'a Home, size: &str) -> Option<Self> {
        let folder = home.path("workspace");
        fs::create_dir_all(&folder).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&folder).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(home));
        }
        eprintln!("SKIPPED: a full disk takes root, who may mount a small file system");
        assert!(option_env!("CI").is_none(), "a full disk is not tested");
        None
    }

    fn fill(&self) {
        let filled = Command::new("sh")
            .args(["-c", "cat /dev/zero >\"$1\" 2>/dev/null", "sh"])
            .arg(self.filler())
            .status()
            .unwrap();
        assert!(!filled.success());
    }

    fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> std::path::PathBuf {
        self.0.path("workspace/filler")
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        unmount(&self.0.path("workspace"));
    }
}

fn unmount(folder: &Path) {
    // Lazily: a server may still have its log there.
    let _ = Command::new("umount").arg("-l").arg(folder).status();
}

#[test]
fn full_disk_is_told_at_once_and_harms_no_server() {
    let home = Home::new().with_cuda(V100);
    let Some(small) = Small::mount(&home, "4m") else { return };
    small.fill();
    let (kind, text) = refusal(&home, &home.job());
    assert_eq!(kind, FailureKind::DiskFull);
    assert!(text.starts_with("no space is left in the workspace") && text.contains("tmpfs"), "{text}");
    small.clear();
    let before = home.serve(&home.job());
    small.fill();
    let again = home.check(&home.job());
    assert_eq!((again.phase, again.is_refused, again.failure), (Phase::Ready, false, None));
    let mut job = home.job();
    job.context_size = 1;
    assert_eq!(refusal(&home, &job).0, FailureKind::DiskFull);
    let process = before.process.clone().unwrap();
    let restarted = home.run(&Verb::Restart { process: &process.identity });
    assert_eq!((restarted.is_refused, restarted.failure.unwrap().kind), (true, FailureKind::DiskFull));
    assert_eq!(home.look().process, before.process);
    small.clear();
    assert_eq!(home.run(&Verb::Restart { process: &process.identity }).failure, None);
    let after = home.until_ready(&home.place()).process;
    assert!(after.is_some() && after != before.process);
    small.fill();
    assert_eq!(home.run(&Verb::Stop { owner: "owner" }).failure, None);
    assert_eq!(home.servers(), [0; 0]);
}

#[rstest]
#[case::with_a_compile_to_fall_back_to(Build::Auto)]
#[case::without(Build::Prebuilt)]
fn disk_that_fills_while_loading_is_told_and_ends_nothing(#[case] build: Build) {
    let home = Home::new().with_cuda(RTX);
    let Some(small) = Small::mount(&home, "4m") else { return };
    let job = Job { build, ..home.job() };
    home.ensure(&job);
    let process = home.look_until(Phase::Load).process.unwrap();
    small.fill();
    let failure = &no_inference("none");
    for verb in [Verb::Ready { process: &process.identity }, Verb::Failed { process: &process.identity, failure }] {
        let report = home.run(&verb);
        assert_eq!((report.is_refused, report.phase), (true, Phase::Load), "{verb:?}");
        assert_eq!(report.failure.unwrap().kind, FailureKind::DiskFull);
    }
    assert_eq!(home.servers(), [process.pid]);
    small.clear();
    home.until_ready(&home.place());
}

#[test]
fn disk_that_fills_while_compiling_is_told_and_the_next_apply_goes_on() {
    let home = Home::new().with_cuda(V100);
    let Some(small) = Small::mount(&home, "6m") else { return };
    home.hold_compile();
    home.ensure(&home.job());
    until("no compile", || (home.compiles().len() == 1).then_some(()));
    small.fill();
    home.release_compile();
    let failure = home.look_until(Phase::Failed).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::DiskFull, "{failure:?}");
    small.clear();
    home.serve(&home.job());
}
