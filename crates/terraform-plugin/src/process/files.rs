//! Files that several processes share: locks that are released when their process ends, atomic replacement, and files
//! and directories that only their owner can read.

use std::{
    fs::{DirBuilder, File},
    io::{self, Seek as _, Write as _},
    path::Path,
};

use tokio::task::spawn_blocking;

pub use self::system::{is_locked, private, replace};

/// Runs a file operation, which may stall: on a network file system, at a pipe, or at a lock of another process. The
/// runtime's one worker goes on with the other tasks meanwhile, and a caller that is dropped leaves the operation
/// behind. A lock that the operation waits for is taken inside it.
pub async fn blocking<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(operation).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// A lock on a file. Others can read the file, and the system releases the lock when this process ends.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Creates the file, which must not exist, and locks it.
    pub fn make(path: &Path) -> io::Result<Self> {
        system::make(path).map(Self)
    }

    /// Locks a file, which is created if it does not exist. `None` if another process holds the lock.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        Ok(system::take(path)?.map(Self))
    }

    /// Replaces the text of the file.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(text)
    }
}

/// Closing the file does not suffice: a program that this process is starting has it open until its own begins.
impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Creates a directory that only its owner can read, and its parents. On Windows it inherits the permissions.
pub fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Locks of the kernel, which leave the file readable.
#[cfg(unix)]
mod system {
    use std::{
        fs::{File, OpenOptions, TryLockError},
        io,
        os::unix::fs::OpenOptionsExt as _,
        path::Path,
    };

    use tempfile::NamedTempFile;

    use super::FileLock;

    /// Options for a new file that only its owner can read.
    pub fn private() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600);
        options
    }

    /// Replaces a file, which may be open in other processes, by a temporary file.
    pub fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    pub(super) fn make(path: &Path) -> io::Result<File> {
        let file = private().read(true).write(true).create_new(true).open(path)?;
        // Another process may be checking the lock at this moment.
        file.lock()?;
        Ok(file)
    }

    pub(super) fn take(path: &Path) -> io::Result<Option<File>> {
        let file = private().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether any process holds the lock of a file.
    pub fn is_locked(path: &Path) -> bool {
        let file = File::open(path).map(FileLock);
        file.is_ok_and(|file| matches!(file.0.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Share modes: a locked region of a file cannot be read on Windows, and the text of a lock names its holder.
#[cfg(windows)]
mod system {
    use std::{
        fs::{self, File, OpenOptions},
        io,
        os::windows::fs::OpenOptionsExt as _,
        path::Path,
        time::Duration,
    };

    use backon::{BlockingRetryable as _, ConstantBuilder};
    use tempfile::NamedTempFile;

    /// A replacement waits two seconds for others to close the file.
    const BUSY: ConstantBuilder = ConstantBuilder::new().with_delay(Duration::from_millis(5)).with_max_times(400);

    /// `FILE_SHARE_READ | FILE_SHARE_DELETE`: others may read and remove the file, and not write it.
    const NOT_WRITTEN: u32 = 1 | 4;

    /// `ERROR_SHARING_VIOLATION`: another handle permits less.
    const SHARING_VIOLATION: i32 = 32;

    /// Options for a new file. It inherits the permissions of its directory.
    pub fn private() -> OpenOptions {
        OpenOptions::new()
    }

    /// Replaces a file by a temporary file. An open file cannot be replaced before Windows 10, on some file systems,
    /// and while a virus scanner reads it.
    pub fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
        let written = file.into_temp_path().keep()?;
        (|| fs::rename(&written, path))
            .retry(BUSY)
            .when(|error| error.kind() == io::ErrorKind::PermissionDenied)
            .call()
            .inspect_err(|_| drop(fs::remove_file(&written)))
    }

    pub(super) fn make(path: &Path) -> io::Result<File> {
        writable().create_new(true).open(path)
    }

    pub(super) fn take(path: &Path) -> io::Result<Option<File>> {
        match writable().create(true).truncate(false).open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether any process holds the lock of a file.
    pub fn is_locked(path: &Path) -> bool {
        let opened = OpenOptions::new().read(true).share_mode(NOT_WRITTEN).open(path);
        opened.is_err_and(|error| error.raw_os_error() == Some(SHARING_VIOLATION))
    }

    fn writable() -> OpenOptions {
        let mut options = private();
        options.read(true).write(true).share_mode(NOT_WRITTEN);
        options
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use tempfile::NamedTempFile;

    use super::*;

    #[test]
    fn a_locked_file_is_readable_and_locked_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_locked(&path));
        let mut held = FileLock::make(&path).unwrap();
        held.write(b"the first").unwrap();
        held.write(b"holder").unwrap();
        assert!(is_locked(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), "holder");
        assert!(FileLock::take(&path).unwrap().is_none());
        assert_eq!(FileLock::make(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(held);
        assert!(!is_locked(&path));
        assert!(FileLock::take(&path).unwrap().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_released_lock_is_free_while_a_program_that_starts_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = FileLock::make(&path).unwrap();
        let _inherited = held.0.try_clone().unwrap();
        drop(held);
        assert!(!is_locked(&path));
    }

    #[test]
    fn a_file_is_replaced_while_others_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "0").unwrap();
        for number in 1..=20_u32 {
            let reader = File::open(&path).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut file = NamedTempFile::new_in(folder.path()).unwrap();
                    write!(file, "{number}").unwrap();
                    replace(file, &path).unwrap();
                });
                drop(reader);
            });
            assert_eq!(fs::read_to_string(&path).unwrap(), number.to_string());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_lock_is_removed_while_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let held = FileLock::make(&folder.path().join("lock")).unwrap();
        fs::remove_file(folder.path().join("lock")).unwrap();
        drop(held);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
