//! The integration tests, one binary: each topic is a module, listed here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acceptance;
mod commands;
mod framework;
mod house;
mod lives;
mod plugin;
mod sandbox;
mod support;
