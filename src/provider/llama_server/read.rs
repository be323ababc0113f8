//! Refreshes: what the server in the instance does now.

use super::{
    bootstrap::{Fingerprint, Phase, Report, Verb},
    enter::{Attempt, NoEntrance, witness_key},
    failure::{self, as_warning},
    health::{self, Seen},
    machine::Machine,
    model::LlamaServer,
    records::Records as _,
    status,
    take::status_of,
};
use crate::{
    api::{InstanceUid, Presence},
    framework::{Context, Outcome, State},
    provider::{
        Client,
        access::Access,
        client::limits,
        lifecycle::absence::{self, Subject},
    },
};

const UNCHANGED: &str = "The state is unchanged, and so is what runs in the instance.";

/// Refreshes. Only an instance that is gone for sure takes a server out of the state: one that died stays, and is
/// repaired.
pub(super) async fn read(mut current: State<LlamaServer>, context: &Context<Client>) -> Outcome<LlamaServer> {
    let Some(uid) = current.state.instance_id.as_str().map(InstanceUid::new) else {
        return look(current, None, context).await;
    };
    let (client, limits) = (context.client.as_ref(), limits(context));
    let subject = subject(&current.state, &uid);
    match client.api.instances().look(&uid, None, &limits).await {
        Ok(Presence::Present(detail)) => {
            absence::seen(&mut current.private, &subject.witness, client, &limits).await;
            look(current, Some(Access::of(&detail.instance)), context).await
        }
        Ok(Presence::Released) => absence::released(&subject, client),
        Ok(Presence::Absent) => absence::refresh(current, &subject, client, &limits).await,
        Ok(Presence::Unproved { reason }) => absence::unproved(current, &subject, reason),
        Err(error) => absence::failed(current, &subject, &error, client),
    }
}

/// The server as a refresh speaks of it when its instance is gone.
pub(super) fn subject(server: &LlamaServer, uid: &InstanceUid) -> Subject {
    Subject {
        title: server.title(),
        witness: witness_key(uid),
        status: server.status.as_str().unwrap_or("unknown").to_owned(),
    }
}

/// Looks at the machine. Whatever keeps one from it is a warning, and no news.
async fn look(
    mut current: State<LlamaServer>,
    access: Option<Access>,
    context: &Context<Client>,
) -> Outcome<LlamaServer> {
    if let Some(access) = access.as_ref().filter(|access| !access.runs()) {
        current.state.take_stop();
        let warning = access.not_running("The server ended with it; an apply starts it once the instance runs.");
        return current.unchanged(as_warning(warning));
    }
    let (state, private) = (&current.state, &current.private);
    let opened = Attempt::of_a_refresh().open(state, state, access.as_ref(), private, context).await;
    let mut machine = match opened {
        Ok(machine) => machine,
        Err(NoEntrance::NoCredentials) => {
            tracing::debug!(llama_server.id = state.id.as_str(), "nothing to log in with: not refreshed");
            return Outcome::present(current.state, current.private);
        }
        Err(error) => {
            let tried = format!("look at {}", state.title());
            let warning = as_warning(error.diagnostic(tried, access.as_ref(), UNCHANGED));
            return current.unchanged(warning);
        }
    };
    match machine.run(&Verb::Look).await {
        Ok(report) => {
            current.state.take_login(&machine, &mut current.private);
            Box::pin(refresh(current, report, &mut machine)).await
        }
        Err(trouble) => {
            let warning = as_warning(failure::unseen(state, &trouble, None, UNCHANGED));
            current.unchanged(warning)
        }
    }
}

/// Takes over what was seen, and asks a server that should be ready whether it is.
pub(super) async fn refresh(
    mut current: State<LlamaServer>,
    mut report: Report,
    machine: &mut Machine,
) -> Outcome<LlamaServer> {
    let health = health_of(&current.state, &mut report, machine).await;
    let report = &report;
    let before = current.state.status.as_str().map(str::to_owned);
    let restarts = current.state.restarts.known().copied().unwrap_or_default();
    let state = &mut current.state;
    state.take_place();
    state.take_report(report);
    if runs_other_settings(&current.private, report) {
        state.take_options(report);
    }
    let mut seen = status_of(report);
    let mut notes = Vec::new();
    if seen == status::READY {
        match health {
            Some(Seen::Serves) if serves_with_other_secrets(state, &current.private, report) => {
                seen = status::OUTDATED;
            }
            None | Some(Seen::Serves) => {}
            Some(Seen::Slow(what)) => notes.push(failure::slow(state, &what)),
            Some(Seen::Loading) => seen = status::STARTING,
            // One that has just been started may not have its port yet.
            Some(Seen::Dead) if report.phase == Phase::Load => seen = status::STARTING,
            Some(Seen::Dead) => seen = status::UNRESPONSIVE,
        }
        if report.restarts > restarts {
            notes.push(failure::restarted(state, report));
        }
    }
    state.status = seen.into();
    if let Some(rival) = report.rival.as_ref().filter(|_| seen == status::DISPLACED) {
        state.take_command_line(&rival.command_line, None);
        notes.push(failure::displaced(state, rival));
    }
    // Told once: afterwards it is in the state.
    if before.as_deref() == Some(status::READY) && report.phase == Phase::Failed && seen != status::DISPLACED {
        notes.push(as_warning(failure::died(state, report)));
    }
    notes.into_iter().fold(Outcome::present(current.state, current.private), Outcome::with)
}

/// Asks a server that should be ready whether it is. One that seems dead is looked at once more: it may have ended
/// since, or another may have taken its place, and `report` is of what is there then.
async fn health_of(server: &LlamaServer, report: &mut Report, machine: &mut Machine) -> Option<Seen> {
    if status_of(report) != status::READY {
        return None;
    }
    let seen = health::of(server, machine).await;
    if seen == Seen::Dead
        && let Ok(now) = machine.run(&Verb::Look).await
    {
        let identity = |report: &Report| report.process.as_ref().map(|process| process.identity.clone());
        let is_same = identity(&now) == identity(report);
        *report = now;
        if !is_same && status_of(report) == status::READY {
            return Some(health::of(server, machine).await);
        }
    }
    Some(seen)
}

/// Whether the instance has accepted other settings than those of the last apply here. After an import none are known.
fn runs_other_settings(private: &crate::framework::Private, report: &Report) -> bool {
    let there = report.fingerprint.as_deref().and_then(|fingerprint| fingerprint.split_once('-'));
    there.is_some_and(|(settings, _)| private.settings().as_deref() != Some(settings))
}

/// Whether it runs with another key or environment than the state's. A write-only key cannot be compared, nor what an
/// import never saw.
fn serves_with_other_secrets(state: &LlamaServer, private: &crate::framework::Private, report: &Report) -> bool {
    if private.is_imported() || !state.api_key_wo_version.is_null() {
        return false;
    }
    let there = report.fingerprint.as_deref().and_then(|fingerprint| fingerprint.split_once('-'));
    let here = state.job(state, None).ok().map(|job| Fingerprint::of(&job).secrets);
    matches!((there, here), (Some((_, there)), Some(here)) if there != here)
}
