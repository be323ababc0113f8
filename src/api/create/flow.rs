//! One create, from its pending record to the service's acceptance.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    Accepted, Choices, CreateOptions, Creation, Origin, VISIBILITY_WINDOW, WhileBusy,
    resume::{Resumed, Settled},
    rounds::CreatesUnder,
};
use crate::api::{
    client::Client,
    code::Code,
    context::{Context, Ended},
    endpoint::Request,
    error::{Error, Missing, RequestIds, Unsettled},
    object::Object,
    pending::{Begin, Entry, Ids, Journal, PendingRecord, Wanted},
    progress::{Stage, Task},
    records::{Record as _, read},
    retry,
};

pub(super) struct Flow<C: Creation> {
    pub(super) client: Client,
    pub(super) choices: Choices<C>,
    pub(super) key: String,
    pub(super) journal: Journal,
    pub(super) options: CreateOptions<C::Object>,
    pub(super) context: Context,
}

/// The outcome of a request.
pub(super) enum Sent<K> {
    Accepted(Box<Accepted<K>>),
    /// After the visibility window, two complete lists lack the object. The error is that of the request.
    Nothing(Box<Entry>, Error),
    /// The service refused it with an error that another choice or a later time may avoid.
    Refused(Box<Entry>, Error),
}

impl<C: Creation> Flow<C> {
    pub(super) async fn run(mut self) -> Result<Accepted<C::Object>, Error> {
        self.context.check().map_err(|ended| ended.error(C::ENDPOINT))?;
        let base_url = self.client.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?.to_string();
        let account = CreatesUnder { base_url, fingerprint: self.client.fingerprint(&self.context).await? };
        match self.resume(&account.base_url, &account.fingerprint).await? {
            Resumed::Accepted(accepted) => Ok(*accepted),
            Resumed::SendAgain(entry) => {
                let first = self.after(entry.record());
                self.rounds(Some(*entry), first, &account).await
            }
            Resumed::StartAnew => self.rounds(None, 0, &account).await,
        }
    }

    /// The index of the first choice to request for a resumed create: the next one after a candidate that was refused
    /// recently.
    fn after(&self, record: &PendingRecord) -> usize {
        let is_recent = record.refused && age(record.updated_at) < VISIBILITY_WINDOW;
        let refused = self.choices.place_of(record.candidate.as_deref()).filter(|_| is_recent);
        refused.map_or(0, |place| (place + 1) % self.choices.count())
    }

    pub(super) async fn begin(&self, account: &CreatesUnder, marker: &str, choice: usize) -> Result<Entry, Error> {
        let (journal, random) = (self.journal.clone(), self.client.random().clone());
        let choice = self.choices.at(choice);
        let (wanted_name, candidate) = (choice.wanted_name().map(str::to_owned), choice.candidate());
        let (key, base_url, account) = (self.key.clone(), account.base_url.clone(), account.fingerprint.clone());
        let marker = marker.to_owned();
        blocking(move || {
            let candidates = candidate.as_slice();
            let wanted =
                Wanted { kind: C::Object::KIND, key: &key, base_url: &base_url, account: &account, candidates };
            let begin =
                Begin { wanted, marker: &marker, wanted_name: wanted_name.as_deref(), candidate: candidate.clone() };
            journal.begin(&begin, &random)
        })
        .await
    }

    pub(super) async fn sending(
        &self,
        mut entry: Entry,
        account: &CreatesUnder,
        choice: usize,
    ) -> Result<Entry, Error> {
        let (account, candidate) = (account.fingerprint.clone(), self.choices.at(choice).candidate());
        blocking(move || entry.sending(&account, candidate).map(|()| entry)).await
    }

    /// Sends the request of a choice until the service has processed it.
    pub(super) async fn send(
        &self,
        choice: usize,
        mut entry: Entry,
        task: &mut Task,
    ) -> Result<Sent<C::Object>, Error> {
        let marker = entry.record().marker.clone();
        let request = Request::new(C::ENDPOINT).body(&self.choices.at(choice).body(&marker));
        let mut waits = retry::schedule(self.client.settings().max_retries, self.client.random());
        let mut busy = retry::busy(self.client.random());
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
                                tracing::warn!(%error, "that the create was accepted could not be written down");
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
            tracing::debug!(endpoint = %C::ENDPOINT, attempt, wait_ms, %error, "nothing was made: asking again");
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
        match (self.settle(&sent, until).await?, cause) {
            (Settled::Found(made), _) => Ok(Sent::Accepted(Box::new(self.note(made, entry, ids, Origin::Found).await))),
            (Settled::NotSeen { conclusive: true, .. }, Some(error)) if error.outcome_is_unknown() => {
                Ok(Sent::Nothing(Box::new(entry), error))
            }
            (Settled::NotSeen { conclusive: true, .. }, Some(error)) => {
                self.discard(entry).await;
                Err(error)
            }
            (Settled::NotSeen { cause: looking, .. }, cause) => Err(self.unsettled(marker, cause.or(looking))),
        }
    }

    /// Records the created object. An error of the journal must not hide the object.
    pub(super) async fn note(
        &self,
        made: C::Object,
        mut entry: Entry,
        ids: RequestIds,
        origin: Origin,
    ) -> Accepted<C::Object> {
        let account = match self.client.fingerprint(&self.context).await {
            Ok(account) => account,
            Err(_) => entry.record().account.clone(),
        };
        let noted = Ids { id: made.key().to_string(), database_id: None };
        let request_id = ids.request_id.clone().or_else(|| entry.record().request_id.clone());
        let (entry, written) = blocking(move || {
            let written = entry.accepted(noted, &account, request_id);
            (entry, written)
        })
        .await;
        let sent_name = entry.record().marker.clone();
        let choice = self.choices.place_of(entry.record().candidate.as_deref()).unwrap_or_default();
        let rename_to = self.choices.preferred().wanted_name().map(str::to_owned).filter(|wanted| *wanted != sent_name);
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

    /// Reports what the create waits for as progress.
    pub(super) fn task(&self, marker: &str) -> Task {
        self.client.settings().progress.task(C::Object::KIND.noun(), marker)
    }

    pub(super) async fn discard(&self, entry: Entry) {
        if let Err(error) = blocking(move || entry.discard()).await {
            tracing::warn!(%error, "the pending record of a create without effect was not removed");
        }
    }

    pub(super) fn unsettled(&self, marker: &str, cause: Option<Error>) -> Error {
        let cancelled = self.context.cancel.is_cancelled();
        Error::Unsettled(Box::new(Unsettled { marker: marker.to_owned(), cause, cancelled }))
    }
}

/// Runs file operations on a thread for blocking work.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// The phase that is reported while a refused create waits.
fn waiting_for(error: &Error) -> &'static str {
    match error.code() {
        Some(code) if code.is_busy() => "waiting for another save to end",
        _ => "asking again",
    }
}

/// The time since a time of the journal, in Unix seconds.
pub(super) fn age(since: i64) -> Duration {
    let seconds = jiff::Timestamp::now().as_second().saturating_sub(since);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// The answer to the question before a request is sent.
#[derive(Clone, Debug)]
pub enum Permission<K> {
    /// Adopt this object, which an earlier run created from the same configuration, and whose record is lost.
    Adopt(Box<K>),
    /// Do not send this request. A create without another choice fails with
    /// [`Error::Withdrawn`](crate::api::Error::Withdrawn).
    Refuse,
    /// Send the request.
    Send,
}

/// One request of a create that is about to be sent.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its index among the choices.
    pub choice: usize,
    /// When the round over the choices began: answers requested since then are fresh enough for this round.
    pub since: Instant,
    /// The name that is sent, the same for all requests of this create.
    pub marker: String,
}

type Question<K> = Arc<dyn Fn(Attempt, Context) -> BoxFuture<'static, Permission<K>> + Send + Sync>;

/// A question to the caller before each request of a create, for each choice in each round, because the price and more
/// may have changed. It is not asked before an earlier run's object is adopted.
pub struct BeforeSending<K>(Option<Question<K>>);

impl<K> BeforeSending<K> {
    /// Asks `question`, within the remaining time of the create.
    pub fn asks<F>(question: impl Fn(Attempt, Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Permission<K>> + Send + 'static,
    {
        Self(Some(Arc::new(move |attempt, context| Box::pin(question(attempt, context)))))
    }

    /// The answer; without a question, [`Permission::Send`].
    pub(super) async fn answer(&self, attempt: Attempt, context: &Context) -> Permission<K> {
        match &self.0 {
            Some(question) => question(attempt, context.clone()).await,
            None => Permission::Send,
        }
    }
}

impl<K> Clone for BeforeSending<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for BeforeSending<K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K> fmt::Debug for BeforeSending<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("BeforeSending").field(&self.0.is_some()).finish()
    }
}
