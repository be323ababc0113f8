//! The diagnostics about servers that do not serve.

use super::{command_line::as_text, model::LlamaServer};
use crate::{
    framework::{Diagnostic, Path, Severity},
    llama::{self, FailureKind, Job, JobFailure, JobReport, Phase, PortHolder, Previous, Process, Return, Trouble},
    provider::{
        login::SshFailure,
        words::{capitalized, time, times},
    },
};

/// How many lines of a log an error shows.
const LINES: usize = 40;

/// An error as a warning.
pub(super) fn as_warning(error: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..error }
}

/// A server that does not serve. `now` is the resulting state, in a sentence. If the prebuilt server failed first, it
/// is the cause, and the failure of the build from source follows.
pub(super) fn failed(server: &LlamaServer, report: &JobReport, now: &str) -> Diagnostic {
    let (first, second) = match &report.because {
        Some(because) => (Some(because), report.failure.as_ref()),
        None => (report.failure.as_ref(), None),
    };
    let (title, argument, advice) = meaning(server, first, report);
    let log = log(report).unwrap_or_default();
    let mut parts = Vec::new();
    if let Some(failure) = first {
        // The log is that of the second.
        parts.push(fact(failure, if second.is_some() { "" } else { &log }));
    }
    parts.push(advice.to_owned());
    if let Some(failure) = second {
        let (title, _, more) = meaning(server, Some(failure), report);
        parts.push(format!("Then a build from source was tried: {title}. {}", fact(failure, &log)));
        parts.extend((more != advice).then(|| more.to_owned()));
    }
    parts.push(now.to_owned());
    parts.push(log);
    parts.retain(|part| !part.is_empty());
    let diagnostic = Diagnostic::error(format!("{} failed: {title}", title_of(server)), parts.join("\n\n"));
    match argument {
        Some(argument) => diagnostic.at(argument),
        None => diagnostic,
    }
}

/// A refusal before anything was begun.
pub(super) fn refused(server: &LlamaServer, report: &JobReport, now: &str) -> Diagnostic {
    // The log is that of whatever was there before.
    failed(server, &JobReport { log_tail: Vec::new(), log_path: None, compile: None, ..report.clone() }, now)
}

/// A server that was not stopped, and continues.
pub(super) fn not_stopped(server: &LlamaServer, report: &JobReport, now: &str) -> Diagnostic {
    let refused = refused(server, report, now);
    let (title, _, _) = meaning(server, report.failure.as_ref(), report);
    Diagnostic { summary: format!("{} was not stopped: {title}", title_of(server)), path: None, ..refused }
}

/// An update failed, and the previous server serves again, or not.
pub(super) fn rolled_back(
    server: &LlamaServer,
    report: &JobReport,
    now: &JobReport,
    returned: &Return,
    state: &str,
) -> Diagnostic {
    let pid = now.process.as_ref().map(|process| format!(" as process {}", process.pid)).unwrap_or_default();
    let what = match returned {
        Return::GoesOn => format!("The previous server was not stopped and still serves{pid}."),
        Return::Serves => {
            format!("The previous server was started again with its options, answers its probe and serves{pid}.")
        }
        Return::AsksForKey => format!(
            "The previous server was started again with its options and serves{pid}. Its API key is unknown here; the \
             only check was that it requires one."
        ),
        Return::Fails(reason) => format!(
            "The previous server was started again with its options, but is not ready: {}.",
            reason.trim().trim_end_matches('.')
        ),
    };
    // The log of a server that was started since has its name now.
    let log_path = match returned {
        Return::GoesOn => report.log_path.clone(),
        Return::Serves | Return::AsksForKey => report.log_path.as_ref().map(|path| format!("{path}.1")),
        Return::Fails(_) => None,
    };
    failed(server, &JobReport { log_path, ..report.clone() }, &format!("{what} {state}"))
}

/// Another job took the place of the one that was followed.
pub(super) fn superseded(server: &LlamaServer, report: &JobReport, now: &str) -> Diagnostic {
    Diagnostic::error(
        format!("{} was changed meanwhile", title_of(server)),
        format!(
            "Another run, or another damodel_llama_server with this instance and port, changed the settings, or the \
             instance rolled back a failed update because the connection was lost for a minute. The server is {}. \
             {now} If no other resource has this port, apply again to restore this configuration.",
            doing(report)
        ),
    )
}

/// A server that was ready before does not answer the probe as expected.
pub(super) fn unproved(server: &LlamaServer, failure: &JobFailure, report: &JobReport, now: &str) -> Diagnostic {
    let title = format!("{} does not answer the probe as expected", title_of(server));
    let pid = report.process.as_ref().map(|process| format!(" as process {}", process.pid)).unwrap_or_default();
    let text = sentence(&failure.text);
    let advice = if failure.kind.argument() == Some("probe") { failure.kind.advice() } else { "" };
    let detail = format!("{text}. The server still runs{pid}. {now} {advice}");
    Diagnostic::error(title, detail.trim_end()).at(Path::to("probe"))
}

/// Another resource has taken a server over.
pub(super) fn foreign(server: &LlamaServer) -> Diagnostic {
    Diagnostic::warning(
        format!("{} was not stopped", title_of(server)),
        "Another resource manages the server now: its successor, or a resource of another state. This resource was \
         removed from the state.",
    )
}

/// A create that has stopped a server which was not its own.
pub(super) fn took_over(title: &str, before: &Process) -> Diagnostic {
    Diagnostic::warning(
        format!("{} replaced a running server", capitalized(title)),
        format!(
            "Process {}, which served on this port before, was stopped. If a damodel_llama_server still manages it, \
             set another port here: each apply would stop the server of the other.",
            before.pid
        ),
    )
}

/// A server that was started again by itself since the last look.
pub(super) fn restarted(server: &LlamaServer, report: &JobReport) -> Diagnostic {
    let exit = report.last_exit.as_deref().unwrap_or("an unknown code");
    Diagnostic::warning(
        format!("{} was restarted automatically", title_of(server)),
        format!(
            "The server exited and was restarted {} since the last apply; the last exit was {exit}. See its log \
             in the instance: {}.",
            times(report.restarts),
            report.log_path.as_deref().map_or_else(|| "server.log".to_owned(), |path| format!("{path}.1"))
        ),
    )
}

/// A server whose answer did not come in time.
pub(super) fn slow(server: &LlamaServer, what: &str) -> Diagnostic {
    Diagnostic::warning(
        format!("{} is slow", title_of(server)),
        format!("{what}. Its process is running, so this is not drift: it may be busy with other requests."),
    )
}

/// Another llama-server serves on its port.
pub(super) fn displaced(server: &LlamaServer, rival: &PortHolder) -> Diagnostic {
    Diagnostic::warning(
        format!("{} was replaced by hand", title_of(server)),
        format!(
            "Its port is used by {}, started as: {}. The apply stops that process and starts the server of this \
             resource.",
            rival.about,
            as_text(&rival.command_line)
        ),
    )
}

/// Another program, or the server of another resource, uses its port.
pub(super) fn blocked(server: &LlamaServer, rival: &PortHolder) -> Diagnostic {
    Diagnostic::warning(
        format!("{}: its port is in use", title_of(server)),
        format!("The server is not running: its port is used by {}. An apply does not stop that process.", rival.about),
    )
}

/// A server that has ended, as a refresh found, with the time of the next try if its work pauses before one.
pub(super) fn died(server: &LlamaServer, report: &JobReport) -> Diagnostic {
    let next = match time(report.next_try) {
        Some(next) => format!("The server restarts at {next} by the instance's clock; an apply does not wait for it."),
        None => "An apply starts it again.".to_owned(),
    };
    match &report.failure {
        // A short pause is recorded as no failure.
        None => return Diagnostic::warning(format!("{} exited", title_of(server)), next),
        // Nothing is wrong with the server.
        Some(failure) if failure.kind == FailureKind::Interrupted && report.is_proved => {
            let text = format!("{}. {next}", sentence(&failure.text));
            return Diagnostic::warning(format!("{} is not running", title_of(server)), text);
        }
        Some(_) => {}
    }
    Diagnostic { path: None, ..as_warning(failed(server, report, &next)) }
}

/// The end of the work was not seen.
pub(super) fn unseen(server: &LlamaServer, trouble: &Trouble, last: Option<&JobReport>, now: &str) -> Diagnostic {
    let title = title_of(server);
    let detail = format!("{}{now}", last.map(last_seen).unwrap_or_default());
    match trouble {
        Trouble::Malformed(malformed) => Diagnostic::error(
            format!("{title}: the instance's answer cannot be read"),
            format!("{malformed}.\n\n{detail}"),
        ),
        _ if trouble.is_cancelled() => Diagnostic::error(format!("{title}: the run was stopped"), detail),
        _ if trouble.is_timeout() => {
            Diagnostic::error(format!("{title}: the wait timed out"), format!("{detail}\n\nThe error: {trouble}."))
        }
        Trouble::Ssh(error) => {
            let failure = SshFailure { error, tried: format!("follow the work on {title}"), now: detail };
            failure.diagnostic()
        }
    }
}

/// The last known progress of the work.
pub(super) fn last_seen(report: &JobReport) -> String {
    format!("Last seen: {}. ", doing(report))
}

/// The warnings about a server that serves.
pub(super) fn notes(server: &LlamaServer, report: &JobReport) -> Vec<Diagnostic> {
    let title = title_of(server);
    let notes = report.notes.iter().map(|note| {
        let (fact, _) = note.split_once(": ").unwrap_or((note, ""));
        Diagnostic::warning(format!("{title}: {fact}"), capitalized(note))
    });
    let mut notes: Vec<Diagnostic> = notes.collect();
    if let Some(because) = &report.because {
        let text = because.text.trim();
        notes.push(Diagnostic::warning(
            format!("{title} was built from source"),
            format!("The prebuilt server failed: {text}"),
        ));
    }
    if let Some(rival) = &report.rival {
        notes.push(Diagnostic::warning(
            format!("{title} shares its port"),
            format!(
                "Another process listens on the same port and receives some of the requests: {}. Stop one of them.",
                rival.about
            ),
        ));
    }
    notes
}

/// The progress as part of a sentence: `compiling (41 %)`.
pub(super) fn doing(report: &JobReport) -> String {
    let title = report.phase.title();
    let compile = report.compile.as_ref().filter(|_| report.phase == Phase::Compile);
    match (compile.and_then(|compile| compile.percent), &report.download) {
        (Some(percent), _) => format!("{title} ({percent} %)"),
        (None, Some(download)) => format!("{title} ({download})"),
        (None, None) => title.to_owned(),
    }
}

/// The place of what is left of a failed server. `next` is the effect of the next apply, in a sentence.
pub(super) fn left_alone(job: &Job, runs: bool, next: &str) -> String {
    let kept = if runs { "The process and its logs" } else { "The logs" };
    format!("{kept} were kept, in {}/.damodel/{}-{}. {next}", job.place.workspace, job.place.port, job.place.instance)
}

/// A text as a sentence, without its full stop.
fn sentence(text: &str) -> String {
    capitalized(text.trim().trim_end_matches('.'))
}

/// The text of a failure. Lines that the `log` shows anyway are not quoted.
fn fact(failure: &JobFailure, log: &str) -> String {
    let text = match failure.text.split_once(llama::ITS_LOG) {
        Some((fact, quoted)) if quoted.lines().skip(1).all(|line| log.contains(line)) => sentence(fact),
        _ => sentence(&failure.text),
    };
    if text.contains('\n') { text } else { text + "." }
}

fn title_of(server: &LlamaServer) -> String {
    capitalized(&server.title())
}

/// The log of a failed compile, or the end of that of a server that failed.
fn log(report: &JobReport) -> Option<String> {
    if !is_log_of_a_failure(report) {
        return None;
    }
    let path = report.log_path.as_ref();
    if report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Compile) {
        return report.compile.as_ref().map(|compile| format!("The log is {}.", compile.log_path));
    }
    let lines = report.log_tail.iter().rev().take(LINES).rev().map(|line| format!("  {line}")).collect::<Vec<_>>();
    match (path, lines.is_empty()) {
        (Some(path), false) => Some(format!("The end of the log, {path}:\n{}", lines.join("\n"))),
        (Some(path), true) => Some(format!("The log is {path}.")),
        (None, false) => Some(format!("The end of the log:\n{}", lines.join("\n"))),
        (None, true) => None,
    }
}

/// Whether the log that is there is of what failed. That of a server that was restored, or served before, is not.
fn is_log_of_a_failure(report: &JobReport) -> bool {
    use FailureKind::{Compile, Died, Interrupted, KeyIgnored, WrongEndpoint};
    let because = report.because.as_ref().filter(|_| report.previous != Some(Previous::Serving));
    report.failure.iter().chain(because).any(|failure| match failure.kind {
        Compile | Died | KeyIgnored | WrongEndpoint => true,
        Interrupted => !report.is_proved && report.process.is_some(),
        kind => kind.is_of_a_server(),
    })
}

/// The title, the argument to correct, and the advice, which names no argument that is set already.
fn meaning(
    server: &LlamaServer,
    failure: Option<&JobFailure>,
    report: &JobReport,
) -> (String, Option<Path>, &'static str) {
    let Some(failure) = failure else {
        let advice = "Another run stopped the server, or its records were removed. Apply again.";
        return (format!("the server is {}", doing(report)), None, advice);
    };
    let kind = failure.kind;
    let is_prebuilt = server.build.as_str() == Some("prebuilt");
    let source = server.source.known();
    let download = server.failed_download(report).filter(|_| kind.is_of_a_download());
    let argument = match kind {
        FailureKind::BadOption => {
            llama::argument_in(&failure.text).or_else(|| (!server.extra_args.is_null()).then_some("extra_args"))
        }
        FailureKind::KeyIgnored if server.api_key.is_null() => Some("api_key_wo"),
        kind => kind.argument(),
    };
    let advice = match (kind, source) {
        (FailureKind::Architecture, Some(source)) if !source.cuda_architectures.is_null() => {
            "Correct source.cuda_architectures, or use an image with a toolkit that supports them."
        }
        (FailureKind::KeyIgnored, _) if !is_prebuilt => {
            "Use the source of another server: source.url and source.ref, or source.path."
        }
        (FailureKind::NoPackage, _) if is_prebuilt => {
            "Set package to the server's path in the instance, or build = \"source\"."
        }
        (FailureKind::NoSource, Some(source)) if !source.path.is_null() => {
            "Correct source.path, or set source.url and source.ref instead."
        }
        (FailureKind::NoSource, Some(source)) if !source.url.is_null() || !source.reference.is_null() => {
            "Correct source.url and source.ref, or set source.path to a source in the instance instead."
        }
        (FailureKind::NoSuchModel, _) => {
            download.as_ref().map_or_else(|| kind.advice(), |download| download.source.advice(kind))
        }
        (FailureKind::Unsupported, _) if is_prebuilt => "Set package to a newer server, or build = \"source\".",
        _ => kind.advice(),
    };
    let argument = match (download, argument) {
        (Some(download), _) if kind == FailureKind::ModelRoom => Some(download.path_at),
        (Some(download), _) => Some(download.at),
        (None, argument) => argument.map(Path::to),
    };
    (kind.title().to_owned(), argument, advice)
}

#[cfg(test)]
mod tests {
    use super::{
        super::model::{AdditionalFile, BuildSource, FileSource},
        *,
    };
    use crate::{framework::Attr, llama::JobFailure};

    fn failure(kind: FailureKind) -> JobFailure {
        JobFailure { kind, text: format!("what was seen of {}", kind.as_str()) }
    }

    fn report(because: Option<FailureKind>, kind: FailureKind) -> JobReport {
        JobReport {
            phase: Phase::Failed,
            failure: Some(failure(kind)),
            because: because.map(failure),
            ..JobReport::default()
        }
    }

    fn server(build: &str) -> LlamaServer {
        LlamaServer { build: build.into(), ..LlamaServer::default() }
    }

    fn blamed(diagnostic: &Diagnostic) -> Option<String> {
        diagnostic.path.as_ref().map(ToString::to_string)
    }

    #[test]
    fn of_several_causes_the_first_is_blamed_and_all_are_told() {
        for second in
            [FailureKind::MissingToolkit, FailureKind::Architecture, FailureKind::Compile, FailureKind::NoSource]
        {
            let error = failed(&server("auto"), &report(Some(FailureKind::Unsupported), second), "now");
            assert!(error.summary.ends_with("this build lacks a required option"), "{}", error.summary);
            assert_eq!(blamed(&error).as_deref(), Some("build"));
            let order = ["seen of unsupported", "Then a build from source was tried", second.as_str(), "now"];
            let found: Vec<_> = order.iter().map(|words| error.detail.find(words).expect(words)).collect();
            assert!(found.is_sorted(), "{}", error.detail);
        }
    }

    /// An argument that is set already does not help.
    #[test]
    fn advice_never_names_what_is_set_already() {
        let sets_build = "build = \"source\"";
        for kind in FailureKind::ALL {
            for build in ["source", "auto"] {
                let error = failed(&server(build), &report(None, *kind), "");
                assert!(!error.detail.contains(sets_build), "{kind:?} {build}: {}", error.detail);
            }
        }
        let detail = |server: &LlamaServer, kind| failed(server, &report(None, kind), "").detail;
        assert!(detail(&server("prebuilt"), FailureKind::Unsupported).contains(sets_build));
        assert!(detail(&server("prebuilt"), FailureKind::NoPackage).contains("Set package"));

        let with_source = |source: BuildSource| LlamaServer { source: Attr::Known(source), ..server("source") };
        let path = with_source(BuildSource { path: "~/source".into(), ..BuildSource::default() });
        assert!(detail(&path, FailureKind::NoSource).contains("Correct source.path"));
        let url = with_source(BuildSource { url: "https://example.com".into(), ..BuildSource::default() });
        assert!(detail(&url, FailureKind::NoSource).contains("Correct source.url"));
        let architectures = Attr::Known(vec!["70".into()]);
        let architectures = with_source(BuildSource { cuda_architectures: architectures, ..BuildSource::default() });
        assert!(detail(&architectures, FailureKind::Architecture).contains("Correct source.cuda_architectures"));
    }

    /// A log that is there belongs to what failed, or is not shown.
    #[test]
    fn the_log_of_a_server_that_did_not_fail_is_not_shown() {
        use FailureKind::{Died, Download, Exited, Interrupted, MissingModel, NoGpu, NoInference, NoSource, Stuck};
        let shows = |because: Option<FailureKind>, kind, is_proved, previous| {
            let log_tail = vec!["a line of the log".to_owned()];
            let report = JobReport { log_tail, is_proved, previous, ..report(because, kind) };
            failed(&server("auto"), &report, "").detail.contains("a line of the log")
        };
        for kind in [Died, Exited, NoInference] {
            assert!(shows(None, kind, false, None), "{kind:?}");
        }
        for kind in [Download, Interrupted, MissingModel, NoGpu, NoSource, Stuck] {
            assert!(!shows(None, kind, true, None), "{kind:?}");
        }
        assert!(shows(Some(Exited), NoSource, false, Some(Previous::Ended)));
        assert!(!shows(Some(Exited), NoSource, false, Some(Previous::Serving)), "it was restored");
    }

    /// Which server has a log of its own again, and the name of the log that is quoted.
    #[test]
    fn a_log_is_quoted_and_named_once_by_the_file_that_it_stands_in() {
        let text = "the server exited with 1; its log ends with:\nb\nc".to_owned();
        let failure = Some(JobFailure { kind: FailureKind::Exited, text });
        let (log_path, log_tail) = (Some("/l/server.log".to_owned()), ["a", "b", "c"].map(str::to_owned).to_vec());
        let report = JobReport { log_path, log_tail, failure, ..report(None, FailureKind::Exited) };
        let error = |returned: Return| rolled_back(&server("auto"), &report, &report, &returned, "").detail;
        for (returned, end) in [
            (Return::Serves, "The end of the log, /l/server.log.1:\n  a\n  b\n  c"),
            (Return::AsksForKey, "The end of the log, /l/server.log.1:\n  a\n  b\n  c"),
            (Return::Fails("x".to_owned()), "The end of the log:\n  a\n  b\n  c"),
            (Return::GoesOn, "The end of the log, /l/server.log:\n  a\n  b\n  c"),
        ] {
            let detail = error(returned);
            assert!(detail.starts_with("The server exited with 1.\n\n") && detail.ends_with(end), "{detail}");
        }
        let cut = JobReport { log_tail: vec!["c".to_owned()], ..report.clone() };
        let detail = failed(&server("auto"), &cut, "").detail;
        assert!(detail.starts_with("The server exited with 1; its log ends with:\nb\nc\n\n"), "{detail}");
        // Each build has a log of its own, and the last one is there.
        let both = JobReport { because: report.failure.clone(), ..report.clone() };
        let detail = failed(&server("auto"), &both, "").detail;
        let counts = ["log ends with:\nb\nc", "The server exited with 1.", "The log has the reason", "  a\n  b\n  c"];
        assert_eq!(counts.map(|words| detail.matches(words).count()), [1; 4], "{detail}");
    }

    /// What is quoted of a compile stands in its failure, and the log of the instance is a server's.
    #[test]
    fn the_log_of_a_failed_compile_is_not_that_of_a_server() {
        let compile = llama::Compile { percent: None, line: String::new(), log_path: "/b.log".to_owned() };
        let (log_path, log_tail) = (Some("/l/server.log".to_owned()), vec!["of a server".to_owned()]);
        let report = JobReport { compile: Some(compile), log_path, log_tail, ..report(None, FailureKind::Compile) };
        let detail = failed(&server("source"), &report, "").detail;
        assert!(detail.ends_with("The log is /b.log.") && !detail.contains("of a server"), "{detail}");
    }

    #[test]
    fn a_server_that_was_ready_and_ended_with_the_instance_has_not_failed() {
        let text = "the instance was rebooted".to_owned();
        let failure = Some(JobFailure { kind: FailureKind::Interrupted, text });
        let report =
            JobReport { failure, is_proved: true, log_tail: vec!["listening".to_owned()], ..JobReport::default() };
        let warning = died(&server("auto"), &report);
        assert!(warning.summary.ends_with("is not running"), "{}", warning.summary);
        assert_eq!(warning.detail, "The instance was rebooted. An apply starts it again.");
    }

    /// A file that needs permission looks missing on the hub.
    #[test]
    fn the_advice_about_a_missing_file_depends_on_the_server_that_has_none() {
        for (url, has_both) in [("https://huggingface.co/a/b.gguf", true), ("https://example.com/b.gguf", false)] {
            let source = FileSource { url: url.into(), ..Default::default() };
            let server = LlamaServer { model: "~/m".into(), model_source: Attr::Known(source), ..server("auto") };
            let failure = Some(JobFailure { kind: FailureKind::NoSuchModel, text: format!("{url} answered 404") });
            let (home, failed_file) = (Some("/home/me".to_owned()), Some("/home/me/m".to_owned()));
            let detail = failed(&server, &JobReport { failure, home, failed_file, ..JobReport::default() }, "").detail;
            assert!(detail.starts_with("https://") && detail.contains("Correct url"), "{detail}");
            assert_eq!(detail.contains("model_source_token_wo"), has_both, "{detail}");
        }
    }

    /// The sum may be given, or the one that the server sends.
    #[test]
    fn the_advice_about_a_wrong_sum_holds_without_one_in_the_configuration() {
        let detail = failed(&server("auto"), &report(None, FailureKind::WrongSum), "").detail;
        assert!(detail.contains("Without sha256") && detail.contains("try again later"), "{detail}");
    }

    #[test]
    fn the_file_whose_download_fails_is_blamed() {
        let file = |path: &str| {
            Attr::Known(AdditionalFile { path: path.into(), url: "https://x/a".into(), sha256: Attr::Null })
        };
        let server = LlamaServer {
            model: "~/m".into(),
            model_source: Attr::Known(FileSource { url: "https://x/m".into(), sha256: Attr::Null }),
            additional_files: Attr::Known(vec![file("/p"), file("~/a-00001-of-00002.gguf")]),
            ..server("auto")
        };
        for (path, kind, expected) in [
            ("/h/m", FailureKind::WrongSum, "model_source"),
            ("/h/m", FailureKind::ModelRoom, "model"),
            ("/p", FailureKind::NoAccess, "additional_files[0]"),
            ("/p", FailureKind::ModelRoom, "additional_files[0].path"),
            ("/h/a-00002-of-00002.gguf", FailureKind::Download, "additional_files[1]"),
            ("/p", FailureKind::PortInUse, "port"),
        ] {
            let report =
                JobReport { home: Some("/h".to_owned()), failed_file: Some(path.to_owned()), ..report(None, kind) };
            assert_eq!(blamed(&failed(&server, &report, "")).as_deref(), Some(expected), "{kind:?} {path}");
        }
    }

    /// Pauses of a minute or more are recorded as failures, shorter ones are not.
    #[test]
    fn a_pause_is_told_with_the_time_of_the_next_try() {
        for (failure, next_try, words) in [
            (Some(failure(FailureKind::Died)), Some(1_700_000_000), "restarts at 2023-11-14T22:13:20Z"),
            (None, Some(1_700_000_000), "restarts at 2023-11-14T22:13:20Z"),
            (Some(failure(FailureKind::Died)), None, "An apply starts it again."),
        ] {
            let warning = died(&server("auto"), &JobReport { failure, next_try, ..JobReport::default() });
            assert!(!warning.is_error() && warning.detail.contains(words), "{warning:?}");
            assert!(!warning.detail.contains("Another run"), "{}", warning.detail);
        }
    }

    #[test]
    fn a_refused_option_is_blamed_on_the_argument_that_sets_it() {
        let refused = |server: &LlamaServer, text: &str| {
            let failure = Some(JobFailure { kind: FailureKind::BadOption, text: text.to_owned() });
            blamed(&failed(server, &JobReport { failure, ..report(None, FailureKind::BadOption) }, ""))
        };
        let extra = LlamaServer { extra_args: Attr::Known(vec!["--x".into()]), ..server("auto") };
        assert_eq!(refused(&extra, "error while handling argument \"-ctk\": no").as_deref(), Some("cache_type_k"));
        assert_eq!(refused(&extra, "error: invalid argument: --x").as_deref(), Some("extra_args"));
        assert_eq!(refused(&server("auto"), "error: invalid argument: --x"), None);
    }
}
