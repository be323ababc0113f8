//! Runs Terraform or OpenTofu with this program as the provider.
//!
//! - [`Cli`] finds and runs one of them, without the user's environment variables for other runs.
//! - [`Mirror`] is a directory from which `init` installs the provider without a registry.

use std::{
    env::consts::{ARCH, EXE_SUFFIX, OS},
    ffi::{OsStr, OsString},
    fmt, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use terraform_plugin::process::{interrupt, kill};
use tokio::{
    process::{Child, Command},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::Surroundings;
use crate::provider::ADDRESS;

/// The default hosts of source addresses: Terraform's and OpenTofu's.
pub const HOSTS: [&str; 2] = ["registry.terraform.io", "registry.opentofu.org"];

/// Whether Terraform and OpenTofu ignore a file of this name: a hidden file, or a copy of an editor.
#[must_use]
pub fn is_ignored(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'))
}

/// The path of this version of the provider in a mirror, for a host (plugin protocol, local installation).
#[must_use]
pub fn package(host: &str) -> PathBuf {
    [host, ADDRESS, env!("CARGO_PKG_VERSION"), &platform()].iter().collect()
}

/// The platform in the registries' form.
#[must_use]
pub fn platform() -> String {
    let system = if OS == "macos" { "darwin" } else { OS };
    let processor = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{system}_{processor}")
}

/// A filesystem mirror with this provider, and the CLI configuration that makes `init` use it alone (plugin protocol,
/// local installation).
#[derive(Clone, Debug)]
pub struct Mirror {
    /// The CLI configuration, for `TF_CLI_CONFIG_FILE`.
    pub cli_config: PathBuf,
}

impl Mirror {
    /// Creates a mirror in a folder, with `executable` as the provider.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written or the executable cannot be read.
    pub fn make(folder: &Path, executable: &Path) -> io::Result<Self> {
        let mirror = folder.join("mirror");
        for host in HOSTS {
            let package = mirror.join(package(host));
            fs::create_dir_all(&package)?;
            let file = package.join(format!("terraform-provider-damodel{EXE_SUFFIX}"));
            // A link is cheaper than a copy, but impossible between two file systems.
            fs::hard_link(executable, &file).or_else(|_| fs::copy(executable, &file).map(drop))?;
        }
        let cli_config = folder.join("cli.tfrc");
        fs::write(&cli_config, cli_configuration(&mirror))?;
        Ok(Self { cli_config })
    }
}

/// A path as a string of HCL.
#[must_use]
pub fn quoted(path: &Path) -> String {
    // HCL escapes strings like Rust, except for the two sequences that begin a template. Paths here have no control
    // characters.
    format!("{:?}", path.display().to_string()).replace("${", "$${").replace("%{", "%%{")
}

fn cli_configuration(mirror: &Path) -> String {
    let path = quoted(mirror);
    format!(
        "disable_checkpoint = true\n\nprovider_installation {{\n  filesystem_mirror {{\n    path = {path}\n  }}\n}}\n"
    )
}

/// The program names to search for, in this order.
const PROGRAMS: [&str; 2] = ["terraform", "tofu"];

/// Turns off the check for a newer version for every CLI configuration (environment variables, `CHECKPOINT_DISABLE`).
const NO_CHECKPOINT: &str = "CHECKPOINT_DISABLE";

/// The time that a program has to exit after an interrupt. It is longer than a change in progress may take to answer.
const STOP_GRACE: Duration = Duration::from_secs(30);

/// The environment of the programs: that of this process, without the variables for other uses of them.
///
/// It omits the variables of Terraform and of the provider, so that no other service is used, and those of HTTP
/// proxies, because no request leaves this computer. Terraform's check for a newer version, which even `terraform
/// version` makes and caches in the home directory, is turned off. `Debug` shows names only.
#[derive(Clone, Default)]
pub struct ProgramEnvironment(Vec<(OsString, OsString)>);

/// Terraform or OpenTofu.
#[derive(Clone, Debug)]
pub struct Cli {
    program: PathBuf,
    version: String,
    environment: ProgramEnvironment,
}

/// The output of a run.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The reason why it did not run or finish.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// It exited with another code than 0. The text includes its output, which names the cause.
    #[error("{command} failed ({status})\n\n{output}")]
    Failed {
        /// The command line.
        command: String,
        /// Its exit status.
        status: String,
        /// Its output.
        output: ProgramOutput,
    },
    /// It was interrupted by this program.
    #[error("{command} was interrupted")]
    Interrupted {
        /// The command line.
        command: String,
    },
    /// The program was not found.
    #[error(
        "{missing}. Install Terraform (https://developer.hashicorp.com/terraform/install) \
         or OpenTofu (https://opentofu.org/docs/intro/install/), or name the program with --cli"
    )]
    NotFound {
        /// The missing program, as a sentence.
        missing: String,
    },
    /// The system could not run it.
    #[error("cannot run {command}")]
    Start {
        /// The command line.
        command: String,
        /// The system's error.
        source: io::Error,
    },
}

impl ProgramEnvironment {
    /// The variables of a process, without those for other uses.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = variables.into_iter().filter(|(name, _)| {
            let name = name.to_string_lossy().to_ascii_uppercase();
            !(name.starts_with("TF_")
                || name.starts_with("DAMODEL_")
                || name.ends_with("_PROXY")
                || name == NO_CHECKPOINT)
        });
        Self(kept.collect()).with(NO_CHECKPOINT, "1")
    }

    /// The same with one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.push((name.into(), value.as_ref().to_owned()));
        self
    }
}

impl Cli {
    /// Finds the program: the wanted one (a name on PATH, or a path), or else the first of `terraform` and `tofu`.
    ///
    /// # Errors
    ///
    /// If it is missing or does not run.
    pub async fn find(wanted: Option<&Path>, environment: ProgramEnvironment) -> Result<Self, CliError> {
        let candidates = wanted.map_or_else(|| PROGRAMS.map(PathBuf::from).to_vec(), |program| vec![absolute(program)]);
        for program in candidates {
            let mut cli = Self { program, version: String::new(), environment: environment.clone() };
            let folder = Path::new(".");
            match cli.run(folder, &["version"], &CancellationToken::new()).await {
                Ok(output) => {
                    output.stdout.lines().next().unwrap_or_default().clone_into(&mut cli.version);
                    return Ok(cli);
                }
                Err(CliError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let missing = match wanted {
            Some(program) => format!("{} was not found", program.display()),
            None => format!("neither {} is on PATH", PROGRAMS.join(" nor ")),
        };
        Err(CliError::NotFound { missing })
    }

    /// The same with the whole environment of the user, whose workspace, data directory and credentials count.
    ///
    /// # Errors
    ///
    /// If it is missing or does not run.
    pub async fn of_user(wanted: Option<&Path>, surroundings: &Surroundings) -> Result<Self, CliError> {
        Self::find(wanted, ProgramEnvironment(surroundings.variables.clone())).await
    }

    /// The state of the configuration in a folder.
    ///
    /// # Errors
    ///
    /// Those of [`Self::run`].
    pub async fn state(&self, folder: &Path) -> Result<String, CliError> {
        Ok(self.run(folder, &["state", "pull"], &CancellationToken::new()).await?.stdout)
    }

    /// The same program in another environment.
    #[must_use]
    pub fn within(self, environment: ProgramEnvironment) -> Self {
        Self { environment, ..self }
    }

    /// The name or path in command lines.
    #[must_use]
    pub fn name(&self) -> String {
        self.program.file_stem().unwrap_or(self.program.as_os_str()).to_string_lossy().into_owned()
    }

    /// Its name and version, such as `Terraform v1.11.4`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs it in a folder until it exits with code 0. When `stop` is cancelled, it is interrupted as by Ctrl-C, and
    /// killed if it does not exit in time.
    ///
    /// # Errors
    ///
    /// If it does not run, fails, or was interrupted.
    pub async fn run(
        &self,
        folder: &Path,
        arguments: &[&str],
        stop: &CancellationToken,
    ) -> Result<ProgramOutput, CliError> {
        let command = format!("{} {}", self.name(), arguments.join(" "));
        let child = match self.spawn(folder, arguments) {
            Ok(child) => child,
            Err(source) => return Err(CliError::Start { command, source }),
        };
        let id = child.id();
        let ended = child.wait_with_output();
        tokio::pin!(ended);
        let output = tokio::select! {
            output = &mut ended => output,
            () = stop.cancelled() => {
                interrupt(id);
                if timeout(STOP_GRACE, &mut ended).await.is_err() {
                    kill(id);
                }
                return Err(CliError::Interrupted { command });
            }
        };
        let output = output.map_err(|source| CliError::Start { command: command.clone(), source })?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let said = ProgramOutput { stdout: text(output.stdout), stderr: text(output.stderr) };
        if output.status.success() {
            Ok(said)
        } else {
            Err(CliError::Failed { command, status: output.status.to_string(), output: said })
        }
    }

    fn spawn(&self, folder: &Path, arguments: &[&str]) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(self.environment.0.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A terminal's Ctrl-C then reaches only this process, which alone interrupts the program.
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }
}

impl ProgramOutput {
    /// The first line with this beginning.
    #[must_use]
    pub fn line(&self, beginning: &str) -> Option<&str> {
        self.stdout.lines().map(str::trim).find(|line| line.starts_with(beginning))
    }
}

impl fmt::Display for ProgramOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stdout, stderr) = (self.stdout.trim(), self.stderr.trim());
        let between = if stdout.is_empty() || stderr.is_empty() { "" } else { "\n" };
        write!(formatter, "{stdout}{between}{stderr}")
    }
}

impl fmt::Debug for ProgramEnvironment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// An absolute path for a path, so that it does not depend on the folder of a run; a name is looked up on PATH.
fn absolute(program: &Path) -> PathBuf {
    if program.components().count() < 2 {
        return program.to_owned();
    }
    std::path::absolute(program).unwrap_or_else(|_| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hosts_have_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("any");
        fs::write(&executable, "content").unwrap();
        let mirror = Mirror::make(folder.path(), &executable).unwrap();
        for host in HOSTS {
            let package = folder.path().join("mirror").join(package(host));
            let file = package.join(format!("terraform-provider-damodel{EXE_SUFFIX}"));
            assert_eq!(fs::read_to_string(file).unwrap(), "content");
        }
        assert!(fs::read_to_string(mirror.cli_config).unwrap().contains("filesystem_mirror"));
    }

    #[test]
    fn a_path_is_no_template() {
        let text = cli_configuration(Path::new("/a \"b\"/${c}/%{d}"));
        assert!(text.contains(r#"path = "/a \"b\"/$${c}/%%{d}""#), "{text}");
    }

    #[test]
    fn what_configures_other_uses_is_not_passed_on() {
        let variables = ["PATH", "TF_LOG", "DAMODEL_API_TOKEN", "https_proxy", "CHECKPOINT_DISABLE", "HOME"];
        let environment = ProgramEnvironment::of(variables.map(|name| (name.into(), "value".into())));
        let names = r#"["PATH", "HOME", "CHECKPOINT_DISABLE", "TF_INPUT"]"#;
        assert_eq!(format!("{:?}", environment.with("TF_INPUT", "0")), names);
    }

    /// Before a CLI configuration is set: even `version` would check for a newer one.
    #[test]
    fn no_core_asks_for_a_newer_version() {
        let given = [("CHECKPOINT_DISABLE", ""), ("PATH", "/bin")].map(|(name, value)| (name.into(), value.into()));
        let ProgramEnvironment(variables) = ProgramEnvironment::of(given);
        let values: Vec<_> = variables.iter().filter(|(name, _)| name == "CHECKPOINT_DISABLE").collect();
        assert_eq!(values, [&("CHECKPOINT_DISABLE".into(), "1".into())]);
    }

    #[tokio::test]
    async fn what_is_not_there_is_told_with_what_to_install() {
        let nowhere = ProgramEnvironment::default().with("PATH", "/nowhere");
        for (wanted, beginning) in [
            (None, "neither terraform nor tofu is on PATH"),
            (Some(Path::new("tofu-9")), "tofu-9 was not found"),
            (Some(Path::new("./tofu-9")), "./tofu-9 was not found"),
        ] {
            let error = Cli::find(wanted, nowhere.clone()).await.unwrap_err().to_string();
            assert!(error.starts_with(beginning), "{error}");
            assert!(error.contains("https://opentofu.org") && error.contains("--cli"), "{error}");
        }
    }
}
