//! The commands of the program. Each is a module with its arguments and its `run`, and may use every layer.
//!
//! Arguments and environment are not read here: clap reads them, or `main` passes them in.

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
    path::PathBuf,
};

pub use self::service::ServiceArguments;

/// The executable and the environment of the process, which only `main` reads.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The running program, which is also the provider.
    pub executable: PathBuf,
    /// The environment variables.
    pub variables: Vec<(OsString, OsString)>,
}

impl Surroundings {
    /// A variable as a path; an empty one counts as unset.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let found = self.variables.iter().find(|(known, _)| known == OsStr::new(name));
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty())
    }
}
