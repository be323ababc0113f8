//! A list, and what is known of its completeness.

use super::records::Record;

/// A list, ordered by key.
#[derive(Debug, Clone)]
pub struct Listing<T> {
    /// The records, ordered by key.
    pub records: Vec<T>,
    /// Whether the list is provably complete: every record was readable, and the total, which a paged list must give,
    /// did not change and was reached. Objects missing in an incomplete list may still exist.
    pub complete: bool,
    /// The last `total` of the service.
    pub total: Option<i64>,
    /// Whether the total was reached, unreadable records included.
    pub is_reached: bool,
    /// The names of the unreadable records, as far as they can be read.
    pub unread: Vec<Option<String>>,
    /// Whether the list changed between its pages, each time that it was requested.
    pub changed: bool,
}

impl<T: Record> Listing<T> {
    /// The record with this key.
    #[must_use]
    pub fn find(&self, key: &T::Key) -> Option<&T> {
        let place = self.records.binary_search_by(|record| record.key().cmp(key)).ok()?;
        self.records.get(place)
    }
}

impl<T> Listing<T> {
    /// Why objects may be missing in the list, as a clause; `None` without a sign of it. One answer without a total is
    /// taken as it is.
    #[must_use]
    pub fn gap(&self) -> Option<String> {
        let seen = self.records.len() + self.unread.len();
        match self.total {
            _ if self.changed => Some("it changed each time that it was read".to_owned()),
            Some(total) if usize::try_from(total).is_ok_and(|total| seen < total) => {
                Some(format!("its total is {total}, and it has {seen} records"))
            }
            _ if !self.unread.is_empty() => {
                Some(format!("{} of its {seen} records could not be read", self.unread.len()))
            }
            _ => None,
        }
    }
}
