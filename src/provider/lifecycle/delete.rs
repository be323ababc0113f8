//! The destroy of all kinds. In doubt, an object stays in the state.

use super::{
    absence,
    managed::{AfterRefusal, Forbidden, Free, Managed, ManagedExt as _, Release},
};
use crate::{
    api::{self, Absence, AccountMatch, Object, Presence, Sighting},
    framework::{Diagnostic, Diagnostics, Outcome, State},
    provider::{StepContext, client::limits, errors::Failure, protection::refusal, words::capitalized},
};

/// Releases an object and waits until it is certainly gone.
pub(super) async fn delete<M: Managed>(current: State<M>, context: &StepContext) -> Outcome<M> {
    if current.state.is_protected() {
        let diagnostic = refusal(&current.state);
        return current.unchanged(diagnostic);
    }
    let (client, limits) = (context.client.as_ref(), limits(context));
    let Some(key) = current.state.key() else {
        let subject = current.state.subject();
        return absence::unproved(current, &subject, "its id in the state cannot be read");
    };
    let release = Release { key, current: &current, client, limits };
    match release.run().await {
        Ok(End::Gone) => {
            if let Some(id) = current.state.id() {
                client.released(M::Object::KIND, id, current.state.uid());
            }
            Outcome::absent()
        }
        Ok(End::Abandoned(warning)) => Outcome::absent().with(warning),
        Err(diagnostics) => current.unchanged(diagnostics),
    }
}

/// How a release ended.
enum End {
    Abandoned(Diagnostic),
    Gone,
}

impl<M: Managed> Release<'_, M> {
    async fn run(&self) -> Result<End, Diagnostics> {
        let (objects, kind) = (self.client.api.objects::<M::Object>(), M::Object::KIND.as_str());
        let mut is_first = true;
        loop {
            match M::until_free(self).await? {
                Free::Going => return Ok(self.until_gone().await?),
                Free::Unseen => {
                    if let Some(end) = self.unseen().await? {
                        return Ok(end);
                    }
                }
                Free::Ready => {}
            }
            tracing::info!(kind, id = %self.key, "releasing");
            let error = match objects.release(&self.key, &self.limits).await {
                Ok(()) if M::KIND.releases_later => return Ok(self.until_gone().await?),
                Ok(()) => return Ok(End::Gone),
                Err(error) => error,
            };
            match M::forbidden(self, &error, is_first).await {
                Some(Forbidden::Abandoned(warning)) => return Ok(End::Abandoned(warning)),
                Some(Forbidden::Kept(diagnostics)) => return Err(diagnostics),
                Some(again @ (Forbidden::Again | Forbidden::Later)) => {
                    is_first = matches!(again, Forbidden::Later);
                    continue;
                }
                None => {}
            }
            if !error.code().is_some_and(M::may_be_gone) {
                return Err(self.failed(&error).into());
            }
            // A refusal alone proves nothing: the token of another account gets the same one.
            match objects.look(&self.key, self.current.state.hint(), &self.limits).await {
                Ok(Presence::Released) => return Ok(End::Gone),
                Ok(Presence::Absent) => return Ok(self.absent(&error).await?),
                Ok(Presence::Present(shown)) => match M::after_refusal(&error, &shown) {
                    AfterRefusal::Again => tracing::debug!(kind, id = %self.key, %error, "no longer free"),
                    AfterRefusal::Fail => return Err(self.failed(&error).into()),
                    AfterRefusal::Wait => return Ok(self.until_gone().await?),
                },
                Ok(_) => return Err(self.failed(&error).into()),
                Err(looking) => return Err(self.failed(&looking).into()),
            }
        }
    }

    /// Waits for the end of an accepted release. An object that disappears from lists is looked up once more before it
    /// counts as gone; the acceptance proves that the account is the right one.
    async fn until_gone(&self) -> Result<End, Diagnostic> {
        let objects = self.client.api.objects::<M::Object>();
        let is_gone = |seen: &Sighting<M::Object>| seen.record().is_none_or(M::Object::is_released);
        loop {
            let seen = objects.wait(&self.key, &self.limits, is_gone).await.map_err(|error| self.stopped(&error))?;
            if let Sighting::Present(_) = seen {
                return Ok(End::Gone);
            }
            match objects.look(&self.key, self.current.state.hint(), &self.limits).await {
                Ok(Presence::Released | Presence::Absent) => return Ok(End::Gone),
                Ok(_) => tracing::debug!(id = %self.key, "not released yet"),
                Err(error) => return Err(self.stopped(&error)),
            }
        }
    }

    /// Handles an object that is not in the list. A young object that is only invisible can be released nevertheless.
    async fn unseen(&self) -> Result<Option<End>, Diagnostic> {
        let objects = self.client.api.objects::<M::Object>();
        match objects.look(&self.key, self.current.state.hint(), &self.limits).await {
            Ok(Presence::Released) => Ok(Some(End::Gone)),
            Ok(Presence::Absent) => match self.judge().await {
                Ok(absence) if absence.is_proof() => Ok(Some(End::Gone)),
                Ok(absence) if absence.account == AccountMatch::Same => Ok(None),
                Ok(absence) => Err(absence::doubt(&self.current.state.subject(), absence)),
                Err(error) => Err(self.failed(&error)),
            },
            Ok(_) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Handles an absent object whose release was refused: it is gone only with proof.
    async fn absent(&self, error: &api::Error) -> Result<End, Diagnostic> {
        match self.judge().await {
            Ok(absence) if absence.is_proof() => Ok(End::Gone),
            Ok(absence) => {
                let mut doubt = absence::doubt(&self.current.state.subject(), absence);
                doubt.detail = format!("{} The release was refused.\n\nThe error: {error}.", doubt.detail);
                Err(doubt)
            }
            Err(looking) => Err(self.failed(&looking)),
        }
    }

    async fn judge(&self) -> Result<Absence, api::Error> {
        let subject = self.current.state.subject();
        absence::judge(&self.current.private, &subject.witness, self.client, &self.limits).await
    }

    /// The diagnostic for a release that was accepted and whose end was not observed.
    fn stopped(&self, error: &api::Error) -> Diagnostic {
        Diagnostic::error(
            format!("{} is not released yet", capitalized(&self.current.state.title())),
            format!(
                "The service accepted the release, but its end was not seen. The resource stays in the state until \
                 it is shown as released. Destroy again to continue.\n\nThe error: {error}."
            ),
        )
    }

    pub(in crate::provider) fn failed(&self, error: &api::Error) -> Diagnostic {
        let tried = format!("release {}", self.current.state.title());
        Failure { error, tried, now: "The resource stays in the state.".to_owned() }.whole()
    }
}
