//! Processes as a test sees them.

use std::{
    fs,
    process::{Command, Stdio},
};

/// Sends a signal, to a process that may be gone.
pub(super) fn kill(pid: u32, signal: &str) {
    let _ = Command::new("kill").args(["-s", signal, &pid.to_string()]).stderr(Stdio::null()).status();
}

/// Whether a process is there and no zombie.
pub(super) fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// All processes that may be seen.
pub(super) fn processes() -> Vec<(u32, Vec<String>)> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line);
        Some((pid, line.trim_end_matches('\0').split('\0').map(str::to_owned).collect()))
    })
    .collect()
}
