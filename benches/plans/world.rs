//! A sandbox with disks, and a working directory whose state holds them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use damodel::sandbox::{Options, Running, Sandbox};
use secrecy::ExposeSecret;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How many.
pub(crate) const DISKS: u32 = 1000;

pub(crate) struct World {
    running: Running,
    root: TempDir,
    _runtime: Runtime,
}

impl World {
    /// Takes over all generated disks, so that the next plan has nothing to do.
    pub(crate) fn with_disks_in_the_state() -> Self {
        let runtime = Runtime::new().unwrap();
        let options = Options { generate_disks: DISKS, ..Options::default() };
        let running = runtime.block_on(Sandbox::start(options)).unwrap();
        let world = Self { running, root: tempfile::tempdir().unwrap(), _runtime: runtime };
        for folder in ["bin", "work"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        std::os::unix::fs::symlink(env::current_exe().unwrap(), world.path("bin").join("terraform-provider-damodel"))
            .unwrap();
        let overrides = ["registry.terraform.io", "registry.opentofu.org"]
            .map(|host| format!("    \"{host}/damodel/damodel\" = {:?}\n", world.path("bin")))
            .concat();
        let settings = format!("provider_installation {{\n  dev_overrides {{\n{overrides}  }}\n  direct {{}}\n}}\n");
        fs::write(world.path("cli.tfrc"), settings).unwrap();
        let main = world.path("work").join("main.tf");
        fs::write(&main, importing(&world.disks())).unwrap();
        world.import();
        fs::write(&main, counted()).unwrap();
        world.count();
        world
    }

    fn disks(&self) -> Vec<String> {
        let state = self.running.sandbox.state();
        let disks = state["disks"].as_array().unwrap().iter();
        let generated = disks.filter(|disk| disk["name"].as_str().is_some_and(|name| name.starts_with("generated-")));
        generated.map(|disk: &Value| disk["id"].to_string()).collect()
    }

    fn import(&self) {
        let mut import = self.command(&["apply", "-auto-approve", "-no-color", "-input=false", "-parallelism=50"]);
        let import = import
            .env("MEASURE_AS", "wrapper")
            .env("MEASURE_PLUGIN", env!("CARGO_BIN_EXE_terraform-provider-damodel"))
            .env("MEASURE_REPORT", self.path("unread"))
            .output()
            .unwrap();
        assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    }

    /// Lets the state hold the disks by number, not by key: a thousand keys keep the core busier than everything that is measured.
    fn count(&self) {
        let file = self.path("work").join("terraform.tfstate");
        let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let resource = &mut state["resources"][0];
        resource["each"] = "list".into();
        for (index, instance) in resource["instances"].as_array_mut().unwrap().iter_mut().enumerate() {
            instance["index_key"] = index.into();
        }
        fs::write(file, state.to_string()).unwrap();
    }

    /// A path beside the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.running.sandbox.ledger().requests.len()
    }

    /// The command line with these arguments, not yet run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(core());
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_remove("TF_LOG")
            .env("TF_CLI_CONFIG_FILE", self.path("cli.tfrc"))
            .env("CHECKPOINT_DISABLE", "1")
            .env("DAMODEL_BASE_URL", &self.running.base_url)
            .env("DAMODEL_API_TOKEN", self.running.token.expose_secret());
        command
    }
}

fn core() -> &'static str {
    let path = env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| env::split_paths(&path).any(|folder| Path::is_file(&folder.join(name)));
    if has("terraform") { "terraform" } else { "tofu" }
}

const PROVIDER: &str = "terraform {\n  required_providers {\n    damodel = { source = \"damodel/damodel\" }\n  }\n}\nprovider \"damodel\" {\n  \
                        region = \"cn-east-1\"\n}\n";

/// The configuration that is planned.
fn counted() -> String {
    format!(
        "{PROVIDER}resource \"damodel_cloud_disk\" \"x\" {{\n  count   = {DISKS}\n  size_gb = 20\n  spec_id = 31\n  lifecycle {{\n    \
         ignore_changes = all\n  }}\n}}\n"
    )
}

/// The same, taking over all disks.
fn importing(ids: &[String]) -> String {
    format!(
        "{PROVIDER}locals {{\n  ids = toset({ids:?})\n}}\nimport {{\n  for_each = local.ids\n  to       = damodel_cloud_disk.x[each.key]\n  \
         id       = each.key\n}}\nresource \"damodel_cloud_disk\" \"x\" {{\n  for_each = local.ids\n  size_gb  = 20\n  spec_id  = 31\n  \
         lifecycle {{\n    ignore_changes = all\n  }}\n}}\n"
    )
}
