//! The plans that are reviewed: files, folders of such, or standard input.

use std::{
    fs,
    io::Read,
    num::NonZero,
    path::{Path, PathBuf},
    thread,
};

use super::Error;
use crate::provider::Environment;

/// A document that is to be a plan.
#[derive(Debug)]
pub(super) struct Input {
    /// Its path, or what it is.
    pub(super) place: String,
    is_file: bool,
    /// The folder that it lies in.
    pub(super) folder: PathBuf,
    pub(super) document: Vec<u8>,
}

/// Reads what was named, in that order, and folders in the order of their files' names.
pub(super) fn read(plans: &[PathBuf], baseline: Option<&Path>, input: &mut impl Read) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    let baseline = baseline.and_then(|path| path.canonicalize().ok());
    for path in plans {
        if path == Path::new("-") {
            let mut document = Vec::new();
            let place = "standard input".to_owned();
            match input.read_to_end(&mut document) {
                Ok(_) => inputs.push(Input { place, is_file: false, folder: PathBuf::new(), document }),
                Err(source) => return Err(Error::Read { place, source }),
            }
        } else if path.is_dir() {
            let before = inputs.len();
            let files = files(path)?;
            for file in files.iter().filter(|file| baseline.is_none() || file.canonicalize().ok() != baseline) {
                inputs.push(Input::of_file(file)?);
            }
            if inputs.len() == before {
                return Err(Error::NoPlans(path.display().to_string()));
            }
        } else {
            inputs.push(Input::of_file(path)?);
        }
    }
    Ok(inputs)
}

impl Input {
    /// Its path, where it is a file.
    pub(super) fn file(&self) -> Option<String> {
        self.is_file.then(|| self.place.clone())
    }

    fn of_file(path: &Path) -> Result<Self, Error> {
        // What lies in the working directory is named as seen from there.
        let environment = Environment::of_process();
        let place = path.strip_prefix(environment.directory()).unwrap_or(path).display().to_string();
        let document = fs::read(path).map_err(|source| Error::Read { place: place.clone(), source })?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { place, is_file: true, folder, document })
    }
}

/// The files of a folder and of those in it that may be plans; what is hidden, or belongs to a configuration, is none.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { place: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if name.ends_with(".json") && !name.ends_with(".tf.json") && !name.ends_with(".tofu.json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What is made of each input, with all processors; the first that fails fails all.
pub(super) fn parallel<T: Send>(
    inputs: &[Input],
    make: impl Fn(&Input) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(inputs.len()).max(1);
    let share = inputs.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let work = |inputs| {
            let make = &make;
            move || -> Result<Vec<T>, Error> { <[Input]>::iter(inputs).map(make).collect() }
        };
        let workers: Vec<_> = inputs.chunks(share).map(|inputs| scope.spawn(work(inputs))).collect();
        let mut all = Vec::with_capacity(inputs.len());
        for worker in workers {
            match worker.join() {
                Ok(made) => all.extend(made?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}
