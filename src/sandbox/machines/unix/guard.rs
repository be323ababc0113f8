//! Ends what runs in the instances when the sandbox was killed: a process of its own, which sees that its standard
//! input closes.

use std::{
    fs, io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
};

use super::exec;

/// The name under which this program is the guard.
pub(in crate::sandbox) const NAME: &str = "sandbox-guard";

/// What the names of folders with instances begin with. The guard removes no other folder.
pub(super) const FOLDER: &str = "sandbox-";

/// The guard of a sandbox. Dropping it waits until the guard has ended.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    /// Guards the processes and files of the instances in this folder.
    pub(super) fn start(executable: &Path, folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(executable);
        // In a group of its own, so that Ctrl-C ends the sandbox alone.
        command.arg0(NAME).arg(folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if let Err(error) = self.0.wait() {
            tracing::debug!(%error, "the guard was not waited for");
        }
    }
}

/// The guard itself: waits for the end of the sandbox, then ends what is left.
pub(in crate::sandbox) fn main(folder: Option<&str>) -> ExitCode {
    let Some(folder) = folder.map(Path::new).filter(|folder| is_ours(folder)) else { return ExitCode::FAILURE };
    // It ends with the sandbox, and nothing is ever written to it.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    for instance in fs::read_dir(folder).into_iter().flatten().flatten() {
        exec::end(&instance.path().display().to_string());
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn is_ours(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FOLDER))
}
