//! commands

pub mod sandbox;
