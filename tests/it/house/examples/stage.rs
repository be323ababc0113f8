//! The environment of an example: a copy of its folder, a sandbox, and a command line.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use damodel::{
    commands::terraform::{Cli, Mirror, ProgramEnvironment},
    sandbox::{LedgerObject, Options, Running, Sandbox},
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::files;
use crate::support::{gguf::Size, plugin::BINARY, terraform::LIGHT};

/// An example with an environment of its own.
pub(super) struct Stage {
    cli: Cli,
    service: Running,
    example: PathBuf,
    folder: TempDir,
}

impl Stage {
    /// Copies the example to an empty folder. Import blocks are for the documentation: they name objects that do not
    /// exist here.
    pub(super) async fn set(cli: Cli, example: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::make(folder.path(), Path::new(BINARY)).unwrap();
        let options = Options { executable: Some(BINARY.into()), ..Options::default() };
        let service = Sandbox::start(options).await.unwrap();
        let environment = ProgramEnvironment::of(env::vars_os())
            .with("TF_CLI_CONFIG_FILE", &mirror.cli_config)
            .with("TF_IN_AUTOMATION", "1")
            .with("TF_INPUT", "0")
            .with("DAMODEL_BASE_URL", &service.base_url)
            .with("DAMODEL_API_TOKEN", service.token.expose_secret())
            .with("DAMODEL_API_KEY", service.chat_key.expose_secret())
            .with("DAMODEL_REGION", "cn-east-1");
        let environment = LIGHT.iter().fold(environment, |known, (name, value)| known.with(name, value));
        let stage = Self { cli: cli.within(environment), service, example: example.to_owned(), folder };
        fs::create_dir(stage.configuration()).unwrap();
        for file in files(example).iter().filter(|file| file.is_file() && !is_import_block(file)) {
            fs::copy(file, stage.configuration().join(file.file_name().unwrap())).unwrap();
        }
        // The file for examples that read a model.
        Size::dense().model().write(&stage.configuration().join("model.gguf")).unwrap();
        stage
    }

    /// The copy.
    pub(super) fn configuration(&self) -> PathBuf {
        self.folder.path().join("configuration")
    }

    /// The name of the example, for messages.
    pub(super) fn name(&self) -> std::path::Display<'_> {
        self.example.display()
    }

    /// Whether imports by identity are supported: Terraform 1.12 or newer.
    pub(super) fn knows_identities(&self) -> bool {
        let version = self.cli.version().strip_prefix("Terraform v1.");
        let minor = version.and_then(|rest| rest.split('.').next()).and_then(|minor| minor.parse::<u32>().ok());
        minor.is_some_and(|minor| minor >= 12)
    }

    /// The service.
    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.service.sandbox
    }

    /// Runs a command that must succeed, and returns its output.
    pub(super) async fn run(&self, arguments: &[&str]) -> String {
        let run = self.cli.run(&self.configuration(), arguments, &CancellationToken::new()).await;
        run.unwrap_or_else(|error| panic!("{}: {error}", self.name())).stdout
    }

    /// The same, for JSON output.
    pub(super) async fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments).await).unwrap()
    }

    /// The objects in the service, including the sandbox's seed.
    pub(super) fn living(&self) -> Vec<Vec<String>> {
        [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage]
            .map(|object| self.living_of(object))
            .to_vec()
    }

    /// The objects of one kind.
    pub(super) fn living_of(&self, object: LedgerObject) -> Vec<String> {
        self.service.sandbox.ledger().live(object)
    }

    /// Plans without changes, as [`Workspace::settled`](crate::support::terraform::Workspace::settled) does: if a
    /// refresh finds drift, without refresh too.
    pub(super) async fn expect_nothing_to_do(&self) {
        let refreshed = self.expect_no_change("-refresh=true").await;
        if refreshed["resource_drift"].is_array() {
            self.expect_no_change("-refresh=false").await;
        }
    }

    /// The data source of a check is read again in every apply, which is no change, but has its exit code with
    /// -detailed-exitcode.
    async fn expect_no_change(&self, option: &str) -> Value {
        self.run(&["plan", "-no-color", "-out=settled", option]).await;
        let plan = self.json(&["show", "-json", "settled"]).await;
        let resources = plan["resource_changes"].as_array().into_iter().flatten();
        let resources = resources.filter(|resource| resource["action_reason"] != "read_because_check_nested");
        let outputs = plan["output_changes"].as_object().into_iter().flat_map(|outputs| outputs.values());
        let actions = resources.map(|resource| &resource["change"]["actions"]);
        for actions in actions.chain(outputs.map(|output| &output["actions"])) {
            assert_eq!(*actions, json!(["no-op"]), "{}: {plan:#}", self.name());
        }
        plan
    }

    /// The id of a resource in the state.
    pub(super) async fn id_of(&self, address: &str) -> String {
        let state = self.json(&["show", "-json"]).await;
        let resources = state["values"]["root_module"]["resources"].as_array().unwrap();
        let resource = resources.iter().find(|resource| resource["address"] == address).unwrap();
        resource["values"]["id"].as_str().unwrap().to_owned()
    }
}

/// Whether a file is an import block of the documentation (plugin protocol, documentation layout).
pub(super) fn is_import_block(file: &Path) -> bool {
    let name = file.file_name().unwrap().to_string_lossy();
    name.starts_with("import-by-") && name.ends_with(".tf")
}
