//! The journal of creates: what was sent and may not be known to anyone else yet.
//!
//! A directory with one file a create. A create writes its file before its request, so that a killed run leaves
//! a trace of everything it may have made; the next run's same create adopts it. Owners hold a lock on a file
//! beside it for as long as they run. Records that were handed over are kept apart, under a name made of their
//! id. What a state shows is cleared, handed over or not: that Terraform has stored it is the last word.

mod entry;
mod files;
mod journal;
mod owner;
mod record;
mod run;

pub use entry::{Entry, HandedOver};
pub use journal::{Journal, Listed, Report, Unreadable};
pub use owner::Owner;
pub use record::{Ids, Kind, Phase, Record};

pub(super) use journal::{Begin, Claim, Examined, Wanted};

#[cfg(test)]
mod tests;
