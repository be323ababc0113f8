//! Creates: sent once, and never lost.
//!
//! A create writes itself down, sends its request once, and when no answer comes looks for what it may have
//! made by the marker in its name. It is sent again only when nothing was processed for sure.

mod creation;
mod still_wanted;

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{
    client::{Client, GRACE, detached},
    code::Code,
    context::Context,
    error::{Error, Missing, RequestIds, Unsettled},
    pending::{Begin, Claim, Entry, Journal, Phase, Record},
    progress::{Step, Task},
    request::Request,
    retry,
};

pub use still_wanted::StillWanted;

pub(super) use creation::{Creation, Sought};

/// How long a thing may take from its create to its first show in a list. A create whose outcome is unknown and
/// that is older than this, and not in a complete list, made nothing.
pub const VISIBILITY_WINDOW: Duration = Duration::from_secs(120);

/// The same for a create that the service said yes to, without naming what it makes.
const ACKNOWLEDGED_WINDOW: Duration = Duration::from_secs(600);

/// How long the provider of a killed core may take to end: a second to notice, five seconds of grace, and some.
const OWNER_ENDS: Duration = Duration::from_secs(15);

/// How often to look whether it has.
const OWNER_LOOKS: Duration = Duration::from_millis(200);

/// How many looks in a row may fail for good before looking is given up.
const FAILED_LOOKS: u32 = 3;

/// How old a list may be that looks share, while it is younger than the create.
const SHARED_LOOK: Duration = Duration::from_secs(1);

/// How a create goes about it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// How long to go on asking, politely, while there is no stock (160001, 160004, 160014), on top of the time that the context
    /// gives. Default: not at all.
    pub wait_for_capacity: Option<Duration>,
    /// What is asked after each such wait, before the create is sent again. A no ends it with the refusal that it waited for.
    pub still_wanted: StillWanted,
    /// What to do while the service is busy with another image (130002, 130003). Default: fail.
    pub while_busy: WhileBusy,
}

/// What to do while the service is busy with another request like ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhileBusy {
    /// Fail with its code.
    #[default]
    Fail,
    /// Go on asking, politely, until the context ends.
    Wait,
}

impl CreateOptions {
    /// Goes on asking for this long while there is no stock.
    #[must_use]
    pub fn waiting_for_capacity(wait: Option<Duration>) -> Self {
        Self { wait_for_capacity: wait, ..Self::default() }
    }

    /// Goes on asking while the service is busy.
    #[must_use]
    pub fn waiting_while_busy() -> Self {
        Self { while_busy: WhileBusy::Wait, ..Self::default() }
    }
}

/// A thing that the service took on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Accepted<T> {
    /// What it is called.
    pub made: T,
    /// Its entry in the journal: to be [handed over](Entry::handed_over) just before the thing is answered.
    /// Dropped instead, the next run's same create adopts the thing.
    pub entry: Entry,
    /// The name that it carries now: the wanted one with a marker; a private image's is the wanted one itself.
    pub sent_name: String,
    /// The name that it is to be given. When this is `None` it keeps its name: none was wanted, or it has it.
    pub rename_to: Option<String>,
    /// What support asks for, when the service answered.
    pub ids: RequestIds,
    /// When the time is over that the context gave: later than the context says by the wait for capacity.
    pub deadline: Instant,
    /// How we know.
    pub origin: Origin,
}

/// How a create learned the id of what it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An earlier run made it, and this one took it up.
    Adopted,
    /// The service answered.
    Answered,
    /// The answer did not say, or none came, and what carries the sent name was found.
    Found,
}

/// Creates a thing, on a task of its own.
pub(super) async fn create<C: Creation>(
    client: &Client,
    creation: C,
    key: &str,
    journal: &Journal,
    options: CreateOptions,
    context: &Context,
) -> Result<Accepted<C::Made>, Error> {
    let flow = Flow {
        client: client.clone(),
        creation,
        key: key.to_owned(),
        journal: journal.clone(),
        options,
        context: context.clone(),
    };
    detached(C::ENDPOINT, flow.run()).await
}

struct Flow<C> {
    client: Client,
    creation: C,
    key: String,
    journal: Journal,
    options: CreateOptions,
    context: Context,
}

/// What looking for a lost create came to.
enum Settled<T> {
    Found(T),
    /// Nothing carries the marker; conclusive when a complete list said so at the end.
    NotSeen {
        conclusive: bool,
        cause: Option<Error>,
    },
}

impl<C: Creation> Flow<C> {
    async fn run(self) -> Result<Accepted<C::Made>, Error> {
        self.context.check().map_err(|ended| ended.error(C::ENDPOINT))?;
        let base_url = self.client.settings().base_url.as_ref().ok_or(Error::Missing(Missing::BaseUrl))?.to_string();
        let account = self.client.fingerprint(&self.context).await?;
        let random = self.client.random();
        let left = match self.claim(&base_url, &account).await? {
            Some(entry) => match self.resume(entry, &account).await? {
                Resumed::Accepted(accepted) => return Ok(*accepted),
                Resumed::SendAgain(entry) => Some(*entry),
                Resumed::StartAnew => None,
            },
            None => None,
        };
        let entry = match left {
            Some(mut entry) => {
                entry.sending(&account)?;
                entry
            }
            None => {
                let wanted_name = self.creation.wanted_name();
                let begin = Begin {
                    kind: C::KIND,
                    key: &self.key,
                    marker: &self.creation.marker(random),
                    wanted_name,
                    base_url: &base_url,
                    account: &account,
                };
                self.journal.begin(&begin, random)?
            }
        };
        self.send(entry).await
    }

    /// Looks for what an earlier run left. One that was killed a moment ago may still be ending, and its provider with it: it is
    /// given the time to note what became of its create.
    async fn claim(&self, base_url: &str, account: &str) -> Result<Option<Entry>, Error> {
        let until = Instant::now() + OWNER_ENDS;
        loop {
            match self.journal.claim(C::KIND, &self.key, base_url, account, self.client.random())? {
                Claim::Entry(entry) => return Ok(Some(*entry)),
                Claim::None => return Ok(None),
                Claim::Owned if Instant::now() < until => {
                    tracing::info!("waiting for another process that is at the same create");
                    self.context.sleep(OWNER_LOOKS).await.map_err(|ended| ended.error(C::ENDPOINT))?;
                }
                Claim::Owned => {
                    tracing::warn!("another process is at the same create and goes on: this is another one");
                    return Ok(None);
                }
            }
        }
    }

    /// Takes up what an earlier run left: adopted when it is accepted, looked for when it was sent.
    async fn resume(&self, entry: Entry, account: &str) -> Result<Resumed<C::Made>, Error> {
        let record = entry.record().clone();
        let age = Timestamp::now().as_second() - record.updated_at;
        let age = Duration::from_secs(u64::try_from(age).unwrap_or(0));
        let marker = &record.marker;
        let made = record.ids.as_ref().and_then(|ids| self.creation.recall(ids));
        if let (Phase::Accepted, Some(ids), Some(made)) = (record.phase, &record.ids, made) {
            if self.creation.is_gone(&self.client, ids, age, &self.context).await {
                return self.forget(entry);
            }
            tracing::info!(id = ids.id, marker, "taking up what an earlier run created");
            let ids = RequestIds { request_id: record.request_id, trace_id: None };
            return Ok(Resumed::Accepted(Box::new(self.accepted(made, entry, ids, Origin::Adopted))));
        }
        tracing::info!(marker, "looking for what an earlier run may have created");
        let window = if record.acknowledged { ACKNOWLEDGED_WINDOW } else { VISIBILITY_WINDOW };
        let until = Instant::now() + window.saturating_sub(age);
        match self.settle(&record, until).await? {
            Settled::Found(made) => {
                if self.creation.is_gone(&self.client, &C::ids(&made), age, &self.context).await {
                    return self.forget(entry);
                }
                let accepted = self.record(made, entry, RequestIds::default(), Origin::Found);
                Ok(Resumed::Accepted(Box::new(accepted)))
            }
            Settled::NotSeen { conclusive: false, cause } => Err(self.unsettled(marker, cause)),
            Settled::NotSeen { conclusive: true, .. } if record.account == account => {
                Ok(Resumed::SendAgain(Box::new(entry)))
            }
            Settled::NotSeen { conclusive: true, .. } => {
                tracing::warn!(
                    marker,
                    "a create that an earlier run sent under another token was not found: it stays in the journal"
                );
                entry.unexplained()?;
                Ok(Resumed::StartAnew)
            }
        }
    }

    /// What an earlier run made was released since: the wanted thing is to be made anew.
    fn forget(&self, entry: Entry) -> Result<Resumed<C::Made>, Error> {
        tracing::info!(marker = entry.record().marker, "what an earlier run created is gone");
        entry.discard()?;
        Ok(Resumed::StartAnew)
    }

    /// Sends the request until the service has processed it.
    async fn send(mut self, mut entry: Entry) -> Result<Accepted<C::Made>, Error> {
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
            attempt += 1;
            let error = match self.client.attempt(&self.context, &request, attempt).await {
                Ok(answer) => match self.creation.read(&answer.value()) {
                    Some(made) => {
                        task.done(None);
                        return Ok(self.record(made, entry, answer.ids, Origin::Answered));
                    }
                    None => {
                        if let Err(error) = entry.acknowledged(answer.ids.request_id.clone()) {
                            tracing::warn!(%error, "what was taken on could not be written down");
                        }
                        return self.recover(entry, None, self.context.deadline, answer.ids).await;
                    }
                },
                Err(error) => error,
            };
            let ids = error.request_ids();
            let no_stock = error.code().is_some_and(Code::is_out_of_stock);
            let wait = if error.outcome_is_unknown() {
                return self.recover(entry, Some(error), self.context.deadline, ids).await;
            } else if matches!(error.code(), Some(Code::Other(_))) && !error.nothing_was_processed() {
                // An undocumented refusal: believed when nothing shows up.
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
                self.discard(entry);
                return Err(error);
            };
            task.sees(Step::new(waiting_for(&error)), None);
            let wait_ms = wait.as_millis();
            tracing::debug!(endpoint = %C::ENDPOINT, attempt, wait_ms, %error, "nothing was made: asking again");
            let is_over = self.context.sleep(wait).await.is_err();
            if is_over || (no_stock && !self.options.still_wanted.answer(&self.context).await) {
                self.discard(entry);
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
    ) -> Result<Accepted<C::Made>, Error> {
        let sent = entry.record().clone();
        let marker = &sent.marker;
        tracing::info!(marker, cause = cause.as_ref().map(tracing::field::display), "looking for what was created");
        match (self.settle(&sent, until).await?, cause) {
            (Settled::Found(made), _) => Ok(self.record(made, entry, ids, Origin::Found)),
            (Settled::NotSeen { conclusive: true, .. }, Some(error)) if !error.outcome_is_unknown() => {
                self.discard(entry);
                Err(error)
            }
            (Settled::NotSeen { cause: looking, .. }, cause) => Err(self.unsettled(marker, cause.or(looking))),
        }
    }

    /// Looks for the name that was sent, at least once, until it is found, `until` is over, or the operation ends.
    async fn settle(&self, sent: &Record, until: Instant) -> Result<Settled<C::Made>, Error> {
        let begun = Instant::now();
        // What the service took on is visible soon, and somebody waits for it.
        let longest = Duration::from_secs(if sent.acknowledged { 2 } else { 10 });
        let mut waits = retry::looks(longest, self.client.random());
        let (mut conclusive, mut cause, mut failed) = (false, None, 0);
        let mut task = self.task(&sent.marker);
        while self.context.check().is_ok() {
            let now = Instant::now();
            let last = now >= until;
            let sought = if last {
                self.last_look(sent).await
            } else {
                let since = now.checked_sub(SHARED_LOOK).map_or(begun, |shared| shared.max(begun));
                self.creation.find(&self.client, sent, since, &self.context).await
            };
            match sought {
                Ok(mut sought) => {
                    if sought.found.len() > 1 {
                        let found = sought.found.iter().map(|made| C::ids(made).id).collect();
                        return Err(Error::SeveralMatches { marker: sent.marker.clone(), found });
                    }
                    if let Some(made) = sought.found.pop() {
                        task.done(None);
                        return Ok(Settled::Found(made));
                    }
                    (conclusive, cause, failed) = (last && sought.complete, None, 0);
                }
                Err(error) => {
                    failed = if error.is_permanent() { failed + 1 } else { 0 };
                    (conclusive, cause) = (false, Some(error));
                }
            }
            task.sees(Step::new("looking for what was created"), None);
            let wait = waits.next().unwrap_or_default().min(until.saturating_duration_since(Instant::now()));
            if last || failed == FAILED_LOOKS || self.context.sleep(wait).await.is_err() {
                break;
            }
        }
        if sent.acknowledged
            && self.context.check().is_err()
            && let Some(made) = self.look_in_grace(sent).await
        {
            return Ok(Settled::Found(made));
        }
        Ok(Settled::NotSeen { conclusive, cause })
    }

    /// The look that decides: by a fresh list, and by a search for what that lacks.
    async fn last_look(&self, sent: &Record) -> Result<Sought<C::Made>, Error> {
        let sought = self.creation.find(&self.client, sent, Instant::now(), &self.context).await?;
        if sought.complete && sought.found.is_empty() {
            return self.creation.search(&self.client, sent, &self.context).await;
        }
        Ok(sought)
    }

    /// The look that an ended operation is given to learn the id of what the service took on: an answer that named
    /// it would have had as long.
    async fn look_in_grace(&self, sent: &Record) -> Option<C::Made> {
        let grace = Context::within(GRACE, &CancellationToken::new());
        let sought = self.creation.find(&self.client, sent, Instant::now(), &grace).await.ok()?;
        let [made] = <[C::Made; 1]>::try_from(sought.found).ok()?;
        Some(made)
    }

    /// Notes what was made. A journal that fails now must not hide it.
    fn record(&self, made: C::Made, mut entry: Entry, ids: RequestIds, origin: Origin) -> Accepted<C::Made> {
        if let Err(error) = entry.accepted(C::ids(&made), ids.request_id.clone()) {
            tracing::warn!(%error, "what was created could not be written down");
        }
        self.accepted(made, entry, ids, origin)
    }

    fn accepted(&self, made: C::Made, entry: Entry, ids: RequestIds, origin: Origin) -> Accepted<C::Made> {
        let sent_name = entry.record().marker.clone();
        let rename_to = self.creation.wanted_name().map(str::to_owned).filter(|wanted| *wanted != sent_name);
        Accepted { made, entry, sent_name, rename_to, ids, deadline: self.context.deadline, origin }
    }

    /// Tells who looks on what the create waits for.
    fn task(&self, marker: &str) -> Task {
        self.client.settings().progress.task(&C::KIND.as_str().replace('_', " "), marker)
    }

    fn discard(&self, entry: Entry) {
        if let Err(error) = entry.discard() {
            tracing::warn!(%error, "a create that made nothing stays in the journal");
        }
    }

    fn unsettled(&self, marker: &str, cause: Option<Error>) -> Error {
        let cancelled = self.context.cancel.is_cancelled();
        Error::Unsettled(Box::new(Unsettled { marker: marker.to_owned(), cause, cancelled }))
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

enum Resumed<T> {
    Accepted(Box<Accepted<T>>),
    SendAgain(Box<Entry>),
    StartAnew,
}

#[cfg(test)]
mod tests;
