//! Every example does what it says: formatted, valid, planned, applied, settled and destroyed, on the sandbox.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use damodel::{
    commands::terraform::{Cli, Environment, Mirror},
    sandbox::{Options, Running, Sandbox, Thing},
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::plugin::BINARY;

/// Terraform, or OpenTofu where that is all there is. Without either the test says so, and fails where CI is set.
pub(crate) async fn cli() -> Option<Cli> {
    match Cli::find(None, Environment::of(env::vars_os())).await {
        Ok(cli) => Some(cli),
        Err(error) => {
            assert!(env::var_os("CI").is_none_or(|value| value.is_empty()), "{error}");
            // Macros that print are collected, and not shown for a test that passes.
            let mut stderr = io::stderr();
            writeln!(stderr, "SKIPPED: {error}").unwrap();
            None
        }
    }
}

/// An example on a stage of its own.
struct Stage {
    cli: Cli,
    service: Running,
    example: PathBuf,
    folder: TempDir,
}

impl Stage {
    /// Copies the example to where nothing else is.
    async fn set(cli: Cli, example: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::make(folder.path(), Path::new(BINARY)).unwrap();
        let service = Sandbox::start(Options::default()).await.unwrap();
        let environment = Environment::of(env::vars_os())
            .with("TF_CLI_CONFIG_FILE", &mirror.cli_config)
            .with("TF_IN_AUTOMATION", "1")
            .with("TF_INPUT", "0")
            .with("DAMODEL_BASE_URL", &service.base_url)
            .with("DAMODEL_API_TOKEN", service.token.expose_secret())
            .with("DAMODEL_API_KEY", service.chat_key.expose_secret())
            .with("DAMODEL_REGION", "cn-east-1");
        let stage = Self { cli: cli.within(environment), service, example: example.to_owned(), folder };
        fs::create_dir(stage.configuration()).unwrap();
        for file in files(example) {
            fs::copy(&file, stage.configuration().join(file.file_name().unwrap())).unwrap();
        }
        stage
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("configuration")
    }

    async fn run(&self, arguments: &[&str]) -> String {
        let run = self.cli.run(&self.configuration(), arguments, &CancellationToken::new()).await;
        run.unwrap_or_else(|error| panic!("{}: {error}", self.example.display())).stdout
    }

    /// What exists in the service, the sandbox's seed included.
    fn living(&self) -> Vec<Vec<String>> {
        let ledger = self.service.sandbox.ledger();
        [Thing::Instance, Thing::CloudDisk, Thing::PrivateImage].map(|thing| ledger.live(thing)).to_vec()
    }

    /// Plans and finds nothing. The data source of a check is read again in every apply, which is no change, though
    /// -detailed-exitcode takes it for one.
    async fn expect_nothing_to_do(&self, option: &str) {
        self.run(&["plan", "-no-color", "-out=settled", option]).await;
        let plan = self.json(&["show", "-json", "settled"]).await;
        let resources = plan["resource_changes"].as_array().into_iter().flatten();
        let resources = resources.filter(|resource| resource["action_reason"] != "read_because_check_nested");
        let outputs = plan["output_changes"].as_object().into_iter().flat_map(|outputs| outputs.values());
        let actions = resources.map(|resource| &resource["change"]["actions"]);
        for actions in actions.chain(outputs.map(|output| &output["actions"])) {
            assert_eq!(*actions, json!(["no-op"]), "{}: {plan:#}", self.example.display());
        }
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments).await).unwrap()
    }

    async fn id_of(&self, address: &str) -> String {
        let state = self.json(&["show", "-json"]).await;
        let resources = state["values"]["root_module"]["resources"].as_array().unwrap();
        let resource = resources.iter().find(|resource| resource["address"] == address).unwrap();
        resource["values"]["id"].as_str().unwrap().to_owned()
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// The folders with a configuration in them.
fn folders(below: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = files(below).into_iter().partition(|path| path.is_dir());
    let is_configuration = files.iter().any(|file| file.extension().is_some_and(|extension| extension == "tf"));
    let own = is_configuration.then(|| below.to_owned());
    own.into_iter().chain(folders.iter().flat_map(|folder| self::folders(folder))).collect()
}

async fn prove(cli: Cli, example: &Path) {
    let stage = Stage::set(cli, example).await;
    stage.run(&["fmt", "-check", "-diff"]).await;
    stage.run(&["init", "-no-color"]).await;
    stage.run(&["validate", "-no-color"]).await;
    let before = stage.living();
    stage.run(&["plan", "-no-color", "-out=tfplan"]).await;
    // A check that fails is a warning.
    let applied = stage.run(&["apply", "-no-color", "tfplan"]).await;
    assert!(!applied.contains("Warning:"), "{}: {applied}", example.display());
    stage.expect_nothing_to_do("-refresh=false").await;
    stage.expect_nothing_to_do("-refresh=true").await;
    if let Ok(script) = fs::read_to_string(stage.configuration().join("import.sh")) {
        import(&stage, &script).await;
    }
    stage.run(&["destroy", "-no-color", "-auto-approve"]).await;
    assert_eq!(stage.living(), before, "{}", example.display());
}

/// Forgets what the example is about and imports it again as its script does, with the real id.
async fn import(stage: &Stage, script: &str) {
    let command = script.lines().find(|line| !line.starts_with('#')).unwrap();
    let [program, subcommand, address, _id] = command.split(' ').collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((program, subcommand), ("terraform", "import"), "{command}");
    let id = stage.id_of(address).await;
    stage.run(&["state", "rm", address]).await;
    stage.run(&["import", "-no-color", address, &id]).await;
    let plan = stage.run(&["plan", "-no-color"]).await;
    assert!(!plan.contains("must be replaced") && !plan.contains("will be created"), "{plan}");
}

#[tokio::test]
async fn every_example_lives_its_whole_life() {
    let Some(cli) = cli().await else { return };
    let folders = folders(&examples());
    assert!(folders.len() >= 5, "{folders:?}");
    for folder in folders {
        prove(cli.clone(), &folder).await;
    }
}

/// Everything that the provider offers has an example where the registry looks for it, and nothing else has one.
#[tokio::test]
async fn every_resource_and_data_source_has_its_example() {
    let Some(cli) = cli().await else { return };
    let stage = Stage::set(cli, &examples().join("provider")).await;
    stage.run(&["init", "-no-color"]).await;
    let schemas = stage.json(&["providers", "schema", "-json"]).await;
    let [schema] = schemas["provider_schemas"].as_object().unwrap().values().collect::<Vec<_>>().try_into().unwrap();
    for (kind, folder) in [("resource_schemas", "resources"), ("data_source_schemas", "data-sources")] {
        let offered: Vec<&String> = schema[kind].as_object().unwrap().keys().collect();
        let shown: Vec<String> = files(&examples().join(folder))
            .iter()
            .map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(shown.iter().collect::<Vec<_>>(), offered, "examples/{folder}");
    }
}

#[test]
fn scripts_are_shell() {
    for folder in folders(&examples()) {
        for script in files(&folder).iter().filter(|file| file.extension().is_some_and(|extension| extension == "sh")) {
            assert!(Command::new("sh").arg("-n").arg(script).status().unwrap().success(), "{}", script.display());
        }
    }
}
