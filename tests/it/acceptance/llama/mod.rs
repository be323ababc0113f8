//! `damodel_llama_server` through the real command line, in instances that accept SSH logins.

mod address;
mod chat;
mod compile;
mod download;
mod drift;
mod failures;
mod import;
mod interruptions;
mod life;
mod login;
mod logout;
mod memory;
mod plain;
mod random;
mod restart;
mod secrets;
mod update;
mod validation;

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use damodel::sandbox::Options;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::support::{
    plugin::BINARY,
    terraform::{Instance, Site, State, Workspace, config, each_workspace_on},
    wait::wait_for,
};

pub(crate) const X: &str = "damodel_llama_server.x";

/// A service whose instances have an inference server.
pub(super) fn site() -> Site {
    Site::with(options())
}

pub(crate) fn options() -> Options {
    Options { executable: Some(BINARY.into()), ..Site::options() }
}

/// Runs a test with every command line, such a service and a workspace.
pub(super) fn each_served(test: impl Fn(&Site, &Workspace<'_>)) {
    each_workspace_on(&options(), test);
}

/// A `damodel_llama_server` that works: the tiny model, on the instance `gpu`.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    arguments: BTreeMap<String, String>,
    machine: Instance,
    blocks: String,
}

impl Server {
    pub(crate) fn new() -> Self {
        let arguments = [("instance_id", "damodel_instance.gpu.id"), ("ready_timeout", "\"20s\"")];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let server = Self { arguments: arguments.into(), machine: Instance::new("gpu"), blocks: String::new() };
        server.model("tiny")
    }

    /// Uses another of the sandbox's models.
    pub(super) fn model(self, name: &str) -> Self {
        self.text("model", &format!("~/public-storage/model/{name}.gguf"))
    }

    pub(super) fn set(mut self, name: &str, expression: impl fmt::Display) -> Self {
        self.arguments.insert(name.to_owned(), expression.to_string());
        self
    }

    pub(super) fn text(self, name: &str, value: &str) -> Self {
        self.set(name, format_args!("{value:?}"))
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.arguments.remove(name);
        self
    }

    pub(super) fn block(mut self, block: &str) -> Self {
        self.blocks.push_str(block);
        self.blocks.push('\n');
        self
    }

    /// Changes the instance.
    pub(super) fn on(mut self, change: impl FnOnce(Instance) -> Instance) -> Self {
        self.machine = change(self.machine);
        self
    }

    /// The resource alone.
    pub(super) fn alone(&self) -> String {
        let arguments: String = self.arguments.iter().map(|(name, value)| format!("  {name} = {value}\n")).collect();
        format!("resource \"damodel_llama_server\" \"x\" {{\n{arguments}{}}}\n", self.blocks)
    }

    /// The configuration with its instance.
    pub(crate) fn config(&self) -> String {
        config(self)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.machine, self.alone())
    }
}

/// The home directory of the only instance.
pub(super) fn home(site: &Site) -> PathBuf {
    let machines = site.sandbox().machines();
    let [machine] = machines.as_slice() else { panic!("not one machine: {machines:?}") };
    machine.home.clone()
}

/// A file in the only instance that holds a compile or a load there.
pub(super) struct Held(PathBuf);

impl Held {
    /// Keeps the compile from completing: its first steps are done, and the last of them waits.
    pub(super) fn compile(site: &Site) -> Self {
        Self::new(home(site).join(".machine/hold-build"), "server.cpp")
    }

    /// Keeps a model from being loaded.
    pub(super) fn load(site: &Site, model: &str) -> Self {
        Self::new(home(site).join(format!("public-storage/model/{model}.gguf.hold")), "")
    }

    fn new(file: PathBuf, text: &str) -> Self {
        fs::write(&file, text).unwrap();
        Self(file)
    }

    pub(super) fn release(self) {
        fs::remove_file(self.0).unwrap();
    }
}

/// Creates the only instance, without a server.
pub(super) fn make_machine(workspace: &Workspace<'_>) {
    workspace.write(&Server::new().model("nowhere").config());
    assert!(!workspace.try_apply(&[]).0);
}

/// The folder of the server's records.
pub(super) fn records(site: &Site) -> PathBuf {
    state_folder(&home(site).join("workspace"), 8000)
}

/// The lock of the records of this port, which all servers of the workspace share.
pub(super) fn records_lock(site: &Site) -> PathBuf {
    home(site).join("workspace/.damodel/8000.lock")
}

/// The folder of the records of a server with this port, which is named by port and instance.
pub(super) fn state_folder(workspace: &Path, port: u16) -> PathBuf {
    let entries = fs::read_dir(workspace.join(".damodel")).into_iter().flatten();
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let begin = format!("{port}-");
    let found =
        folders.find(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin)));
    found.unwrap_or_else(|| workspace.join(".damodel/missing"))
}

/// The finished builds.
pub(super) fn builds(site: &Site) -> Vec<String> {
    let Ok(entries) = fs::read_dir(home(site).join("workspace/.damodel/builds")) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut builds: Vec<_> = names.filter(|name| name.ends_with(".done")).collect();
    builds.sort();
    builds
}

/// The process of the server, from its state.
pub(super) fn pid(state: &State) -> Pid {
    Pid::from_raw(i32::try_from(state.resource(X).value("process.pid").as_i64().unwrap()).unwrap())
}

/// Whether a server, its work or a sender runs. Another process may have its number by now; a zombie has no words.
pub(super) fn runs(pid: Pid) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    ["llama-server", "bootstrap.sh", "sh\0-s"].iter().any(|name| words.contains(name))
}

/// Ends a process at once, and waits until it is gone.
pub(super) fn slay(pid: Pid) {
    kill(pid, Signal::SIGKILL).unwrap();
    until("the process is gone", || !runs(pid));
}

/// The same for a server that is not started again: its worker records the end, and ends as well.
pub(super) fn slay_for_good(pid: Pid) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok()).unwrap();
    slay(pid);
    until("its worker has ended", || !runs(Pid::from_raw(parent)));
}

/// The processes of the only instance whose command line contains this.
pub(super) fn processes(site: &Site, word: &str) -> Vec<u32> {
    let of_machine = site.sandbox().machines().into_iter().flat_map(|machine| machine.processes);
    let holds = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    of_machine.filter(holds).collect()
}

/// The servers that run in the only instance.
pub(super) fn servers(site: &Site) -> Vec<u32> {
    processes(site, "llama-server\0-m")
}

pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}

/// A record of the current run, below the folder of a port.
pub(super) fn record(state: &Path, name: &str) -> PathBuf {
    let run = fs::read_to_string(state.join("run")).unwrap_or_default();
    PathBuf::from(run.trim_end()).join(name)
}

/// Waits until the work in the instance is in a phase.
pub(super) fn until_phase(site: &Site, phase: &str) {
    until(phase, || {
        let machines = site.sandbox().machines();
        machines.iter().any(|machine| {
            let status = record(&state_folder(&machine.home.join("workspace"), 8000), "status");
            fs::read_to_string(status).is_ok_and(|status| status.contains(phase))
        })
    });
}
