//! The integration tests of the simulated service, one binary: each topic is a module, listed here. What needs the
//! program, as the instances do, is tested beside it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod control;
mod faults;
mod fixtures;
