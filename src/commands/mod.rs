//! What the program does when it is run by hand. Each command is a file with its arguments and its `run`; it may use
//! every layer.
//!
//! Neither arguments nor environment are read here: clap does that, or `main` and hands them in.

pub mod adopt;
pub mod audit;
pub mod completions;
#[cfg(feature = "sandbox")]
pub mod demo;
pub mod docs;
pub mod install;
pub mod pending;
pub mod review;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(not(feature = "sandbox"))]
pub mod sandbox_elsewhere;
pub mod terraform;
pub mod watch;

mod notes;
mod service;
mod signals;
mod surroundings;

pub use service::ServiceArguments;
pub use surroundings::Surroundings;
