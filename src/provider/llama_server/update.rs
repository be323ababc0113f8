//! Updates in place, and repairs of what a refresh found.

use super::{
    bootstrap::{Fingerprint, Job, JobReport, Verb},
    enter::enter,
    failure,
    machine::{InstanceSession, Trouble},
    model::{LlamaServer, Records as _},
    plan::UpdateEffect,
    read::{self, status_of},
    trial::{self, TrialLook},
    work::{JobCheck, NotServing, Return},
};
use crate::{
    framework::{Outcome, Private, StepContext, Update},
    provider::ProviderClient,
};

const AS_BEFORE: &str = "Nothing was changed. What runs in the instance continues.";

const ENDED: &str = "The former server is no longer running, and the state records this: the next apply starts it.";

const NOT_HEARD: &str = "It is not known whether the instance received the change. The state keeps the previous \
                         values; the next apply sends the change again, or resumes it.";

const GOES_ON: &str = "The work continues in the instance, and the state records this: the next apply resumes it.";

const FAILED: &str = "The state records it as failed: the next apply starts it again.";

/// Changes a server in place, or repairs it. What only changes how the provider behaves, or how it logs in, restarts
/// nothing.
pub(super) async fn update(change: Update<LlamaServer>, context: &StepContext<ProviderClient>) -> Outcome<LlamaServer> {
    let Update { config, prior, planned, mut private } = change;
    let effect = UpdateEffect::of(&prior, &planned);
    if effect == UpdateEffect::Note {
        return Outcome::present(planned, private);
    }
    let (mut machine, access) = match enter(&planned, &config, &mut private, AS_BEFORE, context).await {
        Ok(entered) => entered,
        Err(diagnostic) => return Outcome::present(prior, private).with(diagnostic),
    };
    let mut state = planned;
    state.take_place();
    state.take_login(&machine, &mut private);
    if effect == UpdateEffect::LogIn {
        return Outcome::present(state, private);
    }
    let job = match state.job(&config, access.as_ref()) {
        Ok(job) => job,
        Err(diagnostic) => return Outcome::present(prior, private).with(diagnostic),
    };
    if private.owner().is_empty()
        && let Ok(report) = machine.run(&Verb::Look).await
    {
        // An import that could not log in has not seen whose server it is.
        private.note_owner(report.owner.as_deref().unwrap_or_default());
    }
    let owner = private.own();
    let change = Change { config, prior, state, private, owner, machine: &mut machine, job: &job };
    Box::pin(change.work()).await
}

struct Change<'a> {
    config: LlamaServer,
    prior: LlamaServer,
    state: LlamaServer,
    private: Private,
    /// The token by which the instance knows this resource.
    owner: String,
    machine: &'a mut InstanceSession,
    job: &'a Job,
}

impl Change<'_> {
    /// Starts it as it says now, or proves the one that runs so already.
    async fn work(mut self) -> Outcome<LlamaServer> {
        let owner = self.owner.clone();
        let ends_rival = self.prior.status.as_str() == Some(read::DISPLACED);
        if self.is_unresponsive().await {
            let check = JobCheck { job: self.job, ends_rival };
            // What would be refused is told while the server still runs.
            match check.ask(self.machine, None).await {
                Ok(report) if report.is_refused => {
                    let diagnostic = failure::refused(&self.state, &report, AS_BEFORE);
                    return Outcome::present(self.prior, self.private).with(diagnostic);
                }
                Ok(_) => {}
                Err(trouble) => return self.unheard(&trouble, AS_BEFORE),
            }
            match self.machine.run(&Verb::Stop { owner: &owner }).await {
                Ok(report) if report.is_refused => {
                    let diagnostic = failure::not_stopped(&self.state, &report, AS_BEFORE);
                    return Outcome::present(self.prior, self.private).with(diagnostic);
                }
                // What follows may fail: then this is what is.
                Ok(_) => self.prior.take_stop(),
                Err(trouble) => return self.unheard(&trouble, NOT_HEARD),
            }
        }
        let ran = self.prior.pid.known().is_some();
        let fingerprint = Fingerprint::of(self.job);
        tracing::info!(llama_server.id = self.state.id.as_str(), "applying");
        let work = self.state.work(&self.prior, self.machine, self.job, &self.config, &self.owner);
        match Box::pin(work.run()).await {
            Ok(served) => {
                self.private.note_settings(&fingerprint.settings);
                let notes = self.state.take_served(served);
                Outcome::present(self.state, self.private).with(notes)
            }
            Err(NotServing::Refused(report)) => self.refused(&report, ran),
            Err(NotServing::Failed(report)) => {
                self.private.note_settings(&fingerprint.settings);
                let policy = ("on_update_failure", self.state.on_update_failure.clone());
                let done = (&mut *self.machine, self.job, self.owner.as_str());
                let diagnostics = self.state.take_failure(&report, done, policy, FAILED).await;
                Outcome::present(self.state, self.private).with(diagnostics)
            }
            Err(NotServing::RolledBack(report, now, returned)) => {
                // A refresh may have seen the successor's options.
                if self.prior.status.as_str() == Some(read::STARTING) {
                    self.prior.take_options(&now);
                }
                self.prior.take_report(&now);
                self.prior.status = match &returned {
                    Return::GoesOn | Return::Serves(_) => read::READY,
                    Return::Fails(_) => read::FAILED,
                }
                .into();
                let diagnostic = failure::rolled_back(&self.state, &report, &now, &returned);
                Outcome::present(self.prior, self.private).with(diagnostic)
            }
            Err(NotServing::Superseded(report)) => {
                self.prior.take_report(&report);
                self.prior.status = status_of(&report).into();
                let diagnostic = failure::superseded(&self.prior, &report, "The state keeps the former arguments.");
                Outcome::present(self.prior, self.private).with(diagnostic)
            }
            Err(NotServing::Unproved(report, reason)) => {
                self.prior.take_report(&report);
                let diagnostic = failure::unproved(&self.prior, &reason, "The state keeps the former arguments.");
                Outcome::present(self.prior, self.private).with(diagnostic)
            }
            Err(NotServing::Unseen(trouble, None)) => {
                self.prior.status = read::STARTING.into();
                self.unheard(&trouble, NOT_HEARD)
            }
            // Until the new server is proved, the state holds the arguments of the one to which there is a way back.
            Err(NotServing::Unseen(trouble, Some(report))) if report.former.is_some() => {
                self.prior.take_report(&report);
                self.prior.status = read::STARTING.into();
                let diagnostic = failure::unseen(&self.state, &trouble, Some(&report), GOES_ON);
                Outcome::present(self.prior, self.private).with(diagnostic)
            }
            Err(NotServing::Unseen(trouble, Some(report))) => {
                self.private.note_settings(&fingerprint.settings);
                self.state.take_report(&report);
                self.state.status = read::STARTING.into();
                // A refresh sees a server that serves, and not that nobody has answered the probe: it stays to be
                // asked.
                self.state.probe = self.prior.probe;
                let diagnostic = failure::unseen(&self.state, &trouble, Some(&report), GOES_ON);
                Outcome::present(self.state, self.private).with(diagnostic)
            }
        }
    }

    /// Whether a server that did not answer the refresh does not answer now either: it would be resumed as it is.
    async fn is_unresponsive(&self) -> bool {
        self.prior.status.as_str() == Some(read::UNRESPONSIVE)
            && trial::of(&self.prior, self.machine).await == TrialLook::Dead
    }

    /// Nothing was begun. A server that ran may have been ended for it all the same.
    fn refused(mut self, report: &JobReport, ran: bool) -> Outcome<LlamaServer> {
        if report.process.as_ref().is_some_and(|process| !process.is_alive) {
            self.prior.take_stop();
        }
        let now = if ran && self.prior.pid.known().is_none() { ENDED } else { AS_BEFORE };
        let diagnostic = failure::refused(&self.state, report, now);
        Outcome::present(self.prior, self.private).with(diagnostic)
    }

    /// With the new arguments in the state a server that goes on with the old ones would need no change.
    fn unheard(self, trouble: &Trouble, now: &str) -> Outcome<LlamaServer> {
        let diagnostic = failure::unseen(&self.state, trouble, None, now);
        Outcome::present(self.prior, self.private).with(diagnostic)
    }
}
