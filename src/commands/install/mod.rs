//! `terraform-provider-damodel install`: copies this program to where `terraform init` and `tofu init` find it.
//!
//! Both read some directories in the layout of mirrors by default (plugin protocol, local installation), unless the CLI
//! configuration sets installation methods.

mod cli_config;

use std::{
    env::consts::EXE_SUFFIX,
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write},
    path::{self, Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Parser;
use hcl_edit::{expr::Expression, structure::Body};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use terraform_plugin::process::replace;

use self::cli_config::Obstacle;
use super::{
    Failure, Surroundings,
    terraform::{HOSTS, package, platform},
};
use crate::{api, provider::ADDRESS};

/// The licence, which packages contain too: lock files cover all files of a package, and a release has the same two.
const LICENSE: &[u8] = include_bytes!("../../../LICENSE");

/// The version that is installed.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Puts this program where `terraform init` and `tofu init` find it, under the hosts of both registries.
///
/// Terraform and OpenTofu then use this program instead of downloading one. Its licence is copied too. Runs that use an
/// installed version are not affected.
///
/// Exit codes: 0 it is installed; 1 a file cannot be read or written; 2 wrong usage.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "install")]
pub struct Arguments {
    /// Another directory, laid out as a filesystem mirror. Default: terraform.d/plugins of the home directory.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Installs the running program, and prints the block for a configuration and the settings that prevent its use.
///
/// # Errors
///
/// If the directory is unknown or cannot be written.
pub fn run(arguments: &Arguments, surroundings: &Surroundings) -> Result<(), Failure> {
    run_to(arguments, surroundings, Path::new("."), &mut io::stdout())
}

/// The same in another folder than the current one, with its text written to `out`.
///
/// # Errors
///
/// If the directory is unknown or cannot be written.
pub fn run_to(
    arguments: &Arguments,
    surroundings: &Surroundings,
    folder: &Path,
    out: &mut impl Write,
) -> Result<(), Failure> {
    // OpenTofu reads other files once the directory exists.
    let before = cli_config::unread_by_tofu(surroundings);
    let place = Place::make(arguments.dir.as_deref(), surroundings, folder)?;
    let installed = place.install(&surroundings.executable)?;
    let mut hindrances = hindrances(&place, &installed, surroundings, folder);
    let after = cli_config::unread_by_tofu(surroundings);
    hindrances.extend(after.into_iter().filter(|file| !before.contains(file)).map(|file| {
        format!(
            "OpenTofu no longer reads {}: it reads {DIRECTORY} of the home directory instead, which was created for \
             this program. Move the file to that directory, or remove {DIRECTORY} and install with --dir.",
            file.display()
        )
    }));
    let text = told(&place, &installed, &hindrances);
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)
}

fn told(place: &Place, installed: &[Installed], hindrances: &[String]) -> String {
    let mut text = String::new();
    let is_new = installed.iter().any(|package| package.is_new);
    let done = if is_new { "Installed" } else { "Already installed:" };
    let _ = writeln!(text, "{done} {VERSION} ({}) in {}, as", platform(), place.directory.display());
    for host in HOSTS {
        let _ = writeln!(text, "  {host}/{ADDRESS}");
    }
    let _ = write!(text, "\nIn a configuration:\n\n{}", required_providers());
    if hindrances.is_empty() {
        text.push_str("\nterraform init and tofu init find it.\n");
    }
    for hindrance in hindrances {
        let _ = writeln!(text, "\nWarning: {}", hindrance.trim_end());
    }
    text
}

fn hindrances(place: &Place, installed: &[Installed], surroundings: &Surroundings, folder: &Path) -> Vec<String> {
    let mut hindrances: Vec<String> = installed.iter().flat_map(Installed::strangers).collect();
    hindrances.extend(cli_config::findings(place, surroundings).iter().map(|finding| hindrance(finding, place)));
    hindrances.extend(differences(folder, installed));
    // Both command lines may have the same finding.
    hindrances.dedup();
    hindrances
}

fn hindrance(finding: &Obstacle, place: &Place) -> String {
    match finding {
        Obstacle::NotLookedInto => format!(
            "neither terraform nor tofu searches {} by default. Add to their configuration ({}):\n\n{}",
            place.directory.display(),
            FILES.map(|name| format!("{}{name}", if cfg!(windows) { "%APPDATA%\\" } else { "~/" })).join(", "),
            provider_installation(&place.directory)
        ),
        Obstacle::Overridden { file, address, directory } => format!(
            "{} overrides {address} with {directory} (dev_overrides): plan and apply use the program in that \
             directory, not the installed one. Remove the line to use this version.",
            file.display()
        ),
        Obstacle::TurnedOff { file, address } => format!(
            "{} has a provider_installation block that does not install {address} from {}. Add to that block:\n\n{}",
            file.display(),
            place.directory.display(),
            methods(&place.directory)
        ),
        Obstacle::Unreadable { file, reason } => format!(
            "{} cannot be read ({reason}). If it has a provider_installation block, make sure that it \
             contains:\n\n{}",
            file.display(),
            methods(&place.directory)
        ),
    }
}

fn required_providers() -> String {
    format!(
        "terraform {{\n  required_providers {{\n    damodel = {{\n      source  = \"{ADDRESS}\"\n      version = \
         \"{VERSION}\"\n    }}\n  }}\n}}\n"
    )
}

fn provider_installation(directory: &Path) -> String {
    let methods: String = methods(directory).lines().map(|line| format!("  {line}\n")).collect();
    format!("provider_installation {{\n{methods}}}\n")
}

/// The methods that install this provider from a directory, and every other one from its registry.
fn methods(directory: &Path) -> String {
    let path = super::terraform::quoted(directory);
    let addresses = HOSTS.map(|host| format!("\"{host}/{ADDRESS}\"")).join(", ");
    format!(
        "filesystem_mirror {{\n  path    = {path}\n  include = [{addresses}]\n}}\n\
         direct {{\n  exclude = [{addresses}]\n}}\n"
    )
}

/// The variable that names the home directory of the command lines.
const HOME: &str = if cfg!(windows) { "APPDATA" } else { "HOME" };

/// The directory of both command lines there.
const DIRECTORY: &str = if cfg!(windows) { "terraform.d" } else { ".terraform.d" };

/// The configuration files of Terraform and OpenTofu there.
const FILES: [&str; 2] = if cfg!(windows) { ["terraform.rc", "tofu.rc"] } else { [".terraformrc", ".tofurc"] };

/// A directory in the layout of a mirror.
#[derive(Clone, Debug)]
struct Place {
    directory: PathBuf,
    /// Whether both command lines read it by default.
    is_implied: bool,
}

/// A package in a mirror.
#[derive(Clone, Debug)]
struct Installed {
    host: &'static str,
    /// The program; the licence is beside it.
    file: PathBuf,
    /// Whether the file is new or changed.
    is_new: bool,
    /// The hash in lock files.
    hash: String,
}

impl Place {
    /// The requested directory, or else the default one of both command lines. It is created if it is missing.
    fn make(wanted: Option<&Path>, surroundings: &Surroundings, folder: &Path) -> Result<Self, Failure> {
        let home = surroundings.path(HOME);
        let implied = home.map(|home| home.join(DIRECTORY).join("plugins"));
        let directory = match (wanted, &implied) {
            (Some(wanted), _) => surroundings.environment(folder).path(wanted)?,
            (None, Some(implied)) => implied.clone(),
            (None, None) => {
                let message = format!("cannot find the home directory: {HOME} is not set. Name a directory with --dir");
                return Err(Failure::new(message));
            }
        };
        let made = fs::create_dir_all(&directory).and_then(|()| {
            // Shown and written into configurations: a canonical path of Windows is one that command lines refuse.
            Ok((fs::canonicalize(&directory)?, path::absolute(&directory)?))
        });
        let (real, directory) = made.map_err(|error| Failure::writing(directory.display(), error))?;
        let known = [implied, Some(folder.join("terraform.d/plugins"))];
        let is_implied = known.iter().flatten().any(|known| fs::canonicalize(known).is_ok_and(|known| known == real));
        Ok(Self { directory, is_implied })
    }

    /// Copies a program into the packages of all hosts.
    fn install(&self, executable: &Path) -> Result<Vec<Installed>, Failure> {
        let name = format!("terraform-provider-damodel_v{VERSION}{EXE_SUFFIX}");
        let program = fs::read(executable).map_err(|error| Failure::reading(executable.display(), error))?;
        let hash = package_hash(&[("LICENSE", LICENSE), (&name, &program)]);
        let put = |content: &[u8], file: &Path, make_ready: fn(&File) -> io::Result<()>| {
            self.put(content, file, make_ready).map_err(|error| Failure::writing(file.display(), error))
        };
        let install = |host| {
            let file = self.directory.join(package(host)).join(&name);
            let has_new_licence = put(LICENSE, &file.with_file_name("LICENSE"), make_readable)?;
            let is_new = put(&program, &file, make_executable)? || has_new_licence;
            Ok(Installed { host, file, is_new, hash: hash.clone() })
        };
        HOSTS.into_iter().map(install).collect()
    }

    /// Writes a temporary file and renames it: running processes keep the old file, and new ones find a complete one.
    /// Returns whether the file was missing or different.
    fn put(&self, content: &[u8], file: &Path, make_ready: fn(&File) -> io::Result<()>) -> io::Result<bool> {
        if fs::read(file).is_ok_and(|there| there == content) {
            make_ready(&File::open(file)?)?;
            return Ok(false);
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        // Not in the package, whose hash covers all its files.
        let mut copy = NamedTempFile::new_in(&self.directory)?;
        copy.write_all(content)?;
        make_ready(copy.as_file())?;
        copy.as_file().sync_all()?;
        self.set_aside(file)?;
        replace(copy, file)?;
        Ok(true)
    }

    /// Windows replaces no program that runs, but renames it. It is removed by the first install after its end.
    fn set_aside(&self, file: &Path) -> io::Result<()> {
        if !cfg!(windows) || !file.exists() {
            return Ok(());
        }
        let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(&self.directory)?.keep();
        fs::rename(file, aside.join("program"))?;
        for old in fs::read_dir(&self.directory)?.filter_map(|entry| Some(entry.ok()?.path())) {
            if old.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ASIDE)) {
                let _ = fs::remove_dir_all(old);
            }
        }
        Ok(())
    }
}

/// What directories of programs that were set aside begin with.
const ASIDE: &str = ".replaced-";

impl Installed {
    /// Warnings about other files of the package: a lock file of another computer does not fit it, and the command
    /// lines run the first program in it.
    fn strangers(&self) -> Vec<String> {
        let entries = self.file.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| *file != self.file && *file != self.file.with_file_name("LICENSE"));
        files.sort();
        let warning = |file: PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let rest = name.strip_prefix("terraform-provider-damodel");
            let is_program = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']));
            let effect = if is_program && file < self.file {
                "takes precedence over the installed program"
            } else {
                "is not part of the package, whose hash covers every file"
            };
            format!("{} {effect}. Remove it.", file.display())
        };
        files.into_iter().map(warning).collect()
    }
}

fn make_executable(file: &File) -> io::Result<()> {
    set_mode(file, 0o755)
}

fn make_readable(file: &File) -> io::Result<()> {
    set_mode(file, 0o644)
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// The hash of an unpacked package, in the form of lock files (Go's dirhash, "h1:"). `files` are sorted by name.
fn package_hash(files: &[(&str, &[u8])]) -> String {
    let line = |(name, content): &(&str, &[u8])| format!("{}  {name}\n", hex::encode(Sha256::digest(content)));
    format!("h1:{}", STANDARD.encode(Sha256::digest(files.iter().map(line).collect::<String>())))
}

/// The conflicts between the lock file of a folder and the installed package, each with advice.
fn differences(folder: &Path, installed: &[Installed]) -> Vec<String> {
    let file = folder.join(".terraform.lock.hcl");
    let Ok(text) = fs::read_to_string(&file) else { return Vec::new() };
    let Ok(lock) = api::without_mark(&text).parse::<Body>() else {
        return vec!["The .terraform.lock.hcl of this folder cannot be parsed; init reports the reason.".to_owned()];
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
    let package = installed.iter().find(|package| package.host == host)?;
    let ours = &package.hash;
    if known.any(|hash| hash == ours) {
        return None;
    }
    Some(format!(
        "The .terraform.lock.hcl of this folder does not list the installed package of {VERSION} of {address} \
         ({ours}), so init refuses it. To use it, remove the block provider \"{address}\" from the file and run init. \
         To use the package that was locked instead, remove {} and run init.",
        package.file.parent().unwrap_or(&package.file).display()
    ))
}
