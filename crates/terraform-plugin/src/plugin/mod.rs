//! The server half of go-plugin: how the core (Terraform or OpenTofu) starts this process and calls it.
//!
//! The layer serves gRPC routes, and depends on neither Terraform's schema nor a provider (plugin protocol, go-plugin
//! handshake, AutoMTLS, other gRPC services, logging, reattach mode).
//!
//! # Use in `main`
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use terraform_plugin::plugin;
//!
//! fn main() -> ExitCode {
//!     plugin::install_panic_hook();
//!     let variable = |name: &str| std::env::var_os(name);
//!     plugin::log::install(&plugin::log::LogSettings::read("acme", variable));
//!     if !plugin::started_by_core(variable) {
//!         return plugin::help();
//!     }
//!     plugin::serve(variable, |_| tonic::service::Routes::default())
//! }
//! ```
//!
//! # The end of the process
//!
//! [`ServeOptions::stopping`] is cancelled as soon as the process is about to end: the core requested it, the core
//! exited, or the process was terminated. [`ServeOptions::work`] counts the tasks that must not be cut short; they get
//! a [grace](ServeOptions) period. Work that changes remote objects runs in a task of that tracker, and on cancellation
//! records its results and ends. The main thread waits for all of this on a runtime of its own, and nothing else runs
//! on it, so that what stalls is left behind after the grace.
//!
//! # Standard streams
//!
//! Standard input is never read: it belongs to the core, and its end has no meaning. Standard output has the handshake
//! line alone. Standard error has one JSON object for each line ([`log`]).

mod environment;
mod error;
mod incoming;
mod listener;
pub mod log;
pub mod proto;
mod serve;
mod server;
mod tls;

pub use environment::{PluginEnvironment, help, started_by_core};
pub use error::{Error, install_panic_hook, with_causes};
pub use serve::{serve, serve_debug};
pub use server::ServeOptions;
pub use tonic::service::Routes;
#[cfg(all(unix, feature = "testing"))]
pub(crate) use {listener::PluginAddress, serve::reattach};
