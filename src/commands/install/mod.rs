//! `terraform-provider-damodel install`: copies this program to where `terraform init` and `tofu init` find it.
//!
//! Both read some directories in the layout of mirrors by default (plugin protocol, local installation), unless the CLI
//! configuration sets installation methods.

use std::{
    env::consts::EXE_SUFFIX,
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write},
    path::{self, Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Parser;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use terraform_plugin::process::replace;

use super::{
    Failure, Surroundings,
    terraform::{HOSTS, is_ignored, package, platform},
};
use crate::provider::ADDRESS;

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
    let before = unread_by_tofu(surroundings);
    let place = Place::make(arguments.dir.as_deref(), surroundings, folder)?;
    let installed = place.install(&surroundings.executable)?;
    let mut hindrances: Vec<String> = installed.iter().flat_map(Installed::strangers).collect();
    hindrances.extend(not_searched(&place, surroundings));
    hindrances.extend(differences(folder, &installed));
    let after = unread_by_tofu(surroundings);
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

/// What to add to a CLI configuration so that `init` searches the place. The configuration itself is not changed.
fn not_searched(place: &Place, surroundings: &Surroundings) -> Vec<String> {
    let directory = place.directory.display();
    let mut has_own = false;
    let mut warnings = Vec::new();
    for file in configurations(surroundings) {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                warnings.push(format!(
                    "{} cannot be read ({error}). If it has a provider_installation block, that block needs:\n\n{}",
                    file.display(),
                    methods(&place.directory)
                ));
                continue;
            }
        };
        let is_comment = |line: &&str| line.trim_start().starts_with(['#', '/']);
        let text: String = text.lines().filter(|line| !is_comment(line)).collect();
        if !text.contains("provider_installation") {
            continue;
        }
        has_own = true;
        if text.contains("dev_overrides") {
            warnings.push(format!(
                "{} has dev_overrides. An entry for {ADDRESS} there takes precedence over the installed program.",
                file.display()
            ));
        }
        if !text.contains(&super::terraform::quoted(&place.directory)) {
            warnings.push(format!(
                "{} has a provider_installation block, which does not name {directory}. Add to that block:\n\n{}",
                file.display(),
                methods(&place.directory)
            ));
        }
    }
    if !has_own && !place.is_implied {
        warnings.push(format!(
            "neither terraform nor tofu searches {directory} by default. Add to their configuration ({}):\n\n{}",
            FILES.map(|name| format!("{}{name}", if cfg!(windows) { "%APPDATA%\\" } else { "~/" })).join(", "),
            provider_installation(&place.directory)
        ));
    }
    warnings
}

/// The files that Terraform or OpenTofu may read (CLI configuration, locations). A file named by a variable is the only
/// one.
fn configurations(surroundings: &Surroundings) -> Vec<PathBuf> {
    let named = surroundings.path("TF_CLI_CONFIG_FILE").or_else(|| surroundings.path("TERRAFORM_CONFIG"));
    if let Some(file) = named {
        return vec![file];
    }
    let Some(home) = surroundings.path(HOME) else { return Vec::new() };
    let mut files: Vec<PathBuf> = FILES.iter().map(|name| home.join(name)).collect();
    files.extend(within(&home.join(DIRECTORY)));
    if let Some(xdg) = of_xdg(surroundings) {
        files.push(xdg.join("tofurc"));
        files.extend(within(&xdg));
    }
    files
}

/// OpenTofu's directory below XDG's, which Windows does not have.
fn of_xdg(surroundings: &Surroundings) -> Option<PathBuf> {
    surroundings.path("XDG_CONFIG_HOME").filter(|_| !cfg!(windows)).map(|xdg| xdg.join("opentofu"))
}

/// The files under XDG that OpenTofu does not read, because it reads the directory in the home directory.
fn unread_by_tofu(surroundings: &Surroundings) -> Vec<PathBuf> {
    let is_hidden = surroundings.path(HOME).is_some_and(|home| home.join(DIRECTORY).is_dir());
    of_xdg(surroundings).filter(|_| is_hidden).map(|xdg| within(&xdg)).unwrap_or_default()
}

/// The files of a configuration directory, without hidden files and copies of editors.
fn within(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            (name.ends_with(".tfrc") || name.ends_with(".tfrc.json")) && !is_ignored(name) && path.is_file()
        })
        .collect();
    files.sort();
    files
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
        let put = |content: &[u8], file: &Path, mode: u32| {
            self.put(content, file, mode).map_err(|error| Failure::writing(file.display(), error))
        };
        let installed = HOSTS.into_iter().map(|host| {
            let file = self.directory.join(package(host)).join(&name);
            let has_new_licence = put(LICENSE, &file.with_file_name("LICENSE"), 0o644)?;
            let is_new = put(&program, &file, 0o755)? || has_new_licence;
            Ok(Installed { host, file, is_new, hash: hash.clone() })
        });
        installed.collect()
    }

    /// Writes a temporary file and renames it: running processes keep the old file, and new ones find a complete one.
    /// Returns whether the file was missing or different.
    fn put(&self, content: &[u8], file: &Path, mode: u32) -> io::Result<bool> {
        if fs::read(file).is_ok_and(|there| there == content) {
            set_mode(&File::open(file)?, mode)?;
            return Ok(false);
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        // Not in the package, whose hash covers all its files.
        let mut copy = NamedTempFile::new_in(&self.directory)?;
        copy.write_all(content)?;
        set_mode(copy.as_file(), mode)?;
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
        let warnings = files.into_iter().map(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let rest = name.strip_prefix("terraform-provider-damodel");
            let is_program = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']));
            let effect = if is_program && file < self.file {
                "takes precedence over the installed program"
            } else {
                "is not part of the package, whose hash covers every file"
            };
            format!("{} {effect}. Remove it.", file.display())
        });
        warnings.collect()
    }
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
    HOSTS.iter().filter_map(|host| difference(&text, host, installed)).collect()
}

fn difference(lock: &str, host: &str, installed: &[Installed]) -> Option<String> {
    let address = format!("{host}/{ADDRESS}");
    // Terraform and OpenTofu write this file, always in this layout.
    let (_, rest) = lock.split_once(&format!("provider \"{address}\" {{"))?;
    let block = rest.split_once("\n}").map_or(rest, |(block, _)| block);
    let version = block.lines().find_map(|line| line.trim().strip_prefix("version")?.split('"').nth(1));
    let version = version.unwrap_or_default();
    if version != VERSION {
        return Some(format!(
            "The .terraform.lock.hcl of this folder has {version} of {address}. To use {VERSION} here: init -upgrade."
        ));
    }
    let package = installed.iter().find(|package| package.host == host)?;
    let ours = &package.hash;
    if block.contains(ours.as_str()) {
        return None;
    }
    Some(format!(
        "The .terraform.lock.hcl of this folder does not list the installed package of {VERSION} of {address} \
         ({ours}), so init refuses it. To use it, remove the block provider \"{address}\" from the file and run init. \
         To use the package that was locked instead, remove {} and run init.",
        package.file.parent().unwrap_or(&package.file).display()
    ))
}
