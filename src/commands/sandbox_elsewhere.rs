//! `sandbox` and `demo` in a program that was built without the simulated service.

use std::ffi::OsString;

use clap::Parser;

/// Part of damodel-sandbox, another file of the same release.
///
/// Exit codes: 1 always, with the address of that file.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// Whatever damodel-sandbox would understand.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// The simulated service is not in this program.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program does not contain the simulated service. Download damodel-sandbox {} for this platform from \
     {}/releases and run it with the same arguments, or build from source: cargo build --release",
    env!("CARGO_PKG_VERSION"),
    env!("CARGO_PKG_REPOSITORY")
)]
pub struct NotContained;

/// Returns the error with the address of the other file.
///
/// # Errors
///
/// Always.
pub fn run(_arguments: &Arguments) -> Result<(), NotContained> {
    Err(NotContained)
}
