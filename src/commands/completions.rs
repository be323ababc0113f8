//! `terraform-provider-damodel completions`: what makes a shell complete this command line.

use std::io::{self, Write};

use clap::{Command, Parser};
use clap_complete::{Shell, generate};

/// Prints what makes a shell complete this command line.
///
/// For bash: terraform-provider-damodel completions bash >
/// ~/.local/share/bash-completion/completions/terraform-provider-damodel
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
/// When standard output is out of reach.
pub fn run(arguments: Arguments, mut command: Command) -> io::Result<()> {
    let name = command.get_name().to_owned();
    // The library gives up on a writer that fails; memory does not.
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, name, &mut script);
    let mut out = io::stdout();
    out.write_all(&script)?;
    out.flush()
}
