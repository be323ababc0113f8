//! Processes, as /proc shows them.

use std::{fs, path::Path};

use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};

use crate::support::wait::wait_until;

/// Sends a signal, to a process that may be gone.
pub(crate) fn kill(pid: u32, signal: Signal) {
    let _ = signal::kill(Pid::from_raw(pid.cast_signed()), signal);
}

/// Kills a process and waits for its end.
pub(crate) fn end(pid: u32) {
    kill(pid, Signal::SIGKILL);
    wait_until("the end of a process", || !is_running(pid));
}

/// The values of a process's line in /proc, from its state on; empty if it is gone.
pub(crate) fn stat(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').map(str::to_owned).collect()).unwrap_or_default()
}

/// Whether a process is there and no zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    stat(pid).first().is_some_and(|state| state != "Z")
}

/// The session of a process.
pub(crate) fn session(pid: u32) -> Option<u32> {
    stat(pid).get(3)?.parse().ok()
}

/// The environment of a process.
pub(crate) fn environment(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()).into_owned()
}

/// The words of a process, as it runs now.
pub(crate) fn words(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line);
    Some(line.trim_end_matches('\0').split('\0').map(str::to_owned).collect())
}

/// The processes whose environment has this home, as their numbers and arguments.
pub(crate) fn of_home(home: &Path) -> Vec<(u32, Vec<String>)> {
    let own = format!("HOME={}", home.display());
    let is_own = |pid: u32| environment(pid).split('\0').any(|line| line == own);
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_own(*pid)).filter_map(|pid| Some((pid, words(pid)?))).collect()
}
