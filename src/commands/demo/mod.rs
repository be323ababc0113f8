//! `terraform-provider-damodel demo`: from nothing to a served model and back, on the sandbox, driven by a real
//! Terraform.

mod narrator;
mod story;
mod workspace;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Parser;
use tokio_util::sync::CancellationToken;

use self::{
    narrator::Narrator,
    story::Story,
    workspace::{MODEL, Workspace},
};
use super::{
    Surroundings,
    signals::told_to_end,
    terraform::{Cli, CliError, Environment},
};
use crate::{
    api::{Follower, Journal},
    sandbox::{Error as SandboxError, Options, Sandbox},
};

/// From nothing to a served model and back, with Terraform or OpenTofu on the sandbox: no account, no bill.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "demo")]
pub struct Arguments {
    /// The program to run: a name on PATH or a path. Default: terraform, or else tofu.
    #[arg(long, value_name = "PROGRAM")]
    pub cli: Option<PathBuf>,
    /// Shows everything that it says, not only the lines that matter.
    #[arg(long, short)]
    pub verbose: bool,
}

/// Why the demo did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Terraform did not run, failed, or was interrupted.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// The sandbox did not start.
    #[error("start the sandbox")]
    Sandbox(#[from] SandboxError),
    /// Standard output or the signals are out of reach.
    #[error("talk to the terminal")]
    Terminal(#[source] io::Error),
    /// A step ended well and did not do what it should. Usual cause: a defect of this program.
    #[error("{expected}\n\n{instead}")]
    Unexpected {
        /// What should have been, as a sentence.
        expected: String,
        /// What was.
        instead: String,
    },
    /// The working directory could not be made.
    #[error("prepare a working directory")]
    Workspace(#[source] io::Error),
}

/// Runs the demo until its end or a signal. However it ends, nothing is left on the machine.
///
/// # Errors
///
/// With the output of the step that failed.
pub async fn run(arguments: Arguments, surroundings: Surroundings) -> Result<(), Error> {
    run_until(arguments, surroundings, &mut io::stdout(), told_to_end()).await
}

/// Runs the demo until its end, or until this future is ready. What it tells goes to `out`.
///
/// # Errors
///
/// With the output of the step that failed.
pub async fn run_until(
    arguments: Arguments,
    surroundings: Surroundings,
    out: &mut (impl Write + Send),
    end: impl Future<Output = io::Result<()>> + Send,
) -> Result<(), Error> {
    let stop = CancellationToken::new();
    let told = tell(arguments, surroundings, Narrator::new(out), stop.clone());
    tokio::pin!(told, end);
    tokio::select! {
        // First, so that signals are listened for before anything is made that must be removed.
        biased;
        ended = &mut end => {
            stop.cancel();
            // Ends with an error of its own, after what it runs.
            told.await?;
            ended.map_err(Error::Terminal)
        }
        outcome = &mut told => outcome,
    }
}

/// Sets the stage, tells the story, and clears the stage away.
async fn tell(
    arguments: Arguments,
    surroundings: Surroundings,
    mut narrator: Narrator<'_, impl Write + Send>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let environment = Environment::of(surroundings.variables);
    let cli = Cli::find(arguments.cli.as_deref(), environment.clone()).await?;
    narrator.begin(&format!("The damodel provider with {}, on the service's sandbox.", cli.version()))?;
    narrator.verbose = arguments.verbose;

    let executable = Some(surroundings.executable.clone());
    let service = Sandbox::start(Options { executable, seed: rand::random(), ..Options::default() }).await?;
    narrator.step("Start the sandbox")?;
    narrator.proves(&format!("The service, simulated at {}: no account, no bill.", service.base_url))?;

    let workspace = Workspace::make(&surroundings.executable).map_err(Error::Workspace)?;
    narrator.step("Put examples/quickstart and this program where init finds them")?;
    narrator.proves(&format!("A mirror in {}: no registry is asked.", workspace.folder().display()))?;
    narrator.proves(&format!("The model to be served: {MODEL}"))?;

    let cli = cli.within(workspace.environment(environment, &service));
    let pending = workspace.configuration().join(".terraform/damodel-pending");
    let follower = Follower::beside(&Journal::new(pending));
    let outcome =
        Story { cli: &cli, workspace: &workspace, service: &service, narrator: &mut narrator, stop, follower }
            .tell()
            .await;
    service.stop().await;
    let removed = workspace.remove().map_err(Error::Workspace);
    outcome?;
    removed?;
    narrator.end()
}
