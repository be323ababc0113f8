//! The program's own commands, run as a user runs them.

mod adopt;
mod audit;
mod demo;
mod install;
mod pending;
mod release;
mod review;
pub(crate) mod watch;
