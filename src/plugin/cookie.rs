//! Who started this process: Terraform's core, or somebody by hand.

use std::{ffi::OsString, io::Write, process::ExitCode};

/// Whether the core started this process, which it tells by a magic cookie in the environment
/// (plugin protocol, environment variables).
///
/// `variable` reads one environment variable.
pub fn started_by_core(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable(COOKIE_NAME).is_some_and(|value| value == COOKIE)
}

/// Tells a person who ran the binary by hand what it is, on standard error, and gives the exit code 1.
#[must_use]
pub fn help() -> ExitCode {
    // A closed standard error is no reason to panic.
    let _ = std::io::stderr().write_all(HELP.as_bytes());
    ExitCode::FAILURE
}

const COOKIE_NAME: &str = "TF_PLUGIN_MAGIC_COOKIE";

/// The same in Terraform and OpenTofu. It is no secret: it only tells a plugin host from a person.
const COOKIE: &str = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

const HELP: &str = "\
This binary is a plugin. These are not meant to be executed directly.
Run the program that consumes it, which is Terraform or OpenTofu:
`terraform init` installs the plugins that a configuration names,
and every other command loads them automatically.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_cookie_is_the_core() {
        let with = |value: Option<&str>| {
            started_by_core(|name| (name == "TF_PLUGIN_MAGIC_COOKIE").then(|| value.map(OsString::from)).flatten())
        };
        assert!(with(Some(COOKIE)));
        assert!(!with(Some("")));
        assert!(!with(Some(&COOKIE.to_uppercase())));
        assert!(!with(Some(&format!("{COOKIE} "))));
        assert!(!with(None));
    }

    #[test]
    fn help_has_four_lines() {
        assert_eq!(HELP.lines().count(), 4);
        assert!(HELP.ends_with('\n'));
    }
}
