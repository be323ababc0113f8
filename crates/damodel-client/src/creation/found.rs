//! What the service shows of the object of a pending record.

use std::time::Duration;

use super::{ACCEPTED_WINDOW, CreatePhase, PendingRecord, VISIBILITY_WINDOW};
use crate::api::{Context, Error, Listing, Object, Objects, Presence};

/// What the service shows of the object of a pending record.
#[derive(Debug, Clone)]
pub enum Found<K> {
    /// Two looks lack its id, and it is old enough to be shown.
    Gone,
    /// It is shown. If only its id was asked for, that is all that is known of it.
    Living(K),
    /// Complete lists lack the name that was sent, and an object would be shown by now; or the request was refused.
    Nothing,
    /// It is shown as released.
    Released(K),
    /// These objects have the name that was sent.
    Several(Vec<String>),
    /// The answers prove nothing.
    Unknown {
        /// The reason, as a fragment.
        reason: &'static str,
        /// The error of the last look.
        cause: Option<Error>,
    },
    /// It is not shown, and may be too young for that.
    Young,
}

impl<K: Object> Found<K> {
    /// What a list shows of the object that `is_it` knows.
    pub(super) fn listed(listing: &Listing<K>, record: &PendingRecord, is_it: impl Fn(&K) -> bool) -> Self {
        let found: Vec<&K> = listing.records.iter().filter(|object| is_it(object)).collect();
        match *found.as_slice() {
            [] if !listing.complete => Self::unknown("the service's list is incomplete"),
            [] if record.is_young() => Self::Young,
            [] => Self::Nothing,
            [object] => Self::shown(object.clone()),
            _ => Self::Several(found.iter().map(|object| object.key().to_string()).collect()),
        }
    }

    pub(super) fn shown(object: K) -> Self {
        if object.is_released() { Self::Released(object) } else { Self::Living(object) }
    }

    /// The object of a record, with only its id if the answers prove nothing.
    pub(super) fn object_of(self, record: &PendingRecord) -> Option<K> {
        match self {
            Self::Living(object) | Self::Released(object) => Some(object),
            _ => object_of_id(record),
        }
    }

    pub(super) fn unknown(reason: &'static str) -> Self {
        Self::Unknown { reason, cause: None }
    }
}

impl<K: Object> Objects<K> {
    /// Reads once what became of a create, without its request: by its id, or by the name that was sent alone. One list
    /// serves all records, because no object is changed here.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn examine(&self, record: &PendingRecord, context: &Context) -> Result<Found<K>, Error> {
        if record.refused {
            return Ok(Found::Nothing);
        }
        if record.ids.is_some() {
            return self.examine_id(record, None, context).await;
        }
        let listing = self.snapshot(context).await?;
        Ok(Found::listed(&listing, record, |object| record.sent_name_of(object)))
    }

    /// Looks twice for the id of a record. `hint` is a name to search for.
    pub(super) async fn examine_id(
        &self,
        record: &PendingRecord,
        hint: Option<&str>,
        context: &Context,
    ) -> Result<Found<K>, Error> {
        let Some(object) = object_of_id::<K>(record) else {
            return Ok(Found::unknown("the id cannot be read"));
        };
        Ok(match self.look(&object.key(), hint, context).await? {
            Presence::Absent if record.is_young() => Found::Young,
            Presence::Absent => Found::Gone,
            Presence::Present(_) => Found::Living(object),
            Presence::Released => Found::Released(object),
            Presence::Unproved { reason } => Found::unknown(reason),
        })
    }
}

fn object_of_id<K: Object>(record: &PendingRecord) -> Option<K> {
    record.ids.as_ref().and_then(|ids| K::of_id(&ids.id))
}

/// The rest of the time in which the object of a record may be invisible.
pub(super) fn window_left(record: &PendingRecord) -> Duration {
    let is_accepted = record.acknowledged || record.phase != CreatePhase::Sent;
    let window = if is_accepted { ACCEPTED_WINDOW } else { VISIBILITY_WINDOW };
    window.saturating_sub(age(record.begun_at))
}

impl PendingRecord {
    /// Whether the service may not show the object yet, by this computer's clock.
    fn is_young(&self) -> bool {
        !window_left(self).is_zero()
    }
}

/// The time since a time of the journal, in Unix seconds.
pub(super) fn age(since: i64) -> Duration {
    let seconds = jiff::Timestamp::now().as_second().saturating_sub(since);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
