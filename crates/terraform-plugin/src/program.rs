//! The program of a provider, which is all of its `main`.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    process::ExitCode,
};

use crate::{
    framework::{Ends, Provider},
    plugin::{
        self, ServeOptions,
        log::{self, LogSettings},
    },
    protocol,
};

/// What a provider's program is called.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The provider's name, such as `acme`: of its log's variable, `TF_LOG_PROVIDER_ACME`, and of its crates
    /// ([`LogSettings::read`]).
    pub name: &'static str,
    /// Its version, for `--version`.
    pub version: &'static str,
    /// Its address in a registry, `namespace/type`.
    pub address: &'static str,
}

/// Runs the program of a provider to its end, and returns its exit code.
///
/// Without an argument it serves the core that has started it ([`plugin::serve`]). With `-debug` it serves every core
/// that is given the setting that it prints ([`plugin::serve_debug`]). To a person it says what it is.
pub fn serve(provider: impl Provider, program: Program) -> ExitCode {
    plugin::install_panic_hook();
    log::install(&LogSettings::read(program.name, variable));
    let routes = |options: &ServeOptions| {
        let ServeOptions { stopping, caller_gone, work } = options.clone();
        protocol::service(provider, Ends { stopping, caller_gone, work })
    };
    match env::args_os().nth(1).as_deref().map(OsStr::to_string_lossy).as_deref() {
        None if plugin::started_by_core(variable) => plugin::serve(variable, routes),
        Some("-debug" | "--debug" | "debug") => plugin::serve_debug(program.address, variable, routes),
        Some("-version" | "--version") => {
            let said = writeln!(io::stdout(), "terraform-provider-{} {}", program.name, program.version);
            if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => plugin::help(),
    }
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}
