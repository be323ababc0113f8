//! Updates in place, and repairs of drift.

use super::{
    failure,
    log_in::{log_in, with_unpinned},
    model::{LlamaServer, Records as _, new_owner},
    model_source,
    outcome::{AS_BEFORE, Conclusion, NOT_HEARD, Operation},
    plan::UpdateEffect,
};
use crate::{
    framework::{Diagnostic, Diagnostics, Outcome, Update},
    llama::{self, InstanceSession, Job, JobReport, TrialLook, Trouble, Verb, check_job},
    provider::StepContext,
};

/// Changes a server in place, or repairs it. A change of the provider's behaviour or of the login restarts nothing.
pub(super) async fn update(change: Update<LlamaServer>, context: &StepContext) -> Outcome<LlamaServer> {
    let mut said = Diagnostics::new();
    let outcome = Box::pin(apply(change, context, &mut said)).await;
    with_unpinned(outcome, said, &context.client)
}

async fn apply(change: Update<LlamaServer>, context: &StepContext, said: &mut Diagnostics) -> Outcome<LlamaServer> {
    let Update { config, mut prior, mut planned, mut private } = change;
    let effect = UpdateEffect::of(&prior, &planned);
    // The address may have been unknown in the plan.
    if let Some(changed) = model_source::changed(&prior, &planned) {
        return Outcome::present(prior, private).with(changed);
    }
    if effect == UpdateEffect::Note {
        return Outcome::present(planned, private);
    }
    let mut opened = match log_in(&planned, &config, &mut private, AS_BEFORE, context, said).await {
        Ok(opened) => opened,
        Err(diagnostic) => {
            // A later destroy may abandon a server that cannot be reached.
            prior.on_unreachable = planned.on_unreachable;
            return Outcome::present(prior, private).with(diagnostic);
        }
    };
    planned.take_place();
    planned.take_base_url(opened.access.as_ref());
    planned.take_login(&opened.instance, &mut private);
    if effect == UpdateEffect::LogIn {
        return Outcome::present(planned, private);
    }
    let seen = match opened.instance.run(&Verb::Look).await {
        Ok(seen) => seen,
        Err(trouble) => {
            let unseen = failure::unseen(&planned, &trouble, None, AS_BEFORE);
            return Outcome::present(prior, private).with(unseen);
        }
    };
    private.note_home(&seen);
    let job = planned.job(&config, opened.access.as_ref(), seen.home.as_deref()).and_then(|job| {
        let downloads = planned.downloads(&config, seen.home.as_deref(), &context.client)?;
        Ok(Job { downloads, ..job })
    });
    let job = match job {
        Ok(job) => job,
        Err(diagnostic) => return Outcome::present(prior, private).with(diagnostic),
    };
    // An import that could not log in has not seen whose server it is.
    let owner = prior.owner().or(seen.owner).filter(|owner| !owner.is_empty()).unwrap_or_else(new_owner);
    prior.set_owner(Some(owner.clone()));
    if let Err(diagnostic) = stop_unresponsive(&mut prior, &planned, &job, &owner, &mut opened.instance).await {
        return Outcome::present(prior, private).with(*diagnostic);
    }
    tracing::info!(llama_server.id = planned.id.as_str(), "applying");
    let ended = Box::pin(planned.work(&prior, &mut opened.instance, &job, &config, &owner).run()).await;
    let conclusion = Conclusion {
        operation: Operation::Update,
        prior: Some(prior),
        planned,
        private,
        instance: &mut opened.instance,
        job: &job,
        owner: &owner,
    };
    Box::pin(conclusion.outcome(&ended)).await
}

/// Stops a server that answered neither the refresh nor now: it would be taken over as it is. A job that would be
/// refused is refused before.
async fn stop_unresponsive(
    prior: &mut LlamaServer,
    planned: &LlamaServer,
    job: &Job,
    owner: &str,
    instance: &mut InstanceSession,
) -> Result<(), Box<Diagnostic>> {
    if prior.status.as_str() != Some(llama::UNRESPONSIVE) {
        return Ok(());
    }
    let unseen = |trouble: &Trouble, now| Box::new(failure::unseen(planned, trouble, None, now));
    let refused = |report: &JobReport, words: fn(&LlamaServer, &JobReport, &str) -> Diagnostic| {
        if report.is_refused { Err(Box::new(words(planned, report, AS_BEFORE))) } else { Ok(()) }
    };
    let seen = instance.run(&Verb::Look).await.map_err(|trouble| unseen(&trouble, AS_BEFORE))?;
    refused(&seen, failure::refused)?;
    if llama::check_health(prior.listens(), &seen, instance).await != TrialLook::Dead {
        return Ok(());
    }
    let checked = check_job(job, false, instance, None).await.map_err(|trouble| unseen(&trouble, AS_BEFORE))?;
    refused(&checked, failure::refused)?;
    let stopped = instance.run(&Verb::Stop { owner }).await.map_err(|trouble| unseen(&trouble, NOT_HEARD))?;
    refused(&stopped, failure::not_stopped)?;
    // The state of the server if the next step fails.
    prior.take_stop();
    Ok(())
}
