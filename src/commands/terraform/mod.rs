//! Terraform or OpenTofu, run by this program with this program as its provider.
//!
//! - [`Cli`] finds and runs one of them, untouched by what the environment configures for others.
//! - [`Mirror`] is a directory from which their `init` takes the provider, without any registry.

mod cli;
mod mirror;
mod package;

pub use cli::{Cli, CliError, Environment, Output};
pub use mirror::{Mirror, quoted};
pub use package::{HOSTS, package, platform};
