//! What tests of a provider use (feature `testing`): a core in the same process, its rules for answers, a provider that
//! a real command line attaches to, and plugins as processes of their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod core;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod reattached;
mod rules;
#[cfg(unix)]
mod tls;

pub use self::{
    core::{Answer, Core, dynamic, object},
    rules::{Heeded, compatibility_faults, heeded, plan_faults, proposed_new, write_only_faults},
};
#[cfg(unix)]
pub use self::{
    process::{COOKIE, DEADLINE, Ended, Handshake, PluginProcess, connect, connect_plain},
    reattached::Reattached,
    tls::{ClientIdentity, client_config},
};
