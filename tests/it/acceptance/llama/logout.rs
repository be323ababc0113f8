//! Logouts, at which systemd ends all processes of a login, in namespaces whose PID 1 is systemd.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use damodel::sandbox::stand_in::{self, Machine};
use nix::unistd::geteuid;
use tempfile::TempDir;

use super::{
    Server,
    plain::{config, workspace},
    until,
};
use crate::support::{
    plugin::BINARY,
    ports::free_port,
    record::skipped,
    terraform::{Severity, Site, each_cli, says},
    wait::found_within,
};

/// How long the boot may take.
const BOOT: Duration = Duration::from_secs(20);

/// A host with systemd, to which the user "visitor" logs in. Dropping it ends the host.
struct Booted {
    folder: TempDir,
    script: Child,
    ssh_port: u16,
}

impl Booted {
    /// `None`, with a message past the test harness, if namespaces, systemd or sshd are not available.
    fn start() -> Option<Self> {
        let without = |why: &str| {
            skipped(&format!("systemd as PID 1 in namespaces: {why}"));
            None
        };
        let found = |paths: &[&'static str]| paths.iter().copied().find(|path| Path::new(path).exists());
        let systemd = found(&["/usr/lib/systemd/systemd", "/lib/systemd/systemd"]);
        let sshd = found(&["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"]);
        let (true, Some(systemd), Some(sshd)) = (geteuid().is_root(), systemd, sshd) else {
            return without("it takes root, systemd and sshd");
        };
        let folder = TempDir::with_prefix("booted-").unwrap();
        let home = folder.path().join("home");
        stand_in::install(&home, &Machine::with("NVIDIA-GeForce-RTX-4090", "12.2"), Some(BINARY.as_ref())).unwrap();
        let ssh_port = free_port();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let script = Command::new("unshare")
            .args(["--mount", "sh"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/acceptance/llama/logout.sh"))
            .arg(folder.path())
            .arg(Path::new(BINARY).parent().unwrap())
            .args([&ssh_port.to_string(), sshd, systemd])
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        let Ok(script) = script else { return without("unshare is not installed") };
        let mut booted = Self { folder, script, ssh_port };
        let listens = found_within(BOOT, || {
            let listens = TcpStream::connect(("127.0.0.1", ssh_port)).is_ok();
            (listens || booted.script.try_wait().unwrap().is_some()).then_some(listens)
        });
        if listens != Some(true) {
            let log = fs::read_to_string(booted.folder.path().join("log")).unwrap_or_default();
            return without(&format!("sshd does not listen {BOOT:?} after the start: {log}"));
        }
        Some(booted)
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    /// The argument `ssh`.
    fn ssh(&self) -> String {
        let (port, key) = (self.ssh_port, self.key().display().to_string());
        format!(
            "{{ host = \"127.0.0.1\", port = {port}, user = \"visitor\", private_key_file = {key:?}, timeout = \
             \"20s\" }}"
        )
    }

    /// Runs a command as its root.
    fn root(&self, command: &str) {
        let run = Command::new("ssh")
            .args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o"])
            .args(["UserKnownHostsFile=/dev/null", "-p", &self.ssh_port.to_string(), "-i"])
            .arg(self.key())
            .args(["root@127.0.0.1", command])
            .output()
            .unwrap();
        assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

#[test]
fn a_server_that_systemd_ends_with_the_login_is_never_a_silent_success() {
    each_cli(|cli| {
        let Some(booted) = Booted::start() else { return };
        let site = Site::start();
        let workspace = workspace(cli, &site);
        let port = free_port();
        let serves = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        let server = Server::new().without("instance_id").set("port", port).set("ssh", booted.ssh());
        workspace.write(&config(&server));
        let (done, said) = workspace.try_apply(&[]);
        let words = ["systemd ends the server at the last logout of visitor", "loginctl enable-linger visitor"];
        assert!(done && words.iter().all(|words| says(&said, Severity::Warning, words)), "{said:#?}");
        // The warning is right.
        until("the server has ended with the login", || !serves());

        booted.root("loginctl enable-linger visitor");
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && serves() && !says(&said, Severity::Warning, "enable-linger"), "{said:#?}");
        workspace.settled();
        assert!(serves());
        workspace.destroy_ok();
        assert!(!serves());
    });
}
