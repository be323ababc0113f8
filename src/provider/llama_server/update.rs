use super::{
    bootstrap::{Fingerprint, Job, Verb},
    enter::enter,
    failure,
    machine::Machine,
    model::LlamaServer,
    plan::Effect,
    records::Records as _,
    status,
    work::Ended,
};
use crate::{
    framework::{Context, Outcome, Private, Update},
    provider::Client,
};

const AS_BEFORE: &str = "Nothing was changed: whatever runs there goes on.";

const NOT_HEARD: &str = "Nobody knows whether the instance was told, so the state keeps what it said before: the next apply tells it again, \
                         and takes up what it may have begun.";

const FAILED: &str = "The state says that it failed: the next apply starts it anew.";

/// Changes a server in place, or repairs it. What only changes how the provider behaves, or how it logs in, restarts nothing.
pub(super) async fn update(change: Update<LlamaServer>, context: &Context<Client>) -> Outcome<LlamaServer> {
    let Update { config, prior, planned, mut private } = change;
    let effect = Effect::of(&prior, &planned);
    if effect == Effect::Note {
        return Outcome::present(planned, private);
    }
    let (mut machine, access) = match enter(&planned, &config, &mut private, AS_BEFORE, context).await {
        Ok(entered) => entered,
        Err(diagnostic) => return Outcome::present(prior, private).with(diagnostic),
    };
    let mut state = planned;
    state.take_place();
    state.take_login(&machine, &mut private);
    if effect == Effect::LogIn {
        return Outcome::present(state, private);
    }
    let job = match state.job(&config, access.as_ref()) {
        Ok(job) => job,
        Err(diagnostic) => return Outcome::present(prior, private).with(diagnostic),
    };
    let change = Change { prior, state, private, machine: &mut machine, job: &job };
    if effect == Effect::Restart { Box::pin(change.restart()).await } else { Box::pin(change.prove()).await }
}

struct Change<'a> {
    prior: LlamaServer,
    state: LlamaServer,
    private: Private,
    machine: &'a mut Machine,
    job: &'a Job,
}

impl Change<'_> {
    async fn restart(mut self) -> Outcome<LlamaServer> {
        if let Err(outcome) = self.leave_old_workspace().await {
            return *outcome;
        }
        if self.prior.status.as_str() == Some(status::UNRESPONSIVE)
            && let Err(trouble) = self.machine.run(&Verb::Stop).await
        {
            // It would be taken up as it is.
            let diagnostic = failure::unseen(&self.state, &trouble, None, AS_BEFORE);
            return Outcome::present(self.prior, self.private).with(diagnostic);
        }
        let fingerprint = Fingerprint::of(self.job);
        tracing::info!(llama_server.id = self.state.id.as_str(), "starting anew");
        let done = self.state.work(self.machine, self.job).ensure().await;
        if let Err(Ended::Refused(report)) = done {
            let diagnostic = failure::refused(&self.state, &report, AS_BEFORE);
            return Outcome::present(self.prior, self.private).with(diagnostic);
        }
        if let Err(Ended::Unseen(trouble, None)) = done {
            // With the new arguments in the state a server that goes on with the old ones would need no change.
            let diagnostic = failure::unseen(&self.state, &trouble, None, NOT_HEARD);
            self.prior.status = status::STARTING.into();
            return Outcome::present(self.prior, self.private).with(diagnostic);
        }
        self.private.note_settings(&fingerprint.settings);
        self.conclude(done).await
    }

    async fn prove(self) -> Outcome<LlamaServer> {
        let done = self.state.work(self.machine, self.job).prove().await;
        self.conclude(done).await
    }

    async fn conclude(mut self, done: Result<super::work::Served, Ended>) -> Outcome<LlamaServer> {
        match done {
            Ok(served) => {
                let notes = self.state.take_served(served);
                Outcome::present(self.state, self.private).with(notes)
            }
            Err(Ended::Failed(report) | Ended::Refused(report)) => {
                let diagnostics = self.state.take_failure(&report, self.machine, self.job, FAILED).await;
                Outcome::present(self.state, self.private).with(diagnostics)
            }
            Err(Ended::Unseen(trouble, last)) => {
                if let Some(report) = &last {
                    self.state.take_report(report);
                }
                self.state.status = status::STARTING.into();
                // A refresh sees a server that serves, and not that nobody has answered the probe: it stays to be asked.
                self.state.probe = self.prior.probe;
                let now = "The work goes on in the instance, and the state says that it does: the next apply takes it up where it is.";
                let diagnostic = failure::unseen(&self.state, &trouble, last.as_deref(), now);
                Outcome::present(self.state, self.private).with(diagnostic)
            }
        }
    }

    /// A server whose records move to another workspace is stopped in the old one; builds stay.
    async fn leave_old_workspace(&mut self) -> Result<(), Box<Outcome<LlamaServer>>> {
        let Some(place) = self.prior.records().filter(|place| *place != self.job.place) else { return Ok(()) };
        match self.machine.run_at(&place, &Verb::Destroy).await {
            Ok(_) => {
                // What follows may fail: then this is what is.
                self.prior.take_stop();
                Ok(())
            }
            Err(trouble) => {
                let diagnostic = failure::unseen(&self.state, &trouble, None, AS_BEFORE);
                Err(Box::new(Outcome::present(self.prior.clone(), self.private.clone()).with(diagnostic)))
            }
        }
    }
}
