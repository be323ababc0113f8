//! `terraform-provider-damodel demo`: creates and destroys an instance with a model server on the sandbox, with a real
//! Terraform.

mod story;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Parser;
use secrecy::ExposeSecret;
use tempfile::TempDir;
use terraform_plugin::process::told_to_end;
use tokio_util::sync::CancellationToken;

use self::story::{Narrator, Story};
use super::{
    Failure, Surroundings,
    terraform::{Cli, CliError, Mirror, ProgramEnvironment},
};
use crate::{
    creation::{Journal, progress::Follower},
    sandbox::{Options, Running, Sandbox},
};

/// Creates an instance with a model server and destroys it again, with Terraform or OpenTofu on the sandbox.
///
/// The steps are sandbox, init, plan, apply, a chat, an empty second plan and destroy. No account is needed, and
/// nothing is billed.
///
/// Exit codes: 0 each step had the expected result; 1 a step did not; 2 wrong usage.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "demo")]
pub struct Arguments {
    /// The program to run: a name on PATH or a path. Default: terraform, or else tofu.
    #[arg(long, value_name = "PROGRAM")]
    pub cli: Option<PathBuf>,
    /// Shows the whole output of Terraform or OpenTofu, not only the important lines.
    #[arg(long, short)]
    pub verbose: bool,
}

/// Runs the demo until its end or a signal. In every case its files are removed and its processes ended.
///
/// # Errors
///
/// With the output of the step that failed.
pub async fn run(arguments: Arguments, surroundings: Surroundings) -> Result<(), Failure> {
    run_until(arguments, surroundings, &mut io::stdout(), told_to_end()).await
}

/// Runs the demo until its end, or until `end` is ready. Its text is written to `out`.
///
/// # Errors
///
/// With the output of the step that failed.
pub async fn run_until(
    arguments: Arguments,
    surroundings: Surroundings,
    out: &mut (impl Write + Send),
    end: impl Future<Output = io::Result<()>> + Send,
) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let told = tell(arguments, surroundings, Narrator::new(out), stop.clone());
    tokio::pin!(told, end);
    tokio::select! {
        // First, so that signals are handled before files are created.
        biased;
        ended = &mut end => {
            stop.cancel();
            // It ends with its own error, after the command it runs.
            told.await?;
            ended.map_err(Failure::terminal)
        }
        outcome = &mut told => outcome,
    }
}

/// A failure of Terraform or OpenTofu, with its own text.
fn of_cli(error: CliError) -> Failure {
    Failure::new(crate::plugin::with_causes(&error))
}

/// A step that succeeded with an unexpected result. Usual cause: a defect of this program.
fn unexpected(expected: &str, instead: &str) -> Failure {
    Failure::new(format!("{expected}\n\n{instead}"))
}

/// Prepares a workspace and a sandbox, runs the steps, and removes both.
async fn tell(
    arguments: Arguments,
    surroundings: Surroundings,
    mut narrator: Narrator<'_, impl Write + Send>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let environment = ProgramEnvironment::of(surroundings.variables);
    let cli = Cli::find(arguments.cli.as_deref(), environment.clone()).await.map_err(of_cli)?;
    narrator.begin(&format!("The damodel provider with {}, on the service's sandbox.", cli.version()))?;
    narrator.verbose = arguments.verbose;

    let executable = Some(surroundings.executable.clone());
    let service = Sandbox::start(Options { executable, seed: rand::random(), ..Options::default() }).await;
    let service = service.map_err(|error| Failure::because("cannot start the sandbox", error))?;
    narrator.step("Start the sandbox")?;
    narrator.proves(&format!(
        "The simulated service runs at {}: no account is needed, and nothing is billed.",
        service.base_url
    ))?;

    let unprepared = |error| Failure::because("cannot prepare a working directory", error);
    let workspace = Workspace::make(&surroundings.executable).map_err(unprepared)?;
    narrator.step("Prepare examples/quickstart and a mirror with this program")?;
    narrator.proves(&format!("A mirror in {}: no registry is used.", workspace.folder().display()))?;
    let model = format!("{}/files/tiny.gguf", service.base_url);
    narrator.proves(&format!("The model to download and serve: {model}"))?;

    let cli = cli.within(workspace.environment(environment, &service, &model));
    let pending = workspace.configuration().join(".terraform/damodel-pending");
    let follower = Follower::beside(&Journal::new(pending));
    let outcome =
        Story { cli: &cli, workspace: &workspace, service: &service, narrator: &mut narrator, stop, follower }
            .tell()
            .await;
    service.stop().await;
    let removed = workspace.remove().map_err(unprepared);
    outcome?;
    removed?;
    narrator.end()
}

/// The example of the repository that is run.
const QUICKSTART: [(&str, &str); 4] = [
    ("main.tf", include_str!("../../../examples/quickstart/main.tf")),
    ("outputs.tf", include_str!("../../../examples/quickstart/outputs.tf")),
    ("variables.tf", include_str!("../../../examples/quickstart/variables.tf")),
    ("versions.tf", include_str!("../../../examples/quickstart/versions.tf")),
];

/// A temporary folder with the example and a mirror. Removed when dropped.
#[derive(Debug)]
struct Workspace {
    folder: TempDir,
    mirror: Mirror,
}

impl Workspace {
    fn make(executable: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("damodel-demo-").tempdir()?;
        let mirror = Mirror::make(folder.path(), executable)?;
        let workspace = Self { folder, mirror };
        fs::create_dir(workspace.configuration())?;
        for (name, content) in QUICKSTART {
            fs::write(workspace.configuration().join(name), content)?;
        }
        Ok(workspace)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the example.
    fn configuration(&self) -> PathBuf {
        self.folder.path().join("quickstart")
    }

    /// The environment for a run with this mirror and this service.
    fn environment(&self, environment: ProgramEnvironment, service: &Running, model: &str) -> ProgramEnvironment {
        environment
            .with("TF_CLI_CONFIG_FILE", &self.mirror.cli_config)
            .with("TF_IN_AUTOMATION", "1")
            .with("TF_INPUT", "0")
            .with("DAMODEL_BASE_URL", &service.base_url)
            .with("DAMODEL_API_TOKEN", service.token.expose_secret())
            .with("DAMODEL_REGION", "cn-east-1")
            .with("TF_VAR_model_url", model)
    }

    /// Removes the folder, with an error if that fails.
    fn remove(self) -> io::Result<()> {
        self.folder.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_example_is_taken() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".tf"))
            .collect();
        files.sort();
        assert_eq!(files, QUICKSTART.map(|(name, _)| name));
    }
}
