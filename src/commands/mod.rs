//! What the program does when it is run by hand. Each command is a file with its arguments and its `run`; it may use
//! every layer.
//!
//! Neither arguments nor environment are read here: clap does that, or `main` and hands them in.

pub mod adopt;
pub mod audit;
pub mod completions;
#[cfg(feature = "sandbox")]
pub mod demo;
pub mod docs;
pub mod install;
pub mod pending;
pub mod review;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(not(feature = "sandbox"))]
pub mod sandbox_elsewhere;
mod service;
pub mod terraform;
pub mod watch;

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
};

pub use self::service::ServiceArguments;

/// What the process is and was given, which only `main` looks at.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The running program, which becomes the provider.
    pub executable: PathBuf,
    /// The variables that it was started with.
    pub variables: Vec<(OsString, OsString)>,
}

impl Surroundings {
    /// A variable as a path; an empty one counts as not set.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let found = self.variables.iter().find(|(known, _)| known == OsStr::new(name));
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty())
    }
}

/// Completes when the process is told to end. Listening begins with the first poll.
#[cfg(unix)]
async fn told_to_end() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

/// Completes when the process is told to end. Listening begins with the first poll.
#[cfg(not(unix))]
async fn told_to_end() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
