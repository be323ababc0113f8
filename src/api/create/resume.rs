//! Resumes creates of earlier runs: an object that is found is adopted, a create that made nothing is sent again, and a
//! record that may belong to another account or another state is left alone.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Accepted, Creation, Origin, VISIBILITY_WINDOW,
    flow::{CreateAccount, Flow, age, blocking},
};
use crate::api::{
    client::GRACE,
    context::Context,
    error::{Error, HeldElsewhere, RequestIds, UnreadAnswer},
    flight::Freshness,
    listing::Listing,
    object::{Object, is_marked},
    pending::{CreatePhase, Entry, PendingCreate, PendingRecord},
    presence::{LastSeen, Presence},
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

pub(super) enum Resumed<K> {
    Accepted(Box<Accepted<K>>),
    SendAgain(Box<Entry>),
    StartAnew,
}

/// The account of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordAccount {
    /// Another token or another address.
    Other,
    /// The token of this create.
    Own,
    /// Another token of the same program, which is waited for as one's own.
    SameProgram,
}

impl CreateAccount {
    pub(super) fn of(&self, record: &PendingRecord) -> RecordAccount {
        match &self.fingerprints {
            _ if self.base_url != record.base_url => RecordAccount::Other,
            own if own.token == record.account.token => RecordAccount::Own,
            own if own.is_like(&record.account) => RecordAccount::SameProgram,
            _ => RecordAccount::Other,
        }
    }
}

/// What became of a record of the same request.
enum Step<K> {
    Adopted(Box<Accepted<K>>),
    Again(Box<Entry>),
    /// It belongs to another state, or may.
    Elsewhere,
    /// Nothing is left to do.
    Over,
}

impl<C: Creation> Flow<C> {
    /// Goes through the records that earlier runs left of the same request, one after the other, those of this account
    /// first. Returns also the records that are not resumed.
    pub(super) async fn resume(
        &self,
        account: &CreateAccount,
    ) -> Result<(Resumed<C::Object>, Vec<PendingCreate>), Error> {
        // Records of creates that made nothing. Their requests are sent again only if no other record has an object.
        let (mut without_object, mut others) = (Vec::<Entry>::new(), Vec::new());
        let mut accepted = None;
        let candidates = self.choices.candidates();
        let mut left = self.left().await?;
        left.sort_by_key(|PendingCreate { record, .. }| {
            (account.of(record) != RecordAccount::Own, record.phase == CreatePhase::Sent, record.begun_at)
        });
        for left in left {
            if !left.record.is_resumed_by(&self.request, &candidates) {
                others.push(left);
                continue;
            }
            match self.resume_one(&left, account).await? {
                Step::Adopted(adopted) => {
                    accepted = Some(adopted);
                    break;
                }
                Step::Again(entry) => without_object.push(*entry),
                Step::Elsewhere => others.push(left),
                Step::Over => {}
            }
        }
        let again = if accepted.is_none() { without_object.pop() } else { None };
        for entry in without_object {
            self.discard(entry).await;
        }
        let resumed = match (accepted, again) {
            (Some(accepted), _) => Resumed::Accepted(accepted),
            (None, Some(entry)) => Resumed::SendAgain(Box::new(entry)),
            (None, None) => Resumed::StartAnew,
        };
        Ok((resumed, others))
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

    /// Continues the create of a record, or removes the record if the object is gone.
    async fn resume_one(&self, left: &PendingCreate, account: &CreateAccount) -> Result<Step<C::Object>, Error> {
        let (record, whose) = (&left.record, account.of(&left.record));
        if !record.scope.is_place_of(self.journal.scope()) || whose == RecordAccount::Other {
            return self.resume_if_seen(left, account).await;
        }
        // A record of the own account is taken before the search: creates of equal requests then search for others.
        let entry = match whose {
            RecordAccount::Own => match self.take(left).await? {
                Some(entry) => Some(entry),
                None => return Ok(Step::Over),
            },
            RecordAccount::Other | RecordAccount::SameProgram => None,
        };
        let found = self.find(record).await?;
        if let (EarlierCreate::Unproved(_), None) = (&found, &entry) {
            return Err(self.unsettled(&record.marker, None));
        }
        match (found, entry) {
            (EarlierCreate::Alive(made) | EarlierCreate::Unproved(made), entry) => self.adopt(*made, left, entry).await,
            (EarlierCreate::NotThere, Some(entry)) if record.phase == CreatePhase::Sent => {
                Ok(Step::Again(Box::new(entry)))
            }
            // It may belong to another account.
            (EarlierCreate::NotThere, None) => Ok(Step::Over),
            (EarlierCreate::Gone | EarlierCreate::NotThere, entry) => self.forget(left, entry).await,
        }
    }

    /// A record of another token, directory or backend: its object is adopted if this token shows it, because tokens
    /// are rotated, and, if it may be in another state, only while its name has the marker of the unfinished create.
    async fn resume_if_seen(&self, left: &PendingCreate, account: &CreateAccount) -> Result<Step<C::Object>, Error> {
        let (record, is_here) = (&left.record, left.record.scope.is_place_of(self.journal.scope()));
        let made = if record.refused { None } else { self.seen(record, account).await? };
        let has_marker =
            |made: &C::Object| C::IS_MARKED && record.wanted_name.is_some() && made.name() == Some(&record.marker);
        match made {
            Some(made) if !is_here && !has_marker(&made) => Ok(Step::Elsewhere),
            Some(made) if made.is_released() => self.forget(left, None).await,
            Some(made) => self.adopt(made, left, None).await,
            None if is_here => {
                tracing::warn!(marker = record.marker, "the object of another token's record is not in this account");
                Ok(Step::Over)
            }
            None => Ok(Step::Elsewhere),
        }
    }

    async fn adopt(
        &self,
        made: C::Object,
        left: &PendingCreate,
        entry: Option<Entry>,
    ) -> Result<Step<C::Object>, Error> {
        let entry = if entry.is_some() { entry } else { self.take(left).await? };
        let Some(entry) = entry else { return Ok(Step::Over) };
        tracing::info!(id = %made.key(), marker = left.record.marker, "adopting what an earlier run created");
        let ids = RequestIds { request_id: left.record.request_id.clone(), trace_id: None };
        Ok(Step::Adopted(Box::new(self.note(made, entry, ids, Origin::Adopted).await)))
    }

    async fn forget(&self, left: &PendingCreate, entry: Option<Entry>) -> Result<Step<C::Object>, Error> {
        let entry = if entry.is_some() { entry } else { self.take(left).await? };
        tracing::info!(marker = left.record.marker, "what an earlier run created is gone");
        if let Some(entry) = entry {
            blocking(move || entry.discard()).await?;
        }
        Ok(Step::Over)
    }

    async fn take(&self, left: &PendingCreate) -> Result<Option<Entry>, Error> {
        let (journal, left) = (self.journal.clone(), left.clone());
        blocking(move || journal.take(&left)).await
    }

    /// One look for the object of a record, by its ids or by the name that was sent.
    pub(super) async fn seen(
        &self,
        record: &PendingRecord,
        account: &CreateAccount,
    ) -> Result<Option<C::Object>, Error> {
        let listing = self.whole_list(Freshness::Fresh).await?;
        let is_it = |object: &&C::Object| {
            object.is_named_by(record, &account.base_url) || self.choices.at(0).made(object, record, &self.client)
        };
        Ok(listing.records.iter().find(is_it).cloned())
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

    /// Looks for the object of a record by its id, or by the name that was sent, for as long as the object may be
    /// invisible.
    async fn find(&self, record: &PendingRecord) -> Result<EarlierCreate<C::Object>, Error> {
        if record.refused {
            return Ok(EarlierCreate::NotThere);
        }
        let known = record.ids.as_ref().and_then(|ids| C::Object::of_id(&ids.id));
        if let (CreatePhase::Accepted, Some(made)) = (record.phase, known) {
            return self.find_accepted(made, record).await;
        }
        tracing::info!(marker = record.marker, "looking for what an earlier run may have created");
        let until = Instant::now() + window_left(record);
        match self.settle(record, None, until).await? {
            Settled::Found(made) if made.is_released() => Ok(EarlierCreate::Gone),
            Settled::Found(made) => Ok(EarlierCreate::Alive(Box::new(made))),
            Settled::NotSeen { conclusive: true, .. } | Settled::Taken => Ok(EarlierCreate::NotThere),
            Settled::NotSeen { conclusive: false, cause } => Err(self.unsettled(&record.marker, cause)),
        }
    }

    /// Looks for an object whose id is known. The absence of a young object proves nothing.
    async fn find_accepted(&self, made: C::Object, record: &PendingRecord) -> Result<EarlierCreate<C::Object>, Error> {
        let objects = self.client.objects::<C::Object>();
        let mut waits = retry::SEARCH.waits(self.client.random());
        loop {
            match objects.look(&made.key(), Some(&record.marker), &self.context).await {
                Ok(Presence::Present(_)) => return Ok(EarlierCreate::Alive(Box::new(made))),
                Ok(Presence::Released) => return Ok(EarlierCreate::Gone),
                Ok(Presence::Absent) => {}
                Ok(Presence::Unproved { reason }) => {
                    tracing::info!(id = %made.key(), reason, "it is not clear whether the object exists");
                    return Ok(EarlierCreate::Unproved(Box::new(made)));
                }
                Err(error) => {
                    tracing::info!(id = %made.key(), %error, "it is unknown whether the object exists");
                    return Ok(EarlierCreate::Unproved(Box::new(made)));
                }
            }
            let last_seen =
                LastSeen { account: Some(&record.account), made_at: record.begun_at, grace: VISIBILITY_WINDOW };
            let absence = self.client.judge_absence(last_seen, &made.key().to_string(), &self.context).await?;
            if !absence.is_young {
                return Ok(EarlierCreate::NotThere);
            }
            let wait = waits.next().unwrap_or_default();
            self.context.sleep(wait).await.map_err(|ended| ended.error(C::ENDPOINT))?;
        }
    }
}

/// The rest of the time in which the object of a record may be invisible.
pub(super) fn window_left(record: &PendingRecord) -> Duration {
    let window = if record.acknowledged { ACKNOWLEDGED_WINDOW } else { VISIBILITY_WINDOW };
    window.saturating_sub(age(record.begun_at))
}

impl PendingRecord {
    /// Whether the service may not show the object yet, by this computer's clock.
    #[must_use]
    pub fn is_young(&self) -> bool {
        !self.refused && !window_left(self).is_zero()
    }
}

/// The object of an earlier create.
enum EarlierCreate<K> {
    Alive(Box<K>),
    /// The service shows it as released.
    Gone,
    /// Not in this account, or it no longer exists.
    NotThere,
    /// Its id is known, and the service's answers are contradictory or failed.
    Unproved(Box<K>),
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

/// The result of looking for a lost create.
pub(super) enum Settled<K> {
    Found(K),
    /// No object has the marker; conclusive if complete lists lacked it at the end.
    NotSeen {
        conclusive: bool,
        cause: Option<Error>,
    },
    /// Another create has taken the record meanwhile.
    Taken,
}

struct Search<K> {
    found: Vec<K>,
    complete: bool,
}

impl<C: Creation> Flow<C> {
    /// Looks for the name that was sent, at least once, until it is found, `until` has passed, the file `left` of a
    /// record that others may take has gone, or the operation ends.
    pub(super) async fn settle(
        &self,
        sent: &PendingRecord,
        left: Option<&Path>,
        until: Instant,
    ) -> Result<Settled<C::Object>, Error> {
        let begun = Instant::now();
        // An accepted object is visible soon, so the pauses are short.
        let longest = Duration::from_secs(if sent.acknowledged { 2 } else { 10 });
        let mut waits = retry::SEARCH.longest(longest).waits(self.client.random());
        let (mut lacking, mut cause, mut failed) = (0, None, 0);
        let mut task = self.task(&sent.marker);
        // The loop ends at once if the operation has.
        let _ = self.context.sleep(SENT_TOGETHER).await;
        while self.context.check().is_ok() {
            if left.is_some_and(|left| !left.exists()) {
                return Ok(Settled::Taken);
            }
            let now = Instant::now();
            let is_late = now >= until;
            let search = if is_late {
                self.last_look(sent, lacking).await
            } else {
                let since = now.checked_sub(SHARED_LOOK).map_or(begun, |shared| shared.max(begun));
                self.look(sent, Freshness::Since(since), &self.context).await
            };
            match search {
                Ok(mut search) => {
                    if search.found.len() > 1 {
                        let found = search.found.iter().map(|made| made.key().to_string()).collect();
                        return Err(Error::SeveralMatches { marker: sent.marker.clone(), found });
                    }
                    if let Some(made) = search.found.pop() {
                        task.done(None);
                        return Ok(Settled::Found(made));
                    }
                    lacking = if is_late && search.complete { lacking + 1 } else { 0 };
                    (cause, failed) = (None, 0);
                }
                Err(error) => {
                    failed = if error.is_permanent() { failed + 1 } else { 0 };
                    (lacking, cause) = (0, Some(error));
                }
            }
            if lacking == CONCLUSIVE_LOOKS {
                return Ok(Settled::NotSeen { conclusive: true, cause: None });
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
        if sent.acknowledged
            && self.context.check().is_err()
            && let Some(made) = self.look_in_grace(sent).await
        {
            return Ok(Settled::Found(made));
        }
        Ok(Settled::NotSeen { conclusive: false, cause })
    }

    async fn look(
        &self,
        sent: &PendingRecord,
        freshness: Freshness,
        context: &Context,
    ) -> Result<Search<C::Object>, Error> {
        let listing = self.client.objects::<C::Object>().all(freshness, context).await?;
        Ok(self.search(&listing, sent))
    }

    /// A look after the visibility window: first a complete list, then, if that lacked the object, a search.
    async fn last_look(&self, sent: &PendingRecord, before: u32) -> Result<Search<C::Object>, Error> {
        if before == 0 {
            return self.look(sent, Freshness::Fresh, &self.context).await;
        }
        let listing = self.client.objects::<C::Object>().search(&sent.marker, &self.context).await?;
        Ok(self.search(&listing, sent))
    }

    fn search(&self, listing: &Listing<C::Object>, sent: &PendingRecord) -> Search<C::Object> {
        let is_made = |object: &&C::Object| self.choices.at(0).made(object, sent, &self.client);
        Search { found: listing.records.iter().filter(is_made).cloned().collect(), complete: listing.complete }
    }

    /// The last look of an operation that has ended, to learn the id of an accepted object. It may take as long as an
    /// answer with the id would have had.
    async fn look_in_grace(&self, sent: &PendingRecord) -> Option<C::Object> {
        let grace = Context::within(GRACE, &CancellationToken::new());
        let search = self.look(sent, Freshness::Fresh, &grace).await.ok()?;
        let [made] = <[C::Object; 1]>::try_from(search.found).ok()?;
        Some(made)
    }
}
