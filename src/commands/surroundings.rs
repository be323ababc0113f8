//! What `main` hands to the commands: arguments, environment, directories.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

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
