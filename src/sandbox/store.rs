//! The state file: one JSON document, replaced by a rename, so that a reader never sees half of it.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::NamedTempFile;

use super::{
    options::Error,
    world::{VERSION, World},
};

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
}

impl Store {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The world of the state file; `None` if the file does not exist yet.
    pub(super) fn load(&self) -> Result<Option<World>, Error> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::State { path: self.path.clone(), source });
            }
        };
        let unclear = |source| Error::StateContent { path: self.path.clone(), source };
        let document: Value = serde_json::from_slice(&text).map_err(unclear)?;
        match document.get("version").and_then(Value::as_u64) {
            Some(version) if version != VERSION => Err(Error::StateVersion { path: self.path.clone(), version }),
            Some(_) | None => Ok(Some(serde_json::from_value(document).map_err(unclear)?)),
        }
    }

    /// Replaces the file. Readable by its owner only, since it holds the accounts' tokens.
    pub(super) fn save(&self, world: &World) -> Result<(), Error> {
        self.replace(world).map_err(|source| Error::State { path: self.path.clone(), source })
    }

    fn replace(&self, world: &World) -> io::Result<()> {
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let mut writer = BufWriter::new(NamedTempFile::new_in(folder)?);
        serde_json::to_writer_pretty(&mut writer, world)?;
        writer.write_all(b"\n")?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::options::Options;

    #[test]
    fn the_world_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("state.json"));
        assert!(store.load().unwrap().is_none());
        let options = Options { generate_instances: 2, generate_disks: 2, ..Options::default() };
        let world = World::seeded(&options, 1_770_000_000_000);
        store.save(&world).unwrap();
        let back = store.load().unwrap().unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&world).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_newer_version_and_a_broken_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, r#"{"version": 4, "planets": 8}"#).unwrap();
        assert!(matches!(Store::new(path.clone()).load(), Err(Error::StateVersion { version: 4, .. })));
        fs::write(&path, r#"{"version": 1"#).unwrap();
        assert!(matches!(Store::new(path).load(), Err(Error::StateContent { .. })));
    }
}
