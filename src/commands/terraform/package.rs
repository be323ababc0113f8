//! The place of this provider within a mirror.

use std::{
    env::consts::{ARCH, OS},
    path::PathBuf,
};

use crate::provider::ADDRESS;

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
