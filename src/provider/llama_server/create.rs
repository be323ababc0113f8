use super::{
    bootstrap::{Fingerprint, Job, Report, Verb},
    enter::enter,
    failure,
    machine::Machine,
    model::LlamaServer,
    records::Records as _,
    status,
    work::{Ended, Served, Work},
};
use crate::{
    framework::{Context, Create, Diagnostic, Diagnostics, Outcome, timeouts::parse_duration},
    provider::{Client, words::capitalized},
};

const NOTHING: &str = "Nothing was started, and the state holds nothing of it.";

const TAINTED: &str = "The state is tainted: the next apply stops what is left and tries again.";

/// Starts a server, or takes up what an earlier create of it has begun: that is recorded in the instance, not in the state.
pub(super) async fn create(change: Create<LlamaServer>, context: &Context<Client>) -> Outcome<LlamaServer> {
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
    let done = state.work(&mut machine, &job).ensure().await;
    private.note_settings(&fingerprint.settings);
    match done {
        Ok(served) => {
            let notes = state.take_served(served);
            Outcome::present(state, private).with(notes)
        }
        Err(Ended::Refused(report)) => Outcome::absent().with(failure::refused(&state, &report, NOTHING)),
        Err(Ended::Failed(report)) => {
            let diagnostics = state.take_failure(&report, &mut machine, &job, TAINTED).await;
            Outcome::present(state, private).with(diagnostics)
        }
        Err(Ended::Unseen(trouble, last)) => {
            let now = "The work goes on in the instance, which keeps its record. The state holds nothing of it, so that nothing is \
                       destroyed: the next apply takes it up where it is.";
            Outcome::absent().with(failure::unseen(&state, &trouble, last.as_deref(), now))
        }
    }
}

impl LlamaServer {
    /// The work on this server.
    pub(super) fn work<'a>(&'a self, machine: &'a mut Machine, job: &'a Job) -> Work<'a> {
        let ready_timeout = self.ready_timeout.as_str().and_then(parse_duration).unwrap_or(READY);
        let task = machine.progress.task("llama server", self.id.as_str().unwrap_or_default());
        Work { machine, job, ready_timeout, probe: self.probe.known(), task: Some(task) }
    }

    /// Takes over a server that serves, and tells what is worth knowing about it.
    pub(super) fn take_served(&mut self, served: Served) -> Diagnostics {
        self.take_report(&served.report);
        self.status = status::READY.into();
        self.tokens_per_second = served.tokens_per_second.into();
        let mut notes = Diagnostics::new();
        failure::notes(self, &served.report).into_iter().for_each(|note| notes.push(note));
        notes
    }

    /// Takes over a server that does not, and does what on_failure says. `next` is what the next apply does.
    pub(super) async fn take_failure(
        &mut self,
        report: &Report,
        machine: &mut Machine,
        job: &Job,
        next: &str,
    ) -> Diagnostics {
        self.take_report(report);
        self.status = status::FAILED.into();
        if self.on_failure.as_str() != Some("stop") {
            return failure::failed(self, report, &failure::left_alone(job, next)).into();
        }
        let why = match machine.run(&Verb::Stop).await {
            Ok(stopped) if !stopped.is_refused => {
                self.take_report(&stopped);
                let now = format!("on_failure = \"stop\" has stopped it; its logs are still there. {next}");
                return failure::failed(self, report, &now).into();
            }
            Ok(refused) => refused.failure.map(|failure| failure.text).unwrap_or_default(),
            Err(trouble) => trouble.to_string(),
        };
        let mut diagnostics: Diagnostics = failure::failed(self, report, next).into();
        diagnostics.push(Diagnostic::warning(
            "on_failure = \"stop\" did not stop it",
            format!("{}. Whatever runs goes on running; the next apply stops it.", capitalized(&why)),
        ));
        diagnostics
    }
}

/// How long a start may take when the state does not say.
const READY: std::time::Duration = std::time::Duration::from_secs(10 * 60);
