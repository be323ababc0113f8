//! The framework, compared with the real Terraform, random schemas and random bytes.

pub(crate) mod conformance;
pub(crate) mod echo;
pub(crate) mod example;
mod fuzz;
mod served;
