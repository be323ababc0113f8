//! What the operator reads when a server does not serve.

mod meaning;

use self::meaning::meaning;
use super::{
    argv::as_text,
    bootstrap::{Job, Kind, Listener, Phase, Report},
    machine::Trouble,
    model::LlamaServer,
    work::Return,
};
use crate::{
    framework::{Diagnostic, Path, Severity},
    provider::{ssh_failure::SshFailure, words::capitalized},
};

/// How many lines of a log an error shows.
const LINES: usize = 40;

/// An error that is none here.
pub(super) fn as_warning(error: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..error }
}

/// The work came to nothing. `now` says what state things are in. Where the prebuilt server failed first, that is the
/// cause; what kept the build from source from serving is told after it.
pub(super) fn failed(server: &LlamaServer, report: &Report, now: &str) -> Diagnostic {
    let (first, second) = match &report.because {
        Some(because) => (Some(because), report.failure.as_ref()),
        None => (report.failure.as_ref(), None),
    };
    let (title, argument, advice) = meaning(server, first, report);
    let mut parts = Vec::new();
    if let Some(failure) = first {
        parts.push(format!("{}.", capitalized(failure.text.trim().trim_end_matches('.'))));
    }
    parts.push(advice.to_owned());
    if let Some(failure) = second {
        let (title, _, advice) = meaning(server, Some(failure), report);
        let text = failure.text.trim().trim_end_matches('.');
        parts.push(format!("Then a build from source was tried: {title}. {}. {advice}", capitalized(text)));
    }
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
    let (title, _, _) = meaning(server, report.failure.as_ref(), report);
    Diagnostic { summary: format!("{} was not stopped: {title}", title_of(server)), path: None, ..refused }
}

/// An update failed, and the former server serves again, or not.
pub(super) fn rolled_back(server: &LlamaServer, report: &Report, now: &Report, returned: &Return) -> Diagnostic {
    let pid = now.process.as_ref().map(|process| format!(" as process {}", process.pid)).unwrap_or_default();
    let what = match returned {
        Return::GoesOn => format!(
            "The server that ran before was never stopped and still serves{pid}. The state keeps its arguments: \
             correct the change, then apply again."
        ),
        Return::Serves(_) => format!(
            "The former server was started again with its former options, answers its probe and serves{pid}. The \
             state keeps its arguments: correct the change, then apply again."
        ),
        Return::Fails(reason) => format!(
            "The former server was started again with its former options, and was not seen to serve: {}. The state \
             keeps its arguments, and the next apply repairs it.",
            reason.trim().trim_end_matches('.')
        ),
    };
    failed(server, report, &what)
}

/// Another job took the place of the one that was followed.
pub(super) fn superseded(server: &LlamaServer, report: &Report, now: &str) -> Diagnostic {
    Diagnostic::error(
        format!("{} was changed by another run", title_of(server)),
        format!(
            "The instance works on other settings now, and is {}: another run has begun them, or a failed update was \
             rolled back by \
             itself, as happens when the connection is lost for a minute. {now} Apply again to start this one.",
            doing(report)
        ),
    )
}

/// A server that serves does not answer the probe as it shall.
pub(super) fn unproved(server: &LlamaServer, reason: &str, now: &str) -> Diagnostic {
    let title = format!("{} does not answer the probe as expected", title_of(server));
    let detail = format!(
        "{}. The server still runs as before. Correct probe, then apply again. {now}",
        capitalized(reason.trim().trim_end_matches('.'))
    );
    Diagnostic::error(title, detail).at(Path::to("probe"))
}

/// Another resource has taken a server over.
pub(super) fn foreign(server: &LlamaServer) -> Diagnostic {
    Diagnostic::warning(
        format!("{} was left running", title_of(server)),
        "Another resource has taken it over since: a successor of this one, or one of another state. It is managed \
         there, and it was removed from this state.",
    )
}

/// A server that was started again by itself since the last look.
pub(super) fn restarted(server: &LlamaServer, report: &Report) -> Diagnostic {
    let exit = report.last_exit.as_deref().unwrap_or("an unknown code");
    Diagnostic::warning(
        format!("{} was restarted by itself", title_of(server)),
        format!(
            "It has ended and was started again, {} times since the last apply; the last time it ended with {exit}. \
             Its log in the instance, {}, may say why.",
            report.restarts,
            report.log_path.as_deref().map_or_else(|| "server.log".to_owned(), |path| format!("{path}.1"))
        ),
    )
}

/// A server whose answer did not come in time.
pub(super) fn slow(server: &LlamaServer, what: &str) -> Diagnostic {
    Diagnostic::warning(
        format!("{} is slow", title_of(server)),
        format!("{what}. Its process runs, so this is no drift: it may be busy with other requests."),
    )
}

/// Another llama-server serves on its port.
pub(super) fn displaced(server: &LlamaServer, rival: &Listener) -> Diagnostic {
    Diagnostic::warning(
        format!("{} was replaced by hand", title_of(server)),
        format!(
            "On its port runs {}, started as: {}. The apply ends it and starts the server of this resource.",
            rival.about,
            as_text(&rival.command_line)
        ),
    )
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
    if let Some(because) = &report.because {
        let text = because.text.trim();
        notes.push(Diagnostic::warning(
            format!("{title} is a build from source"),
            format!("The prebuilt server failed: {text}"),
        ));
    }
    if let Some(rival) = &report.rival {
        notes.push(Diagnostic::warning(
            format!("{title} shares its port"),
            format!(
                "Another process listens on the same port, and gets a part of the requests: {}. Stop one of them.",
                rival.about
            ),
        ));
    }
    notes
}

/// What was to be done and what was seen of it, for a sentence: `compiling (41 %)`.
pub(super) fn doing(report: &Report) -> String {
    match report.phase {
        Phase::Absent => "stopped".to_owned(),
        Phase::Find => "looking for a build".to_owned(),
        Phase::Compile => match report.compile.as_ref().and_then(|compile| compile.percent) {
            Some(percent) => format!("compiling ({percent} %)"),
            None => "compiling".to_owned(),
        },
        Phase::Start => "being started".to_owned(),
        Phase::Load => "loading the model".to_owned(),
        Phase::Ready => "ready".to_owned(),
        Phase::Failed => "failed".to_owned(),
    }
}

/// What is left of a server that failed, and where. `next` says what the next apply does with it.
pub(super) fn left_alone(job: &Job, next: &str) -> String {
    format!(
        "The process and its logs were left as they are, in {}/.damodel/{}. {next}",
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

#[cfg(test)]
mod tests;
