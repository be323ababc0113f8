//! A local mirror: where the provider is put, what lies there, and the lock file that knows packages by hash.

use std::{
    env::consts::EXE_SUFFIX,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use hcl_edit::{expr::Expression, structure::Body};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{Error, VERSION};
use crate::{
    commands::{
        Surroundings,
        terraform::{HOSTS, package},
    },
    provider::ADDRESS,
};

/// The variable that names the home directory of the command lines.
const HOME: &str = if cfg!(windows) { "APPDATA" } else { "HOME" };

/// A directory that is laid out as a mirror.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    /// Whether both command lines look there by themselves.
    pub(super) is_implied: bool,
}

/// A package in a mirror.
#[derive(Clone, Debug)]
pub(super) struct Installed {
    pub(super) host: &'static str,
    /// The program.
    pub(super) file: PathBuf,
    /// Whether it was not there before as it is now.
    pub(super) is_new: bool,
    /// The hash by which lock files know it.
    pub(super) hash: String,
}

impl Place {
    /// The directory that was asked for, or else the one that both command lines know. It is made where it is missing.
    pub(super) fn make(wanted: Option<&Path>, surroundings: &Surroundings, folder: &Path) -> Result<Self, Error> {
        let home = surroundings.path(HOME);
        let implied =
            home.map(|home| home.join(if cfg!(windows) { "terraform.d" } else { ".terraform.d" }).join("plugins"));
        let directory = match (wanted, &implied) {
            (Some(wanted), _) => folder.join(wanted),
            (None, Some(implied)) => implied.clone(),
            (None, None) => return Err(Error::NoHome(HOME)),
        };
        let made = fs::create_dir_all(&directory).and_then(|()| fs::canonicalize(&directory));
        let real = made.map_err(|source| Error::Write { path: directory.clone(), source })?;
        let known = [implied, Some(folder.join("terraform.d/plugins"))];
        let is_implied = known.iter().flatten().any(|known| fs::canonicalize(known).is_ok_and(|known| known == real));
        Ok(Self { directory: if wanted.is_some() { real } else { directory }, is_implied })
    }

    /// Puts a program into the packages of all hosts.
    pub(super) fn install(&self, executable: &Path) -> Result<Vec<Installed>, Error> {
        let name = format!("terraform-provider-damodel_v{VERSION}{EXE_SUFFIX}");
        let read = |source| Error::Read { path: executable.to_owned(), source };
        let program = fs::read(executable).map_err(read)?;
        let hash = package_hash(&name, &program);
        let install = |host| {
            let file = self.directory.join(package(host)).join(&name);
            match self.put(&program, &file) {
                Ok(is_new) => Ok(Installed { host, file, is_new, hash: hash.clone() }),
                Err(source) => Err(Error::Write { path: file, source }),
            }
        };
        HOSTS.into_iter().map(install).collect()
    }

    /// Writes beside and renames: what runs from there keeps its file, and what starts finds a whole one. Answers
    /// whether it was another one before.
    fn put(&self, program: &[u8], file: &Path) -> io::Result<bool> {
        if fs::read(file).is_ok_and(|there| there == program) {
            make_executable(&File::open(file)?)?;
            return Ok(false);
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        // Not in the package, whose every file counts for its hash.
        let mut copy = NamedTempFile::new_in(&self.directory)?;
        copy.write_all(program)?;
        make_executable(copy.as_file())?;
        copy.as_file().sync_all()?;
        copy.persist(file).map_err(|error| error.error)?;
        Ok(true)
    }
}

impl Installed {
    /// What the command lines would take instead: the first file of the package whose name fits.
    pub(super) fn shadow(&self) -> Option<String> {
        let entries = fs::read_dir(self.file.parent()?).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let fits = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let rest = name.strip_prefix("terraform-provider-damodel");
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']))
        };
        let first = entries.filter(fits).min()?;
        (first < self.file).then(|| {
            format!("{} stands before what was installed, and would be taken instead. Remove it.", first.display())
        })
    }
}

#[cfg(unix)]
fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &File) -> io::Result<()> {
    Ok(())
}

/// The hash of an unpacked package with one file, as lock files write it (Go's dirhash, "h1:").
fn package_hash(name: &str, program: &[u8]) -> String {
    let digest: String = Sha256::digest(program).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("h1:{}", STANDARD.encode(Sha256::digest(format!("{digest}  {name}\n"))))
}

/// What the lock file of a folder has against what was installed, and what to do.
pub(super) fn differences(folder: &Path, installed: &[Installed]) -> Vec<String> {
    let file = folder.join(".terraform.lock.hcl");
    let Ok(text) = fs::read_to_string(&file) else { return Vec::new() };
    let Ok(lock) = text.parse::<Body>() else {
        return vec!["The .terraform.lock.hcl of this folder could not be made out; init says more.".to_owned()];
    };
    HOSTS.iter().filter_map(|host| difference(&lock, host, installed)).collect()
}

fn difference(lock: &Body, host: &str, installed: &[Installed]) -> Option<String> {
    let address = format!("{host}/{ADDRESS}");
    let provider =
        lock.get_blocks("provider").find(|block| block.labels.iter().any(|label| label.as_str() == address))?;
    let attribute = |name: &str| provider.body.get_attribute(name).map(|attribute| &attribute.value);
    let version = attribute("version").and_then(Expression::as_str).unwrap_or_default();
    if version != VERSION {
        return Some(format!(
            "The .terraform.lock.hcl of this folder has {version} of {address}. To use {VERSION} here: init -upgrade."
        ));
    }
    let hashes = attribute("hashes").and_then(Expression::as_array);
    let mut known = hashes.into_iter().flat_map(|hashes| hashes.iter()).filter_map(Expression::as_str);
    let ours = &installed.iter().find(|package| package.host == host)?.hash;
    if known.any(|hash| hash == ours) {
        return None;
    }
    Some(format!(
        "The .terraform.lock.hcl of this folder knows {VERSION} of {address} by other hashes: it was locked with \
         another build. init will refuse this one. Remove the block provider \"{address}\" from it, and run init, \
         which locks what was installed ({ours})."
    ))
}
