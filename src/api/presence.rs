//! Whether a thing exists, proved: a refresh that says "gone" by mistake would make it anew.

use tokio::time::Instant;

use crate::api::{
    listing::Listing,
    records::{Instance, InstanceDetail, Record},
};

/// What two looks say about a thing: an instance by detail and by a whole list, a cloud disk and a private image
/// (which have no detail) by a whole list and by a search.
///
/// `T` is how it is shown when it exists, `R` when it was released. A private image is never shown as released:
/// deleting takes it out of its list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Presence<T = InstanceDetail, R = Instance> {
    /// The service does not have it: a complete list lacks it, and the other look does not find it either.
    /// Whether this is the account it was made in is for the caller to judge
    /// ([`Client::fingerprint`](crate::api::Client::fingerprint), [`Client::witness`](crate::api::Client::witness)).
    Absent {
        /// When the list was asked for.
        listed_at: Instant,
        /// How many things of its kind the list holds.
        others: usize,
    },
    /// It exists.
    Present(Box<T>),
    /// The service shows it as Released.
    Released(Box<R>),
    /// The looks contradict each other or prove nothing: treat it as existing.
    Unproved {
        /// Why, as a fragment.
        reason: &'static str,
    },
}

/// Judges a thing that a whole list lacks, by a search for it.
pub(super) fn judge_missing<T: Record, P, R>(
    key: &T::Key,
    listed_at: Instant,
    listing: &Listing<T>,
    search: &Listing<T>,
) -> Presence<P, R> {
    if search.find(key).is_some() {
        Presence::Unproved { reason: "a list of all lacks it, and a search finds it" }
    } else if search.complete {
        Presence::Absent { listed_at, others: listing.records.len() }
    } else {
        Presence::Unproved { reason: "a list of all lacks it, and the answer to a search is not complete" }
    }
}
