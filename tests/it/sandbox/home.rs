//! A home with the stand-ins of [`stand_in::install`], and servers that are started in it.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{net::UnixStream, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use damodel::sandbox::stand_in::{self, Machine};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    sandbox::client::{Reply, parse},
    sandbox::yard::{PROGRAM, request},
    support::wait::wait_for,
};

/// A home with everything, and a port space.
pub(crate) struct Home {
    folder: TempDir,
}

/// A running server. Dropping it kills it.
pub(crate) struct Server {
    pub(crate) child: Child,
    ports: PathBuf,
    log: PathBuf,
}

impl Home {
    pub(crate) fn new(machine: &Machine) -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(home.ports()).unwrap();
        stand_in::install(&home.path(), machine, Some(Path::new(PROGRAM))).unwrap();
        home
    }

    /// A home with a GPU that every prebuilt server supports.
    pub(crate) fn usual() -> Self {
        Self::new(&Machine::with("NVIDIA-A100-80G", "12.4"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn ports(&self) -> PathBuf {
        self.folder.path().join("ports")
    }

    pub(crate) fn model(&self, name: &str) -> PathBuf {
        self.path().join(format!("public-storage/model/{name}.gguf"))
    }

    /// A program with the environment of an instance.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stand_in::bin(&self.path()).display());
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.path()).env("PATH", path).env(stand_in::PORTS, self.ports());
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// The prebuilt server.
    pub(crate) fn server(&self) -> Command {
        self.command(self.path().join("public-storage/package/llama.cpp/bin/llama-server"))
    }

    /// Starts a server with a model and more options.
    pub(crate) fn start(&self, model: &str, options: &str) -> Server {
        let mut command = self.server();
        command.arg("-m").arg(self.model(model)).args(options.split_whitespace());
        self.spawn(command)
    }

    pub(crate) fn spawn(&self, mut command: Command) -> Server {
        let log = self.folder.path().join(format!("log-{}", rand::random::<u64>()));
        let file = fs::File::create(&log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Server { child, ports: self.ports(), log }
    }

    /// Starts a server and waits until it is ready, at port 8000.
    pub(crate) fn ready(&self, model: &str, options: &str) -> Server {
        let mut server = self.start(model, &format!("--port 8000 {options}"));
        server.await_ready();
        server
    }

    /// The standard output, standard error and exit code of a tool.
    pub(crate) fn tool(&self, program: &str, arguments: &[&str]) -> (String, String, i32) {
        let output = self.command(program).args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    }
}

impl Server {
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn try_connect(&self) -> Option<UnixStream> {
        UnixStream::connect(self.ports.join("8000.sock")).ok()
    }

    /// The answer to a request at port 8000; `None` without a listener or if the answer is empty.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: Option<&Value>) -> Option<Reply> {
        let mut stream = self.try_connect()?;
        stream.write_all(request(method, path, headers, body).as_bytes()).ok()?;
        let mut bytes = Vec::new();
        let _cut = stream.read_to_end(&mut bytes);
        (!bytes.is_empty()).then(|| parse(&bytes))
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "", None).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, "", Some(body)).unwrap()
    }

    pub(crate) fn chat(&self, content: &str) -> Option<Reply> {
        let body = json!({ "model": "any", "messages": [{ "role": "user", "content": content }] });
        self.ask("POST", "/v1/chat/completions", "", Some(&body))
    }

    pub(crate) fn health(&self) -> u16 {
        self.ask("GET", "/health", "", None).map_or(0, |reply| reply.status)
    }

    pub(crate) fn await_ready(&mut self) {
        wait_for("a server that is ready", || {
            if let Some(ended) = self.child.try_wait().unwrap() {
                panic!("{ended}: {}", self.log());
            }
            (self.health() == 200).then_some(())
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for("the end of a server", || self.child.try_wait().unwrap())
    }

    /// The code in a shell: the exit code, or 128 and the number of the signal.
    pub(crate) fn code(&mut self) -> i32 {
        shell_code(self.ended())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shell_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}
