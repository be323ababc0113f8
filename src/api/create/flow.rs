//! One create, from its record in the journal to the service's acceptance.

use std::time::Duration;

use tokio::time::Instant;

use crate::api::{
    client::Client,
    code::Code,
    context::{Context, Ended},
    create::{
        Accepted, CreateOptions, Creation, Origin, Permission, VISIBILITY_WINDOW, WhileBusy, resume::Resumed,
        settle::Settled,
    },
    error::{Error, Missing, RequestIds, Unsettled},
    object::Object,
    pending::{Begin, Entry, Ids, Journal, Wanted},
    progress::{Step, Task},
    records::{Record as _, read},
    request::Request,
    retry,
};

pub(super) struct Flow<C: Creation> {
    pub(super) client: Client,
    pub(super) creation: C,
    pub(super) key: String,
    pub(super) journal: Journal,
    pub(super) options: CreateOptions<C::Object>,
    pub(super) context: Context,
}

/// What a request came to.
enum Sent<K> {
    /// The service took it on.
    Accepted(Box<Accepted<K>>),
    /// Two complete lists after the visibility window lack what it may have made; why there was no answer.
    Nothing(Box<Entry>, Error),
}

impl<C: Creation> Flow<C> {
    pub(super) async fn run(mut self) -> Result<Accepted<C::Object>, Error> {
        self.context.check().map_err(|ended| ended.error(C::ENDPOINT))?;
        let base_url = self.client.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?.to_string();
        let account = self.client.fingerprint(&self.context).await?;
        let entry = match self.resume(&base_url, &account).await? {
            Resumed::Accepted(accepted) => return Ok(*accepted),
            Resumed::SendAgain(entry) => Some(*entry),
            Resumed::StartAnew => None,
        };
        if let Some(adopted) = self.permitted().await? {
            if let Some(entry) = entry {
                self.discard(entry).await;
            }
            let marker = adopted.name().unwrap_or_default().to_owned();
            let entry = self.begin(&base_url, &account, marker).await?;
            return Ok(self.note(adopted, entry, RequestIds::default(), Origin::Adopted).await);
        }
        let entry = match entry {
            Some(entry) => self.sending(entry, &account).await?,
            None => {
                let marker = self.creation.marker(&self.key, self.client.random());
                self.begin(&base_url, &account, marker).await?
            }
        };
        match self.send(entry).await? {
            Sent::Accepted(accepted) => Ok(*accepted),
            Sent::Nothing(entry, error) if self.context.remaining() > VISIBILITY_WINDOW => {
                tracing::warn!(%error, "nothing was made: the create is sent once more");
                match self.send(self.sending(*entry, &account).await?).await? {
                    Sent::Accepted(accepted) => Ok(*accepted),
                    Sent::Nothing(entry, error) => {
                        self.discard(*entry).await;
                        Err(error)
                    }
                }
            }
            Sent::Nothing(entry, error) => {
                self.discard(*entry).await;
                Err(error)
            }
        }
    }

    /// The caller's word: what to adopt instead of sending, if anything.
    async fn permitted(&self) -> Result<Option<C::Object>, Error> {
        match self.options.before_sending.answer(&self.context).await {
            Permission::Adopt(object) => Ok(Some(*object)),
            Permission::Refuse => Err(Error::Withdrawn { endpoint: C::ENDPOINT }),
            Permission::Send => Ok(None),
        }
    }

    async fn begin(&self, base_url: &str, account: &str, marker: String) -> Result<Entry, Error> {
        let (journal, random) = (self.journal.clone(), self.client.random().clone());
        let wanted_name = self.creation.wanted_name().map(str::to_owned);
        let (key, base_url, account) = (self.key.clone(), base_url.to_owned(), account.to_owned());
        blocking(move || {
            let wanted = Wanted { kind: C::Object::KIND, key: &key, base_url: &base_url, account: &account };
            journal.begin(&Begin { wanted, marker: &marker, wanted_name: wanted_name.as_deref() }, &random)
        })
        .await
    }

    async fn sending(&self, mut entry: Entry, account: &str) -> Result<Entry, Error> {
        let account = account.to_owned();
        blocking(move || entry.sending(&account).map(|()| entry)).await
    }

    /// Sends the request until the service has processed it.
    async fn send(&mut self, mut entry: Entry) -> Result<Sent<C::Object>, Error> {
        let marker = entry.record().marker.clone();
        let request = Request::new(C::ENDPOINT).body(&self.creation.body(&marker));
        let patient_until = self.options.wait_for_capacity.map(|wait| Instant::now() + wait);
        let limit = self.context.remaining();
        let mut waits = retry::schedule(self.client.settings().max_retries, self.client.random());
        let mut patience = retry::patience(self.client.random());
        let mut busy = retry::busy(self.client.random());
        let mut task = self.task(&marker);
        let mut attempt = 0;
        loop {
            // After the record was written: a run that did not see it began later, when Terraform had ended.
            if self.options.abandoned.is_cancelled() || self.journal.core_has_ended() {
                self.discard(entry).await;
                return Err(Ended::Cancelled.error(C::ENDPOINT));
            }
            attempt += 1;
            let error = match self.client.attempt(&self.context, &request, attempt).await {
                Ok(answer) => match read::<C::Object>(&answer.result) {
                    Some(made) => {
                        task.done(None);
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
            let no_stock = error.code().is_some_and(Code::is_out_of_stock);
            let undocumented = matches!(error.code(), Some(Code::Other(_))) && !error.nothing_was_processed();
            let wait = if error.outcome_is_unknown() || undocumented {
                let until = self.context.deadline.min(Instant::now() + VISIBILITY_WINDOW);
                return self.recover(entry, Some(error), until, ids).await;
            } else if self.options.while_busy == WhileBusy::Wait && error.code().is_some_and(Code::is_busy) {
                busy.next().map(|wait| wait.max(error.retry_after().unwrap_or_default()))
            } else if error.is_retryable() {
                waits.next().map(|wait| wait.max(error.retry_after().unwrap_or_default()))
            } else if no_stock {
                patience.next().filter(|_| patient_until.is_some_and(|until| Instant::now() < until))
            } else {
                None
            };
            if no_stock && let Some(wait) = wait {
                // A wait for capacity comes on top: from its end the create has all its time again.
                self.context.deadline = Instant::now() + wait + limit;
            }
            let Some(wait) = wait.filter(|wait| *wait < self.context.remaining()) else {
                self.discard(entry).await;
                return Err(error);
            };
            task.sees(Step::new(waiting_for(&error)), None);
            let wait_ms = wait.as_millis();
            tracing::debug!(endpoint = %C::ENDPOINT, attempt, wait_ms, %error, "nothing was made: asking again");
            let is_over = self.context.sleep(wait).await.is_err();
            if is_over || (no_stock && !matches!(self.permitted().await, Ok(None))) {
                self.discard(entry).await;
                return Err(error);
            }
        }
    }

    /// Finds out what became of a request whose answer does not say.
    async fn recover(
        &self,
        entry: Entry,
        cause: Option<Error>,
        until: Instant,
        ids: RequestIds,
    ) -> Result<Sent<C::Object>, Error> {
        let sent = entry.record().clone();
        let marker = &sent.marker;
        tracing::info!(marker, cause = cause.as_ref().map(tracing::field::display), "looking for what was created");
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

    /// Notes what was made. A journal that fails now must not hide it.
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
        let rename_to = self.creation.wanted_name().map(str::to_owned).filter(|wanted| *wanted != sent_name);
        Accepted {
            made,
            entry,
            not_noted: written.err(),
            sent_name,
            rename_to,
            ids,
            deadline: self.context.deadline,
            origin,
        }
    }

    /// Tells who looks on what the create waits for.
    pub(super) fn task(&self, marker: &str) -> Task {
        self.client.settings().progress.task(C::Object::KIND.noun(), marker)
    }

    pub(super) async fn discard(&self, entry: Entry) {
        if let Err(error) = blocking(move || entry.discard()).await {
            tracing::warn!(%error, "a create that made nothing stays in the journal");
        }
    }

    pub(super) fn unsettled(&self, marker: &str, cause: Option<Error>) -> Error {
        let cancelled = self.context.cancel.is_cancelled();
        Error::Unsettled(Box::new(Unsettled { marker: marker.to_owned(), cause, cancelled }))
    }
}

/// Runs file work where it blocks nobody.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// What a create that nothing came of waits for.
fn waiting_for(error: &Error) -> &'static str {
    match error.code() {
        Some(code) if code.is_out_of_stock() => "waiting for stock",
        Some(code) if code.is_busy() => "waiting for another save to end",
        _ => "asking again",
    }
}

/// The time since a moment of the journal, in Unix seconds.
pub(super) fn age(since: i64) -> Duration {
    let seconds = jiff::Timestamp::now().as_second().saturating_sub(since);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
