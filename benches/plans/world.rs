//! A sandbox with disks, and a working directory whose configuration declares them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use damodel::sandbox::{LedgerObject, LifeKind, Options, Running, Sandbox};
use secrecy::ExposeSecret;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct World {
    running: Running,
    root: TempDir,
    _runtime: Runtime,
}

impl World {
    /// A state with this many disks, and a next plan without changes.
    pub(crate) fn with_disks_in_the_state(disks: u32) -> Self {
        let world = Self::start(Options { generate_disks: disks, ..Options::default() });
        let generated = world.disks();
        world.import(&generated[0]);
        world.hold(&generated);
        world.configure(&counted(disks, "  lifecycle {\n    ignore_changes = all\n  }\n"));
        world
    }

    /// A configuration with this many disks that do not exist yet; each is available `wait` after its create.
    pub(crate) fn without_disks(disks: u32, wait: Duration) -> Self {
        let world = Self::start(Options { disk_change: wait, ..Options::default() });
        world.configure(&counted(disks, ""));
        world
    }

    fn start(options: Options) -> Self {
        let runtime = Runtime::new().unwrap();
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
        world
    }

    fn configure(&self, text: &str) {
        fs::write(self.path("work").join("main.tf"), text).unwrap();
    }

    /// The generated disks, as the sandbox stores them.
    fn disks(&self) -> Vec<Value> {
        let state = self.running.sandbox.state();
        let disks = state["disks"].as_array().unwrap().iter();
        let is_generated = |disk: &&Value| disk["name"].as_str().is_some_and(|name| name.starts_with("generated-"));
        disks.filter(is_generated).cloned().collect()
    }

    fn import(&self, disk: &Value) {
        self.configure(&counted(1, ""));
        let mut import = self.command(&["import", "-no-color", "-input=false", "damodel_cloud_disk.x[0]"]);
        let import = import
            .arg(disk["id"].to_string())
            .env("MEASURE_AS", "wrapper")
            .env("MEASURE_PLUGIN", env!("CARGO_BIN_EXE_terraform-provider-damodel"))
            .env("MEASURE_REPORT", self.path("unread"))
            .output()
            .unwrap();
        assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    }

    /// Writes all disks into the state, as copies of the imported one: thousands of imports would be another
    /// measurement.
    fn hold(&self, disks: &[Value]) {
        let file = self.path("work").join("terraform.tfstate");
        let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let instances = &mut state["resources"][0]["instances"];
        let imported = instances[0].clone();
        let held = disks.iter().enumerate().map(|(index, disk)| {
            let mut instance = imported.clone();
            instance["index_key"] = index.into();
            let attributes = &mut instance["attributes"];
            attributes["id"] = disk["id"].to_string().into();
            for name in ["uid", "name", "size_gb", "mount_path"] {
                attributes[name] = disk[name].clone();
            }
            instance
        });
        *instances = held.collect();
        fs::write(file, state.to_string()).unwrap();
    }

    /// A path beside the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.running.sandbox.ledger().requests.len()
    }

    /// The median time between a disk being ready and the provider noticing it: the next request of its create renames
    /// it.
    pub(crate) fn lateness(&self, wait: Duration) -> Duration {
        let life = self.running.sandbox.ledger().life;
        let moment = |uid: &str, kind| life.iter().rfind(|event| event.uid == uid && event.kind == kind).unwrap().at_ms;
        let is_named = |uid: &str| life.iter().any(|event| event.uid == uid && event.kind == LifeKind::Renamed);
        let born =
            life.iter().filter(|event| event.object == LedgerObject::CloudDisk && event.kind == LifeKind::Created);
        let mut late: Vec<i64> = born
            .filter(|event| is_named(&event.uid))
            .map(|event| moment(&event.uid, LifeKind::Renamed) - event.at_ms - i64::try_from(wait.as_millis()).unwrap())
            .collect();
        late.sort_unstable();
        Duration::from_millis(u64::try_from(late[late.len() / 2]).unwrap_or_default())
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

/// A configuration of this many disks, with further lines. It uses `count`, because a thousand keys of `for_each` would
/// cost the core more than everything that is measured.
fn counted(disks: u32, more: &str) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    damodel = {{ source = \"damodel/damodel\" }}\n  }}\n}}\n\
         provider \"damodel\" {{\n  region = \"cn-east-1\"\n}}\n\
         resource \"damodel_cloud_disk\" \"x\" {{\n  count   = {disks}\n  name    = \"disk-${{count.index}}\"\n  \
         size_gb = 20\n  spec_id = 31\n{more}}}\n"
    )
}
