//! How Terraform's core starts this process and talks to it: the server half of go-plugin.
//!
//! The layer knows nothing of Terraform's schema or of any provider: it is handed gRPC routes and serves them
//! (plugin protocol, go-plugin handshake, AutoMTLS, other gRPC services, logging, reattach mode).
//!
//! # What `main` does with it
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use damodel::plugin;
//!
//! fn main() -> ExitCode {
//!     plugin::install_panic_hook();
//!     let variable = |name: &str| std::env::var_os(name);
//!     plugin::log::install(&plugin::log::Settings::read("damodel", variable), None);
//!     if !plugin::started_by_core(variable) {
//!         return plugin::help();
//!     }
//!     let serving = async {
//!         let environment = plugin::Environment::read(variable)?;
//!         let routes = tonic::service::Routes::default();
//!         plugin::serve(routes, &environment, plugin::Options::default()).await
//!     };
//!     plugin::block_on(serving)
//! }
//! ```
//!
//! # The end of the process
//!
//! [`Options::stopping`] is cancelled the moment the process is going to end, whatever the reason: the core asked for
//! it, the core died, or the process was terminated. [`Options::work`] counts the tasks that may not be cut
//! short; they are waited for within a [grace](Options). Work that changes something in the outside world runs
//! in a task spawned on that tracker, and on cancellation writes down what it knows and ends.
//!
//! # Standard streams
//!
//! Standard input is never read: it belongs to the core, and its end means nothing. Standard output carries the
//! handshake line and nothing else, ever. Standard error carries one JSON object a line ([`log`]).
//! [`Traces`] sends spans to a collector if the environment names one.

mod environment;
mod error;
mod incoming;
mod listener;
pub mod log;
mod serve;
mod server;
mod tls;
mod traces;

pub use environment::{Environment, help, started_by_core};
pub use error::{Error, install_panic_hook, with_causes};
pub use serve::{block_on, serve, serve_debug};
pub use server::Options;
pub use tonic::service::Routes;
pub use traces::Traces;
