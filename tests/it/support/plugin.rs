//! The provider's own program.

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_terraform-provider-damodel");
