//! The service's client, and creates that are not lost: [`api`] sends requests and reads answers, [`creation`] sends a
//! create once and finds out what became of it.
//!
//! Of our other crates it uses terraform-plugin's `process` only: the parent and its end, and locks of files.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

pub mod api;
pub mod creation;
