//! The program's own commands, as a user runs them.

mod audit;
mod command_line;
mod demo;
mod expire;
mod hostile;
mod install;
mod pending;
mod release;
mod release_by_name;
mod review;
pub(crate) mod ssh;
pub(crate) mod watch;
