//! The simulated service as a program, its instances over SSH, and the stand-ins in them.

#[path = "../../../crates/damodel-sandbox/tests/it/client.rs"]
#[expect(dead_code, reason = "the tests of the sandbox use all of it")]
pub(crate) mod client;
mod command;
#[cfg(unix)]
mod home;
#[cfg(unix)]
mod ssh;
#[cfg(unix)]
mod stand_in;
#[cfg(unix)]
mod yard;
