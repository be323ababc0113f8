//! The lock that Terraform and OpenTofu hold on a local state file while they use it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

/// A state file that no other process can lock. The lock ends with this value.
///
/// On Unix it also ends when this process closes any other handle of the file, so the file is read through this one.
#[derive(Debug)]
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Locks a file; `None` if another process holds a lock.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(lock(&file)?.then_some(Self(file)))
    }

    /// The content.
    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.0.read_to_end(&mut content)?;
        Ok(content)
    }
}

/// Takes the lock of the cores: by fcntl, on the whole file (Terraform, statemgr/filesystem_lock_unix.go).
#[cfg(unix)]
fn lock(file: &File) -> io::Result<bool> {
    use nix::{
        errno::Errno,
        fcntl::{FcntlArg, fcntl},
        libc,
    };
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
        #[cfg(target_os = "freebsd")]
        l_sysid: 0,
    };
    match fcntl(file, FcntlArg::F_SETLK(&whole)) {
        Ok(_) => Ok(true),
        Err(Errno::EACCES | Errno::EAGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock of the cores (LockFileEx).
#[cfg(not(unix))]
fn lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}
