//! The framework's terms as messages.

mod deferral;
mod diagnostics;
mod function;
mod identity;
mod schema;
mod value;

pub(super) use deferral::deferred;
pub(super) use diagnostics::{diagnostics, paths};
pub(super) use function::function;
pub(super) use identity::{identity, identity_schema};
pub(super) use schema::schema;
pub(super) use value::{argument, read, read_stored, written};
