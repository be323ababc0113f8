//! Creates: the server is started, or an earlier start is resumed.

use super::{
    failure,
    log_in::{log_in, with_unpinned},
    model::{LlamaServer, Records as _, new_owner},
    outcome::{Conclusion, NOTHING_STARTED, Operation},
};
use crate::{
    framework::{Create, Diagnostics, Outcome, Result},
    llama::{self, End, Fingerprint, Goal, InstanceSession, Job, Order, Process, Verb, Work, WorkProgress},
    provider::StepContext,
};

/// Starts a server, or resumes the work of an earlier create, whose record is in the instance and not in the state.
pub(super) async fn create(change: Create<LlamaServer>, context: &StepContext) -> Result<Outcome<LlamaServer>> {
    let mut said = Diagnostics::new();
    match Box::pin(start(change, context, &mut said)).await {
        Ok(outcome) => Ok(with_unpinned(outcome, said, &context.client)),
        Err(failed) => Err(failed.with(said)),
    }
}

async fn start(
    change: Create<LlamaServer>,
    context: &StepContext,
    said: &mut Diagnostics,
) -> Result<Outcome<LlamaServer>> {
    let Create { config, planned, mut private } = change;
    let mut opened = log_in(&planned, &config, &mut private, NOTHING_STARTED, context, said).await?;
    let seen = opened.instance.run(&Verb::Look).await;
    let seen = seen.map_err(|trouble| failure::unseen(&planned, &trouble, None, NOTHING_STARTED))?;
    private.note_home(&seen);
    let mut job = planned.job(&config, opened.access.as_ref(), seen.home.as_deref())?;
    job.downloads = planned.downloads(&config, seen.home.as_deref(), &context.client)?;
    let mut planned = planned;
    planned.take_place();
    planned.take_base_url(opened.access.as_ref());
    planned.take_login(&opened.instance, &mut private);
    tracing::info!(llama_server.id = planned.id.as_str(), "starting");
    let title = planned.title();
    let owner = new_owner();
    let ended = Box::pin(planned.work(&planned, &mut opened.instance, &job, &config, &owner).run()).await;
    let conclusion = Conclusion {
        operation: Operation::Create,
        prior: None,
        planned,
        private,
        instance: &mut opened.instance,
        job: &job,
        owner: &owner,
    };
    let outcome = Box::pin(conclusion.outcome(&ended)).await;
    let served = seen.process.filter(|process| process.is_alive && seen.is_proved);
    let is_stopped = |before: &Process| ended.now.process.as_ref().is_none_or(|now| now.identity != before.identity);
    Ok(match served.filter(|_| matches!(ended.end, End::Served(_))).filter(is_stopped) {
        Some(before) => outcome.with(failure::took_over(&title, &before)),
        None => outcome,
    })
}

impl LlamaServer {
    /// The work on this server. `prior` is the state from before an update, or the same for a create.
    pub(super) fn work<'a>(
        &'a self,
        prior: &'a Self,
        instance: &'a mut InstanceSession,
        job: &'a Job,
        config: &Self,
        owner: &'a str,
    ) -> Work<'a> {
        let task = instance.progress.task("llama server", self.id.as_str().unwrap_or_default());
        let rolls_back = !matches!(self.on_failure.as_str(), Some("keep" | "stop"));
        let is_update = !std::ptr::eq(prior, self);
        let previous_secrets = prior.job(config, None, None).ok().map(|job| Fingerprint::of(&job).secrets);
        Work {
            instance,
            goal: Goal::of(job, rolls_back),
            keeps_key: is_update
                && !self.api_key_wo_version.is_null()
                && prior.api_key_wo_version == self.api_key_wo_version
                && prior.environment == self.environment,
            trial: self.trial(self.key(config)),
            previous_trial: Some((prior.trial(prior.key(config)), previous_secrets)),
            order: Some(Order { job, owner, ends_rival: prior.status.as_str() == Some(llama::DISPLACED) }),
            watch: WorkProgress::new(task),
            restored: None,
            unserved: None,
        }
    }
}
