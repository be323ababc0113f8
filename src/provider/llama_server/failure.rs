//! What the operator reads when a server does not serve.

use super::{
    bootstrap::{Job, Kind, Phase, Report},
    machine::Trouble,
    model::LlamaServer,
};
use crate::{
    framework::{Diagnostic, Path},
    provider::{ssh_failure::SshFailure, words::capitalized},
};

/// How many lines of a log an error shows.
const LINES: usize = 40;

/// The work came to nothing. `now` says what state things are in.
pub(super) fn failed(server: &LlamaServer, report: &Report, now: &str) -> Diagnostic {
    let kind = report.failure.as_ref().map(|failure| failure.kind);
    let (title, argument, advice) = meaning(kind, report);
    let mut parts = Vec::new();
    if let Some(failure) = &report.failure {
        parts.push(format!("{}.", capitalized(failure.text.trim().trim_end_matches('.'))));
    }
    parts.push(advice.to_owned());
    parts.push(now.to_owned());
    parts.extend(log(report));
    parts.retain(|part| !part.is_empty());
    let diagnostic = Diagnostic::error(format!("{} does not serve: {title}", title_of(server)), parts.join("\n\n"));
    match argument {
        Some(argument) => diagnostic.at(Path::to(argument)),
        None => diagnostic,
    }
}

/// What stands in the way is told at once; nothing was begun.
pub(super) fn refused(server: &LlamaServer, report: &Report, now: &str) -> Diagnostic {
    // The log is that of whatever was there before.
    failed(server, &Report { log_tail: Vec::new(), log_path: None, compile: None, ..report.clone() }, now)
}

/// The instance did not stop what it was to stop, and everything goes on there.
pub(super) fn not_stopped(server: &LlamaServer, report: &Report, now: &str) -> Diagnostic {
    let refused = refused(server, report, now);
    let (title, _, _) = meaning(report.failure.as_ref().map(|failure| failure.kind), report);
    Diagnostic { summary: format!("{} was not stopped: {title}", title_of(server)), path: None, ..refused }
}

/// A server that a refresh found dead.
pub(super) fn died(server: &LlamaServer, report: &Report) -> Diagnostic {
    let error = failed(server, report, "The next apply starts it again.");
    Diagnostic { path: None, ..error }
}

/// The end of the work was not seen.
pub(super) fn unseen(server: &LlamaServer, trouble: &Trouble, last: Option<&Report>, now: &str) -> Diagnostic {
    let title = title_of(server);
    let detail = format!("{}{now}", last.map(last_seen).unwrap_or_default());
    match trouble {
        Trouble::Malformed(malformed) => Diagnostic::error(
            format!("{title}: the machine's answer cannot be read"),
            format!("{malformed}.\n\n{detail}"),
        ),
        _ if trouble.is_cancelled() => Diagnostic::error(format!("{title}: the wait was stopped"), detail),
        _ if trouble.is_timeout() => {
            Diagnostic::error(format!("{title}: the time ran out"), format!("{detail}\n\nThe error: {trouble}."))
        }
        Trouble::Ssh(error) => {
            let failure = SshFailure { error, tried: format!("follow the work on {title}"), now: detail };
            failure.diagnostic()
        }
    }
}

/// What was known before the end of the work was lost sight of.
pub(super) fn last_seen(report: &Report) -> String {
    format!("It was last seen {}. ", doing(report))
}

/// What deserves the operator's attention although the server serves.
pub(super) fn notes(server: &LlamaServer, report: &Report) -> Vec<Diagnostic> {
    let title = title_of(server);
    let note = |note: &String| Diagnostic::warning(format!("{title}: worth knowing"), note.clone());
    let mut notes: Vec<Diagnostic> = report.notes.iter().map(note).collect();
    if let Some(rival) = report.process.as_ref().and_then(|process| process.rival.as_ref()) {
        notes.push(Diagnostic::warning(
            format!("{title} shares its port"),
            format!(
                "Another process listens on the same port, and gets a part of the requests: {rival}. Stop one of them."
            ),
        ));
    }
    notes
}

/// What was to be done and what was seen of it, for a sentence: `compiling (41 %)`.
pub(super) fn doing(report: &Report) -> String {
    match report.phase {
        Phase::Absent => "stopped".to_owned(),
        Phase::Preflight => "checking what is there".to_owned(),
        Phase::Find => "looking for a build".to_owned(),
        Phase::Compile => match report.compile.as_ref().and_then(|compile| compile.percent) {
            Some(percent) => format!("compiling ({percent} %)"),
            None => "compiling".to_owned(),
        },
        Phase::Start => "being started".to_owned(),
        Phase::Load => "loading the model".to_owned(),
        Phase::Probe => "answering the probe".to_owned(),
        Phase::Ready => "ready".to_owned(),
        Phase::Failed => "failed".to_owned(),
    }
}

/// What is left of a server that failed, and where. `next` says what the next apply does with it.
pub(super) fn left_alone(job: &Job, next: &str) -> String {
    format!(
        "on_failure = \"keep\" leaves the process and the logs as they are, in {}/.damodel/{}. {next}",
        job.place.workspace, job.place.port
    )
}

fn title_of(server: &LlamaServer) -> String {
    capitalized(&server.title())
}

/// The end of the log that tells most: the compiler's while it compiled, else the server's.
fn log(report: &Report) -> Option<String> {
    let of_the_compiler = matches!(report.failure.as_ref().map(|failure| failure.kind), Some(Kind::Compile));
    let path = match (of_the_compiler, &report.compile) {
        (true, Some(compile)) => Some(&compile.log_path),
        _ => report.log_path.as_ref(),
    };
    let lines = report.log_tail.iter().rev().take(LINES).rev().map(|line| format!("  {line}")).collect::<Vec<_>>();
    match (path, lines.is_empty()) {
        (Some(path), false) => Some(format!("The end of the log, {path}:\n{}", lines.join("\n"))),
        (Some(path), true) => Some(format!("The log is {path}.")),
        (None, false) => Some(format!("The end of the log:\n{}", lines.join("\n"))),
        (None, true) => None,
    }
}

/// The title, the argument to blame, and what to do.
fn meaning(kind: Option<Kind>, report: &Report) -> (String, Option<&'static str>, &'static str) {
    let Some(kind) = kind else {
        return (
            format!("it is {}", doing(report)),
            None,
            "Somebody else stopped it, or its records were removed. Apply again.",
        );
    };
    let (title, argument, advice) = match kind {
        Kind::Architecture => (
            "no CUDA toolkit there compiles for this card",
            Some("source"),
            "A V100 or P40 needs a toolkit up to 12.9. Use an image with one, or name the architectures in source.cuda_architectures.",
        ),
        Kind::Busy => (
            "another run works on it",
            None,
            "Another apply holds the records of this server. Wait until it has ended, then apply again.",
        ),
        Kind::Compile => (
            "the compile failed",
            Some("source"),
            "Correct what the compiler says, then apply again: what is compiled stays.",
        ),
        Kind::Died => ("it died after it had been ready", None, ""),
        Kind::DiskFull => {
            ("the disk is full", Some("workspace"), "Free space in the workspace, or put it on another disk.")
        }
        Kind::Exited => {
            ("it ended before it was ready", None, "The log says why: correct the arguments, then apply again.")
        }
        Kind::Interrupted => (
            "the work was interrupted",
            None,
            "The machine was restarted, or somebody ended it. Apply again: it goes on.",
        ),
        Kind::MissingModel => ("there is no such model", Some("model"), "Set model to a file that is there."),
        Kind::MissingToolkit => (
            "there is no CUDA toolkit to compile with",
            Some("build"),
            "Use an image with a CUDA toolkit (nvcc), or a card that the prebuilt server can use.",
        ),
        Kind::MissingTool => (
            "a program that the compile needs is missing",
            Some("build"),
            "Install it in the instance, or use an image that has it.",
        ),
        Kind::NoInference => ("it does not infer", None, "The log says why: correct the arguments, then apply again."),
        Kind::NoPackage => (
            "there is no prebuilt server",
            Some("package"),
            "Set package to the server's path in the instance, or build = \"source\".",
        ),
        Kind::NoSource => (
            "its source cannot be had",
            Some("source"),
            "Set source.path to one in the instance, or source.url and source.ref.",
        ),
        Kind::NotRunning => ("nothing there can be restarted", None, "Apply to start it."),
        Kind::PortInUse => {
            ("the port is in use", Some("port"), "Stop what listens there, or choose another port. It was left alone.")
        }
        Kind::Stuck => (
            "a process there does not end",
            None,
            "It outlives even SIGKILL, as one that waits for a device does. Reboot the instance, then apply again.",
        ),
        Kind::Unsupported => {
            ("this build cannot do what is asked", Some("api_key"), "Use another build: build = \"source\".")
        }
        Kind::Workspace => (
            "the workspace cannot be written",
            Some("workspace"),
            "Choose another workspace, or correct its permissions.",
        ),
    };
    (title.to_owned(), argument, advice)
}
