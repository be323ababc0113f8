//! One create, from the records of earlier ones to the service's acceptance, in the order in which it happens.

use std::{path::Path, sync::Arc, time::Duration};

use backon::ExponentialBackoff;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Accepted, Attempt, Choices, CreateOptions, CreatePhase, Entry, Guard, Journal, Leftover, LeftoverKind, Origin,
    PendingCreate, PendingRecord, Permission, VISIBILITY_WINDOW, WhileBusy,
    decide::{Decision, Whose, decide},
    found::{Found, age, window_left},
    marker::{is_marked, mark},
    pending::{Begin, Place, fingerprint},
};
use crate::api::{
    AccountFingerprints, Client, Code, Context, Creation, Ended, Error, Freshness, GRACE, HeldElsewhere, Listing,
    Missing, Object, Record as _, Refusal, Request, RequestIds, Stage, Task, Unsettled, is_same_name, read, retry,
};

/// Creates one object exactly once, with the first of these requests that the service accepts: see [`Accepted`].
///
/// A create of the same request that a killed run left in the journal is resumed instead of sending another one.
/// A refusal for lack of stock or of CUDA support leads to the next request, any other error ends it. Each
/// request is recorded before it is sent. `guard` judges what earlier runs left, is asked before each request, and
/// is returned with the result.
///
/// Runs on a task of its own; when `context` ends, a request in flight has [`GRACE`](crate::api::GRACE) to return
/// its id. The caller then waits until the object is ready and renames it, with
/// [`Objects::wait`](crate::api::Objects::wait) and [`rename`](crate::api::Objects::rename).
///
/// # Errors
/// The service's refusal; a journal that cannot be written (then nothing was sent); [`Error::Unsettled`] if the
/// outcome of the request is unknown, and [`Error::SeveralMatches`]; [`Error::NoneAccepted`] for several requests.
pub async fn create<C: Creation, G: Guard>(
    client: &Client,
    choices: Choices<C>,
    guard: G,
    journal: &Journal,
    options: CreateOptions,
    context: &Context,
) -> (G, Result<Accepted<C::Object>, Error>) {
    let request = request_hash(choices.at(0));
    let work = client.settings().work.clone();
    let (client, journal, context) = (client.clone(), journal.clone(), context.clone());
    let flow = Flow { client, choices, request, journal, options, context };
    // The end of the process waits for it.
    match work.spawn(flow.run(guard).in_current_span()).await {
        Ok(done) => done,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

/// The hash of a request in its pending record.
#[must_use]
pub fn request_hash<C: Creation>(request: &C) -> String {
    fingerprint(&[C::Object::KIND.as_str(), &request.wanted().to_string()])
}

struct Flow<C: Creation> {
    client: Client,
    choices: Choices<C>,
    /// The hash of the configured object.
    request: String,
    journal: Journal,
    options: CreateOptions,
    context: Context,
}

/// The account that a create is recorded under.
struct CreateAccount {
    base_url: String,
    fingerprints: AccountFingerprints,
}

/// The outcome of a request.
enum Sent<K> {
    Accepted(Box<Accepted<K>>),
    /// After the visibility window, two complete lists lack the object. The error is that of the request.
    Nothing(Box<Entry>, Error),
    /// The service refused it with an error that another choice or a later time may avoid.
    Refused(Box<Entry>, Error),
}

/// What a create resumes.
struct Resumed<K> {
    /// The object that it adopted.
    accepted: Option<Accepted<K>>,
    /// The record of a create that made nothing. Its request is sent again.
    again: Option<Entry>,
    /// The records that it does not resume.
    others: Vec<PendingCreate>,
}

/// How long to look for the object of a record.
#[derive(Clone, Copy)]
enum Patience<'a> {
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
    fn whose(&self, record: &PendingRecord) -> Whose {
        match &self.fingerprints {
            _ if self.base_url != record.base_url => Whose::Other,
            own if own.token == record.account.token => Whose::Own,
            own if own.is_like(&record.account) => Whose::SameProgram,
            _ => Whose::Other,
        }
    }
}

impl<C: Creation> Flow<C> {
    async fn run<G: Guard>(mut self, mut guard: G) -> (G, Result<Accepted<C::Object>, Error>) {
        let created = self.create(&mut guard).await;
        (guard, created)
    }

    async fn create<G: Guard>(&mut self, guard: &mut G) -> Result<Accepted<C::Object>, Error> {
        self.context.check().map_err(|ended| ended.error(C::ENDPOINT))?;
        let account = CreateAccount {
            base_url: self.client.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?.to_string(),
            fingerprints: self.client.account(&self.context).await?,
        };
        let resumed = self.resume(&account).await?;
        if let Some(accepted) = resumed.accepted {
            return Ok(accepted);
        }
        let first = resumed.again.as_ref().map_or(0, |entry| self.after(entry.record()));
        self.rounds(resumed.again, first, resumed.others, guard, &account).await
    }

    /// The index of the first choice to request for a resumed create: the next one after a candidate that was refused
    /// recently.
    fn after(&self, record: &PendingRecord) -> usize {
        let is_recent = record.refused && age(record.updated_at) < VISIBILITY_WINDOW;
        let refused = self.choices.place_of(record.candidate.as_deref()).filter(|_| is_recent);
        refused.map_or(0, |place| (place + 1) % self.choices.count())
    }

    /// Goes through the records that earlier runs left of the same request, one after the other, those of this account
    /// first.
    async fn resume(&self, account: &CreateAccount) -> Result<Resumed<C::Object>, Error> {
        // Records of creates that made nothing. Their requests are sent again only if no other record has an object.
        let (mut accepted, mut without_object, mut others) = (None, Vec::<Entry>::new(), Vec::new());
        let candidates = self.choices.candidates();
        let mut left = self.left().await?;
        left.sort_by_key(|PendingCreate { record, .. }| {
            (account.whose(record) != Whose::Own, record.phase == CreatePhase::Sent, record.begun_at)
        });
        for left in left {
            let record = &left.record;
            if !record.is_resumed_by(&self.request, &candidates) {
                others.push(left);
                continue;
            }
            let (whose, place) = (account.whose(record), record.scope.place(self.journal.scope()));
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
                    tracing::info!(id = %made.key(), marker = record.marker, "adopting the object of an earlier run");
                    let ids = RequestIds { request_id: record.request_id.clone(), trace_id: None };
                    accepted = Some(self.note(made, entry, ids, Origin::Adopted).await);
                    break;
                }
                (Decision::Forget, Some(entry)) => {
                    tracing::info!(marker = record.marker, "the object of an earlier run no longer exists");
                    blocking(move || entry.discard()).await?;
                }
                (Decision::SendAgain, Some(entry)) => without_object.push(entry),
                (Decision::Leave | Decision::Stop(_), None) if place != Place::Here => others.push(left),
                (Decision::Stop(_), _) => return Err(self.stopped(found, &record.marker, None)),
                (Decision::Leave, _) if whose == Whose::Other => {
                    let marker = &record.marker;
                    tracing::warn!(marker, "a record of another token has no object in this account");
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
        C::IS_MARKED
            && record.wanted_name.is_some()
            && matches!(found, Found::Living(object) | Found::Released(object) if record.sent_name_of(object))
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

    /// Looks for what earlier runs left, in the family of this create. `others` are the left records that it does not
    /// resume.
    async fn leftovers(&self, others: Vec<PendingCreate>, account: &CreateAccount) -> Result<Vec<Leftover>, Error> {
        let mut found = Vec::new();
        for other in others {
            found.extend(self.judge_record(&other, account).await?);
        }
        // The list of the run may be old by now: what it shows is looked at once more.
        let mut named = self.named(Freshness::Since(self.journal.begun()), account).await?;
        if !named.is_empty() {
            named = self.named(Freshness::Fresh, account).await?;
        }
        named.retain(|leftover| found.iter().all(|known| known.id != leftover.id));
        found.extend(named);
        Ok(found)
    }

    /// The living objects with the configured name, or with a marker of this family and no record.
    async fn named(&self, freshness: Freshness, account: &CreateAccount) -> Result<Vec<Leftover>, Error> {
        let Some(wanted) = self.wanted_name().filter(|_| C::IS_MARKED) else { return Ok(Vec::new()) };
        let listing = self.whole_list(freshness).await?;
        let living = listing.records.iter().filter(|object| object.is_living());
        let named = living.filter_map(|object| {
            let name = object.name()?;
            let is_marked = is_marked(name, C::Object::KIND, wanted, self.journal.scope());
            let kind = if is_marked { LeftoverKind::Marked } else { LeftoverKind::Named };
            (is_marked || (self.options.unique_names && is_same_name(name, wanted))).then_some((kind, object))
        });
        let mut named: Vec<_> = named.collect();
        if named.iter().any(|(kind, _)| *kind == LeftoverKind::Marked) {
            let journal = self.journal.clone();
            let entries = blocking(move || journal.list()).await?.entries;
            named.retain(|(kind, object)| {
                *kind != LeftoverKind::Marked
                    || !entries.iter().any(|listed| {
                        listed.record.sent_name_of(*object) || listed.record.names(*object, &account.base_url)
                    })
            });
        }
        Ok(named.into_iter().map(|(kind, object)| Leftover::seen(kind, object)).collect())
    }

    /// Judges a record that is not resumed, without taking it: the create that it belongs to may do that meanwhile. One
    /// that certainly made nothing is removed.
    async fn judge_record(&self, other: &PendingCreate, account: &CreateAccount) -> Result<Option<Leftover>, Error> {
        let (record, whose) = (&other.record, account.whose(&other.record));
        let mut found = self.examine(record, Patience::Glance).await?;
        if matches!(found, Found::Unknown { .. }) && whose != Whose::Other {
            found = self.examine(record, Patience::Left(&other.path)).await?;
            // Another create has taken it.
            if !other.path.exists() {
                return Ok(None);
            }
        }
        let place = record.scope.place(self.journal.scope());
        let evidence = match decide(&found, record.phase, whose, place, false) {
            Decision::Stop(evidence) => evidence,
            Decision::Forget => {
                let (journal, other) = (self.journal.clone(), other.clone());
                blocking(move || journal.forget(&other)).await?;
                return Ok(None);
            }
            Decision::Adopt | Decision::Leave | Decision::SendAgain => return Ok(None),
        };
        if let Found::Several(_) = found {
            return Err(self.stopped(found, &record.marker, None));
        }
        let is_finished = record.phase == CreatePhase::Finished;
        let kind = if is_finished { LeftoverKind::Finished } else { LeftoverKind::Unfinished };
        let object = found.object_of(record);
        let name = object.as_ref().and_then(|object| object.name().map(str::to_owned));
        Ok(Some(Leftover {
            kind,
            id: object.map(|object| object.key().to_string()),
            name: name.unwrap_or_else(|| record.marker.clone()),
            evidence,
            record: Some(other.name().to_owned()),
        }))
    }

    /// Goes through the choices, starting at index `first`. `entry` is the record of an earlier run's same create that
    /// made nothing, `others` are the left records that it does not resume.
    async fn rounds<G: Guard>(
        &mut self,
        mut entry: Option<Entry>,
        first: usize,
        others: Vec<PendingCreate>,
        guard: &mut G,
        account: &CreateAccount,
    ) -> Result<Accepted<C::Object>, Error> {
        let marker = match &entry {
            Some(entry) => entry.record().marker.clone(),
            None if C::IS_MARKED => {
                mark(C::Object::KIND, self.wanted_name(), self.journal.scope(), self.client.random())
            }
            None => self.wanted_name().unwrap_or_default().to_owned(),
        };
        let found = self.leftovers(others, account).await;
        if guard.judge(found) == Permission::Refuse {
            self.discard_any(entry).await;
            return Err(Error::Withdrawn { endpoint: C::ENDPOINT });
        }
        let patient_until = self.options.wait_for_capacity.map(|wait| Instant::now() + wait);
        let limit = self.context.remaining();
        let mut pauses = self.pauses();
        let mut task = self.task(&marker);
        let mut order: Vec<usize> = (first..self.choices.count()).chain(0..first).collect();
        let mut for_good: Vec<Refusal> = Vec::new();
        loop {
            let since = Instant::now();
            let mut refusals = for_good.clone();
            for &choice in &order {
                if let Err(ended) = self.context.check() {
                    self.discard_any(entry).await;
                    return Err(ended.error(C::ENDPOINT));
                }
                let attempt = Attempt { choice, since, marker: marker.clone(), context: self.context.clone() };
                if guard.permit(attempt).await == Permission::Refuse {
                    refusals.push(Refusal { choice, error: Error::Withdrawn { endpoint: C::ENDPOINT } });
                    continue;
                }
                let noted = match entry.take() {
                    Some(entry) => self.sending(entry, account, choice).await?,
                    None => self.begin(account, &marker, choice).await?,
                };
                self.tell_attempt(&mut task, choice, &refusals);
                let mut sent = self.send(choice, noted, &mut task).await?;
                if let Sent::Nothing(noted, error) = sent {
                    if self.context.remaining() <= VISIBILITY_WINDOW {
                        self.discard(*noted).await;
                        return Err(error);
                    }
                    tracing::warn!(%error, "the request had no effect: repeating it");
                    let noted = self.sending(*noted, account, choice).await?;
                    sent = self.send(choice, noted, &mut task).await?;
                }
                match sent {
                    Sent::Accepted(accepted) => {
                        task.done(None);
                        return Ok(*accepted);
                    }
                    Sent::Nothing(noted, error) => {
                        self.discard(*noted).await;
                        return Err(error);
                    }
                    Sent::Refused(noted, error) => {
                        tracing::info!(choice, %error, "refused");
                        entry = Some(self.note_refusal(*noted, patient_until.is_some()).await);
                        refusals.push(Refusal { choice, error });
                    }
                }
            }
            for_good = refusals.iter().filter(|refusal| is_final(refusal)).cloned().collect();
            order.retain(|choice| !for_good.iter().any(|refusal| refusal.choice == *choice));
            order.sort_unstable();
            let has_no_stock = refusals.iter().any(|refusal| refusal.error.code().is_some_and(Code::is_out_of_stock));
            // Without a wait for capacity, only a list of several is tried again.
            let is_list = refusals.iter().filter(|refusal| is_refused(refusal)).count() > 1;
            let is_patient = has_no_stock && patient_until.map_or(is_list, |until| Instant::now() < until);
            let wait = is_patient.then(|| pauses.next()).flatten();
            if let Some(wait) = wait {
                // The pause is added to the deadline: after it the create has its whole time limit again.
                self.context.deadline = Instant::now() + wait + limit;
            }
            let is_over = match wait.filter(|wait| *wait < self.context.remaining()) {
                Some(wait) => self.wait(wait, &mut task, &refusals).await,
                None => true,
            };
            if is_over {
                self.discard_any(entry).await;
                return Err(match refusals.pop() {
                    Some(only) if self.choices.count() == 1 => only.error,
                    last => Error::NoneAccepted(refusals.into_iter().chain(last).collect()),
                });
            }
        }
    }

    /// The pauses between rounds. Without a wait for capacity, a list of several candidates is tried a few times.
    fn pauses(&self) -> ExponentialBackoff {
        let schedule = if self.options.wait_for_capacity.is_some() { retry::STOCK } else { retry::ROUNDS };
        retry::waits(schedule, self.client.random())
    }

    /// Waits for stock; `true` if the operation is over.
    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = "stock"))]
    async fn wait(&self, wait: Duration, task: &mut Task, refusals: &[Refusal]) -> bool {
        task.sees(Stage { detail: self.refused(refusals), ..Stage::new("waiting for stock") }, None);
        let wait_ms = wait.as_millis();
        tracing::debug!(endpoint = %C::ENDPOINT, wait_ms, "no stock: repeating the request");
        self.context.sleep(wait).await.is_err()
    }

    /// Reports the requested candidate as progress. A create with a single choice reports nothing.
    fn tell_attempt(&self, task: &mut Task, choice: usize, refusals: &[Refusal]) {
        if let Some(candidate) = self.choices.at(choice).candidate() {
            let step = Stage { detail: self.refused(refusals), ..Stage::new(format!("requesting {candidate}")) };
            task.sees(step, None);
        }
    }

    /// The refused candidates, as text for the progress file.
    fn refused(&self, refusals: &[Refusal]) -> Option<String> {
        let names: Vec<String> =
            refusals.iter().filter_map(|refusal| self.choices.at(refusal.choice).candidate()).collect();
        (!names.is_empty()).then(|| format!("refused: {}", names.join(", ")))
    }

    /// Records a refusal if another request may follow, so that the next run does not look for an object.
    async fn note_refusal(&self, mut entry: Entry, is_patient: bool) -> Entry {
        if self.choices.count() == 1 && !is_patient {
            return entry;
        }
        blocking(move || {
            if let Err(error) = entry.refused() {
                tracing::warn!(%error, "a refusal could not be recorded");
            }
            entry
        })
        .await
    }

    async fn discard_any(&self, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.discard(entry).await;
        }
    }

    async fn begin(&self, account: &CreateAccount, marker: &str, choice: usize) -> Result<Entry, Error> {
        let (journal, choice) = (self.journal.clone(), self.choices.at(choice));
        let begin = Begin {
            kind: C::Object::KIND,
            wanted_name: choice.wanted_name().map(str::to_owned),
            request: self.request.clone(),
            marker: marker.to_owned(),
            base_url: account.base_url.clone(),
            account: account.fingerprints.clone(),
            candidate: choice.candidate(),
        };
        blocking(move || journal.begin(begin)).await
    }

    async fn sending(&self, mut entry: Entry, account: &CreateAccount, choice: usize) -> Result<Entry, Error> {
        let (account, candidate) = (account.fingerprints.clone(), self.choices.at(choice).candidate());
        blocking(move || entry.sending(&account, candidate).map(|()| entry)).await
    }

    /// Sends the request of a choice until the service has processed it.
    async fn send(&self, choice: usize, mut entry: Entry, task: &mut Task) -> Result<Sent<C::Object>, Error> {
        let marker = entry.record().marker.clone();
        let request = Request::new(C::ENDPOINT).body(&self.choices.at(choice).body(&marker));
        let mut waits =
            retry::waits(retry::REQUEST.with_max_times(self.client.settings().max_retries), self.client.random());
        let mut busy = retry::waits(retry::BUSY, self.client.random());
        let mut attempt = 0;
        loop {
            // Checked after the record was written: a run that does not see the record began after Terraform had ended.
            if self.options.caller_gone.is_cancelled() || self.journal.core_has_ended() {
                self.discard(entry).await;
                return Err(Ended::Cancelled.error(C::ENDPOINT));
            }
            attempt += 1;
            let error = match self.client.attempt(&self.context, &request, attempt).await {
                Ok(answer) => match read::<C::Object>(&answer.result) {
                    Some(made) => {
                        let accepted = self.note(made, entry, answer.ids, Origin::Answered).await;
                        return Ok(Sent::Accepted(Box::new(accepted)));
                    }
                    None => {
                        let request_id = answer.ids.request_id.clone();
                        entry = blocking(move || {
                            if let Err(error) = entry.acknowledged(request_id) {
                                tracing::warn!(%error, "an accepted create could not be recorded");
                            }
                            entry
                        })
                        .await;
                        return self.recover(entry, None, self.context.deadline, answer.ids).await;
                    }
                },
                Err(error) => error,
            };
            let ids = error.request_ids();
            let undocumented = matches!(error.code(), Some(Code::Other(_))) && !error.nothing_was_processed();
            let wait = if error.outcome_is_unknown() || undocumented {
                let until = self.context.deadline.min(Instant::now() + VISIBILITY_WINDOW);
                return self.recover(entry, Some(error), until, ids).await;
            } else if error.code().is_some_and(Code::is_about_the_specification) {
                return Ok(Sent::Refused(Box::new(entry), error));
            } else if self.options.while_busy == WhileBusy::Wait && error.code().is_some_and(Code::is_busy) {
                busy.next().map(|wait| wait.max(error.retry_after().unwrap_or_default()))
            } else if error.is_retryable() {
                waits.next().map(|wait| wait.max(error.retry_after().unwrap_or_default()))
            } else {
                None
            };
            let Some(wait) = wait.filter(|wait| *wait < self.context.remaining()) else {
                self.discard(entry).await;
                return Err(error);
            };
            task.sees(Stage::new(waiting_for(&error)), None);
            let wait_ms = wait.as_millis();
            tracing::debug!(endpoint = %C::ENDPOINT, attempt, wait_ms, %error, "nothing was created: trying again");
            if self.context.sleep(wait).await.is_err() {
                self.discard(entry).await;
                return Err(error);
            }
        }
    }

    /// Finds the outcome of a request whose answer was lost or has no id.
    async fn recover(
        &self,
        entry: Entry,
        cause: Option<Error>,
        until: Instant,
        ids: RequestIds,
    ) -> Result<Sent<C::Object>, Error> {
        let sent = entry.record().clone();
        let marker = &sent.marker;
        tracing::info!(marker, cause = cause.as_ref().map(tracing::field::display), "looking for the created object");
        match (self.examine(&sent, Patience::Until(until)).await?, cause) {
            (Found::Living(made) | Found::Released(made), _) => {
                Ok(Sent::Accepted(Box::new(self.note(made, entry, ids, Origin::Found).await)))
            }
            (Found::Nothing, Some(error)) if error.outcome_is_unknown() => Ok(Sent::Nothing(Box::new(entry), error)),
            (Found::Nothing, Some(error)) => {
                self.discard(entry).await;
                Err(error)
            }
            (found, cause) => Err(self.stopped(found, marker, cause)),
        }
    }

    /// Records the created object. An error of the journal must not hide the object.
    async fn note(&self, made: C::Object, mut entry: Entry, ids: RequestIds, origin: Origin) -> Accepted<C::Object> {
        let account = match self.client.account(&self.context).await {
            Ok(account) => account,
            Err(_) => entry.record().account.clone(),
        };
        let mut noted = made.ids();
        noted.uid = noted.uid.or_else(|| entry.record().ids.as_ref()?.uid.clone());
        let request_id = ids.request_id.clone().or_else(|| entry.record().request_id.clone());
        let (entry, written) = blocking(move || {
            let written = entry.accepted(noted, &account, request_id);
            (entry, written)
        })
        .await;
        let sent_name = entry.record().marker.clone();
        let choice = self.choices.place_of(entry.record().candidate.as_deref()).unwrap_or_default();
        let rename_to = self.wanted_name().map(str::to_owned).filter(|wanted| *wanted != sent_name);
        Accepted {
            made,
            entry,
            not_noted: written.err(),
            sent_name,
            rename_to,
            ids,
            deadline: self.context.deadline,
            origin,
            choice,
        }
    }

    /// Reads what the service shows of the object of a record, by its id or by the name that was sent.
    async fn examine(&self, record: &PendingRecord, patience: Patience<'_>) -> Result<Found<C::Object>, Error> {
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
        let is_it = |object: &&C::Object| record.names(*object, &base_url) || self.made(object, record);
        let seen = listing.records.iter().find(is_it).cloned();
        Ok(seen.map_or_else(|| Found::unknown("a list does not contain the object"), Found::shown))
    }

    async fn examine_id(&self, record: &PendingRecord) -> Result<Found<C::Object>, Error> {
        self.client.objects().examine_id(record, Some(&record.marker), &self.context).await
    }

    /// Looks for an object whose id is known. The absence of a young object proves nothing.
    async fn wait_for_id(&self, record: &PendingRecord) -> Result<Found<C::Object>, Error> {
        let mut waits = retry::waits(retry::SEARCH, self.client.random());
        loop {
            match self.examine_id(record).await {
                Ok(Found::Young) => {}
                Ok(found) => return Ok(found),
                Err(error) => return Ok(Found::Unknown { reason: "a lookup failed", cause: Some(error) }),
            }
            let wait = waits.next().unwrap_or_default();
            if let Err(ended) = self.context.sleep(wait).await {
                // It may exist, as after a failed lookup.
                return Ok(Found::Unknown { reason: "it is not shown yet", cause: Some(ended.error(C::ENDPOINT)) });
            }
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
        let mut waits = retry::waits(retry::SEARCH.with_max_delay(longest), self.client.random());
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
        Ok(Found::Unknown { reason: "the lists are inconclusive", cause })
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

    fn made(&self, object: &C::Object, sent: &PendingRecord) -> bool {
        self.choices.at(0).made(object, &sent.marker, sent.begun_at, &self.client)
    }

    fn listed(&self, listing: &Listing<C::Object>, sent: &PendingRecord) -> Found<C::Object> {
        Found::listed(listing, sent, |object| self.made(object, sent))
    }

    /// A list that lacks nothing that matters here. An unreadable record whose name is known to be another one does
    /// not matter.
    async fn whole_list(&self, freshness: Freshness) -> Result<Arc<Listing<C::Object>>, Error> {
        let objects = self.client.objects::<C::Object>();
        for freshness in [freshness, Freshness::Fresh] {
            let listing = objects.all(freshness, &self.context).await?;
            if listing.complete
                || (listing.is_reached
                    && listing.unread.iter().all(|unread| match (unread, self.wanted_name()) {
                        (Some(own), Some(wanted)) => {
                            !is_same_name(own, wanted) && !is_marked(own, C::Object::KIND, wanted, self.journal.scope())
                        }
                        _ => false,
                    }))
            {
                return Ok(listing);
            }
        }
        Err(Error::undecodable(C::Object::LIST, "the list is incomplete", RequestIds::default()))
    }

    /// The error of a create that a record stops.
    fn stopped(&self, found: Found<C::Object>, marker: &str, cause: Option<Error>) -> Error {
        match found {
            Found::Several(found) => Error::SeveralMatches { marker: marker.to_owned(), found },
            Found::Unknown { cause: looking, .. } => self.unsettled(marker, cause.or(looking)),
            _ => self.unsettled(marker, cause),
        }
    }

    fn wanted_name(&self) -> Option<&str> {
        self.choices.at(0).wanted_name()
    }

    /// Reports what the create waits for as progress.
    fn task(&self, marker: &str) -> Task {
        self.client.settings().progress.task(C::Object::KIND.noun(), marker)
    }

    async fn discard(&self, entry: Entry) {
        if let Err(error) = blocking(move || entry.discard()).await {
            tracing::warn!(%error, "the pending record of a request without effect was not removed");
        }
    }

    fn unsettled(&self, marker: &str, cause: Option<Error>) -> Error {
        let cancelled = self.context.cancel.is_cancelled();
        Error::Unsettled(Box::new(Unsettled { marker: marker.to_owned(), cause, cancelled }))
    }
}

/// Whether the service refused it, not the caller.
fn is_refused(refusal: &Refusal) -> bool {
    !matches!(refusal.error, Error::Withdrawn { .. })
}

/// Whether a later request would fail too.
fn is_final(refusal: &Refusal) -> bool {
    refusal.error.code().is_some_and(|code| !code.is_out_of_stock())
}

/// Runs file operations on a thread for blocking work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// The phase that is reported while a refused create waits.
fn waiting_for(error: &Error) -> &'static str {
    match error.code() {
        Some(code) if code.is_busy() => "waiting for another save to end",
        _ => "repeating the request",
    }
}

/// How long the provider of a killed run may take to exit: a second to notice, five seconds of grace, and a margin.
const OWNER_ENDS: Duration = Duration::from_secs(15);

/// How often to check whether it has exited.
const OWNER_LOOKS: Duration = Duration::from_millis(200);

/// After this many consecutive permanent failures, looking ends.
const FAILED_LOOKS: u32 = 3;

/// This many consecutive complete lists without the object, after the visibility window, prove that nothing was
/// created.
const CONCLUSIVE_LOOKS: u32 = 2;

/// The greatest age of a list that looks share; it must also be requested after the search began.
const SHARED_LOOK: Duration = Duration::from_secs(1);

/// The pause before the first look, so that creates sent at the same time share one list.
const SENT_TOGETHER: Duration = Duration::from_millis(100);
