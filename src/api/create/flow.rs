//! One create, from its pending record to the service's acceptance.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Accepted, Choices, CreateOptions, Creation, Guard, Origin, VISIBILITY_WINDOW, WhileBusy, found::Found,
    resume::Patience,
};
use crate::api::{
    client::Client,
    code::Code,
    context::{Context, Ended},
    endpoint::Request,
    error::{Error, Missing, RequestIds, Unsettled},
    object::Object,
    pending::{Begin, Entry, Journal, PendingRecord},
    progress::{Stage, Task},
    records::read,
    retry,
    witness::AccountFingerprints,
};

pub(super) struct Flow<C: Creation> {
    pub(super) client: Client,
    pub(super) choices: Choices<C>,
    /// The hash of the configured object.
    pub(super) request: String,
    pub(super) journal: Journal,
    pub(super) options: CreateOptions,
    pub(super) context: Context,
}

/// The account that a create is recorded under.
pub(super) struct CreateAccount {
    pub(super) base_url: String,
    pub(super) fingerprints: AccountFingerprints,
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
    pub(super) async fn run<G: Guard>(mut self, mut guard: G) -> (G, Result<Accepted<C::Object>, Error>) {
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

    pub(super) async fn begin(&self, account: &CreateAccount, marker: &str, choice: usize) -> Result<Entry, Error> {
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

    pub(super) async fn sending(
        &self,
        mut entry: Entry,
        account: &CreateAccount,
        choice: usize,
    ) -> Result<Entry, Error> {
        let (account, candidate) = (account.fingerprints.clone(), self.choices.at(choice).candidate());
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
        let mut waits = retry::REQUEST.tries(self.client.settings().max_retries).waits(self.client.random());
        let mut busy = retry::BUSY.waits(self.client.random());
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
                                tracing::warn!(%error, "that the request to create was accepted could not be recorded");
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
    pub(super) async fn note(
        &self,
        made: C::Object,
        mut entry: Entry,
        ids: RequestIds,
        origin: Origin,
    ) -> Accepted<C::Object> {
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

    pub(super) fn wanted_name(&self) -> Option<&str> {
        self.choices.at(0).wanted_name()
    }

    /// Reports what the create waits for as progress.
    pub(super) fn task(&self, marker: &str) -> Task {
        self.client.settings().progress.task(C::Object::KIND.noun(), marker)
    }

    pub(super) async fn discard(&self, entry: Entry) {
        if let Err(error) = blocking(move || entry.discard()).await {
            tracing::warn!(%error, "the pending record of a request without effect was not removed");
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
