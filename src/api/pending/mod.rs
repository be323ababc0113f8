//! The journal of creates: what was sent and may not be known to anyone else yet.
//!
//! A directory with one file a create. A create writes its file before its request, so that a killed run leaves
//! a trace of everything it may have made; the next run's same create takes the trace up. Owners hold a lock on
//! a file beside it for as long as they live. Entries that were handed over are kept apart, under a name made of
//! their id. What a prior state shows is cleared, handed over or not: that the core has stored it is the last word.

mod entry;
mod journal;
mod record;

pub use entry::Entry;
pub use journal::{Journal, Listed, Report, Unreadable};
pub use record::{Ids, Kind, Phase, Record};

pub(super) use journal::{Begin, Claim};

#[cfg(test)]
mod tests;
