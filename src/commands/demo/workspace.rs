//! The temporary folder that the demo runs Terraform in.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use secrecy::ExposeSecret;
use tempfile::TempDir;

use crate::{
    commands::terraform::{Environment, Mirror},
    sandbox::Running,
};

/// The example that is run, as it is in the repository.
const QUICKSTART: [(&str, &str); 3] = [
    ("main.tf", include_str!("../../../examples/quickstart/main.tf")),
    ("outputs.tf", include_str!("../../../examples/quickstart/outputs.tf")),
    ("variables.tf", include_str!("../../../examples/quickstart/variables.tf")),
];

/// What the machine is to serve: a model of the sandbox's public storage.
pub(super) const MODEL: &str = "~/public-storage/model/tiny.gguf";

/// A temporary folder with the example and a mirror. Removed when dropped.
#[derive(Debug)]
pub(super) struct Workspace {
    folder: TempDir,
    mirror: Mirror,
}

impl Workspace {
    pub(super) fn make(executable: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("damodel-demo-").tempdir()?;
        let mirror = Mirror::make(folder.path(), executable)?;
        let workspace = Self { folder, mirror };
        fs::create_dir(workspace.configuration())?;
        for (name, content) in QUICKSTART {
            fs::write(workspace.configuration().join(name), content)?;
        }
        Ok(workspace)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the example is.
    pub(super) fn configuration(&self) -> PathBuf {
        self.folder.path().join("quickstart")
    }

    /// What makes a run mean this mirror and this service.
    pub(super) fn environment(&self, environment: Environment, service: &Running) -> Environment {
        environment
            .with("TF_CLI_CONFIG_FILE", &self.mirror.cli_config)
            .with("TF_IN_AUTOMATION", "1")
            .with("TF_INPUT", "0")
            .with("DAMODEL_BASE_URL", &service.base_url)
            .with("DAMODEL_API_TOKEN", service.token.expose_secret())
            .with("DAMODEL_REGISTRY_HOST", &service.registry_host)
            .with("DAMODEL_REGION", "cn-east-1")
            .with("TF_VAR_model", MODEL)
    }

    /// Removes everything, and says when that is not possible.
    pub(super) fn remove(self) -> io::Result<()> {
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
