//! A running apply, to be interrupted or killed.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Child,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpgid},
};

use super::{Run, Workspace};
use crate::support::wait::{DEADLINE, found_within, wait_until};

/// A running apply, in a process group of its own, as in a shell.
pub(crate) struct Started<'a> {
    workspace: &'a Workspace<'a>,
    core: Child,
    output: PathBuf,
}

impl<'a> Started<'a> {
    /// Starts `apply -json`.
    pub(crate) fn apply(workspace: &'a Workspace<'a>) -> Self {
        Self::apply_with(workspace, &[])
    }

    /// Starts `apply -json` with further arguments.
    pub(crate) fn apply_with(workspace: &'a Workspace<'a>, arguments: &[&str]) -> Self {
        workspace.wrap_provider("echo $$ >> \"$PIDS\"\nexec \"$PROVIDER\"");
        workspace.set_env("PIDS", &workspace.beside("pids").display().to_string());
        let _ = fs::remove_file(workspace.beside("pids"));
        let output = workspace.beside("started");
        let mut all = vec!["apply", "-json", "-auto-approve", "-input=false"];
        all.extend(arguments);
        let file = File::create(&output).unwrap();
        let errors = file.try_clone().unwrap();
        let core = workspace.command(&all).process_group(0).stdout(file).stderr(errors).spawn().unwrap();
        Self { workspace, core, output }
    }

    /// Applies, and kills Terraform and the provider when this many creates were accepted and none is ready. Afterwards
    /// the created objects become ready.
    pub(crate) fn killed_when_accepted(workspace: &'a Workspace<'a>, count: usize) {
        workspace.site.stick();
        let mut started = Self::apply(workspace);
        let accepted = || workspace.notes().iter().filter(|note| note.phase() == "accepted").count();
        wait_until("the creates are accepted", || accepted() >= count || started.has_ended());
        let said = fs::read_to_string(&started.output).unwrap();
        assert!(accepted() >= count, "the apply has ended: {said}");
        started.kill();
        started.ended(true);
        workspace.site.sandbox().clear_faults();
        workspace.site.unstick();
    }

    /// Applies, and presses Ctrl-C when the provider looks at an instance that it created and that is not ready.
    pub(crate) fn stopped_while_creating(workspace: &'a Workspace<'a>) {
        let (site, before) = (workspace.site, workspace.site.live().len());
        let mut started = Self::apply(workspace);
        site.await_ledger("a look at the new instance", |ledger| {
            site.live().len() > before && ledger.requests.last().is_some_and(|request| request.created.is_empty())
        });
        started.interrupt();
        started.ended(true);
    }

    /// The id of Terraform's process.
    pub(crate) fn core(&self) -> u32 {
        self.core.id()
    }

    /// Stops Terraform without ending it, so that it reads no answer. It may have ended by now.
    pub(crate) fn freeze_core(&self) {
        let sent = kill(self.core_pid(), Signal::SIGSTOP);
        assert!(matches!(sent, Ok(()) | Err(Errno::ESRCH)), "{sent:?}");
    }

    /// Kills Terraform.
    pub(crate) fn kill_core(&mut self) {
        self.core.kill().unwrap();
    }

    /// Kills all its providers.
    pub(crate) fn kill_provider(&self) {
        for provider in self.providers() {
            // It may be ending by itself.
            let _ = kill(provider, Signal::SIGKILL);
        }
    }

    /// Kills both at once: if the provider ended first, Terraform would be killed while it writes the state.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Ends both like a job supervisor: SIGTERM to the process group.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        if !self.has_ended() {
            self.signal(Signal::SIGINT);
        }
    }

    /// Waits until the condition holds. Returns whether it did before Terraform ended and the time was over.
    pub(crate) fn comes_within(&mut self, longest: Duration, has_come: impl Fn() -> bool) -> bool {
        let look = || if self.has_ended() { Some(false) } else { has_come().then_some(true) };
        found_within(longest, look).unwrap_or_default()
    }

    /// Waits until the condition holds, which it must before Terraform ends.
    pub(crate) fn until(&mut self, what: &str, has_come: impl Fn() -> bool) {
        let has_come = self.comes_within(DEADLINE, has_come);
        assert!(has_come, "never came: {what}\n{}", fs::read_to_string(&self.output).unwrap());
    }

    /// Waits until Terraform has ended or the time is over. Returns whether it has ended.
    pub(crate) fn ends_within(&mut self, longest: Duration) -> bool {
        found_within(longest, || self.has_ended().then_some(())).is_some()
    }

    /// Waits until Terraform has printed this, has ended, or the time is over.
    pub(crate) fn until_said(&mut self, what: &str, longest: Duration) {
        let output = self.output.clone();
        self.comes_within(longest, || fs::read_to_string(&output).is_ok_and(|said| said.contains(what)));
    }

    /// Waits until Terraform, and if wanted its provider, has ended. Returns Terraform's output.
    pub(crate) fn ended(mut self, provider_too: bool) -> String {
        wait_until("the broken apply ends", || self.has_ended());
        if provider_too {
            self.providers_end();
        }
        let said = fs::read_to_string(&self.output).unwrap();
        self.workspace.note(&["apply"], Run { code: None, stdout: said.clone(), stderr: String::new() });
        said
    }

    /// Sends a signal to Terraform and its providers. They may have ended by now.
    fn signal(&self, signal: Signal) {
        let sent = killpg(self.group(), signal);
        assert!(matches!(sent, Ok(()) | Err(Errno::ESRCH)), "{sent:?}");
    }

    fn group(&self) -> Pid {
        self.core_pid()
    }

    fn core_pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.core.id()).unwrap())
    }

    fn has_ended(&mut self) -> bool {
        self.core.try_wait().unwrap().is_some()
    }

    /// Waits until its providers have ended.
    pub(crate) fn providers_end(&self) {
        wait_until("its providers end", || self.providers().is_empty());
    }

    /// The running providers of this apply.
    pub(crate) fn providers(&self) -> Vec<Pid> {
        let pids = fs::read_to_string(self.workspace.beside("pids")).unwrap_or_default();
        let pids = pids.lines().map(|pid| Pid::from_raw(pid.parse().unwrap()));
        // The id of an ended provider may be another process's by now.
        pids.filter(|pid| getpgid(Some(*pid)) == Ok(self.group())).collect()
    }
}
