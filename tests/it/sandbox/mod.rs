//! The simulated service over HTTP and SSH, and the stand-ins in its instances.

pub(crate) mod client;
mod command;
mod control;
mod faults;
mod fixtures;
#[cfg(unix)]
mod home;
#[cfg(unix)]
mod ssh;
#[cfg(unix)]
mod stand_in;
#[cfg(unix)]
mod yard;
