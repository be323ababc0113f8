//! The Terraform and OpenTofu provider for damodel, as a library; `main.rs` is its command line.
//!
//! Each folder is a layer, and the arrows between them point one way (`tests/it/house/layers/mod.rs` holds the table):
//! `plugin`, `framework`, `api`, `review`, `sandbox` and `ssh` stand alone; `protocol` drives `framework`; `provider`
//! is written in `framework` on top of `api` and `ssh`; `commands` may use everything.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

pub mod api;
pub mod commands;
pub mod framework;
pub mod plugin;
pub mod protocol;
pub mod provider;
pub mod review;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod ssh;
