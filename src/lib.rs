//! The Terraform and OpenTofu provider for damodel, as a library; `main.rs` is its command line.
//!
//! Each folder is a layer, and the arrows between them point one way (`tests/it/house/layers.rs` holds the table):
//! `provider` is written in `framework`; `commands` may use everything. The folders of the service's client and of
//! terraform-plugin, and the other crates, have their names here too.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

pub mod commands;
pub mod provider;

pub use damodel_client::{api, creation};
pub use damodel_llama as llama;
pub use damodel_review as review;
#[cfg(feature = "sandbox")]
pub use damodel_sandbox as sandbox;
pub use damodel_ssh as ssh;
pub use terraform_plugin::{framework, plugin, protocol};
