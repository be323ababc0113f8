//! Looking for what a create may have made.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{
    client::GRACE,
    context::Context,
    create::{Creation, flow::Flow},
    error::Error,
    flight::Freshness,
    pending::Record,
    progress::Step,
    records::Record as _,
    retry,
};

/// How many looks in a row may fail for good before looking is given up.
const FAILED_LOOKS: u32 = 3;

/// How many complete lists must lack what was made, after the visibility window, before nothing was made.
const CONCLUSIVE_LOOKS: u32 = 2;

/// How old a list may be that looks share, while it is younger than the create.
const SHARED_LOOK: Duration = Duration::from_secs(1);

/// What looking for a lost create came to.
pub(super) enum Settled<K> {
    Found(K),
    /// Nothing carries the marker; conclusive when complete lists said so at the end.
    NotSeen {
        conclusive: bool,
        cause: Option<Error>,
    },
}

/// What a search found, and whether the list was complete.
struct Search<K> {
    found: Vec<K>,
    complete: bool,
}

impl<C: Creation> Flow<C> {
    /// Looks for the name that was sent, at least once, until it is found, `until` is over, or the operation ends.
    pub(super) async fn settle(&self, sent: &Record, until: Instant) -> Result<Settled<C::Object>, Error> {
        let begun = Instant::now();
        // What the service took on is visible soon, and somebody waits for it.
        let longest = Duration::from_secs(if sent.acknowledged { 2 } else { 10 });
        let mut waits = retry::looks(longest, self.client.random());
        let (mut lacking, mut cause, mut failed) = (0, None, 0);
        let mut task = self.task(&sent.marker);
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
            task.sees(Step::new("looking for what was created"), None);
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

    async fn look(&self, sent: &Record, freshness: Freshness, context: &Context) -> Result<Search<C::Object>, Error> {
        let listing = self.client.objects::<C::Object>().all(freshness, context).await?;
        Ok(self.search(&listing, sent))
    }

    /// A look that decides: first a list of all, then a search for what that lacked.
    async fn last_look(&self, sent: &Record, before: u32) -> Result<Search<C::Object>, Error> {
        if before == 0 {
            return self.look(sent, Freshness::Fresh, &self.context).await;
        }
        let listing = self.client.objects::<C::Object>().search(&sent.marker, &self.context).await?;
        Ok(self.search(&listing, sent))
    }

    fn search(&self, listing: &crate::api::Listing<C::Object>, sent: &Record) -> Search<C::Object> {
        let is_made = |object: &&C::Object| self.choices.preferred().made(object, sent, &self.client);
        Search { found: listing.records.iter().filter(is_made).cloned().collect(), complete: listing.complete }
    }

    /// The look that an ended operation is given to learn the id of what the service took on: an answer that named
    /// it would have had as long.
    async fn look_in_grace(&self, sent: &Record) -> Option<C::Object> {
        let grace = Context::within(GRACE, &CancellationToken::new());
        let search = self.look(sent, Freshness::Fresh, &grace).await.ok()?;
        let [made] = <[C::Object; 1]>::try_from(search.found).ok()?;
        Some(made)
    }
}
