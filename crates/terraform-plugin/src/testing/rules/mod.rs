//! Rules of the core for the answers of a provider.

mod compatible;
mod plan_valid;
mod proposed;
mod replaced;

pub use self::{
    compatible::compatibility_faults,
    plan_valid::{plan_faults, write_only_faults},
    proposed::proposed_new,
    replaced::{Heeded, heeded},
};
