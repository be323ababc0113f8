//! Refreshes: from the report of the instance to the attributes.

use super::{
    command_line::{as_text, take_path},
    failure::{self, as_warning},
    log_in::{LoginEffort, witness_key},
    model::{LlamaServer, Process, Records as _},
};
use crate::{
    api::{InstanceUid, Presence},
    framework::{Attr, Diagnostics, Outcome, State},
    llama::{
        self, BLOCKED, DISPLACED, Fingerprint, InstanceSession, JobReport, OUTDATED, Phase, READY, STARTING, STOPPED,
        TrialLook, UNRESPONSIVE, Verb, status_of,
    },
    provider::{
        StepContext,
        client::limits,
        lifecycle::{Subject, absence},
        login::{Access, NoLogin},
        words::time,
    },
};

const UNCHANGED: &str = "The server was not checked; the state is unchanged.";

/// Refreshes. A server is removed from the state only if its instance certainly no longer exists.
pub(super) async fn read(mut current: State<LlamaServer>, context: &StepContext) -> Outcome<LlamaServer> {
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
        Ok(Presence::Released) => absence::released(&current.private, &subject, client),
        Ok(Presence::Absent) => absence::refresh(current, &subject, client, &limits).await,
        Ok(Presence::Unproved { reason }) => absence::unproved(current, &subject, reason),
        Err(error) => absence::failed(current, &subject, &error, client),
    }
}

/// The subject of diagnostics about an instance that may no longer exist.
pub(super) fn subject(server: &LlamaServer, uid: &InstanceUid) -> Subject {
    Subject {
        title: server.title(),
        witness: witness_key(uid),
        status: server.status.as_str().unwrap_or("unknown").to_owned(),
    }
}

/// Looks at the instance. A failed login is a warning, and changes nothing.
async fn look(mut current: State<LlamaServer>, access: Option<Access>, context: &StepContext) -> Outcome<LlamaServer> {
    if let Some(access) = access.as_ref().filter(|access| !access.runs()) {
        current.state.take_stop();
        current.state.base_url = current.state.base_url_at(Some(access)).into();
        let warning =
            access.not_running("The server stopped with the instance. An apply starts it when the instance runs.");
        return current.unchanged(as_warning(warning));
    }
    let (state, private) = (&current.state, &current.private);
    let mut said = Diagnostics::new();
    let opened = LoginEffort::of_a_refresh().open(state, state, access.as_ref(), private, context, &mut said).await;
    let mut instance = match opened {
        Ok(instance) => instance,
        Err(NoLogin::NoCredentials) => {
            tracing::debug!(llama_server.id = state.id.as_str(), "no SSH credentials: not refreshed");
            current.state.base_url = current.state.base_url_at(access.as_ref()).into();
            return Outcome::present(current.state, current.private);
        }
        Err(error) => {
            let tried = format!("check {}", state.title());
            let warning = as_warning(error.diagnostic(tried, access.as_ref(), UNCHANGED));
            return current.unchanged(warning).with(said);
        }
    };
    let outcome = match instance.run(&Verb::Refresh).await {
        Ok(report) if report.is_refused => {
            let warning = as_warning(failure::refused(state, &report, UNCHANGED));
            current.unchanged(warning)
        }
        Ok(report) => {
            current.state.take_login(&instance, &mut current.private);
            Box::pin(refresh(current, report, access.as_ref(), &mut instance)).await
        }
        Err(trouble) => {
            let warning = as_warning(failure::unseen(state, &trouble, None, UNCHANGED));
            current.unchanged(warning)
        }
    };
    outcome.with(said)
}

/// Takes the report into the state, and checks the health of a server that should be ready.
pub(super) async fn refresh(
    mut current: State<LlamaServer>,
    mut report: JobReport,
    access: Option<&Access>,
    instance: &mut InstanceSession,
) -> Outcome<LlamaServer> {
    let health = health_of(&current.state, &mut report, instance).await;
    let report = &report;
    let before = current.state.status.as_str().map(str::to_owned);
    current.private.note_home(report);
    let restarts = current.state.process().restarts.known().copied().unwrap_or_default();
    let state = &mut current.state;
    state.take_place();
    state.take_report(report);
    if runs_other_settings(&current.private, report) {
        state.take_options(report);
    } else if current.private.finds_package() {
        // The plan of its last start may have named the previous one.
        state.take_package(report);
    }
    let mut seen = status_of(report);
    let mut notes = Vec::new();
    if seen == READY {
        match health {
            Some(TrialLook::Serves) if serves_with_other_secrets(state, &current.private, report) => {
                seen = OUTDATED;
            }
            None | Some(TrialLook::Serves) => {}
            Some(TrialLook::Slow(what)) => notes.push(failure::slow(state, &what)),
            Some(TrialLook::Loading) => seen = STARTING,
            // One that has just been started may not have its port yet.
            Some(TrialLook::Dead) if report.phase == Phase::Load => seen = STARTING,
            Some(TrialLook::Dead) => seen = UNRESPONSIVE,
        }
        if report.restarts > restarts {
            notes.push(failure::restarted(state, report));
        }
    }
    state.status = seen.into();
    if let Some(rival) = report.rival.as_ref().filter(|_| seen == DISPLACED) {
        state.take_command_line(&rival.command_line, report.home.as_deref());
        notes.push(failure::displaced(state, rival));
    }
    if let Some(rival) = report.rival.as_ref().filter(|_| seen == BLOCKED) {
        notes.push(failure::blocked(state, rival));
    }
    state.base_url = state.base_url_at(access).into();
    // The warning comes once, as afterwards the state has the status, and in each pause before a next try.
    let has_died = before.as_deref() == Some(READY) && report.phase == Phase::Failed;
    if (has_died || report.next_try.is_some()) && seen != DISPLACED {
        notes.push(failure::died(state, report));
    }
    notes.into_iter().fold(Outcome::present(current.state, current.private), Outcome::with)
}

/// Checks the health of a server that should be ready. If it seems dead, `report` is replaced by a new one: the process
/// may have ended since, or another may have replaced it.
async fn health_of(server: &LlamaServer, report: &mut JobReport, instance: &mut InstanceSession) -> Option<TrialLook> {
    if status_of(report) != READY {
        return None;
    }
    let seen = llama::check_health(server.listens(), report, instance).await;
    if seen == TrialLook::Dead
        && let Ok(now) = instance.run(&Verb::Refresh).await
    {
        let identity = |report: &JobReport| report.process.as_ref().map(|process| process.identity.clone());
        let is_same = identity(&now) == identity(report);
        *report = now;
        if !is_same && status_of(report) == READY {
            return Some(llama::check_health(server.listens(), report, instance).await);
        }
    }
    Some(seen)
}

/// Whether the instance has accepted other settings than those of the last apply with this state.
fn runs_other_settings(private: &crate::framework::Private, report: &JobReport) -> bool {
    report.hashes().is_some_and(|(settings, _)| private.settings().as_deref() != Some(settings))
}

/// Whether it runs with another key or environment than the state's. A write-only key cannot be compared, and neither
/// can the secrets of a server that was imported.
fn serves_with_other_secrets(state: &LlamaServer, private: &crate::framework::Private, report: &JobReport) -> bool {
    if private.is_imported() || !state.api_key_wo_version.is_null() {
        return false;
    }
    let here = state.job(state, None, None).ok().map(|job| Fingerprint::of(&job).secrets);
    matches!((report.hashes(), here), (Some((_, there)), Some(here)) if there != here)
}

impl LlamaServer {
    /// Sets the attributes that follow from the arguments.
    pub(super) fn take_place(&mut self) {
        self.id = self.place().into();
        self.endpoint = self.port.known().map(|port| format!("http://127.0.0.1:{port}/v1")).into();
    }

    /// Sets the `base_url` that the plan has left open.
    pub(super) fn take_base_url(&mut self, access: Option<&Access>) {
        if self.base_url.is_unknown() {
            self.base_url = self.base_url_at(access).into();
        }
    }

    /// Takes the attributes from a report, except options and `status`.
    pub(super) fn take_report(&mut self, report: &JobReport) {
        let alive = report.process.as_ref().filter(|process| process.is_alive);
        self.build_used = report.build_used.clone().into();
        if self.package.is_unknown() {
            self.package = report.package.clone().into();
        }
        self.process = Attr::Known(Process {
            pid: alive.map(|process| i64::from(process.pid)).into(),
            command_line: alive.map(|process| as_text(&process.command_line)).into(),
            log_path: report.log_path.clone().into(),
            started_at: alive.and_then(|process| time(Some(process.started))).into(),
            server_version: report.server_version.clone().into(),
            restarts: Attr::Known(report.restarts),
            supervised: alive.map(|_| report.work.is_some()).into(),
            last_exit: report.last_exit.clone().into(),
            model_fingerprint: report.model_fingerprint.clone().into(),
            model_verified: report.is_model_verified.into(),
            ..self.process()
        });
    }

    /// Takes the options from the command line of the server.
    pub(super) fn take_options(&mut self, report: &JobReport) {
        if let Some(process) = report.process.as_ref().filter(|process| process.is_alive) {
            self.take_command_line(&process.command_line, report.home.as_deref());
        }
        self.take_package(report);
    }

    fn take_package(&mut self, report: &JobReport) {
        if let Some(package) = &report.package {
            take_path(&mut self.package, package, None);
        }
    }

    /// Sets the attributes of a server without a process.
    pub(super) fn take_stop(&mut self) {
        self.status = STOPPED.into();
        self.process = Attr::Known(Process {
            pid: Attr::Null,
            command_line: Attr::Null,
            started_at: Attr::Null,
            supervised: Attr::Null,
            ..self.process()
        });
    }
}
