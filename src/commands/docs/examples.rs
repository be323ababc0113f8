//! Reads the examples that pages show.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Error;

/// The folder of the examples, in the layout that the registry's own tools read.
#[derive(Debug)]
pub(super) struct Examples(PathBuf);

impl Examples {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// A file as a code block in this language.
    pub(super) fn block(&self, file: &Path, language: &str) -> Result<String, Error> {
        let path = self.0.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(format!("```{language}\n{}\n```", text.trim_end())),
            Err(source) => Err(Error::Read { path, source }),
        }
    }
}
