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
//! use damodel::plugin;
//!
//! fn main() -> ExitCode {
//!     plugin::install_panic_hook();
//!     let variable = |name: &str| std::env::var_os(name);
//!     plugin::log::install(&plugin::log::LogSettings::read("damodel", variable), None);
//!     if !plugin::started_by_core(variable) {
//!         return plugin::help();
//!     }
//!     let serving = async {
//!         let environment = plugin::PluginEnvironment::read(variable)?;
//!         let routes = tonic::service::Routes::default();
//!         plugin::serve(routes, &environment, plugin::ServeOptions::default()).await
//!     };
//!     plugin::block_on(serving)
//! }
//! ```
//!
//! # The end of the process
//!
//! [`ServeOptions::stopping`] is cancelled as soon as the process is about to end: the core requested it, the core
//! exited, or the process was terminated. [`ServeOptions::work`] counts the tasks that must not be cut short; they get
//! a [grace](ServeOptions) period. Work that changes remote objects runs in a task of that tracker, and on cancellation
//! records its results and ends.
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
mod serve;
mod server;
mod tls;

pub use environment::{PluginEnvironment, help, started_by_core};
pub use error::{Error, install_panic_hook, with_causes};
pub use serve::{block_on, serve, serve_debug};
pub use server::ServeOptions;
pub use tonic::service::Routes;
