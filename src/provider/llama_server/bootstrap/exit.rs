//! How a server ended, in words.

use super::report::{Failure, Kind};

/// The failure of a server that ended, told with its exit code, its time and its log, of which the instance sends the
/// decisive lines. `value` gives the other values of the report.
pub(super) fn told(failure: Failure, value: impl Fn(&str) -> Option<String>) -> Failure {
    let (Kind::Died | Kind::Exited, Some(code)) = (failure.kind, value("exit")) else { return failure };
    let value = |key: &str| value(key).unwrap_or_default();
    let more = match (failure.kind, value("restarts").as_str()) {
        (Kind::Exited, _) => ", before it was ready".to_owned(),
        (_, "" | "0") => String::new(),
        (_, restarts) => format!(". It had been started again {restarts} times"),
    };
    let text = format!(
        "the {} server {} ended with {code}{} after {} s{more}; its log {} says:\n{}",
        value("build_used"),
        value("binary"),
        meaning(&code),
        value("seconds"),
        value("log_path"),
        failure.text
    );
    Failure { text, ..failure }
}

/// What an exit code says that the server does not choose itself.
pub(super) fn meaning(code: &str) -> &'static str {
    match code {
        "126" => " (it cannot be executed)",
        "127" => " (the binary or a library is missing)",
        "132" => " (SIGILL: the build does not fit this CPU)",
        "134" => " (SIGABRT)",
        "135" => " (SIGBUS: the model was changed while it was read)",
        "137" => " (SIGKILL: someone killed it, or memory ran out)",
        "139" => " (SIGSEGV)",
        "143" => " (SIGTERM: someone ended it)",
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
                "build_used" => "prebuilt",
                "binary" => "/b/llama-server",
                "log_path" => "/l/server.log",
                _ => "",
            };
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        told(Failure { kind, text: "its last line".to_owned() }, value).text
    }

    #[test]
    fn an_end_is_told_with_its_code_its_time_and_its_log() {
        let log = "its log /l/server.log says:\nits last line";
        let begin = "the prebuilt server /b/llama-server ended with";
        assert_eq!(words(Kind::Exited, "1", ""), format!("{begin} 1 after 3 s, before it was ready; {log}"));
        let killed = "137 (SIGKILL: someone killed it, or memory ran out) after 3 s";
        assert_eq!(words(Kind::Died, "137", "0"), format!("{begin} {killed}; {log}"));
        let again = "It had been started again 5 times";
        assert_eq!(words(Kind::Died, "139", "5"), format!("{begin} 139 (SIGSEGV) after 3 s. {again}; {log}"));
    }

    /// What another failure says is its own, and so is what a version of before has recorded.
    #[test]
    fn other_failures_are_told_as_they_are() {
        assert_eq!(words(Kind::PortInUse, "1", ""), "its last line");
        assert_eq!(words(Kind::Exited, "", ""), "its last line");
    }
}
