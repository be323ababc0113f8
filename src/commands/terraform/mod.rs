//! Terraform or OpenTofu, run by this program with this program as its provider.
//!
//! - [`Cli`] finds and runs one of them, untouched by what the environment configures for others.
//! - [`Mirror`] is a directory from which their `init` takes the provider, without any registry.

mod cli;

use std::{
    env::consts::{ARCH, EXE_SUFFIX, OS},
    fs, io,
    path::{Path, PathBuf},
};

use crate::provider::ADDRESS;

pub use self::cli::{Cli, CliError, Environment, Output};

/// The hosts that a source address without a host means: Terraform's and OpenTofu's.
pub const HOSTS: [&str; 2] = ["registry.terraform.io", "registry.opentofu.org"];

/// Where this version of the provider is in a mirror, for a host (plugin protocol, local installation).
#[must_use]
pub fn package(host: &str) -> PathBuf {
    [host, ADDRESS, env!("CARGO_PKG_VERSION"), &platform()].iter().collect()
}

/// The platform as registries name it.
#[must_use]
pub fn platform() -> String {
    let system = if OS == "macos" { "darwin" } else { OS };
    let processor = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{system}_{processor}")
}

/// A filesystem mirror with this provider in it, and the CLI configuration that makes `init` look nowhere else
/// (plugin protocol, local installation).
#[derive(Clone, Debug)]
pub struct Mirror {
    /// The CLI configuration, for `TF_CLI_CONFIG_FILE`.
    pub cli_config: PathBuf,
}

impl Mirror {
    /// Makes a mirror in a folder, with `executable` as the provider.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written or the executable cannot be read.
    pub fn make(folder: &Path, executable: &Path) -> io::Result<Self> {
        let mirror = folder.join("mirror");
        for host in HOSTS {
            let package = mirror.join(package(host));
            fs::create_dir_all(&package)?;
            let file = package.join(format!("terraform-provider-damodel{EXE_SUFFIX}"));
            // A link costs nothing, and is impossible between two file systems.
            fs::hard_link(executable, &file).or_else(|_| fs::copy(executable, &file).map(drop))?;
        }
        let cli_config = folder.join("cli.tfrc");
        fs::write(&cli_config, cli_configuration(&mirror))?;
        Ok(Self { cli_config })
    }
}

/// A path as a string of HCL.
#[must_use]
pub fn quoted(path: &Path) -> String {
    // HCL escapes a string as Rust does, but for the two that begin a template; a path holds neither control
    // characters.
    format!("{:?}", path.display().to_string()).replace("${", "$${").replace("%{", "%%{")
}

fn cli_configuration(mirror: &Path) -> String {
    let path = quoted(mirror);
    format!(
        "disable_checkpoint = true\n\nprovider_installation {{\n  filesystem_mirror {{\n    path = {path}\n  }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hosts_have_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("any");
        fs::write(&executable, "content").unwrap();
        let mirror = Mirror::make(folder.path(), &executable).unwrap();
        for host in HOSTS {
            let package = folder.path().join("mirror").join(package(host));
            let file = package.join(format!("terraform-provider-damodel{EXE_SUFFIX}"));
            assert_eq!(fs::read_to_string(file).unwrap(), "content");
        }
        assert!(fs::read_to_string(mirror.cli_config).unwrap().contains("filesystem_mirror"));
    }

    #[test]
    fn a_path_is_no_template() {
        let text = cli_configuration(Path::new("/a \"b\"/${c}/%{d}"));
        assert!(text.contains(r#"path = "/a \"b\"/$${c}/%%{d}""#), "{text}");
    }
}
