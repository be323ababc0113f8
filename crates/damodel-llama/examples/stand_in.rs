//! The sandbox's stand-ins, for the tests: what runs depends on the name of the link that starts it.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    damodel_sandbox::stand_in::run(env::args_os(), |name| env::var_os(name)).unwrap_or(ExitCode::FAILURE)
}
