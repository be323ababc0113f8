//! `terraform-provider-damodel completions`: the completion script of a shell.

use std::io::{self, Write};

use clap::{Command, Parser};
use clap_complete::{Shell, generate};

/// Prints a shell completion script.
///
/// For bash: terraform-provider-damodel completions bash >
/// ~/.local/share/bash-completion/completions/terraform-provider-damodel
///
/// Exit codes: 0 the script was printed; 1 it cannot be written; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "completions")]
pub struct Arguments {
    /// The shell.
    pub shell: Shell,
}

/// Prints the completions of a command line.
///
/// # Errors
///
/// If standard output cannot be written.
pub fn run(arguments: Arguments, mut command: Command) -> io::Result<()> {
    let name = command.get_name().to_owned();
    // The library panics if a writer fails, and memory does not fail.
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, name, &mut script);
    let mut out = io::stdout();
    out.write_all(&script)?;
    out.flush()
}
