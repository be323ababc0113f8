//! Resumes creates of earlier runs: an object that is found is adopted, a create that made nothing is sent again, and a
//! record that may belong to another account is left alone.

use std::{path::PathBuf, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Accepted, Creation, Origin, VISIBILITY_WINDOW,
    flow::{Flow, age, blocking},
};
use crate::api::{
    client::GRACE,
    context::Context,
    error::{Error, HeldElsewhere, RequestIds},
    flight::Freshness,
    object::Object,
    pending::{Claim, CreatePhase, Entry, Examined, PendingRecord, Wanted},
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

impl<C: Creation> Flow<C> {
    /// Goes through the records that earlier runs left under this key, one after the other, those of this account
    /// first.
    pub(super) async fn resume(&self, base_url: &str, account: &str) -> Result<Resumed<C::Object>, Error> {
        let mut passed_over = Vec::new();
        // Records of creates that made nothing. Their requests are sent again only if no other record has an object.
        let mut without_object: Vec<Entry> = Vec::new();
        let accepted = loop {
            match self.claim(base_url, account, &passed_over).await? {
                Claim::Entry(entry) => match self.resume_own(*entry).await? {
                    Resumed::Accepted(accepted) => break Some(accepted),
                    Resumed::SendAgain(entry) => without_object.push(*entry),
                    Resumed::StartAnew => {}
                },
                Claim::Foreign(examined) => {
                    passed_over.push(examined.path().to_owned());
                    if let Some(accepted) = self.resume_foreign(*examined).await? {
                        break Some(Box::new(accepted));
                    }
                }
                Claim::Held(_) | Claim::None => break None,
            }
        };
        let again = if accepted.is_none() { without_object.pop() } else { None };
        for entry in without_object {
            self.discard(entry).await;
        }
        Ok(match (accepted, again) {
            (Some(accepted), _) => Resumed::Accepted(accepted),
            (None, Some(entry)) => Resumed::SendAgain(Box::new(entry)),
            (None, None) => Resumed::StartAnew,
        })
    }

    /// Claims the next record. A killed run may still be ending: its provider gets time to record the outcome of its
    /// create. If a parallel create of this run is examining the record, this waits for it.
    async fn claim(&self, base_url: &str, account: &str, passed_over: &[PathBuf]) -> Result<Claim, Error> {
        let until = Instant::now() + OWNER_ENDS;
        loop {
            let (journal, random) = (self.journal.clone(), self.client.random().clone());
            let (key, base_url, account) = (self.key.clone(), base_url.to_owned(), account.to_owned());
            let (passed_over, candidates) = (passed_over.to_owned(), self.choices.candidates());
            let claim = blocking(move || {
                let candidates = candidates.as_slice();
                let wanted =
                    Wanted { kind: C::Object::KIND, key: &key, base_url: &base_url, account: &account, candidates };
                journal.claim(&wanted, &passed_over, &random)
            });
            let holder = match claim.await? {
                Claim::Held(holder) => holder,
                claim => return Ok(claim),
            };
            let is_examined = holder.as_ref().is_some_and(|holder| holder.examines);
            if !is_examined && Instant::now() >= until {
                let process = holder.map(|holder| holder.process);
                let directory = self.journal.directory().to_owned();
                return Err(Error::HeldElsewhere(Box::new(HeldElsewhere { process, directory })));
            }
            tracing::info!(?holder, "waiting for another process with the pending record of this create");
            self.context.sleep(OWNER_LOOKS).await.map_err(|ended| ended.error(C::ENDPOINT))?;
        }
    }

    /// Continues the create of a record of this account, or removes the record if the object is gone.
    async fn resume_own(&self, entry: Entry) -> Result<Resumed<C::Object>, Error> {
        let record = entry.record().clone();
        match self.find(&record).await? {
            EarlierCreate::Alive(made) | EarlierCreate::Unproved(made) => {
                tracing::info!(id = %made.key(), marker = record.marker, "adopting what an earlier run created");
                let ids = RequestIds { request_id: record.request_id, trace_id: None };
                Ok(Resumed::Accepted(Box::new(self.note(*made, entry, ids, Origin::Adopted).await)))
            }
            EarlierCreate::Gone => {
                tracing::info!(marker = record.marker, "what an earlier run created is gone");
                blocking(move || entry.discard()).await?;
                Ok(Resumed::StartAnew)
            }
            EarlierCreate::NotThere if record.phase == CreatePhase::Sent => Ok(Resumed::SendAgain(Box::new(entry))),
            EarlierCreate::NotThere => {
                blocking(move || entry.discard()).await?;
                Ok(Resumed::StartAnew)
            }
        }
    }

    /// A record of another token: its object is adopted if this token shows it, because tokens are rotated. Otherwise
    /// the record is left as it is, because it may belong to another account.
    async fn resume_foreign(&self, examined: Examined) -> Result<Option<Accepted<C::Object>>, Error> {
        let record = examined.record().clone();
        let random = self.client.random().clone();
        let found = self.find(&record).await?;
        match found {
            EarlierCreate::NotThere => {
                tracing::warn!(marker = record.marker, "the object of another token's record is not in this account");
                return Ok(None);
            }
            EarlierCreate::Unproved(_) => return Err(self.unsettled(&record.marker, None)),
            EarlierCreate::Alive(_) | EarlierCreate::Gone => {}
        }
        let Some(entry) = blocking(move || examined.take_over(&random)).await? else { return Ok(None) };
        match found {
            EarlierCreate::Alive(made) => {
                let ids = RequestIds { request_id: record.request_id, trace_id: None };
                Ok(Some(self.note(*made, entry, ids, Origin::Adopted).await))
            }
            EarlierCreate::Gone | EarlierCreate::NotThere | EarlierCreate::Unproved(_) => {
                blocking(move || entry.discard()).await?;
                Ok(None)
            }
        }
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
        let window = if record.acknowledged { ACKNOWLEDGED_WINDOW } else { VISIBILITY_WINDOW };
        let until = Instant::now() + window.saturating_sub(age(record.begun_at));
        match self.settle(record, until).await? {
            Settled::Found(made) if made.is_released() => Ok(EarlierCreate::Gone),
            Settled::Found(made) => Ok(EarlierCreate::Alive(Box::new(made))),
            Settled::NotSeen { conclusive: true, .. } => Ok(EarlierCreate::NotThere),
            Settled::NotSeen { conclusive: false, cause } => Err(self.unsettled(&record.marker, cause)),
        }
    }

    /// Looks for an object whose id is known. The absence of a young object proves nothing.
    async fn find_accepted(&self, made: C::Object, record: &PendingRecord) -> Result<EarlierCreate<C::Object>, Error> {
        let objects = self.client.objects::<C::Object>();
        let mut waits = retry::looks(Duration::from_secs(10), self.client.random());
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
                    tracing::info!(id = %made.key(), %error, "it is not known whether the object exists");
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
}

struct Search<K> {
    found: Vec<K>,
    complete: bool,
}

impl<C: Creation> Flow<C> {
    /// Looks for the name that was sent, at least once, until it is found, `until` has passed, or the operation ends.
    pub(super) async fn settle(&self, sent: &PendingRecord, until: Instant) -> Result<Settled<C::Object>, Error> {
        let begun = Instant::now();
        // An accepted object is visible soon, so the pauses are short.
        let longest = Duration::from_secs(if sent.acknowledged { 2 } else { 10 });
        let mut waits = retry::looks(longest, self.client.random());
        let (mut lacking, mut cause, mut failed) = (0, None, 0);
        let mut task = self.task(&sent.marker);
        // The loop ends at once if the operation has.
        let _ = self.context.sleep(SENT_TOGETHER).await;
        while self.context.check().is_ok() {
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

    fn search(&self, listing: &crate::api::Listing<C::Object>, sent: &PendingRecord) -> Search<C::Object> {
        let is_made = |object: &&C::Object| self.choices.preferred().made(object, sent, &self.client);
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
