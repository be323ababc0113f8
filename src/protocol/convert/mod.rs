//! The framework's terms as messages.

mod diagnostics;
mod schema;
mod value;

pub(super) use diagnostics::{diagnostics, paths};
pub(super) use schema::schema;
pub(super) use value::{read, read_state, written};
