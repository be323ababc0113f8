//! A real ssh-agent.

use std::{
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::support::wait::wait_until;

/// An agent that holds keys. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Agent {
    directory: TempDir,
    running: Child,
}

impl Agent {
    /// Starts an agent, and waits until it answers.
    pub(crate) fn start() -> Self {
        let directory = TempDir::with_prefix("agent-").unwrap();
        let socket = directory.path().join("socket");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket).stdin(Stdio::null()).stdout(Stdio::null());
        let running = command.spawn().unwrap();
        wait_until("ssh-agent listens", || UnixStream::connect(&socket).is_ok());
        Self { directory, running }
    }

    /// Loads a key, and the certificate beside it.
    pub(crate) fn add(&self, key: &Path) {
        let mut command = Command::new("ssh-add");
        let output = command.arg("-q").arg(key).env("SSH_AUTH_SOCK", self.socket()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}
