//! Writes the pages, or compares them with what lies there.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{Error, page::MARK};

/// The folder of the documentation.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

/// How a file of the folder is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// It holds something else.
    Changed(PathBuf),
    /// It is not there.
    Missing(PathBuf),
    /// It was made once, and nothing makes it any more.
    Orphaned(PathBuf),
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// What is not as it should be. Files that were never made by this program are none of its business.
    pub(super) fn differences(&self, pages: &BTreeMap<PathBuf, String>) -> Result<Vec<Difference>, Error> {
        let mut differences = Vec::new();
        for (path, page) in pages {
            match self.read(path) {
                Ok(text) if text == *page => {}
                Ok(_) => differences.push(Difference::Changed(path.clone())),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    differences.push(Difference::Missing(path.clone()));
                }
                Err(source) => return Err(Error::Read { path: self.0.join(path), source }),
            }
        }
        for path in self.files(Path::new(""))?.into_iter().filter(|path| !pages.contains_key(path)) {
            let text = self.read(&path).map_err(|source| Error::Read { path: self.0.join(&path), source })?;
            if text.contains(MARK) {
                differences.push(Difference::Orphaned(path));
            }
        }
        Ok(differences)
    }

    /// Makes it as it should be.
    pub(super) fn settle(&self, difference: &Difference, pages: &BTreeMap<PathBuf, String>) -> Result<(), Error> {
        let path = self.0.join(difference.path());
        let settled = match pages.get(difference.path()) {
            Some(page) => {
                path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, page.as_bytes()))
            }
            None => fs::remove_file(&path),
        };
        settled.map_err(|source| Error::Write { path, source })
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(self.0.join(path))
    }

    /// All Markdown files below a folder of this one, in order.
    fn files(&self, below: &Path) -> Result<Vec<PathBuf>, Error> {
        let folder = self.0.join(below);
        let failed = |source| Error::Read { path: folder.clone(), source };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = below.join(entry.file_name());
            if entry.file_type().map_err(failed)?.is_dir() {
                files.extend(self.files(&path)?);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

impl Difference {
    fn path(&self) -> &Path {
        match self {
            Self::Changed(path) | Self::Missing(path) | Self::Orphaned(path) => path,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self {
            Self::Changed(_) => "differs",
            Self::Missing(_) => "is missing",
            Self::Orphaned(_) => "describes what there is no more",
        };
        write!(formatter, "{} {how}", self.path().display())
    }
}
