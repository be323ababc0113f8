//! The stage of an example: a copy of its folder in a workspace of its own, and a sandbox.

use std::{
    fs,
    path::{Path, PathBuf},
};

use damodel::sandbox::{LedgerObject, Options};

use super::{examples, files};
use crate::{
    house::REQUIRED,
    support::{
        gguf::Size,
        plugin::BINARY,
        terraform::{Site, Workspace, each_workspace_on},
    },
};

/// The objects of the sandbox.
const OBJECTS: [LedgerObject; 3] = [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage];

/// An example in a workspace.
pub(super) struct Stage<'a> {
    pub(super) example: &'a Path,
    pub(super) site: &'a Site,
    pub(super) workspace: &'a Workspace<'a>,
}

/// Runs a test on an example with every command line that supports it: OpenTofu has no actions.
pub(super) fn each_stage(example: &Path, test: impl Fn(&Stage<'_>)) {
    let options = Options { executable: Some(BINARY.into()), ..Site::options() };
    each_workspace_on(&options, |site, workspace| {
        if !example.starts_with(examples().join("actions")) || workspace.cli.has(14, u64::MAX) {
            test(&Stage::set(example, site, workspace));
        }
    });
}

impl<'a> Stage<'a> {
    /// Copies the example to the workspace. Import blocks are for the documentation: they name objects that do not
    /// exist here.
    fn set(example: &'a Path, site: &'a Site, workspace: &'a Workspace<'a>) -> Self {
        for file in files(example).iter().filter(|file| file.is_file() && !is_import_block(file)) {
            fs::copy(file, workspace.directory().join(file.file_name().unwrap())).unwrap();
        }
        if example.starts_with(super::modules()) {
            let (module, main) = (workspace.directory().join("module"), workspace.directory().join("main.tf"));
            fs::create_dir(&module).unwrap();
            for file in files(example.ancestors().nth(2).unwrap()).iter().filter(|file| file.is_file()) {
                fs::copy(file, module.join(file.file_name().unwrap())).unwrap();
            }
            fs::write(&main, fs::read_to_string(&main).unwrap().replace("../..", "./module")).unwrap();
            workspace.run_ok(&["get", "-no-color"]);
        }
        let has_versions = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|it| it.contains("required_providers"));
        if !files(example).iter().any(has_versions) {
            fs::write(workspace.directory().join("required.tf"), REQUIRED).unwrap();
        }
        // The file for examples that read a model.
        Size::dense().model().write(&workspace.directory().join("model.gguf")).unwrap();
        workspace.set_env("DAMODEL_CHAT_API_KEY", site.chat_key());
        workspace.set_env("DAMODEL_REGION", "cn-east-1");
        // The variable of examples whose server has a key.
        workspace.set_env("TF_VAR_chat_key", "for-a-test-only");
        // And that of examples that download a model.
        for variable in ["TF_VAR_model_url", "TF_VAR_projector_url"] {
            workspace.set_env(variable, &format!("{}/files/tiny.gguf", site.base_url()));
        }
        Self { example, site, workspace }
    }

    /// A path in the copy.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.workspace.directory().join(name)
    }

    /// Runs a command that must succeed, and returns its output.
    pub(super) fn run(&self, arguments: &[&str]) -> String {
        self.workspace.run_ok(arguments).stdout
    }

    /// The objects in the service, by kind, including the sandbox's seed.
    pub(super) fn living(&self) -> Vec<Vec<String>> {
        OBJECTS.map(|object| self.living_of(object)).to_vec()
    }

    /// The objects of one kind.
    pub(super) fn living_of(&self, object: LedgerObject) -> Vec<String> {
        self.site.ledger().live(object)
    }

    /// The id of a resource in the state.
    pub(super) fn id_of(&self, address: &str) -> String {
        self.workspace.state().resource(address).id()
    }
}

/// Whether a file is an import block of the documentation (plugin protocol, documentation layout).
pub(super) fn is_import_block(file: &Path) -> bool {
    let name = file.file_name().unwrap().to_string_lossy();
    name.starts_with("import-by-") && name.ends_with(".tf")
}
