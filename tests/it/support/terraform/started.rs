//! An apply under way, to be broken.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

use super::{Run, Workspace};

const DEADLINE: Duration = Duration::from_secs(60);

/// An apply under way, in a process group of its own as a shell gives it.
pub(crate) struct Started<'a> {
    workspace: &'a Workspace<'a>,
    core: Child,
    output: PathBuf,
}

impl<'a> Started<'a> {
    /// Starts `apply -json`. To be called once in a workspace.
    pub(crate) fn apply(workspace: &'a Workspace<'a>) -> Self {
        workspace.wrap_provider("echo $$ >> \"$PIDS\"\nexec \"$PROVIDER\"");
        workspace.set_env("PIDS", &workspace.beside("pids").display().to_string());
        let output = workspace.beside("started");
        let mut command = workspace.command(&["apply", "-json", "-auto-approve", "-input=false"]);
        let file = File::create(&output).unwrap();
        let core = command.process_group(0).stdout(file).stderr(Stdio::null()).spawn().unwrap();
        Self { workspace, core, output }
    }

    /// Kills the core.
    pub(crate) fn kill_core(&mut self) {
        self.core.kill().unwrap();
    }

    /// Kills the provider.
    pub(crate) fn kill_provider(&self) {
        kill(self.provider(), Signal::SIGKILL).unwrap();
    }

    /// Kills both at once: a core that survived its provider would be killed while it writes the state.
    pub(crate) fn kill(&self) {
        killpg(self.group(), Signal::SIGKILL).unwrap();
    }

    /// Ends both as a supervisor of jobs does: SIGTERM to the process group.
    pub(crate) fn terminate(&self) {
        killpg(self.group(), Signal::SIGTERM).unwrap();
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        if !self.has_ended() {
            killpg(self.group(), Signal::SIGINT).unwrap();
        }
    }

    /// Waits until the core has said this, or has ended.
    pub(crate) fn says(&mut self, what: &str) {
        until(what, || {
            fs::read_to_string(&self.output).unwrap().contains(what) || self.core.try_wait().unwrap().is_some()
        });
    }

    /// Waits until the core has ended, and its provider too where that is wanted. Returns what the core said.
    pub(crate) fn ended(mut self, provider_too: bool) -> String {
        until("the broken apply ends", || self.has_ended());
        if provider_too {
            let provider = self.provider();
            until("its provider ends", || kill(provider, None) == Err(Errno::ESRCH));
        }
        let said = fs::read_to_string(&self.output).unwrap();
        self.workspace.note(&["apply"], Run { code: None, stdout: said.clone(), stderr: String::new() });
        said
    }

    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.core.id()).unwrap())
    }

    fn has_ended(&mut self) -> bool {
        self.core.try_wait().unwrap().is_some()
    }

    /// The provider that was started last: the one that applies.
    fn provider(&self) -> Pid {
        let pids = fs::read_to_string(self.workspace.beside("pids")).unwrap();
        Pid::from_raw(pids.lines().last().unwrap().parse().unwrap())
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
