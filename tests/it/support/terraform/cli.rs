//! The command lines on this computer.

use std::{env, path::PathBuf, process::Command, sync::OnceLock};

use damodel::sandbox::Options;
use serde_json::Value;

use super::{Site, Workspace};
use crate::support::record::{Recorded, skipped};

/// A command line that runs providers.
#[derive(Clone, Debug)]
pub(crate) struct Cli {
    /// The program.
    pub(crate) program: PathBuf,
    /// Major and minor version.
    version: (u64, u64),
    /// Whether it is OpenTofu.
    pub(crate) is_tofu: bool,
}

/// Runs a test with every command line of this computer: `terraform` and `tofu` on PATH, and TF_ACC_TERRAFORM_PATH.
///
/// Without any, the test is skipped.
pub(crate) fn each_cli(test: impl Fn(&Cli)) {
    static FOUND: OnceLock<Vec<Cli>> = OnceLock::new();
    let found = FOUND.get_or_init(find);
    if found.is_empty() {
        skipped("neither terraform nor tofu is on PATH, and TF_ACC_TERRAFORM_PATH is not set. Install one of them.");
    }
    for cli in found {
        let _recorded = Recorded::begin();
        test(cli);
    }
}

/// The same with command lines that [have](Cli::has) these versions.
pub(crate) fn each_cli_since(terraform: u64, tofu: u64, test: impl Fn(&Cli)) {
    each_cli(|cli| {
        if cli.has(terraform, tofu) {
            test(cli);
        }
    });
}

/// The same with a sandbox and a workspace for each.
pub(crate) fn each_workspace_since(terraform: u64, tofu: u64, test: impl Fn(&Site, &Workspace<'_>)) {
    each_cli_since(terraform, tofu, |cli| {
        let site = Site::start();
        test(&site, &Workspace::new(cli, &site));
    });
}

/// Runs a test with every command line, a sandbox and a workspace.
pub(crate) fn each_workspace(test: impl Fn(&Site, &Workspace<'_>)) {
    each_workspace_on(&Site::options(), test);
}

/// The same, where the provider is the program: for what a process owns, ends or logs.
pub(crate) fn each_program(test: impl Fn(&Site, &Workspace<'_>)) {
    each_workspace(|site, workspace| {
        workspace.run_program();
        test(site, workspace);
    });
}

/// The same on a sandbox with these options.
pub(crate) fn each_workspace_on(options: &Options, test: impl Fn(&Site, &Workspace<'_>)) {
    each_cli(|cli| {
        let site = Site::with(options.clone());
        test(&site, &Workspace::new(cli, &site));
    });
}

fn find() -> Vec<Cli> {
    let named = env::var_os("TF_ACC_TERRAFORM_PATH").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path =
        |name: &str| env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    let mut programs: Vec<PathBuf> = Vec::new();
    for program in named.into_iter().chain(on_path("terraform")).chain(on_path("tofu")) {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    programs.into_iter().map(Cli::ask).collect()
}

impl Cli {
    fn ask(program: PathBuf) -> Self {
        let mut command = Command::new(&program);
        command.args(["version", "-json"]).env("CHECKPOINT_DISABLE", "1").env_remove("TF_CLI_CONFIG_FILE");
        let answer: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let version = answer["terraform_version"].as_str().unwrap();
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        let is_tofu = program.file_name().is_some_and(|name| name.to_string_lossy().contains("tofu"));
        Self { program, version: (parts.next().unwrap(), parts.next().unwrap()), is_tofu }
    }

    /// Whether it is at least this minor version 1.x of Terraform, or of OpenTofu.
    pub(crate) fn has(&self, terraform: u64, tofu: u64) -> bool {
        self.version >= (1, if self.is_tofu { tofu } else { terraform })
    }
}
