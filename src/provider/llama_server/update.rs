use super::{
    bootstrap::{Fingerprint, Job, Place, Report, Verb},
    enter::enter,
    failure,
    machine::{Machine, Trouble},
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

const ENDED: &str =
    "The server that ran before does not run any more, and the state says so: the next apply starts it.";

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
        let ran = self.prior.pid.known().is_some();
        if let Some((place, verb)) = self.ends_before() {
            // What would be refused is told while the server still runs.
            match self.machine.run(&Verb::Check(self.job)).await {
                Ok(report) if report.is_refused => {
                    let diagnostic = failure::refused(&self.state, &report, AS_BEFORE);
                    return Outcome::present(self.prior, self.private).with(diagnostic);
                }
                Ok(_) => {}
                Err(trouble) => return self.unheard(&trouble, AS_BEFORE),
            }
            match self.machine.run_at(&place, &verb).await {
                Ok(report) if report.is_refused => {
                    let diagnostic = failure::not_stopped(&self.state, &report, AS_BEFORE);
                    return Outcome::present(self.prior, self.private).with(diagnostic);
                }
                // What follows may fail: then this is what is.
                Ok(_) => self.prior.take_stop(),
                Err(trouble) => return self.unheard(&trouble, NOT_HEARD),
            }
        }
        let fingerprint = Fingerprint::of(self.job);
        tracing::info!(llama_server.id = self.state.id.as_str(), "starting anew");
        let done = self.state.work(self.machine, self.job).ensure().await;
        match done {
            Err(Ended::Refused(report)) => return self.refused(&report, ran),
            Err(Ended::Unseen(trouble, None)) => {
                self.prior.status = status::STARTING.into();
                return self.unheard(&trouble, NOT_HEARD);
            }
            _ => {}
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

    /// What is ended before the job is ensured, and where: a server whose records move to another workspace, and one that would be taken up as it
    /// is although it does not answer. Builds stay.
    fn ends_before(&self) -> Option<(Place, Verb<'static>)> {
        match self.prior.records() {
            Some(place) if place != self.job.place => Some((place, Verb::Destroy)),
            _ if self.prior.status.as_str() == Some(status::UNRESPONSIVE) => Some((self.job.place.clone(), Verb::Stop)),
            _ => None,
        }
    }

    /// Nothing was begun. A server that ran may have been ended for it all the same.
    fn refused(mut self, report: &Report, ran: bool) -> Outcome<LlamaServer> {
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
