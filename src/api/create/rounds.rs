//! The rounds of a create: the requests of its choices are sent in order of preference until one is accepted, and
//! repeated while the caller waits for stock.

use std::{iter, time::Duration};

use tokio::time::Instant;

use super::{
    Accepted, Attempt, Creation, Guard, Permission, VISIBILITY_WINDOW,
    flow::{CreateAccount, Flow, Sent, blocking},
};
use crate::api::{
    code::Code,
    error::{Error, Refusal},
    pending::{Entry, PendingCreate},
    progress::{Stage, Task},
    retry,
};

impl<C: Creation> Flow<C> {
    /// Goes through the choices, starting at index `first`. `entry` is the record of an earlier run's same create that
    /// made nothing, `others` are the left records that it does not resume.
    pub(super) async fn rounds<G: Guard>(
        &mut self,
        mut entry: Option<Entry>,
        first: usize,
        others: Vec<PendingCreate>,
        guard: &mut G,
        account: &CreateAccount,
    ) -> Result<Accepted<C::Object>, Error> {
        let marker = match &entry {
            Some(entry) => entry.record().marker.clone(),
            None => self.choices.at(0).marker(self.journal.scope(), self.client.random()),
        };
        let found = self.leftovers(others, account).await;
        if guard.judge(found, &self.context).await == Permission::Refuse {
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
                    tracing::warn!(%error, "the request had no effect: sending it once more");
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
    fn pauses(&self) -> retry::Waits {
        let schedule = if self.options.wait_for_capacity.is_some() { retry::STOCK } else { retry::ROUNDS };
        schedule.waits(self.client.random())
    }

    /// Waits for stock; `true` if the operation is over.
    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = "stock"))]
    async fn wait(&self, wait: Duration, task: &mut Task, refusals: &[Refusal]) -> bool {
        task.sees(Stage { detail: self.refused(refusals), ..Stage::new("waiting for stock") }, None);
        let wait_ms = wait.as_millis();
        tracing::debug!(endpoint = %C::ENDPOINT, wait_ms, "no stock: asking again");
        self.context.sleep(wait).await.is_err()
    }

    /// Reports the requested candidate as progress. A create with a single choice reports nothing.
    fn tell_attempt(&self, task: &mut Task, choice: usize, refusals: &[Refusal]) {
        if let Some(candidate) = self.choices.at(choice).candidate() {
            let step = Stage { detail: self.refused(refusals), ..Stage::new(format!("asking for {candidate}")) };
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
                tracing::warn!(%error, "a refusal could not be written down");
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
}

/// Whether the service refused it, not the caller.
fn is_refused(refusal: &Refusal) -> bool {
    !matches!(refusal.error, Error::Withdrawn { .. })
}

/// Whether a later request would fail too.
fn is_final(refusal: &Refusal) -> bool {
    refusal.error.code().is_some_and(|code| !code.is_out_of_stock())
}

/// The possible requests of a create, in order of preference. Usually one; several if stock and price decide.
#[derive(Debug, Clone)]
pub struct Choices<C> {
    first: C,
    others: Vec<C>,
}

impl<C: Creation> Choices<C> {
    /// Several choices, the preferred one first.
    #[must_use]
    pub fn new(first: C, others: Vec<C>) -> Self {
        Self { first, others }
    }

    /// The choice with this index. Fields that do not differ between choices are read from the first one.
    pub(super) fn at(&self, place: usize) -> &C {
        self.iter().nth(place).unwrap_or(&self.first)
    }

    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// The candidate names of the choices that have one.
    pub(super) fn candidates(&self) -> Vec<String> {
        self.iter().filter_map(Creation::candidate).collect()
    }

    /// The index of the choice with this name.
    pub(super) fn place_of(&self, candidate: Option<&str>) -> Option<usize> {
        let candidate = candidate?;
        self.iter().position(|choice| choice.candidate().as_deref() == Some(candidate))
    }

    fn iter(&self) -> impl Iterator<Item = &C> {
        iter::once(&self.first).chain(&self.others)
    }
}

impl<C> From<C> for Choices<C> {
    fn from(only: C) -> Self {
        Self { first: only, others: Vec::new() }
    }
}
