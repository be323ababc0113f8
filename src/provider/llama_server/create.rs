//! Creates: the server is started, or an earlier start is resumed.

use secrecy::SecretString;

use super::{
    bootstrap::{FailureKind, Fingerprint, Job, JobReport, Verb},
    decide::Goal,
    enter::enter,
    failure,
    follow::Follow,
    machine::InstanceSession,
    model::{LlamaServer, Records as _},
    read,
    trial::{Trial, question},
    work::{NotServing, Served, Work},
};
use crate::{
    framework::{Attr, Create, Diagnostic, Diagnostics, Outcome, StepContext, timeouts::parse_duration},
    provider::{ProviderClient, words::capitalized},
};

const NOTHING: &str = "Nothing was started, and it is not in the state.";

const TAINTED: &str = "It is tainted in the state: the next apply stops what is left and tries again.";

/// Starts a server, or resumes what an earlier create of it has begun: that is recorded in the instance, not in the
/// state.
pub(super) async fn create(change: Create<LlamaServer>, context: &StepContext<ProviderClient>) -> Outcome<LlamaServer> {
    let Create { config, planned, mut private } = change;
    let (mut machine, access) = match enter(&planned, &config, &mut private, NOTHING, context).await {
        Ok(entered) => entered,
        Err(diagnostic) => return Outcome::absent().with(diagnostic),
    };
    let job = match planned.job(&config, access.as_ref()) {
        Ok(job) => job,
        Err(diagnostic) => return Outcome::absent().with(diagnostic),
    };
    let mut state = planned;
    state.take_place();
    state.take_login(&machine, &mut private);
    let fingerprint = Fingerprint::of(&job);
    tracing::info!(llama_server.id = state.id.as_str(), "starting");
    let owner = private.own();
    let done = Box::pin(state.work(&state, &mut machine, &job, &config, &owner).run()).await;
    private.note_settings(&fingerprint.settings);
    match done {
        Ok(served) => {
            let notes = state.take_served(served);
            Outcome::present(state, private).with(notes)
        }
        Err(NotServing::Refused(report)) => Outcome::absent().with(failure::refused(&state, &report, NOTHING)),
        // Nothing was started.
        Err(NotServing::Failed(report)) if is_refusal(&report) => {
            Outcome::absent().with(failure::refused(&state, &report, NOTHING))
        }
        Err(NotServing::Failed(report)) => {
            let policy = state.on_failure.clone();
            let diagnostics =
                state.take_failure(&report, (&mut machine, &job, &owner), ("on_failure", policy), TAINTED).await;
            Outcome::present(state, private).with(diagnostics)
        }
        Err(NotServing::RolledBack(report, now, returned)) => {
            Outcome::absent().with(failure::rolled_back(&state, &report, &now, &returned))
        }
        Err(NotServing::Superseded(report)) => {
            let now = "It is not in the state.";
            Outcome::absent().with(failure::superseded(&state, &report, now))
        }
        Err(NotServing::Unproved(_, reason)) => {
            let now = "This resource does not own it.";
            Outcome::absent().with(failure::unproved(&state, &reason, now))
        }
        Err(NotServing::Unseen(trouble, last)) => {
            let now = "The work continues in the instance, which keeps its record. It is not in the state, so nothing \
                       is destroyed: the next apply resumes it.";
            Outcome::absent().with(failure::unseen(&state, &trouble, last.as_deref(), now))
        }
    }
}

/// Whether the job failed before any server was started for it.
pub(super) fn is_refusal(report: &JobReport) -> bool {
    report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::BadOption)
}

impl LlamaServer {
    /// The work on this server. `prior` is what the state holds, or the same for a create.
    pub(super) fn work<'a>(
        &'a self,
        prior: &'a Self,
        machine: &'a mut InstanceSession,
        job: &'a Job,
        config: &Self,
        owner: &'a str,
    ) -> Work<'a> {
        let task = machine.progress.task("llama server", self.id.as_str().unwrap_or_default());
        let rolls_back = !matches!(self.on_update_failure.as_str(), Some("keep" | "stop"));
        let is_key_same = prior.api_key_wo_version == self.api_key_wo_version;
        let fingerprint = Some(Fingerprint::of(job).to_string());
        Work {
            follow: Follow::new(machine, task),
            job,
            goal: Goal { build: Some(job.build), fingerprint, rolls_back },
            owner,
            ends_rival: prior.status.as_str() == Some(read::DISPLACED),
            trial: self.trial(self.key(config)),
            former_trial: Trial {
                is_key_unknown: !is_key_same || std::ptr::eq(prior, self),
                ..prior.trial(if is_key_same { prior.key(config) } else { prior.key(prior) })
            },
        }
    }

    fn trial(&self, api_key: Option<SecretString>) -> Trial<'_> {
        Trial {
            port: self.listens(),
            api_key,
            request: question(self.probe.known(), self.model.as_str().unwrap_or_default()),
            probe: self.probe.known(),
            ready_timeout: self.ready_timeout.as_str().and_then(parse_duration).unwrap_or(READY),
            is_key_unknown: false,
        }
    }

    /// Takes over a server that serves, and tells what is worth knowing about it.
    pub(super) fn take_served(&mut self, served: Served) -> Diagnostics {
        self.take_report(&served.report);
        self.status = read::READY.into();
        self.tokens_per_second = served.tokens_per_second.into();
        let mut notes = Diagnostics::new();
        failure::notes(self, &served.report).into_iter().for_each(|note| notes.push(note));
        notes
    }

    /// Takes over a server that does not serve, and stops it where this argument (`on_failure`, `on_update_failure`)
    /// is "stop". `next` is what the next apply does.
    pub(super) async fn take_failure(
        &mut self,
        report: &JobReport,
        (machine, job, owner): (&mut InstanceSession, &Job, &str),
        (argument, policy): (&str, Attr<String>),
        next: &str,
    ) -> Diagnostics {
        self.take_report(report);
        self.status = read::FAILED.into();
        if policy.as_str() != Some("stop") {
            return failure::failed(self, report, &failure::left_alone(job, next)).into();
        }
        let why = match machine.run(&Verb::Stop { owner }).await {
            Ok(stopped) if !stopped.is_refused => {
                self.take_report(&stopped);
                let now = format!("{argument} = \"stop\" has stopped it; its logs are still there. {next}");
                return failure::failed(self, report, &now).into();
            }
            Ok(refused) => refused.failure.map(|failure| failure.text).unwrap_or_default(),
            Err(trouble) => trouble.to_string(),
        };
        let mut diagnostics: Diagnostics = failure::failed(self, report, next).into();
        diagnostics.push(Diagnostic::warning(
            format!("{argument} = \"stop\" did not stop it"),
            format!("{}. It still runs; the next apply stops it.", capitalized(&why)),
        ));
        diagnostics
    }
}

/// How long a start may take when the state does not say.
const READY: std::time::Duration = std::time::Duration::from_secs(10 * 60);
