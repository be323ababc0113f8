//! Downloads of a model and of files beside it, by a real curl and a real python3 from the sandbox's hub.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use damodel_client::api::{RemoteFile, Settings};
use damodel_llama::{AdditionalFiles, FailureKind, FileOrigin, Job, Phase, Previous, Verb};
use damodel_sandbox::{FileRequest, FileService, Options, Running, Sandbox};
use rstest::rstest;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::{
    home::{Home, chat, start, until_so, with_option},
    process::environment,
};
use crate::support::ports::free_port;

/// Larger than what a socket holds.
const PADDING: u64 = 4_000_000;

/// A hub of models.
struct Hub {
    running: Running,
    runtime: Runtime,
}

impl Hub {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let running = runtime.block_on(Sandbox::start(Options::default())).unwrap();
        let hub = Self { running, runtime };
        hub.set(FileService::default());
        hub
    }

    /// Serves files in this way, each of them with some padding.
    fn set(&self, files: FileService) {
        let _guard = self.runtime.enter();
        self.running.sandbox.set_files(FileService { padding: PADDING, ..files });
    }

    fn address(&self, file: &str) -> String {
        format!("{}/files/{file}", self.running.base_url)
    }

    /// The requests since the last time.
    fn requests(&self) -> Vec<FileRequest> {
        self.running.sandbox.take_file_requests()
    }

    /// The ranges of the requests for content since the last time.
    fn transfers(&self) -> Vec<String> {
        let ranges = self.requests().into_iter().map(|request| request.range);
        ranges.filter(|range| range != "bytes=0-3").collect()
    }

    /// The content of a file, as the hub's settings have it.
    fn content(&self, file: &str) -> Vec<u8> {
        let output = Command::new("curl").args(["-sSf", &format!("{}?direct", self.address(file))]).output().unwrap();
        self.requests();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    /// The job of a home, whose model is missing and comes from here.
    fn job(&self, home: &Home) -> Job {
        let model = home.text("models/deep/m.gguf");
        let downloads = vec![FileOrigin { is_model: true, ..self.file(&model, "tiny.gguf") }];
        Job { model, downloads, ..home.job() }
    }

    /// A file beside the model, which comes from here.
    fn file(&self, path: &str, file: &str) -> FileOrigin {
        let (path, address) = (path.to_owned(), self.address(file));
        FileOrigin { path, address, sha256: None, token: None, is_model: false }
    }
}

/// The same job with another source of its first file.
fn with(job: &Job, change: impl FnOnce(&mut FileOrigin)) -> Job {
    let mut job = job.clone();
    change(&mut job.downloads[0]);
    job
}

fn sum(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn part(home: &Home, job: &Job) -> PathBuf {
    PathBuf::from(format!("{}.{}-ins-1.part", job.model, home.port))
}

/// The files in the model's folder.
fn beside(job: &Job) -> Vec<String> {
    let entries = fs::read_dir(Path::new(&job.model).parent().unwrap()).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn until_part_has(home: &Home, job: &Job, bytes: u64) {
    let size = || fs::metadata(part(home, job)).map_or(0, |data| data.len());
    until_so("nothing arrives", || size() == bytes);
}

/// A home with this shell and without these programs.
fn home(shell: &str, without: &[&str]) -> Option<Home> {
    Home::with_shell(shell).map(|home| if without.is_empty() { home } else { home.without(without) })
}

#[rstest]
#[case::curl("dash", &[])]
#[case::python("dash", &["curl"])]
#[case::bash("bash", &[])]
#[case::busybox("busybox", &[])]
fn missing_model_is_downloaded_and_then_never_asked_about(#[case] shell: &str, #[case] without: &[&str]) {
    let Some(home) = home(shell, without) else { return };
    let hub = Hub::start();
    let job = hub.job(&home);
    for (number, files, sha256, is_verified) in [
        (0, FileService::default(), false, false),
        (1, FileService { is_linked: true, ..FileService::default() }, false, true),
        (2, FileService { is_untagged: true, has_no_ranges: true, ..FileService::default() }, true, true),
    ]
    .into_iter()
    // The answers are read in the same way by each shell.
    .take(if shell == "dash" { 3 } else { 1 })
    {
        hub.set(files);
        let content = hub.content("tiny.gguf");
        let job = with(&job, |source| source.sha256 = sha256.then(|| sum(&content)));
        let report = home.serve(&job);
        assert_eq!((report.is_model_verified, report.download), (Some(is_verified), None), "{number}");
        assert!(fs::read(&job.model).unwrap() == content && hub.transfers() == ["bytes=0-"], "{number}");
        assert_eq!(beside(&job), ["m.gguf"]);
        assert_eq!(fs::metadata(&job.model).unwrap().permissions().mode() & 0o777, 0o644);
        // The next start needs no hub.
        home.stop();
        hub.set(FileService { status: Some(404), ..FileService::default() });
        assert_eq!(home.serve(&job).is_model_verified, Some(is_verified));
        assert_eq!(hub.requests(), []);
        home.destroy();
        assert_eq!(beside(&job), ["m.gguf"]);
        fs::remove_file(&job.model).unwrap();
    }
}

/// What is cut off is continued by the same run, and after the work was killed.
#[rstest]
#[case::untagged(&[], false, false)]
#[case::untagged_and_changed(&[], false, true)]
#[case::tagged(&[], true, false)]
#[case::changed(&[], true, true)]
#[case::python(&["curl"], true, false)]
#[case::python_and_changed(&["curl"], true, true)]
fn download_is_continued_only_with_the_same_content(
    #[case] without: &[&str],
    #[case] is_tagged: bool,
    #[case] is_changed: bool,
) {
    let home = home("dash", without).unwrap();
    home.hurry();
    let hub = Hub::start();
    let job = hub.job(&home);
    let stalls = FileService { stall_after: Some(1_000_000), is_untagged: !is_tagged, ..FileService::default() };
    hub.set(stalls.clone());
    home.ensure(&job);
    until_part_has(&home, &job, 1_000_000);
    let report = home.look();
    let download = report.download.unwrap();
    assert_eq!((report.phase, download.bytes), (Phase::Download, 1_000_000));
    assert!(download.total > 4_000_000 && download.rate > 0, "{download:?}");
    home.kill_works();
    let failure = home.look().failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Interrupted);
    let files = FileService { version: u8::from(is_changed), stall_after: None, ..stalls };
    hub.set(files.clone());
    let wanted = hub.content("tiny.gguf");
    hub.set(FileService { cut_after: is_tagged.then_some(2_000_000), ..files });
    home.serve(&job);
    assert!(fs::read(&job.model).unwrap() == wanted);
    // A connection that breaks may take its last bytes with it.
    let starts: Vec<u64> = hub.transfers().iter().map(|range| range[6..range.len() - 1].parse().unwrap()).collect();
    assert_eq!(starts[0], if is_tagged && !is_changed { 1_000_000 } else { 0 });
    assert!(starts.is_sorted_by(|one, next| one < next) && (starts.len() == 1) != is_tagged, "{starts:?}");
}

/// The part is complete: only its sum or its name is missing, when the work is killed.
#[rstest]
#[case::during_the_sum("sha256sum", "part_size", &[])]
#[case::before_the_link("ln", "before", &[])]
#[case::after_the_link("ln", "after", &[])]
fn work_that_is_killed_at_the_end_loads_nothing_again(
    #[case] program: &str,
    #[case] moment: &str,
    #[case] transfers: &[&str],
) {
    let home = Home::new();
    let hub = Hub::start();
    hub.set(FileService { is_linked: true, ..FileService::default() });
    let job = hub.job(&home);
    let real = if moment == "after" { format!("/bin/{program} \"$@\"; ") } else { String::new() };
    // The sums of small texts are names.
    let is_halt = if program == "ln" { "true" } else { "[ \"$(stat -L -c %s /dev/stdin)\" -gt 1000000 ]" };
    home.script(
        &format!("bin/{program}"),
        &format!(
            "#!/bin/sh\nif [ ! -e ~/go-on ] && {is_halt}; then {real}: >~/halted; while :; do sleep 0.02; done; fi\n\
             exec /usr/bin/{program} \"$@\"\n"
        ),
    );
    home.ensure(&job);
    until_so("it does not halt", || home.path("halted").exists());
    let download = home.look().download;
    assert!(download.is_none_or(|download| download.bytes == download.total), "{download:?}");
    home.kill_works();
    fs::write(home.path("go-on"), "").unwrap();
    hub.requests();
    assert_eq!(home.serve(&job).is_model_verified, Some(true));
    assert_eq!(hub.transfers(), transfers);
    assert_eq!(beside(&job), ["m.gguf"]);
}

/// It has the size and the time of the download.
#[test]
fn sum_of_a_download_is_not_that_of_a_file_that_appears_meanwhile() {
    let home = Home::new();
    let hub = Hub::start();
    let job = with(&hub.job(&home), |source| source.sha256 = Some(sum(&hub.content("tiny.gguf"))));
    home.script(
        "bin/ln",
        "#!/bin/sh\n[ -e \"$3\" ] || { tr '\\000' x <\"$2\" >\"$3\" && touch -r \"$2\" \"$3\"; }\nexec /bin/ln \"$@\"\n",
    );
    home.ensure(&job);
    assert_eq!(home.look_until(Phase::Failed).failure.unwrap().kind, FailureKind::WrongSum);
}

/// The work waits for the lock of the model.
#[test]
fn file_that_is_there_is_not_shown_as_a_download() {
    let home = Home::new();
    let hub = Hub::start();
    let job = hub.job(&home);
    home.serve(&job);
    home.stop();
    home.script(
        "bin/flock",
        "#!/bin/sh\n[ \"$1\" != 7 ] || { : >~/waits; while [ ! -e ~/go-on ]; do sleep 0.02; done; }\n\
         exec /usr/bin/flock \"$@\"\n",
    );
    home.ensure(&job);
    until_so("it does not wait", || home.path("waits").exists());
    assert_eq!(home.look().phase, Phase::Start);
    fs::write(home.path("go-on"), "").unwrap();
    home.look_until(Phase::Load);
}

/// At each record of a download: the next apply completes the model.
#[test]
fn work_that_is_killed_at_any_moment_is_continued() {
    let home = Home::new();
    let hub = Hub::start();
    hub.set(FileService { is_linked: true, ..FileService::default() });
    let (job, content) = (hub.job(&home), hub.content("tiny.gguf"));
    // The records of the verb and of the begin of the work come first.
    let mut rename = 6;
    loop {
        rename += 1;
        home.halt_at(rename);
        let mut run = home.spawn(&job.place, &Verb::Ensure(&start(&home, &job)));
        let is_halted = home.halts_before(&mut run, &job);
        home.kill_works();
        home.release();
        run.kill().unwrap();
        run.wait().unwrap();
        if !is_halted {
            break;
        }
        home.ensure(&job);
        let report = home.look_until(Phase::Load);
        assert_eq!((report.is_model_verified, beside(&job)), (Some(true), vec!["m.gguf".to_owned()]), "{rename}");
        assert!(fs::read(&job.model).unwrap() == content, "{rename}");
        home.stop();
        fs::remove_file(&job.model).unwrap();
    }
    assert!(rename > 10, "{rename}");
}

/// What cannot succeed ends at once, before a byte of the content and before anything that serves.
#[rstest]
#[case::curl(&[])]
#[case::python(&["curl"])]
fn download_that_cannot_succeed_ends_at_once(#[case] without: &[&str]) {
    let home = home("dash", without).unwrap();
    let hub = Hub::start();
    let previous = home.serve(&home.job()).process.unwrap();
    let job = with_option("context_size", "4096", hub.job(&home));
    let status = |status| FileService { status: Some(status), ..FileService::default() };
    let leads = |to: &str| FileService { redirect: Some(to.to_owned()), ..FileService::default() };
    let (own, other) = (hub.address("tiny.gguf"), "b".repeat(64));
    for (files, sha256, kind, words) in [
        (status(401), "", FailureKind::NoAccess, "answered 401"),
        (status(403), "", FailureKind::NoAccess, "answered 403"),
        (status(404), "", FailureKind::NoSuchModel, "answered 404"),
        (status(410), "", FailureKind::NoSuchModel, "answered 410"),
        (status(200), "", FailureKind::NoAccess, "answered with a web page"),
        (
            FileService { has_no_length: true, ..FileService::default() },
            "",
            FailureKind::Download,
            "does not send the length",
        ),
        (leads(&own), "", FailureKind::Download, "redirects too often"),
        (leads("http://example.com/"), "", FailureKind::Download, "an address that is not followed"),
        (leads("http://127.0.0.1.example.com/"), "", FailureKind::Download, "an address that is not followed"),
        (leads("file:///etc/passwd"), "", FailureKind::Download, "an address that is not followed"),
        (FileService { is_linked: true, ..FileService::default() }, &other, FailureKind::WrongSum, &other),
    ]
    .into_iter()
    // Only what comes out of the program differs.
    .step_by(if without.is_empty() { 1 } else { 4 })
    {
        hub.set(files);
        let job = with(&job, |source| source.sha256 = Some(sha256.to_owned()).filter(|sum| !sum.is_empty()));
        let report = home.fails(&job);
        let failure = report.failure.unwrap();
        assert!(failure.kind == kind && failure.text.contains(words), "{failure:?}");
        assert_eq!(hub.transfers(), [""; 0], "{words}");
        assert_eq!((report.previous, report.process), (Some(Previous::Serving), Some(previous.clone())), "{words}");
    }
    hub.set(FileService::default());
    let nothing = with(&job, |source| source.address = hub.address("nothing.gguf"));
    assert_eq!(home.fails(&nothing).failure.unwrap().kind, FailureKind::NoSuchModel);
    assert_eq!(chat(home.port, ""), 200);
}

/// The plan's look and the instance's download follow the same forms of a redirect.
#[rstest]
#[case::absolute("{base}/files/tiny.gguf?direct")]
#[case::scheme_in_capitals("HTTP://{host}/files/tiny.gguf?direct")]
#[case::without_scheme("//{host}/files/tiny.gguf?direct")]
#[case::of_the_host("/files/tiny.gguf?direct")]
#[case::relative("tiny.gguf?direct")]
#[case::relative_with_dots("../files/./tiny.gguf?direct")]
#[case::query_alone("?direct")]
#[case::with_fragment("tiny.gguf?direct#of the page")]
#[case::letters_as_they_are("tiny.gguf?direct&name=modèle [1] \"a\".gguf")]
fn redirect_is_followed_in_each_form(#[case] form: &str) {
    let hub = Hub::start();
    let base = &hub.running.base_url;
    let to = form.replace("{base}", base).replace("{host}", base.trim_start_matches("http://"));
    hub.set(FileService { redirect: Some(to), ..FileService::default() });
    let file = RemoteFile::new(&hub.address("tiny.gguf"), &Settings::default()).unwrap();
    assert!(hub.runtime.block_on(file.size(file.path())).unwrap() > PADDING);
    for without in [&[][..], &["curl"]] {
        let home = home("dash", without).unwrap();
        let job = hub.job(&home);
        home.ensure(&job);
        home.look_until(Phase::Load);
        assert_eq!((hub.transfers().pop(), beside(&job)), (Some("bytes=0-".into()), vec!["m.gguf".into()]));
    }
}

/// As of some servers and proxies.
#[test]
fn header_names_are_read_in_any_letters() {
    let home = Home::new();
    home.script("bin/curl", "#!/bin/sh\n/usr/bin/curl \"$@\" | LC_ALL=C sed -u '1,/^\\r$/s/^[a-z-]*:/\\U&/'\n");
    let hub = Hub::start();
    hub.set(FileService { is_linked: true, ..FileService::default() });
    assert_eq!(home.serve(&hub.job(&home)).is_model_verified, Some(true));
}

/// The curl of CentOS 7 has neither option.
#[test]
fn old_curl_gives_way_to_python() {
    let old = "#!/bin/sh\ncase $* in *--http1.1*) echo 'curl: option --http1.1: is unknown' >&2; exit 2 ;; esac\n\
               exec /usr/bin/curl \"$@\"\n";
    let hub = Hub::start();
    let with_python = Home::new();
    with_python.script("bin/curl", old);
    with_python.serve(&hub.job(&with_python));
    let alone = home("dash", &["python3"]).unwrap();
    alone.script("bin/curl", old);
    let failure = alone.fails(&hub.job(&alone)).failure.unwrap();
    let words = "curl: option --http1.1: is unknown. Install python3 or a newer curl";
    assert_eq!((failure.kind, failure.text.as_str()), (FailureKind::Download, words));
}

/// The machines of a balancer give one file different tags.
#[rstest]
#[case::whole(None, false)]
#[case::in_pieces_with_a_sum(Some(2_000_000), true)]
#[case::in_pieces_without_one(Some(2_000_000), false)]
fn tags_that_differ_decide_only_without_a_sum(#[case] cut_after: Option<u64>, #[case] has_sum: bool) {
    let home = Home::new();
    home.hurry();
    let hub = Hub::start();
    let content = hub.content("tiny.gguf");
    hub.set(FileService { is_balanced: true, cut_after, ..FileService::default() });
    let job = with(&hub.job(&home), |source| source.sha256 = has_sum.then(|| sum(&content)));
    if cut_after.is_none() || has_sum {
        assert_eq!(home.serve(&job).is_model_verified, Some(has_sum));
        assert!(fs::read(&job.model).unwrap() == content);
        let starts = hub.transfers();
        assert_eq!((starts.len() > 1, starts.iter().filter(|range| *range == "bytes=0-").count()), (has_sum, 1));
        return;
    }
    let failure = home.fails(&job).failure.unwrap();
    assert!(failure.kind == FailureKind::Download && failure.text.contains("its machines disagree"), "{failure:?}");
    assert_eq!(hub.transfers(), ["bytes=0-"; 3]);
    // The sum that the error asks for continues what has arrived.
    home.serve(&with(&job, |source| source.sha256 = Some(sum(&content))));
    assert!(hub.transfers().iter().all(|range| range != "bytes=0-"));
}

/// A server that sends a file only from its beginning, over a connection that does not last.
#[test]
fn server_that_ignores_ranges_is_named_as_the_cause() {
    let home = Home::new();
    home.hurry();
    let hub = Hub::start();
    let content = hub.content("tiny.gguf");
    let files = FileService { has_no_ranges: true, ..FileService::default() };
    hub.set(FileService { cut_after: Some(2_000_000), ..files.clone() });
    for sha256 in [None, Some(sum(&content))] {
        let failure = home.fails(&with(&hub.job(&home), |source| source.sha256 = sha256)).failure.unwrap();
        assert!(failure.kind == FailureKind::Download && failure.text.contains("ignores ranges"), "{failure:?}");
    }
    hub.set(files);
    home.serve(&hub.job(&home));
}

#[test]
fn file_that_is_no_model_is_described() {
    let home = Home::new();
    let hub = Hub::start();
    for (begin, words) in [
        ("version https://git-lfs", "is not a GGUF file: it is a Git LFS pointer"),
        ("<?xml version", "it is an XML document"),
        ("{\"error\"", "it is a JSON document"),
        ("abcdefg", "it begins with \"abcd\""),
    ] {
        home.script("bin/curl", &format!("#!/bin/sh\necho 'HTTP/1.1 200\nContent-Length: 99\n\n{begin}'\n"));
        let failure = home.fails(&hub.job(&home)).failure.unwrap();
        assert!(failure.kind == FailureKind::Download && failure.text.contains(words), "{failure:?}");
    }
}

/// A wrong sum is tried once more; neither a wrong one nor a disk without room leaves a part.
#[test]
fn content_that_is_wrong_or_does_not_fit_is_removed() {
    let home = Home::new();
    let hub = Hub::start();
    let job = hub.job(&home);
    home.script("bin/df", "#!/bin/sh\n[ -d \"$2\" ] && echo && echo /dev/x 1 1 1048577 0% /\n");
    let failure = home.fails(&job).failure.unwrap();
    assert!(failure.kind == FailureKind::ModelRoom && failure.text.contains("4 MiB and 1 GiB"), "{failure:?}");
    assert_eq!((hub.transfers(), failure.text.contains("1024 MiB left")), (Vec::new(), true));
    assert!(!home.path("models").exists());
    fs::remove_file(home.path("bin/df")).unwrap();

    hub.set(FileService { is_linked: true, is_corrupt: true, ..FileService::default() });
    let failure = home.fails(&job).failure.unwrap();
    let (is, wanted) = failure.text.split_once(", not ").unwrap();
    assert!(failure.kind == FailureKind::WrongSum && is.len() > 64 && wanted.len() == 64, "{failure:?}");
    assert_eq!(hub.transfers(), ["bytes=0-", "bytes=0-"]);
    assert_eq!(beside(&job), [""; 0]);

    hub.set(FileService::default());
    // As on a full disk.
    home.script("bin/cat", "#!/bin/sh\ntrap '' XFSZ\nulimit -f 2000\nexec /bin/cat \"$@\"\n");
    let failure = home.fails(&job).failure.unwrap();
    assert_eq!((failure.kind, hub.transfers()), (FailureKind::ModelRoom, vec!["bytes=0-".to_owned()]), "{failure:?}");
    assert_eq!(beside(&job), [""; 0]);
    fs::remove_file(home.path("bin/cat")).unwrap();
    home.serve(&job);
}

#[rstest]
#[case::curl(&[])]
#[case::python(&["curl"])]
fn ten_attempts_without_a_new_byte_end_the_work(#[case] without: &[&str]) {
    let home = home("dash", without).unwrap();
    let hub = Hub::start();
    let job = hub.job(&home);
    home.script(
        "bin/sleep",
        "#!/bin/sh\ncase $1 in 0.* | 10) ;; *) echo \"$1\" >>~/pauses ;; esac\nexec /bin/sleep 0.01\n",
    );
    let pauses = || {
        let pauses = fs::read_to_string(home.path("pauses")).unwrap_or_default();
        let _ = fs::remove_file(home.path("pauses"));
        pauses.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    hub.set(FileService { status: Some(503), ..FileService::default() });
    let failure = home.fails(&job).failure.unwrap();
    assert!(failure.kind == FailureKind::Download && failure.text.contains("ten attempts"), "{failure:?}");
    assert!(failure.text.contains("answered 503") && hub.requests().len() == 10, "{failure:?}");
    assert_eq!(pauses(), "1 2 4 8 16 32 60 60 60");
    hub.set(FileService { status: Some(429), retry_after: Some(4711), ..FileService::default() });
    home.fails(&job);
    assert_eq!(pauses(), ["600"; 9].join(" "));
    // Each attempt brings something new.
    hub.set(FileService { cut_after: Some(300_000), ..FileService::default() });
    home.serve(&job);
    assert!(hub.transfers().len() >= 14);
    assert!(pauses().split(' ').all(|pause| pause == "1"));
}

/// A stall of 60 s is an attempt; here it is one of a second.
#[test]
fn download_that_stalls_is_continued() {
    let home = Home::new();
    home.script("bin/curl", "#!/bin/sh\nexec /usr/bin/curl \"$@\" --speed-time 1\n");
    let hub = Hub::start();
    let job = hub.job(&home);
    hub.set(FileService { stall_after: Some(3_000_000), ..FileService::default() });
    home.serve(&job);
    assert_eq!(hub.transfers(), ["bytes=0-", "bytes=3000000-"]);
}

/// Without a client when the model is there, the previous server goes on, and the next apply needs no hub.
#[test]
fn previous_server_serves_until_its_successor_has_its_model() {
    let home = Home::new();
    let hub = Hub::start();
    let first = home.serve(&home.job()).process;
    let job = with_option("context_size", "4096", hub.job(&home));
    hub.set(FileService { stall_after: Some(1_000_000), ..FileService::default() });
    home.ensure(&job);
    until_part_has(&home, &job, 1_000_000);
    let report = home.look();
    assert_eq!((report.phase, report.previous, &report.process), (Phase::Download, Some(Previous::Serving), &first));
    // A refresh sees the server that serves.
    let refreshed = home.run(&Verb::Refresh);
    assert_eq!((refreshed.phase, refreshed.previous, &refreshed.process), (Phase::Ready, None, &first));
    assert!(refreshed.work.is_some_and(|work| home.works().contains(&work)) && refreshed.work != report.work);
    home.leave();
    hub.set(FileService::default());
    let recorded = || fs::read_to_string(home.record("status")).unwrap_or_default();
    until_so("it does not end", || recorded().contains("status_phase='failed'"));
    let failure = home.look().failure.unwrap();
    assert_eq!((failure.kind, beside(&job)), (FailureKind::Interrupted, vec!["m.gguf".to_owned()]), "{failure:?}");
    assert_eq!(chat(home.port, ""), 200);
    hub.requests();
    hub.set(FileService { status: Some(404), ..FileService::default() });
    home.serve(&job);
    assert_eq!((hub.requests(), home.servers().len()), (Vec::new(), 1));
}

/// A file that is there is used as it is; with a sum it must have that one, which is computed once.
#[test]
fn file_that_is_there_is_checked_once_and_never_overwritten() {
    let home = Home::new();
    let hub = Hub::start();
    hub.set(FileService { status: Some(404), ..FileService::default() });
    let previous = home.serve(&home.job()).process.unwrap();
    home.script(
        "bin/sha256sum",
        "#!/bin/sh\n[ \"$#\" -gt 0 ] || stat -L -c %s /dev/stdin >>~/sums\nexec /usr/bin/sha256sum \"$@\"\n",
    );
    let model = home.path("public-storage/model/tiny.gguf");
    let content = fs::read(&model).unwrap();
    let sums = || {
        let sums = fs::read_to_string(home.path("sums")).unwrap_or_default();
        sums.lines().filter(|size| *size == content.len().to_string()).count()
    };
    let job = with_option("context_size", "4096", Job { model: model.display().to_string(), ..hub.job(&home) });
    let job = with(&job, |source| source.path = job.model.clone());
    let wrong = with(&job, |source| source.sha256 = Some("c".repeat(64)));
    let report = home.fails(&wrong);
    let failure = report.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::WrongSum);
    assert!(failure.text.contains(&sum(&content)) && failure.text.contains(&"c".repeat(64)), "{failure:?}");
    assert_eq!((report.process, sums()), (Some(previous), 1));
    let right = with(&job, |source| source.sha256 = Some(sum(&content)));
    assert_eq!(home.serve(&right).is_model_verified, Some(true));
    assert_eq!((fs::read(&model).unwrap(), sums(), hub.requests()), (content.clone(), 1, Vec::new()));
    // Another file there has another sum.
    fs::write(&model, [&content[..], b"x"].concat()).unwrap();
    home.stop();
    assert_eq!(home.fails(&right).failure.unwrap().kind, FailureKind::WrongSum);
}

/// The second of two servers waits for the first one's download, and destroys remove the parts that they began.
#[test]
fn servers_of_one_instance_take_turns() {
    let home = Home::new();
    let hub = Hub::start();
    hub.set(FileService { stall_after: Some(1_000_000), ..FileService::default() });
    let job = hub.job(&home);
    let mut second = job.clone();
    second.place.port = free_port();
    home.ensure(&job);
    until_part_has(&home, &job, 1_000_000);
    home.ensure(&second);
    home.look_until_at(&second.place, Phase::Download);
    hub.set(FileService::default());
    home.until_ready(&job);
    home.until_ready(&second);
    assert_eq!(
        (hub.transfers(), beside(&job)),
        (vec!["bytes=0-".into(), "bytes=1000000-".into()], vec!["m.gguf".into()])
    );
    for place in [&job.place, &second.place] {
        home.run_at(place, &Verb::Destroy { owner: "owner" });
    }
    fs::remove_file(&job.model).unwrap();
    hub.set(FileService { stall_after: Some(1_000_000), ..FileService::default() });
    home.ensure(&job);
    until_part_has(&home, &job, 1_000_000);
    home.stop();
    assert_eq!(beside(&job).len(), 2);
    home.destroy();
    assert_eq!(beside(&job), [""; 0]);
}

/// All parts of a split model are measured first, and each is downloaded to its own file.
#[test]
fn split_model_is_downloaded_in_all_parts() {
    let home = Home::new();
    let hub = Hub::start();
    let place = |part: u32| home.path(&format!("models/m-0000{part}-of-00002.gguf")).display().to_string();
    let file = |part: u32, file: &str| FileOrigin { is_model: true, ..hub.file(&place(part), file) };
    let downloads = vec![file(1, "tiny.gguf"), file(2, "slow-1s.gguf")];
    let job = Job { model: place(1), downloads, ..hub.job(&home) };
    home.serve(&job);
    assert_eq!(beside(&job), ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]);
    assert!(fs::read(place(2)).unwrap() == hub.content("slow-1s.gguf"));
}

/// Only the server of the address gets the token, and neither it nor the address is in a file, an argument or an
/// environment.
#[rstest]
#[case::curl(&[])]
#[case::python(&["curl"])]
fn token_goes_to_the_server_of_the_address_alone(#[case] without: &[&str]) {
    const TOKEN: &str = "planted-token-of-the-hub-4714";
    const SECRET: &str = "planted-signature-4715";
    let home = home("dash", without).unwrap();
    let hub = Hub::start();
    let files = FileService { token: Some(TOKEN.to_owned()), is_linked: true, ..FileService::default() };
    hub.set(files.clone());
    let job = with(&hub.job(&home), |source| source.address.extend(["?", SECRET]));
    assert_eq!(home.fails(&job).failure.unwrap().kind, FailureKind::NoAccess);
    let job = with(&job, |source| source.token = Some(SecretString::from(TOKEN)));
    let elsewhere = hub.address("tiny.gguf?direct").replace("127.0.0.1", "localhost");
    hub.set(FileService { redirect: Some(elsewhere), stall_after: Some(1_000_000), ..files });
    hub.requests();
    home.ensure(&job);
    until_part_has(&home, &job, 1_000_000);
    for (pid, words) in home.processes() {
        let all = format!("{words:?}{}", environment(pid));
        assert!(!all.contains("planted") && !all.contains("files/tiny"), "{words:?}");
    }
    let found = Command::new("grep").arg("-rl").arg("planted-").arg(home.path("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    hub.set(FileService::default());
    let requests = hub.requests();
    assert!(requests.iter().all(|request| request.has_token != request.address.ends_with("?direct")), "{requests:#?}");
    assert!(requests.iter().any(|request| request.has_token));
    home.look_until(Phase::Load);
}

/// A projector beside the model: its own address, sum, part and lock; both are there before anything is ended.
#[rstest]
#[case::curl("dash", &[])]
#[case::python("dash", &["curl"])]
#[case::busybox("busybox", &[])]
fn files_beside_the_model_are_downloaded_too(#[case] shell: &str, #[case] without: &[&str]) {
    let Some(home) = home(shell, without) else { return };
    let hub = Hub::start();
    let content = hub.content("slow-1s.gguf");
    let first = home.serve(&home.job()).process;
    let (mut job, path) = (hub.job(&home), home.text("files/p 'x'.gguf"));
    job.downloads.push(FileOrigin { sha256: Some(sum(&content)), ..hub.file(&path, "slow-1s.gguf") });
    let mut wrong = job.clone();
    wrong.downloads[1].sha256 = Some("a".repeat(64));
    let report = home.fails(&wrong);
    assert_eq!((report.failure.unwrap().kind, report.failed_file), (FailureKind::WrongSum, Some(path.clone())));
    assert_eq!((report.previous, report.process), (Some(Previous::Serving), first));
    assert_eq!(beside(&job), ["m.gguf"]);
    hub.requests();
    let report = home.serve(&job);
    assert_eq!((hub.transfers(), report.files), (vec!["bytes=0-".to_owned()], AdditionalFiles::Same));
    // The sum is that of the other file, and says nothing about the model.
    assert_eq!(report.is_model_verified, Some(false));
    assert!(fs::read(&path).unwrap() == content && !home.look().has_other_model());
    fs::write(&path, "GGUF").unwrap();
    assert_eq!((home.look().files, home.look().has_other_model()), (AdditionalFiles::Changed, true));
    fs::remove_file(&path).unwrap();
    assert_eq!((home.look().files, home.look().has_other_model()), (AdditionalFiles::Missing, true));
    home.stop();
    home.serve(&job);
    assert!(fs::read(&path).unwrap() == content);
    home.destroy();
    assert!(fs::read(&path).unwrap() == content && beside(&job) == ["m.gguf"]);
}

/// The name of the file, how it begins, and why it is refused.
#[test]
fn a_file_beside_the_model_is_what_its_name_says() {
    let home = Home::new();
    let hub = Hub::start();
    for (name, content, words) in [
        ("p.gguf", Some("<html>"), "is not a GGUF file: it is a web page"),
        ("p.gguf", Some(""), "is not a GGUF file: it is empty"),
        ("p", None, "is not a file that can be read"),
        ("p.txt", Some("a text"), ""),
    ] {
        let (mut job, path) = (hub.job(&home), home.path(&format!("files/{name}")));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::create_dir(&path).unwrap(),
        }
        job.downloads.push(hub.file(path.to_str().unwrap(), "tiny.gguf"));
        if words.is_empty() {
            home.serve(&job);
            continue;
        }
        let failure = home.fails(&job).failure.unwrap();
        assert!(failure.kind == FailureKind::Download && failure.text.contains(words), "{name}: {failure:?}");
        assert!(failure.text.starts_with(path.to_str().unwrap()), "{failure:?}");
        let _ = fs::remove_file(&path);
    }
    // A text is no model, and is taken under another name.
    let (mut job, path) = (hub.job(&home), home.text("files/template.jinja"));
    job.downloads.push(hub.file(&path, "tiny.gguf"));
    home.script(
        "bin/curl",
        "#!/bin/sh\ncase $* in *-V*) exit 0 ;; esac\necho 'HTTP/1.1 206\nContent-Range: bytes 0-3/7\n\na text'\n",
    );
    home.serve(&job);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a text\n");
}

/// Room is measured for all files of a disk together, and before a byte is written.
#[test]
fn room_is_that_of_all_files_on_their_disks() {
    let home = Home::new();
    let hub = Hub::start();
    let (mut job, path) = (hub.job(&home), home.text("files/p.gguf"));
    job.downloads.push(hub.file(&path, "slow-1s.gguf"));
    // Room for one of them.
    let room = 1_048_576 + PADDING * 3 / 2 / 1024;
    home.script("bin/df", &format!("#!/bin/sh\necho && echo /dev/x 1 1 {room} 0% /\n"));
    let report = home.fails(&job);
    let failure = report.failure.unwrap();
    assert!(failure.kind == FailureKind::ModelRoom && failure.text.contains("8 MiB and 1 GiB"), "{failure:?}");
    assert!(hub.transfers().is_empty() && !home.path("models").exists() && !home.path("files").exists());
    // On two disks there is.
    home.script(
        "bin/stat",
        "#!/bin/sh\ncase $* in '-L -c %d'*/files/) echo 4711 ;; *) exec /usr/bin/stat \"$@\" ;; esac\n",
    );
    fs::create_dir(home.path("files")).unwrap();
    home.serve(&job);
}

/// Two servers share a projector and have models of their own: each waits for the other's download of what it needs.
#[test]
fn servers_that_share_a_file_wait_for_each_other() {
    let home = Home::new();
    let hub = Hub::start();
    let (mut job, path) = (hub.job(&home), home.text("models/deep/p.gguf"));
    job.downloads.insert(0, hub.file(&path, "tiny.gguf?shared"));
    let mut second = job.clone();
    second.place.port = free_port();
    second.downloads.reverse();
    hub.set(FileService { stall_after: Some(1_000_000), ..FileService::default() });
    home.ensure(&job);
    let shared = PathBuf::from(format!("{path}.{}-ins-1.part", home.port));
    until_so("nothing arrives", || fs::metadata(&shared).is_ok_and(|data| data.len() == 1_000_000));
    home.ensure(&second);
    home.look_until_at(&second.place, Phase::Download);
    hub.set(FileService::default());
    home.until_ready(&job);
    home.until_ready(&second);
    let transfers = hub.transfers();
    assert_eq!(transfers.iter().filter(|range| *range == "bytes=0-").count(), 2, "{transfers:?}");
    assert_eq!(beside(&job), ["m.gguf", "p.gguf"]);
    for place in [&job.place, &second.place] {
        home.run_at(place, &Verb::Destroy { owner: "owner" });
    }
}

/// Each file has its own token.
#[test]
fn each_token_goes_with_its_file() {
    let home = Home::new();
    let hub = Hub::start();
    let (mut job, path) = (hub.job(&home), home.text("models/deep/p.gguf"));
    job.downloads.push(FileOrigin { token: Some("planted-4716".into()), ..hub.file(&path, "tiny.gguf?p") });
    home.serve(&job);
    let requests = hub.requests();
    assert!(requests.iter().all(|request| request.has_token == request.address.ends_with("?p")), "{requests:#?}");
    assert!(requests.iter().any(|request| request.has_token));
}
