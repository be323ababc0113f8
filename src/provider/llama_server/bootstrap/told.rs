//! Failures in words. The instance sends a kind and what it saw.

use std::sync::LazyLock;

use regex::Regex;

use super::report::{Failure, Kind, Malformed};

/// The program's word for a workspace that cannot be written, for whatever reason.
pub(super) const ROOM: &str = "room";

/// The least space, in KiB, with which a workspace is not full.
const LEAST: u64 = 1024;

/// What the lines of a log say that tell why a program failed.
static DECISIVE: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant that the tests compile")]
    Regex::new(
        " E |[Ee]rror|ERROR|fatal|[Ff]ailed|terminate called|cannot open|not found|No space left|denied|Abort|CUDA",
    )
    .expect("a pattern")
});

/// Reads a kind and its text.
pub(super) fn parse(kind: &str, text: String) -> Result<Failure, Malformed> {
    if kind == ROOM {
        return Ok(room(&text));
    }
    Ok(Failure { kind: kind.parse()?, text })
}

/// The failure of a server that ended or of a compile, with its log. `value` gives the other values of the report.
/// What a version of before has recorded is complete.
pub(super) fn failure(failure: Failure, value: impl Fn(&str) -> Option<String>) -> Failure {
    let value = |key: &str| value(key).unwrap_or_default();
    match failure.kind {
        Kind::Compile if !failure.text.contains('\n') => {
            let log = value("compile_tail");
            let kind = if log.contains("No space left on device") { Kind::DiskFull } else { Kind::Compile };
            let text = format!("{}; its log {} says:\n{}", failure.text, value("compile_log"), decisive(&log));
            Failure { kind, text }
        }
        Kind::Died | Kind::Exited => {
            let seen = if failure.text.is_empty() { decisive(&value("log_tail")) } else { failure.text.clone() };
            let code = value("exit");
            if code.is_empty() {
                return Failure { text: seen, ..failure };
            }
            let more = match (failure.kind, value("restarts").as_str()) {
                (Kind::Exited, _) => ", before it was ready".to_owned(),
                (_, "" | "0") => String::new(),
                (_, restarts) => format!(". It had been started again {restarts} times"),
            };
            let text = format!(
                "the {} server {} ended with {code}{} after {} s{more}; its log {} says:\n{seen}",
                value("server_build"),
                value("server_binary"),
                meaning(&code),
                value("seconds"),
                value("log_path"),
            );
            Failure { text, ..failure }
        }
        _ => failure,
    }
}

/// The lines of a log that tell what went wrong, or its end.
fn decisive(log: &str) -> String {
    let last = |lines: Vec<&str>, most: usize| -> Vec<String> {
        let lines = lines.into_iter().rev().take(most).rev();
        lines.map(|line| line.chars().take(400).collect()).collect()
    };
    let found = last(log.lines().filter(|line| DECISIVE.is_match(line)).collect(), 5);
    if found.is_empty() { last(log.lines().collect(), 3).join("\n") } else { found.join("\n") }
}

/// The folder, why it cannot be written, and what `df` says of it.
fn room(text: &str) -> Failure {
    let (folder, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (error, table) = rest.find("Filesystem ").map_or((rest, ""), |at| rest.split_at(at));
    let left = table.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    let is_full = ["No space left", "quota"].iter().any(|words| error.contains(words));
    if is_full || left.is_some_and(|left| left < LEAST) {
        let text = format!("no space is left in the workspace {folder}:\n{}", table.trim());
        return Failure { kind: Kind::DiskFull, text };
    }
    Failure { kind: Kind::Workspace, text: format!("the workspace {folder} cannot be written: {}", error.trim()) }
}

/// What an exit code says that the server does not choose itself.
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
    use super::*;

    fn words(kind: Kind, code: &str, restarts: &str) -> String {
        let value = |key: &str| {
            let value = match key {
                "exit" => code,
                "seconds" => "3",
                "restarts" => restarts,
                "server_build" => "prebuilt",
                "server_binary" => "/b/llama-server",
                "log_path" => "/l/server.log",
                "log_tail" => "listening\nmore\nand more\nits last line",
                _ => "",
            };
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        failure(Failure { kind, text: String::new() }, value).text
    }

    #[test]
    fn an_end_is_told_with_its_code_its_time_and_its_log() {
        let log = "its log /l/server.log says:\nmore\nand more\nits last line";
        let begin = "the prebuilt server /b/llama-server ended with";
        assert_eq!(words(Kind::Exited, "1", ""), format!("{begin} 1 after 3 s, before it was ready; {log}"));
        let killed = "137 (SIGKILL: it was killed, or memory ran out) after 3 s";
        assert_eq!(words(Kind::Died, "137", "0"), format!("{begin} {killed}; {log}"));
        let again = "It had been started again 5 times";
        assert_eq!(words(Kind::Died, "139", "5"), format!("{begin} 139 (SIGSEGV) after 3 s. {again}; {log}"));
    }

    /// What another failure says is its own, and so is what a version of before has recorded.
    #[test]
    fn other_failures_are_told_as_they_are() {
        let as_it_is = |kind| failure(Failure { kind, text: "its text".to_owned() }, |_| None).text;
        assert_eq!([Kind::PortInUse, Kind::Exited].map(as_it_is), ["its text"; 2]);
    }

    #[test]
    fn the_lines_that_tell_why_are_shown() {
        let log = "error: 1\nok\nerror: 2\nE failed\nfatal\nnot found\ndenied\nok";
        assert_eq!(decisive(log), "error: 2\nE failed\nfatal\nnot found\ndenied");
        assert_eq!(decisive(&"x".repeat(500)).len(), 400);
    }

    #[test]
    fn a_workspace_is_full_or_cannot_be_written() {
        let table = |left: u64| {
            format!("Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs 4096 0 {left} 0% /w\n")
        };
        for (error, left, kind) in [
            ("head: write error: No space left on device", 0, Kind::DiskFull),
            ("head: write error: Disk quota exceeded", 4096, Kind::DiskFull),
            ("head: write error", 12, Kind::DiskFull),
            ("mkdir: cannot create directory: Not a directory", 4096, Kind::Workspace),
        ] {
            let failure = parse(ROOM, format!("/w\n{error}\n{}", table(left))).unwrap();
            assert_eq!(failure.kind, kind, "{error}");
            assert!(failure.text.contains(if kind == Kind::DiskFull { "tmpfs" } else { error }), "{failure:?}");
        }
    }
}
