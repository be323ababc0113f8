//! Resumes creates of earlier runs: an object that is found is adopted, a create that made nothing is sent again, and a
//! record that may belong to another account or another state is left alone.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Accepted, Creation, Origin, VISIBILITY_WINDOW,
    decide::{Decision, Whose, decide},
    flow::{CreateAccount, Flow, age, blocking},
    found::Found,
};
use crate::api::{
    client::GRACE,
    context::Context,
    error::{Error, HeldElsewhere, RequestIds, UnreadAnswer},
    flight::Freshness,
    listing::Listing,
    object::{Object, is_marked},
    pending::{CreatePhase, Entry, PendingCreate, PendingRecord, Place},
    progress::Stage,
    records::Record as _,
    retry,
};

/// The visibility window of a create that the service accepted without an id.
const ACKNOWLEDGED_WINDOW: Duration = Duration::from_secs(600);

/// How long the provider of a killed run may take to exit: a second to notice, five seconds of grace, and a margin.
const OWNER_ENDS: Duration = Duration::from_secs(15);

/// How often to check whether it has exited.
const OWNER_LOOKS: Duration = Duration::from_millis(200);

/// How long to look for the object of a record.
#[derive(Clone, Copy)]
pub(super) enum Patience<'a> {
    /// One complete list. What it lacks is unknown.
    Glance,
    /// While the object may be invisible, or another create takes the record from this file. A young object whose id is
    /// known is not waited for.
    Left(&'a Path),
    /// Until this time, and at least once.
    Until(Instant),
    /// While the object may be invisible.
    Window,
}

impl CreateAccount {
    pub(super) fn of(&self, record: &PendingRecord) -> Whose {
        match &self.fingerprints {
            _ if self.base_url != record.base_url => Whose::Other,
            own if own.token == record.account.token => Whose::Own,
            own if own.is_like(&record.account) => Whose::SameProgram,
            _ => Whose::Other,
        }
    }
}

/// What a create resumes.
pub(super) struct Resumed<K> {
    /// The object that it adopted.
    pub(super) accepted: Option<Accepted<K>>,
    /// The record of a create that made nothing. Its request is sent again.
    pub(super) again: Option<Entry>,
    /// The records that it does not resume.
    pub(super) others: Vec<PendingCreate>,
}

impl<C: Creation> Flow<C> {
    /// Goes through the records that earlier runs left of the same request, one after the other, those of this account
    /// first.
    pub(super) async fn resume(&self, account: &CreateAccount) -> Result<Resumed<C::Object>, Error> {
        // Records of creates that made nothing. Their requests are sent again only if no other record has an object.
        let (mut accepted, mut without_object, mut others) = (None, Vec::<Entry>::new(), Vec::new());
        let candidates = self.choices.candidates();
        let mut left = self.left().await?;
        left.sort_by_key(|PendingCreate { record, .. }| {
            (account.of(record) != Whose::Own, record.phase == CreatePhase::Sent, record.begun_at)
        });
        for left in left {
            let record = &left.record;
            if !record.is_resumed_by(&self.request, &candidates) {
                others.push(left);
                continue;
            }
            let (whose, place) = (account.of(record), record.scope.place(self.journal.scope()));
            let is_waited_for = place == Place::Here && whose != Whose::Other;
            // A record of the own account is taken before the search: creates of equal requests then search for others.
            let mut entry = None;
            if is_waited_for && whose == Whose::Own {
                entry = self.take(&left).await?;
                if entry.is_none() {
                    continue;
                }
            }
            let patience = if is_waited_for { Patience::Window } else { Patience::Glance };
            let found = self.examine(record, patience).await?;
            let is_same = place == Place::Here || self.has_marker(&found, record);
            let decision = decide(&found, record.phase, whose, place, is_same);
            if entry.is_none() && matches!(decision, Decision::Adopt | Decision::Forget) {
                entry = self.take(&left).await?;
            }
            match (decision, entry) {
                (Decision::Adopt, Some(entry)) => {
                    let Some(made) = found.object_of(record) else { return Err(self.unsettled(&record.marker, None)) };
                    tracing::info!(id = %made.key(), marker = record.marker, "adopting what an earlier run created");
                    let ids = RequestIds { request_id: record.request_id.clone(), trace_id: None };
                    accepted = Some(self.note(made, entry, ids, Origin::Adopted).await);
                    break;
                }
                (Decision::Forget, Some(entry)) => {
                    tracing::info!(marker = record.marker, "what an earlier run created is gone");
                    blocking(move || entry.discard()).await?;
                }
                (Decision::SendAgain, Some(entry)) => without_object.push(entry),
                (Decision::Leave | Decision::Stop(_), None) if place != Place::Here => others.push(left),
                (Decision::Stop(_), _) => return Err(self.stopped(found, &record.marker, None)),
                (Decision::Leave, _) if whose == Whose::Other => {
                    let marker = &record.marker;
                    tracing::warn!(marker, "the object of another token's record is not in this account");
                }
                // Another create has taken it, or it may be in another account.
                (Decision::Adopt | Decision::Forget | Decision::Leave | Decision::SendAgain, _) => {}
            }
        }
        let again = if accepted.is_none() { without_object.pop() } else { None };
        for entry in without_object {
            self.discard(entry).await;
        }
        Ok(Resumed { accepted, again, others })
    }

    /// Whether a found object has the marker of its unfinished create. Without it, it may be in another state.
    fn has_marker(&self, found: &Found<C::Object>, record: &PendingRecord) -> bool {
        let is_marked = |object: &C::Object| object.name() == Some(&record.marker);
        C::IS_MARKED
            && record.wanted_name.is_some()
            && matches!(found, Found::Living(object) | Found::Released(object) if is_marked(object))
    }

    /// The error of a create that a record stops.
    pub(super) fn stopped(&self, found: Found<C::Object>, marker: &str, cause: Option<Error>) -> Error {
        match found {
            Found::Several(found) => Error::SeveralMatches { marker: marker.to_owned(), found },
            Found::Unknown { cause: looking, .. } => self.unsettled(marker, cause.or(looking)),
            _ => self.unsettled(marker, cause),
        }
    }

    /// The records of the family that earlier runs left. A killed run may still be ending: its provider gets time to
    /// record the outcome of its create.
    async fn left(&self) -> Result<Vec<PendingCreate>, Error> {
        let until = Instant::now() + OWNER_ENDS;
        loop {
            let (journal, request) = (self.journal.clone(), self.request.clone());
            let name = self.wanted_name().map(str::to_owned);
            let (left, held) = blocking(move || journal.left(C::Object::KIND, name.as_deref(), &request)).await?;
            let Some(holder) = held else { return Ok(left) };
            if Instant::now() >= until {
                let process = holder.map(|holder| holder.process);
                let directory = self.journal.directory().to_owned();
                return Err(Error::HeldElsewhere(Box::new(HeldElsewhere { process, directory })));
            }
            tracing::info!(?holder, "waiting for another process with the same pending record");
            self.context.sleep(OWNER_LOOKS).await.map_err(|ended| ended.error(C::ENDPOINT))?;
        }
    }

    async fn take(&self, left: &PendingCreate) -> Result<Option<Entry>, Error> {
        let (journal, left) = (self.journal.clone(), left.clone());
        blocking(move || journal.take(&left)).await
    }

    /// A list that lacks nothing that matters here. An unreadable record whose name is known to be another one does
    /// not matter.
    pub(super) async fn whole_list(&self, freshness: Freshness) -> Result<Arc<Listing<C::Object>>, Error> {
        let objects = self.client.objects::<C::Object>();
        let other_name = |unread: &Option<String>| match (unread, self.wanted_name()) {
            (Some(own), Some(wanted)) => {
                own != wanted && !is_marked(own, C::Object::KIND, wanted, self.journal.scope())
            }
            _ => false,
        };
        for freshness in [freshness, Freshness::Fresh] {
            let listing = objects.all(freshness, &self.context).await?;
            if listing.complete || (listing.is_reached && listing.unread.iter().all(other_name)) {
                return Ok(listing);
            }
        }
        Err(Error::Undecodable(Box::new(UnreadAnswer {
            endpoint: C::Object::LIST,
            status: 200,
            reason: "the list is not complete".to_owned(),
            ids: RequestIds::default(),
            retry_after: None,
        })))
    }

    /// Reads what the service shows of the object of a record, by its id or by the name that was sent.
    pub(super) async fn examine(
        &self,
        record: &PendingRecord,
        patience: Patience<'_>,
    ) -> Result<Found<C::Object>, Error> {
        if record.refused {
            return Ok(Found::Nothing);
        }
        let window = Instant::now() + window_left(record);
        match patience {
            Patience::Glance => self.glance(record).await,
            Patience::Left(_) if record.ids.is_some() => self.examine_id(record).await,
            Patience::Window if record.ids.is_some() => self.wait_for_id(record).await,
            Patience::Left(file) => self.search(record, Some(file), window).await,
            Patience::Until(until) => self.search(record, None, until).await,
            Patience::Window => self.search(record, None, window).await,
        }
    }

    async fn glance(&self, record: &PendingRecord) -> Result<Found<C::Object>, Error> {
        let base_url = self.client.settings().base_url.as_ref().map(ToString::to_string).unwrap_or_default();
        let listing = self.whole_list(Freshness::Fresh).await?;
        let is_it = |object: &&C::Object| {
            object.is_named_by(record, &base_url) || self.choices.at(0).made(object, record, &self.client)
        };
        let seen = listing.records.iter().find(is_it).cloned();
        Ok(seen.map_or_else(|| Found::unknown("a list does not contain it"), Found::shown))
    }

    async fn examine_id(&self, record: &PendingRecord) -> Result<Found<C::Object>, Error> {
        self.client.objects().examine_id(record, Some(&record.marker), &self.context).await
    }

    /// Looks for an object whose id is known. The absence of a young object proves nothing.
    async fn wait_for_id(&self, record: &PendingRecord) -> Result<Found<C::Object>, Error> {
        let mut waits = retry::SEARCH.waits(self.client.random());
        loop {
            match self.examine_id(record).await {
                Ok(Found::Young) => {}
                Ok(found) => return Ok(found),
                Err(error) => return Ok(Found::Unknown { reason: "a look failed", cause: Some(error) }),
            }
            let wait = waits.next().unwrap_or_default();
            self.context.sleep(wait).await.map_err(|ended| ended.error(C::ENDPOINT))?;
        }
    }

    /// Looks for the name that was sent, at least once, until it is found, `until` has passed, the file `left` of a
    /// record that others may take has gone, or the operation ends.
    async fn search(
        &self,
        sent: &PendingRecord,
        left: Option<&Path>,
        until: Instant,
    ) -> Result<Found<C::Object>, Error> {
        tracing::info!(marker = sent.marker, "looking for the created object");
        let begun = Instant::now();
        // An accepted object is visible soon, so the pauses are short.
        let longest = Duration::from_secs(if sent.acknowledged { 2 } else { 10 });
        let mut waits = retry::SEARCH.longest(longest).waits(self.client.random());
        let (mut lacking, mut cause, mut failed) = (0, None, 0);
        let mut task = self.task(&sent.marker);
        // The loop ends at once if the operation has.
        let _ = self.context.sleep(SENT_TOGETHER).await;
        while self.context.check().is_ok() && left.is_none_or(Path::exists) {
            let now = Instant::now();
            let is_late = now >= until;
            let looked = if is_late {
                self.last_look(sent, lacking).await
            } else {
                let since = now.checked_sub(SHARED_LOOK).map_or(begun, |shared| shared.max(begun));
                self.look(sent, Freshness::Since(since), &self.context).await
            };
            match looked {
                Ok(found @ (Found::Living(_) | Found::Released(_))) => {
                    task.done(None);
                    return Ok(found);
                }
                Ok(several @ Found::Several(_)) => return Ok(several),
                Ok(unseen) => {
                    let is_complete = matches!(unseen, Found::Nothing | Found::Young);
                    lacking = if is_late && is_complete { lacking + 1 } else { 0 };
                    (cause, failed) = (None, 0);
                }
                Err(error) => {
                    failed = if error.is_permanent() { failed + 1 } else { 0 };
                    (lacking, cause) = (0, Some(error));
                }
            }
            if lacking == CONCLUSIVE_LOOKS {
                return Ok(Found::Nothing);
            }
            let is_given_up = is_late && lacking == 0;
            task.sees(Stage::new("looking for the created object"), None);
            let mut wait = waits.next().unwrap_or_default();
            if !is_late {
                wait = wait.min(until.saturating_duration_since(Instant::now()));
            }
            if is_given_up || failed == FAILED_LOOKS || self.context.sleep(wait).await.is_err() {
                break;
            }
        }
        // The last look of an operation that has ended, to learn the id of an accepted object. It may take as long as
        // an answer with the id would have had.
        if sent.acknowledged && self.context.check().is_err() {
            let grace = Context::within(GRACE, &CancellationToken::new());
            if let Ok(found @ (Found::Living(_) | Found::Released(_))) = self.look(sent, Freshness::Fresh, &grace).await
            {
                return Ok(found);
            }
        }
        Ok(Found::Unknown { reason: "the lists prove nothing", cause })
    }

    async fn look(
        &self,
        sent: &PendingRecord,
        freshness: Freshness,
        context: &Context,
    ) -> Result<Found<C::Object>, Error> {
        let listing = self.client.objects::<C::Object>().all(freshness, context).await?;
        Ok(self.listed(&listing, sent))
    }

    /// A look after the visibility window: first a complete list, then, if that lacked the object, a search.
    async fn last_look(&self, sent: &PendingRecord, before: u32) -> Result<Found<C::Object>, Error> {
        if before == 0 {
            return self.look(sent, Freshness::Fresh, &self.context).await;
        }
        let listing = self.client.objects::<C::Object>().search(&sent.marker, &self.context).await?;
        Ok(self.listed(&listing, sent))
    }

    fn listed(&self, listing: &Listing<C::Object>, sent: &PendingRecord) -> Found<C::Object> {
        Found::listed(listing, sent, |object| self.choices.at(0).made(object, sent, &self.client))
    }
}

/// The rest of the time in which the object of a record may be invisible.
fn window_left(record: &PendingRecord) -> Duration {
    let window = if record.acknowledged { ACKNOWLEDGED_WINDOW } else { VISIBILITY_WINDOW };
    window.saturating_sub(age(record.begun_at))
}

impl PendingRecord {
    /// Whether the service may not show the object yet, by this computer's clock.
    pub(super) fn is_young(&self) -> bool {
        !window_left(self).is_zero()
    }
}

/// After this many consecutive permanent failures, looking ends.
const FAILED_LOOKS: u32 = 3;

/// This many consecutive complete lists without the object, after the visibility window, prove that nothing was
/// created.
const CONCLUSIVE_LOOKS: u32 = 2;

/// The greatest age of a list that looks share; it must also be requested after the search began.
const SHARED_LOOK: Duration = Duration::from_secs(1);

/// The pause before the first look, so that creates sent at the same time share one list.
const SENT_TOGETHER: Duration = Duration::from_millis(100);
