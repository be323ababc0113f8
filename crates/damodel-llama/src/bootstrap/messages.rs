//! The messages of failures: the instance sends a kind and a short text.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::described;

use super::{
    facts::{Facts, PortHolder, Question},
    job::ServerPlace,
    kinds::{FailureKind, JobFailure},
    start::JobRecord,
};

/// The smallest free space of a workspace, in KiB.
const MIN_ROOM: u64 = 1024;

/// The words of log lines that explain a failure.
static DECISIVE: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant that the tests compile")]
    Regex::new(
        " E |[Ee]rror|ERROR|fatal|[Ff]ailed|terminate called|cannot open|not found|No space left|denied|Abort|\
         CUDA driver|no CUDA",
    )
    .expect("a pattern")
});

/// A server's words for memory that it cannot allocate.
static OUT_OF_MEMORY: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant that the tests compile")]
    Regex::new("cudaMalloc failed: out of memory|insufficient memory \\(attempted to allocate").expect("a pattern")
});

/// A server's words for a file that is incomplete or damaged.
static BROKEN_MODEL: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant that the tests compile")]
    Regex::new("is not within the file bounds|failed to read key-value pairs|failed to read magic").expect("a pattern")
});

/// The message of a failure, after these automatic restarts. `value` gives the other values of the report.
pub(super) fn failure(
    failure: JobFailure,
    record: &JobRecord,
    restarts: i64,
    rival: Option<&PortHolder>,
    value: impl Fn(&str) -> Option<String>,
) -> JobFailure {
    let value = |key: &str| value(key).unwrap_or_default();
    let server = || format!("the server {} ({})", value("server_binary"), value("server_version"));
    let text = match failure.kind {
        FailureKind::BadOption => format!("the server refuses its options: {}", shortened(&failure.text)),
        FailureKind::Busy => "another run has been using the server's records for a minute".to_owned(),
        FailureKind::Changed => "another run has changed the server".to_owned(),
        FailureKind::Compile => format!("the build of {} failed{}", record.source, quoted(&value("compile_tail"))),
        FailureKind::Foreign => "another resource owns the server".to_owned(),
        FailureKind::MissingModel => format!("the model {} cannot be read", value("server_model")),
        FailureKind::Download => match failure.text.split_once(IS_NO_GGUF) {
            Some((file, begin)) => format!("{file} is not a GGUF file: {}", described(begin)),
            None => failure.text,
        },
        FailureKind::NoLocks => format!("the file system of the workspace refuses locks: {}", failure.text),
        FailureKind::NoPackage | FailureKind::NoSource => format!("{}: {}", record.supply, failure.text),
        FailureKind::NotRunning => "no server that can be restarted is running".to_owned(),
        FailureKind::PortInUse => taken(rival),
        FailureKind::Unsupported => format!("{} is not supported: {}", server(), failure.text),
        FailureKind::Workspace if failure.text.is_empty() => "the records of the server cannot be written".to_owned(),
        FailureKind::Workspace => format!("the detached work did not start: {}", failure.text),
        // Another process was faster, though the port was free a moment ago.
        FailureKind::Exited if value("log_tail").contains("couldn't bind") && rival.is_some() => {
            return JobFailure { kind: FailureKind::PortInUse, text: taken(rival) };
        }
        FailureKind::NoGpu => format!(
            "{} does not see the instance's GPU; its --list-devices prints: {}",
            server(),
            shortened(&failure.text)
        ),
        FailureKind::Died | FailureKind::Exited => {
            let code = value("status_exit");
            let more = match (failure.kind, restarts) {
                (FailureKind::Exited, _) => ", before it was ready".to_owned(),
                (_, 0) => String::new(),
                (_, 1) => ", after 1 automatic restart".to_owned(),
                (_, restarts) => format!(", after {restarts} automatic restarts"),
            };
            format!(
                "the {} server {} exited with {code}{} after {} s{more}{}",
                value("server_build"),
                value("server_binary"),
                meaning(&code),
                value("status_seconds"),
                quoted(&value("log_tail")),
            )
        }
        _ => failure.text,
    };
    let kind = match failure.kind {
        FailureKind::Exited if value("status_out_of_memory") == "yes" => FailureKind::OutOfMemory,
        FailureKind::Exited => of_the_log(&value("log_tail")),
        kind => kind,
    };
    JobFailure { kind, text }
}

/// The program's words between a file that is no model and how it begins.
const IS_NO_GGUF: &str = " is not a GGUF file: ";

/// The kind of failure that the log of a server proves, which ended before it was ready.
fn of_the_log(log: &str) -> FailureKind {
    if OUT_OF_MEMORY.is_match(log) {
        FailureKind::OutOfMemory
    } else if BROKEN_MODEL.is_match(log) {
        FailureKind::BrokenModel
    } else {
        FailureKind::Exited
    }
}

fn taken(rival: Option<&PortHolder>) -> String {
    let who = rival.map_or("a process that has exited since", |rival| &rival.about);
    format!("the port is in use by {who}")
}

fn shortened(line: &str) -> String {
    line.chars().take(400).collect()
}

/// The beginning of the quotation of a log in the text of a failure.
pub const ITS_LOG: &str = "; its log ";

/// The lines of a log that explain a failure, or its end, as the end of a text.
fn quoted(log: &str) -> String {
    let last = |lines: Vec<&str>, most: usize| -> Vec<String> {
        let lines = lines.into_iter().rev().take(most).rev();
        lines.map(shortened).collect()
    };
    let (found, end) =
        (log.lines().filter(|line| DECISIVE.is_match(line)), log.lines().filter(|line| !line.is_empty()));
    let (verb, lines) = match last(found.collect(), 5) {
        found if found.is_empty() => ("ends with", last(end.collect(), 3)),
        found => ("has", found),
    };
    if lines.is_empty() { String::new() } else { format!("{ITS_LOG}{verb}:\n{}", lines.join("\n")) }
}

/// The question whether the workspace can be written.
pub fn room_question(place: &ServerPlace) -> Question {
    Question::new(ROOM_KEY).on(&format!("{}/.damodel", place.workspace)).on(&place.workspace)
}

/// The name of the fact.
const ROOM_KEY: &str = "room";

/// The failure of a workspace that cannot be written.
pub fn no_room(place: &ServerPlace, facts: &Facts) -> Option<JobFailure> {
    let (error, table) = match facts.text(ROOM_KEY) {
        "" => return None,
        text => text.find("Filesystem ").map_or((text, ""), |at| text.split_at(at)),
    };
    let folder = &place.workspace;
    let left = table.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    let is_full = ["No space left", "quota"].iter().any(|words| error.contains(words));
    if is_full || left.is_some_and(|left| left < MIN_ROOM) {
        let text = format!("no space is left in the workspace {folder}:\n{}", table.trim());
        return Some(JobFailure { kind: FailureKind::DiskFull, text });
    }
    let text = format!("the workspace {folder} cannot be written: {}", error.trim());
    Some(JobFailure { kind: FailureKind::Workspace, text })
}

/// The meaning of an exit code that the server does not choose itself.
pub(super) fn meaning(code: &str) -> &'static str {
    match code {
        "126" => " (it cannot be executed)",
        "127" => " (the binary or a library is missing)",
        "132" => " (SIGILL: the build does not fit this CPU)",
        "134" => " (SIGABRT)",
        "135" => " (SIGBUS: the model was changed while it was read)",
        "137" => " (SIGKILL: it was killed, or memory ran out)",
        "139" => " (SIGSEGV)",
        "143" => " (SIGTERM: it was asked to end)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{super::PortHolder, *};

    fn words(kind: FailureKind, code: &str, restarts: i64) -> String {
        let value = |key: &str| {
            let value = match key {
                "status_exit" => code,
                "status_seconds" => "3",
                "server_build" => "prebuilt",
                "server_binary" => "/b/llama-server",
                "server_log" => "/l/server.log",
                "log_tail" => "listening\nmore\nand more\nits last line",
                _ => "",
            };
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        failure(JobFailure { kind, text: String::new() }, &JobRecord::default(), restarts, None, value).text
    }

    #[test]
    fn an_end_is_told_with_its_code_its_time_and_its_log() {
        let log = "its log ends with:\nmore\nand more\nits last line";
        let begin = "the prebuilt server /b/llama-server exited with";
        assert_eq!(words(FailureKind::Exited, "1", 0), format!("{begin} 1 after 3 s, before it was ready; {log}"));
        let killed = "137 (SIGKILL: it was killed, or memory ran out) after 3 s";
        assert_eq!(words(FailureKind::Died, "137", 0), format!("{begin} {killed}; {log}"));
        let again = "after 1 automatic restart";
        assert_eq!(words(FailureKind::Died, "139", 1), format!("{begin} 139 (SIGSEGV) after 3 s, {again}; {log}"));
        let again = "after 5 automatic restarts";
        assert_eq!(words(FailureKind::Died, "139", 5), format!("{begin} 139 (SIGSEGV) after 3 s, {again}; {log}"));
    }

    #[test]
    fn only_what_the_log_proves_has_a_kind_of_its_own() {
        for (log, kind) in [
            ("allocating 9 MiB on device 0: cudaMalloc failed: out of memory", FailureKind::OutOfMemory),
            ("ggml_aligned_malloc: insufficient memory (attempted to allocate 7.02 MB)", FailureKind::OutOfMemory),
            (
                "tensor 'a' data is not within the file bounds, model is corrupted or incomplete",
                FailureKind::BrokenModel,
            ),
            ("gguf_init_from_file: failed to read key-value pairs", FailureKind::BrokenModel),
            ("unknown model architecture: 'zzzzz'", FailureKind::Exited),
            ("", FailureKind::Exited),
        ] {
            assert_eq!(of_the_log(log), kind, "{log}");
        }
    }

    /// Another process was faster, so no build from source cures it.
    #[test]
    fn a_port_that_is_taken_at_the_start_is_in_use() {
        let end = |rival: Option<&PortHolder>| {
            let value = |key: &str| (key == "log_tail").then(|| "couldn't bind HTTP server socket".to_owned());
            let exited = JobFailure { kind: FailureKind::Exited, text: String::new() };
            failure(exited, &JobRecord::default(), 0, rival, value).kind
        };
        let rival = PortHolder { identity: None, about: "process 1".to_owned(), command_line: Vec::new() };
        assert_eq!((end(Some(&rival)), end(None)), (FailureKind::PortInUse, FailureKind::Exited));
    }

    #[test]
    fn the_lines_that_tell_why_are_shown() {
        let log = "error: 1\nok\nerror: 2\nE failed\nfatal\nnot found\ndenied\nok";
        assert_eq!(quoted(log), "; its log has:\nerror: 2\nE failed\nfatal\nnot found\ndenied");
        assert_eq!(quoted(&"x".repeat(500)).len(), "; its log ends with:\n".len() + 400);
        assert_eq!(quoted(""), "");
        // A server that found its GPU, and was asked to end.
        let healthy = "ggml_cuda_init: found 1 CUDA devices:\nload_tensors: CUDA0 model buffer size = 9 MiB\nidle\nbye";
        assert!(quoted(healthy).starts_with("; its log ends with:\nload_tensors"), "{}", quoted(healthy));
        for line in ["CUDA error: no kernel image", "CUDA driver version is insufficient", "no CUDA-capable device"] {
            assert_eq!(quoted(&format!("{line}\n{healthy}")), format!("; its log has:\n{line}"));
        }
    }

    #[test]
    fn a_workspace_is_full_or_cannot_be_written() {
        let table = |left: u64| {
            format!("Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs 4096 0 {left} 0% /w\n")
        };
        for (error, left, kind) in [
            ("head: write error: No space left on device", 0, FailureKind::DiskFull),
            ("head: write error: Disk quota exceeded", 4096, FailureKind::DiskFull),
            ("head: write error", 12, FailureKind::DiskFull),
            ("mkdir: cannot create directory: Not a directory", 4096, FailureKind::Workspace),
        ] {
            let answer = format!("{error}\n{}", table(left));
            let place = ServerPlace { workspace: "/w".to_owned(), port: 1, instance: "i".to_owned() };
            let failure = no_room(&place, &Facts::of([(ROOM_KEY.to_owned(), answer)].into())).unwrap();
            assert_eq!(failure.kind, kind, "{error}");
            assert!(failure.text.contains(if kind == FailureKind::DiskFull { "tmpfs" } else { error }), "{failure:?}");
        }
    }
}
