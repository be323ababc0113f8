//! A sandbox with logins to its instances by the system's `ssh`; for tests that are not asynchronous.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use damodel::sandbox::{MachineView, Mutation, Options, Running, Sandbox, StateList};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    sandbox::client::{Reply, ask, parse},
    support::{program, record::skipped},
};

/// The program behind the stand-ins.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_terraform-provider-damodel");

/// Whether the system has this program. Without it the test prints a message past the test harness; CI fails.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-V").stdin(Stdio::null()).output().is_ok();
    if !found {
        skipped(&format!("{program} is not on PATH. Install it."));
    }
    found
}

/// Whether a process runs; a zombie does not.
pub(crate) fn is_live(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A running sandbox, and the files of a client of its instances.
pub(crate) struct Yard {
    running: Option<Running>,
    runtime: Runtime,
    folder: TempDir,
}

/// A Running instance.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) uid: String,
    pub(crate) port: u16,
    pub(crate) password: String,
    folder: PathBuf,
    key: Option<PathBuf>,
}

impl Yard {
    /// A sandbox with these options, in which creates are immediate. `None`, with a message, if `ssh` is missing.
    pub(crate) fn open(options: Options) -> Option<Self> {
        has("ssh").then(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let options = Options { creation: Duration::ZERO, executable: Some(PROGRAM.into()), ..options };
            let running = runtime.block_on(Sandbox::start(options)).unwrap();
            Self { running: Some(running), runtime, folder: tempfile::tempdir().unwrap() }
        })
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.running.as_ref().unwrap().sandbox
    }

    pub(crate) fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let running = self.running.as_ref().unwrap();
        let reply = ask(&running.base_url, running.token.expose_secret(), method, path, body);
        self.runtime.block_on(reply).unwrap().json()
    }

    /// An instance of this specification with changes to the request.
    pub(crate) fn create(&self, spec_id: i64, changes: &Value) -> Guest {
        let specs = self.sandbox().state();
        let spec = specs["specs"].as_array().unwrap().iter().find(|spec| spec["id"] == spec_id).unwrap();
        let mut body = json!({
            "region": spec["region"],
            "payment_type": "Hourly",
            "spec_id": spec_id,
            "gpu_num": 1,
            "data_disk_expand_size": 0,
            "image_id": 901,
            "image_type": "public",
            "instance_alias": "trainer",
        });
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let created = self.api("POST", "/api/instance/create", Some(&body));
        let uid = created["result"]["instance_uid"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        self.guest(&uid)
    }

    /// The service's detail of an instance.
    pub(crate) fn detail(&self, uid: &str) -> Value {
        self.api("GET", &format!("/api/instance/detail?instance_uid={uid}"), None)["result"].take()
    }

    /// An existing instance, from its detail.
    pub(crate) fn guest(&self, uid: &str) -> Guest {
        let detail = self.detail(uid);
        assert_eq!((&detail["status"], &detail["ssh_host"]), (&json!("Running"), &json!("127.0.0.1")));
        let text = |name: &str| detail[name].as_str().unwrap().to_owned();
        Guest {
            uid: uid.to_owned(),
            port: u16::try_from(detail["ssh_port"].as_u64().unwrap()).unwrap(),
            password: text("ssh_password"),
            folder: self.folder.path().to_owned(),
            key: None,
        }
    }

    /// Applies a mutation, in the control interface's form.
    pub(crate) fn mutate(&self, mutation: Value) {
        let mutation: Mutation = serde_json::from_value(mutation).unwrap();
        self.sandbox().mutate(mutation).unwrap();
    }

    /// Sets fields of a record of the state.
    pub(crate) fn set(&self, list: StateList, key: &str, fields: &Value) {
        self.sandbox().set(list, key, fields).unwrap();
    }

    pub(crate) fn machine(&self, guest: &Guest) -> MachineView {
        self.sandbox().machines().into_iter().find(|machine| machine.uid == guest.uid).unwrap()
    }

    /// Ends the sandbox like its command.
    pub(crate) fn stop(&mut self) {
        self.runtime.block_on(self.running.take().unwrap().stop());
    }
}

impl Guest {
    /// The same instance, with logins by this private key.
    pub(crate) fn with_key(&self, key: &Path) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub(crate) fn with_password(&self, password: &str) -> Self {
        Self { password: password.to_owned(), ..self.clone() }
    }

    /// `ssh` with these options and words after the destination. Host keys are stored by port, and a changed one is
    /// refused.
    pub(crate) fn ssh(&self, options: &[&str], words: &[&str]) -> Command {
        let askpass = self.folder.join(format!("askpass-{}-{}", self.port, self.password.len()));
        program::put(&askpass, &format!("#!/bin/sh\necho '{}'\n", self.password));
        let known_hosts = self.folder.join("known_hosts");
        let mut command = Command::new("ssh");
        command
            .args(["-F", "none", "-o", "StrictHostKeyChecking=accept-new", "-o", "LogLevel=ERROR"])
            .args(["-o", "NumberOfPasswordPrompts=1", "-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes"])
            .args(["-o", &format!("UserKnownHostsFile={}", known_hosts.display())])
            .args(["-p", &self.port.to_string()]);
        match &self.key {
            Some(key) => command.args(["-o", "PasswordAuthentication=no", "-i"]).arg(key),
            None => command.args(["-o", "PubkeyAuthentication=no"]),
        };
        let has_user = options.contains(&"-l");
        command.args(options).arg(if has_user { "127.0.0.1" } else { "root@127.0.0.1" }).args(words);
        command.env("SSH_ASKPASS", askpass).env("SSH_ASKPASS_REQUIRE", "force").env_remove("SSH_AUTH_SOCK");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, command: &str) -> Output {
        self.ssh(&[], &[command]).output().unwrap()
    }

    /// The output of a command that must succeed.
    pub(crate) fn run(&self, command: &str) -> String {
        let output = self.output(command);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that continues after the session; returns the id of its process.
    pub(crate) fn detach(&self, command: &str) -> String {
        self.run(&format!("setsid nohup {command} </dev/null >>log 2>&1 & echo $!")).trim().to_owned()
    }

    /// One HTTP request to a port of the instance, through SSH; `None` without a listener.
    pub(crate) fn http(&self, port: u16, method: &str, path: &str, body: Option<&Value>) -> Option<Reply> {
        let mut child = self
            .ssh(&["-W", &format!("127.0.0.1:{port}")], &[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // Without a listener it has ended before it reads.
        let _written = input.write_all(request(method, path, "", body).as_bytes());
        let mut bytes = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
        drop(input);
        child.wait().unwrap();
        (!bytes.is_empty()).then(|| parse(&bytes))
    }

    /// The status of `/health` at a port; 0 without a listener.
    pub(crate) fn health(&self, port: u16) -> u16 {
        self.http(port, "GET", "/health", None).map_or(0, |reply| reply.status)
    }

    /// Starts a session that lasts until it is ended.
    pub(crate) fn hold(&self, command: &str) -> Child {
        self.ssh(&[], &[command]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// A request in its wire form.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: Option<&Value>) -> String {
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    )
}

/// A new key pair in a folder: the private key's file, and the line of the public one.
pub(crate) fn key_pair(folder: &Path, name: &str) -> (PathBuf, String) {
    let file = folder.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file).status().unwrap();
    assert!(made.success());
    let line = fs::read_to_string(file.with_extension("pub")).unwrap();
    (file, line.trim().to_owned())
}
