//! The processes of a machine: those that bear its mark in their environment, and their descendants.
//!
//! The environment of a process is inherited however it is detached, and cannot be changed from outside; a descendant
//! that was started with another one is found through its parents. Linux only: elsewhere there is no /proc, and nothing
//! is found.

use std::{
    collections::BTreeSet,
    fs, thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// The variable that marks them.
pub(super) const VARIABLE: &str = "SANDBOX_INSTANCE";

/// How long the system may take to end what was killed.
const DEADLINE: Duration = Duration::from_secs(5);

/// The ids of the live processes that bear this mark, in order.
pub(super) fn of(marker: &str) -> Vec<u32> {
    let entry = [VARIABLE.as_bytes(), b"=", marker.as_bytes()].concat();
    let mut parents = Vec::new();
    let mut own = BTreeSet::new();
    for id in ids() {
        let Some(parent) = parent_of_live(id) else { continue };
        parents.push((id, parent));
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == entry) {
            own.insert(id);
        }
    }
    loop {
        let before = own.len();
        for (id, parent) in &parents {
            if own.contains(parent) {
                own.insert(*id);
            }
        }
        if own.len() == before {
            return own.into_iter().collect();
        }
    }
}

/// Kills them, and waits until none is left.
pub(super) fn end(marker: &str) {
    let begun = Instant::now();
    loop {
        // Again and again: one may have started another since it was looked for.
        let live = of(marker);
        if live.is_empty() {
            return;
        }
        for id in &live {
            if let Ok(id) = i32::try_from(*id) {
                // It may have ended by itself.
                let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
            }
        }
        if begun.elapsed() > DEADLINE {
            tracing::error!(?live, "processes of an instance do not end");
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn ids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a process that is not merely waiting to be reaped.
fn parent_of_live(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "X" | "Z")).then_some(parent)
}
