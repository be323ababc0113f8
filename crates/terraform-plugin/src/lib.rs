//! Terraform and OpenTofu providers in Rust.
//!
#![doc = include_str!("../README.md")]
//!
//! # A whole provider
//!
#![doc = "```no_run"]
#![doc = include_str!("../examples/words.rs")]
#![doc = "```"]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

pub mod framework;
pub mod plugin;
pub mod process;
mod program;
pub mod protocol;
#[cfg(feature = "testing")]
pub mod testing;

pub use program::{Program, serve};
