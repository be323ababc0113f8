//! The framework under the provider and a real command line, and damaged inputs for all readers.

mod deadline;
#[path = "../../../crates/terraform-plugin/tests/it/echo/mod.rs"]
#[expect(dead_code, reason = "the framework's tests use all of it")]
pub(crate) mod echo;
mod ephemeral;
mod fuzz;
mod places;
mod served;
#[path = "../../../crates/terraform-plugin/examples/words.rs"]
#[expect(dead_code, reason = "its main is the program of the example")]
mod words;
