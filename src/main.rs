//! The command line. Started by a core, with its magic cookie set and no argument, the program serves; run by hand it
//! is a tool.

use std::{
    env,
    error::Error,
    ffi::OsString,
    io::{self, Write},
    process::{ExitCode, Termination},
};

use clap::{CommandFactory, Parser, Subcommand};
use damodel::{
    commands, plugin,
    provider::{self, Damodel},
};
use terraform_plugin::Program;

/// What `--version` says.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("DAMODEL_COMMIT"), ")");

const PROGRAM: Program = Program { name: "damodel", version: VERSION, address: provider::ADDRESS };

/// Terraform and OpenTofu provider for the damodel GPU compute and model inference service.
///
/// Terraform and OpenTofu start this program by themselves. Run by hand it offers the commands below.
#[derive(Debug, Parser)]
#[command(name = "terraform-provider-damodel", version = VERSION, subcommand_required = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Audit(Box<commands::audit::Arguments>),
    /// Serves without a parent and prints TF_REATTACH_PROVIDERS (also written -debug)
    ///
    /// Export what it prints in another terminal, and run Terraform or OpenTofu there. Ctrl-C stops it.
    ///
    /// Exit codes: 0 it was stopped; 1 it cannot listen; 2 wrong usage.
    #[command(name = "debug")]
    Debug,
    #[cfg(feature = "sandbox")]
    Demo(commands::demo::Arguments),
    #[cfg(not(feature = "sandbox"))]
    Demo(commands::sandbox_elsewhere::Arguments),
    #[cfg(feature = "docs")]
    Docs(commands::docs::Arguments),
    Expire(Box<commands::expire::Arguments>),
    Install(commands::install::Arguments),
    Pending(Box<commands::pending::Arguments>),
    Release(Box<commands::release::Arguments>),
    Review(commands::review::Arguments),
    #[cfg(feature = "sandbox")]
    Sandbox(Box<commands::sandbox::Arguments>),
    #[cfg(not(feature = "sandbox"))]
    Sandbox(commands::sandbox_elsewhere::Arguments),
    Ssh(Box<commands::ssh::Arguments>),
    #[command(name = "ssh-config")]
    SshConfig(Box<commands::ssh::config::Arguments>),
    Watch(commands::watch::Arguments),
}

fn main() -> ExitCode {
    // Under the name of a program in an instance of the sandbox it is that program.
    #[cfg(all(unix, feature = "sandbox"))]
    if let Some(code) = damodel::sandbox::stand_in::run(env::args_os(), variable) {
        return code;
    }
    let arguments: Vec<OsString> = env::args_os().collect();
    if let [_, prompt] = arguments.as_slice()
        && commands::ssh::is_asked(variable)
    {
        return by_command(async {
            Ok::<_, Box<dyn Error>>(commands::ssh::answer_prompt(prompt, surroundings()?).await)
        });
    }
    if arguments.len() < 2 && plugin::started_by_core(variable) {
        return serve();
    }
    plugin::install_panic_hook();
    plugin::log::install(&plugin::log::LogSettings::read(PROGRAM.name, variable));
    if arguments.len() < 2 {
        return by_hand();
    }
    let arguments = arguments.into_iter().map(|word| match word.to_str() {
        // The flag as every other provider has it: with one hyphen.
        Some("-debug" | "--debug") => OsString::from("debug"),
        _ => word,
    });
    let is_ssh = env::args_os().nth(1).is_some_and(|word| word == "ssh");
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run(arguments.command),
        Err(error) => {
            // Help and version are answers, everything else is wrong usage.
            let code = match error.use_stderr() {
                true if is_ssh => commands::ssh::FAILED,
                true => 2,
                false => 0,
            };
            let _ = error.print();
            ExitCode::from(code)
        }
    }
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Audit(arguments) => by_command(commands::audit::run(*arguments)),
        Command::Debug => serve(),
        #[cfg(feature = "sandbox")]
        Command::Demo(arguments) => {
            by_command(async { Ok::<_, Box<dyn Error>>(commands::demo::run(arguments, surroundings()?).await?) })
        }
        #[cfg(feature = "docs")]
        Command::Docs(arguments) => by_command(commands::docs::run(arguments)),
        Command::Expire(arguments) => by_command(commands::expire::run(*arguments)),
        Command::Install(arguments) => {
            by_command(async { Ok::<_, Box<dyn Error>>(commands::install::run(&arguments, &surroundings()?)?) })
        }
        Command::Pending(arguments) => by_command(commands::pending::run(*arguments)),
        Command::Release(arguments) => {
            by_command(async { Ok::<_, Box<dyn Error>>(commands::release::run(*arguments, surroundings()?).await?) })
        }
        Command::Review(arguments) => by_command(commands::review::run(arguments)),
        #[cfg(not(feature = "sandbox"))]
        Command::Demo(arguments) | Command::Sandbox(arguments) => {
            by_command(async move { commands::sandbox_elsewhere::run(&arguments) })
        }
        #[cfg(feature = "sandbox")]
        Command::Sandbox(arguments) => by_command(async {
            let executable = env::current_exe()?;
            Ok::<_, Box<dyn Error>>(commands::sandbox::run(*arguments, executable).await?)
        }),
        Command::Ssh(arguments) => by_command_or(commands::ssh::FAILED, async {
            Ok::<_, Box<dyn Error>>(commands::ssh::run(*arguments, surroundings()?).await?)
        }),
        Command::SshConfig(arguments) => by_command(async {
            Ok::<_, Box<dyn Error>>(commands::ssh::config::run(*arguments, surroundings()?).await?)
        }),
        Command::Watch(arguments) => by_command(commands::watch::run(arguments)),
    }
}

fn serve() -> ExitCode {
    terraform_plugin::serve(Damodel::new(provider::Environment::of_process()), PROGRAM)
}

/// Says what this program is, and what it can do by hand.
fn by_hand() -> ExitCode {
    let code = plugin::help();
    let _ = writeln!(io::stderr(), "\n{}", Arguments::command().render_help());
    code
}

/// Runs a command to its end, and says what it failed to do and why.
fn by_command<T: Termination, E: Into<Box<dyn Error>>>(command: impl Future<Output = Result<T, E>>) -> ExitCode {
    by_command_or(1, command)
}

/// The same, with an exit code of its own for a failure.
fn by_command_or<T: Termination, E: Into<Box<dyn Error>>>(
    failed: u8,
    command: impl Future<Output = Result<T, E>>,
) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().map_err(Into::into);
    match runtime.and_then(|runtime| runtime.block_on(command).map_err(Into::into)) {
        Ok(outcome) => outcome.report(),
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", commands::sentence(&*error));
            ExitCode::from(failed)
        }
    }
}

fn surroundings() -> io::Result<commands::Surroundings> {
    let mut variables: Vec<_> = env::vars_os().collect();
    if cfg!(unix) && env::var_os("HOME").is_none_or(|home| home.is_empty()) {
        variables.retain(|(name, _)| name != "HOME");
        variables.extend(provider::home_of_user().map(|home| ("HOME".into(), home.into())));
    }
    Ok(commands::Surroundings { executable: env::current_exe()?, variables })
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}
