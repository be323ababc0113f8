//! `terraform-provider-damodel install`: puts this program where `terraform init` and `tofu init` find it.
//!
//! Both look into some directories by themselves, laid out as mirrors (plugin protocol, local installation), unless
//! their own configuration says where providers come from.

mod cli_config;
mod place;

use std::{
    fmt::Write as _,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Parser;

use self::{
    cli_config::Finding,
    place::{Installed, Place},
};
use super::{
    Surroundings,
    terraform::{HOSTS, platform},
};
use crate::provider::ADDRESS;

/// The version that is installed.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Puts this program where `terraform init` and `tofu init` find it, under the hosts of both registries.
///
/// A provider that is found there is not looked for in a registry. A run of the version that is there already is not
/// disturbed.
///
/// Exit codes: 0 it is installed; 1 a file cannot be read or written; 2 wrong usage.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "install")]
pub struct Arguments {
    /// Another directory, laid out as a filesystem mirror. Default: terraform.d/plugins of the home directory.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Why the program could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no home directory to install into.
    #[error("cannot find the home directory: {0} is not set. Name a directory with --dir")]
    NoHome(&'static str),
    /// The running program cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output is out of reach.
    #[error("cannot write to the terminal")]
    Terminal(#[source] io::Error),
    /// The file system said no.
    #[error("cannot write {}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Installs the running program, and says what to write into a configuration and what stands in the way.
///
/// # Errors
///
/// When there is no place, or it cannot be written.
pub fn run(arguments: &Arguments, surroundings: &Surroundings) -> Result<(), Error> {
    run_to(arguments, surroundings, Path::new("."), &mut io::stdout())
}

/// The same in another folder than the current one, with what it says going to `out`.
///
/// # Errors
///
/// When there is no place, or it cannot be written.
pub fn run_to(
    arguments: &Arguments,
    surroundings: &Surroundings,
    folder: &Path,
    out: &mut impl Write,
) -> Result<(), Error> {
    let place = Place::make(arguments.dir.as_deref(), surroundings, folder)?;
    let installed = place.install(&surroundings.executable)?;
    let text = told(&place, &installed, &hindrances(&place, &installed, surroundings, folder));
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Terminal)
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
        text.push_str("\nterraform init and tofu init find it there.\n");
    }
    for hindrance in hindrances {
        let _ = writeln!(text, "\nWarning: {}", hindrance.trim_end());
    }
    text
}

fn hindrances(place: &Place, installed: &[Installed], surroundings: &Surroundings, folder: &Path) -> Vec<String> {
    let mut hindrances: Vec<String> = installed.iter().filter_map(Installed::shadow).collect();
    hindrances.extend(cli_config::findings(place, surroundings).iter().map(|finding| hindrance(finding, place)));
    hindrances.extend(place::differences(folder, installed));
    // Both command lines may have the same to say.
    hindrances.dedup();
    hindrances
}

fn hindrance(finding: &Finding, place: &Place) -> String {
    match finding {
        Finding::NotLookedInto => format!(
            "neither terraform nor tofu looks into {} by itself. In their configuration (~/.terraformrc, \
             ~/.tofurc):\n\n{}",
            place.directory.display(),
            provider_installation(&place.directory)
        ),
        Finding::Overridden { file, address, directory } => format!(
            "{} overrides {address} with {directory} (dev_overrides): plan and apply use what is there, not what was \
             installed. Remove the line to use this version.",
            file.display()
        ),
        Finding::TurnedOff { file, address } => format!(
            "{} says where providers come from (provider_installation), and {address} does not come from {} by it. \
             Add to that block:\n\n{}",
            file.display(),
            place.directory.display(),
            methods(&place.directory)
        ),
        Finding::Unreadable { file, reason } => format!(
            "{} could not be made out ({reason}). If it has a provider_installation block, see that it has:\n\n{}",
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

/// The methods that take this provider from a directory, and every other one from its registry.
fn methods(directory: &Path) -> String {
    let path = super::terraform::quoted(directory);
    let addresses = HOSTS.map(|host| format!("\"{host}/{ADDRESS}\"")).join(", ");
    format!(
        "filesystem_mirror {{\n  path    = {path}\n  include = [{addresses}]\n}}\n\
         direct {{\n  exclude = [{addresses}]\n}}\n"
    )
}
