//! The integration tests, one binary: each topic is a module, listed here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
