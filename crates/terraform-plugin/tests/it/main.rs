//! The integration tests of the framework, one binary: each topic is a module, listed here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod codec;
mod conformance;
#[path = "../../../../tests/it/support/damage.rs"]
mod damage;
mod echo;
mod example;
mod panic;
mod protocol;
mod reattached;
#[path = "../../examples/words.rs"]
#[expect(dead_code, reason = "its main is the program of the example")]
mod words;
