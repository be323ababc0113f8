//! Owner of a pending record: the process that holds its lock. The lock file names it, so that others can tell a
//! parallel create of the same run from one of another run.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::api::{error::Error, pending::entry::failed};

/// The holder of a lock, as the lock file names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process id.
    pub process: u32,
    /// The Terraform process that started it: its number, and its start time where the system tells.
    #[serde(default)]
    pub core: Option<String>,
    /// Whether it only looks whether the object is of its account. It holds the lock for as long as that takes.
    #[serde(default)]
    pub examines: bool,
}

impl Owner {
    /// This process.
    pub(super) fn current() -> Self {
        Self { process: std::process::id(), core: parent(), examines: false }
    }

    /// Whether both work for one run of Terraform: aliases of the provider are processes of their own under one parent.
    pub(super) fn is_sibling(&self, other: &Self) -> bool {
        self.process == other.process || (self.core.is_some() && self.core == other.core)
    }
}

/// The process that started this one, as its number and, on Linux, its start time: numbers are used again.
#[cfg(unix)]
fn parent() -> Option<String> {
    let process = std::os::unix::process::parent_id();
    // Field 22 of proc_pid_stat(5); the second field is a name in parentheses that may hold anything.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let started = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(19)).unwrap_or_default();
    Some(format!("{process}@{started}"))
}

/// Not known: parallel creates of other processes then look like those of another run.
#[cfg(not(unix))]
fn parent() -> Option<String> {
    None
}

/// A lock that was tried.
pub(super) enum Tried {
    /// It is ours.
    Locked(File),
    /// Another process holds it; unknown where a locked file cannot be read.
    Held(Option<Owner>),
}

/// Takes the lock in this file for `owner`, if it is free.
pub(super) fn lock(path: &Path, owner: &Owner) -> Result<Tried, Error> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = opened.map_err(|error| failed(path, "open", error))?;
    match file.try_lock() {
        Ok(()) => {
            sign(&mut file, owner).map_err(|error| failed(path, "write", error))?;
            Ok(Tried::Locked(file))
        }
        Err(TryLockError::WouldBlock) => Ok(Tried::Held(holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(failed(path, "lock", error)),
    }
}

/// Writes who holds the lock.
pub(super) fn sign(file: &mut File, owner: &Owner) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(owner)?)
}

/// Who holds the lock of a pending record; none when it is free.
pub(super) fn holder_of(path: &Path) -> Option<Option<Owner>> {
    let mut file = OpenOptions::new().read(true).open(path).ok()?;
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| holder(&mut file))
}

fn holder(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(process: u32, core: Option<&str>) -> Owner {
        Owner { process, core: core.map(str::to_owned), examines: false }
    }

    #[test]
    fn siblings_have_one_parent_with_one_start_time() {
        let own = owner(10, Some("7@100"));
        for (other, is_sibling) in [
            (owner(11, Some("7@100")), true),
            (owner(11, Some("7@200")), false),
            (owner(10, None), true),
            (owner(11, None), false),
        ] {
            assert_eq!(own.is_sibling(&other), is_sibling, "{other:?}");
        }
        assert!(!owner(1, None).is_sibling(&owner(2, None)));
    }

    #[test]
    fn a_held_lock_names_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let own = Owner::current();
        let Tried::Locked(held) = lock(&path, &own).unwrap() else { panic!("not locked") };
        let Tried::Held(holder) = lock(&path, &owner(1, None)).unwrap() else { panic!("locked twice") };
        assert_eq!(holder, Some(own.clone()));
        assert_eq!(holder_of(&path), Some(Some(own)));
        drop(held);
        assert_eq!(holder_of(&path), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_parent_is_known_with_its_start_time() {
        let parent = parent().unwrap();
        let (process, started) = parent.split_once('@').unwrap();
        assert!(process.parse::<u32>().is_ok() && started.parse::<u64>().is_ok(), "{parent}");
    }
}
