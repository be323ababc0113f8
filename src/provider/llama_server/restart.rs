//! The action `damodel_llama_server_restart`: ends a server, starts it again as it was, and proves that it serves.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    bootstrap::{FailureKind, JobFailure, JobReport, Phase, ServerPlace, Verb, no_room, room_question},
    decide::{Goal, History},
    failure,
    follow::{Follow, Turn, step},
    job::instance_name,
    machine::{InstanceSession, Trouble},
    model::LlamaServer,
    options::{PORT, WORKSPACE},
    schema,
    trial::{Trial, question},
};
use crate::{
    api::{InstanceUid, Task},
    framework::{
        self, ActionProgress, Attr, Diagnostic, Diagnostics, Path, Schema, Secret, StepContext, Type,
        schema::{Attribute, validator},
        timeouts::parse_duration,
    },
    provider::{
        ProviderClient,
        access::Access,
        client::limits,
        ssh::{Login, NoTarget, Ssh, WriteOnly},
        ssh_failure::{SshFailure, no_credentials},
        ssh_schema,
        words::capitalized,
    },
    ssh,
};

const NOTHING: &str = "Nothing was restarted. What runs in the instance continues.";
const REPAIRED: &str = "An apply of damodel_llama_server repairs it.";
const GOES_ON: &str = "The restart continues in the instance. The next plan of damodel_llama_server shows its \
                       result, and an apply repairs it.";
/// How long a start may take when the configuration does not say.
const READY: Duration = Duration::from_secs(10 * 60);
/// How long all of it may take: an hour for the start, and the login.
const LONGEST: Duration = Duration::from_secs(65 * 60);

/// The action.
#[derive(Debug)]
pub(in crate::provider) struct Restart;

/// Its configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct RestartTarget {
    instance_id: Attr<String>,
    ssh: Attr<Ssh>,
    host_key: Attr<String>,
    port: Attr<i64>,
    workspace: Attr<String>,
    api_key: Attr<Secret>,
    ready_timeout: Attr<String>,
}

impl framework::Action for Restart {
    type Client = ProviderClient;
    type Model = RestartTarget;

    fn type_name(&self) -> &'static str {
        "damodel_llama_server_restart"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "Restarts a `damodel_llama_server` with its current options, and shows the progress until the server \
             answers a chat. A server that is not running is an error: an apply of the resource starts it. If the \
             model is missing or the disk is full, the server is not stopped, and the error names the reason. After a \
             restart the next plan shows another `pid` and `started_at`, and changes nothing.",
            [
                ssh_schema::visit(),
                vec![
                    schema::port("The port of the server in the instance."),
                    Attribute::with_default(
                        "workspace",
                        Type::String,
                        WORKSPACE,
                        "The server's `workspace`, which holds its records.",
                    ),
                    Attribute::optional("api_key", Type::String, "The server's API key, if it has one.").sensitive(),
                    Attribute::with_default(
                        "ready_timeout",
                        Type::String,
                        "10m",
                        "How long the start may take until a chat is answered; at most one hour.",
                    )
                    .validate(validator::duration()),
                ],
            ]
            .concat(),
        )
    }

    fn timeout(&self) -> Duration {
        LONGEST
    }

    fn validate(&self, config: &RestartTarget, diagnostics: &mut Diagnostics) {
        let none = WriteOnly::default();
        Login::validate(&config.ssh, !config.instance_id.is_null(), &none, &none, diagnostics);
    }

    async fn invoke(
        &self,
        config: RestartTarget,
        progress: ActionProgress,
        context: StepContext<ProviderClient>,
    ) -> Diagnostics {
        match Box::pin(restart(&config, &progress, &context)).await {
            Ok(notes) => notes,
            Err(diagnostic) => (*diagnostic).into(),
        }
    }
}

impl RestartTarget {
    /// The server that is meant, as errors speak of it.
    fn server(&self) -> LlamaServer {
        LlamaServer {
            instance_id: self.instance_id.clone(),
            ssh: self.ssh.clone(),
            port: self.port,
            ..LlamaServer::default()
        }
    }

    fn place(&self) -> ServerPlace {
        ServerPlace {
            workspace: self.workspace.as_str().unwrap_or(WORKSPACE).to_owned(),
            port: self.port.known().and_then(|port| u16::try_from(*port).ok()).unwrap_or(PORT),
            instance: instance_name(&self.instance_id, &self.ssh).unwrap_or_default(),
        }
    }

    fn login(&self) -> Login {
        Login {
            ssh: self.ssh.known().cloned().unwrap_or_default(),
            known_host: self.host_key.known().cloned(),
            ..Login::default()
        }
    }
}

async fn restart(
    config: &RestartTarget,
    progress: &ActionProgress,
    context: &StepContext<ProviderClient>,
) -> Result<Diagnostics, Box<Diagnostic>> {
    let (server, login) = (config.server(), config.login());
    progress.say(format!("logging in to restart {}", server.title()));
    let mut machine = enter(config, &login, context).await?;
    let notes = login.unpinned(machine.session(), Path::to("host_key"));
    let key = config.api_key.known().cloned().map(Secret::into_inner);
    let ready_timeout = config.ready_timeout.as_str().and_then(parse_duration).unwrap_or(READY);
    let task = machine.progress.task("llama server", server.place().unwrap_or_default());
    let trial = Trial {
        port: config.place().port,
        api_key: key.clone(),
        request: question(None, "any"),
        probe: None,
        ready_timeout,
        is_key_unknown: false,
    };
    let run = Run { server: &server, place: config.place(), trial, progress, has_key: key.is_some() };
    run.restart(&mut machine, task).await?;
    Ok(notes)
}

async fn enter(
    config: &RestartTarget,
    login: &Login,
    context: &StepContext<ProviderClient>,
) -> Result<InstanceSession, Box<Diagnostic>> {
    let access = match config.instance_id.as_str() {
        Some(id) => {
            let uid = InstanceUid::new(id.trim());
            Some(Access::to_running(&uid, NOTHING, &context.client, &limits(context)).await.map_err(Box::new)?)
        }
        None => None,
    };
    let target = login.target(access.as_ref(), &context.client).map_err(|none| match none {
        NoTarget::NoCredentials => Box::new(no_credentials(access.as_ref(), NOTHING)),
        NoTarget::Refused(diagnostic) => diagnostic,
    })?;
    let secrets = config.api_key.known().cloned().map(Secret::into_inner).into_iter().collect();
    let ends = (login.timeout(), context.deadline);
    let opened =
        InstanceSession::open(target, config.place(), secrets, ssh::SessionLimits::default(), ends, &context.stopping)
            .await;
    let mut machine = opened.map_err(|error| {
        let tried = format!("restart {}", config.server().title());
        Box::new(SshFailure { error: &error, tried, now: NOTHING.to_owned() }.diagnostic())
    })?;
    machine.progress = context.client.api.settings().progress.clone();
    Ok(machine)
}

/// A restart under way.
struct Run<'a> {
    server: &'a LlamaServer,
    place: ServerPlace,
    trial: Trial<'a>,
    progress: &'a ActionProgress,
    has_key: bool,
}

impl Run<'_> {
    async fn restart(self, machine: &mut InstanceSession, task: Task) -> Result<(), Box<Diagnostic>> {
        let before = machine.run(&Verb::Look).await.map_err(|trouble| self.unseen(&trouble, None, NOTHING))?;
        if let Some(process) = before.process.as_ref().filter(|process| process.is_alive) {
            self.progress.say(format!("ending process {}", process.pid));
        }
        if let Some(failure) = self.keeps_it(&before, machine).await? {
            return Err(self.failed(&JobReport { failure: Some(failure), ..before }, NOTHING));
        }
        let process = before.process.as_ref().map_or("", |process| &process.identity);
        let restarted = machine.run(&Verb::Restart { process }).await;
        let mut report = restarted.map_err(|trouble| self.unseen(&trouble, None, GOES_ON))?;
        if report.is_refused {
            return Err(self.failed(&report, NOTHING));
        }
        let mut follow = Follow::new(machine, task).telling(|report| {
            // Whether it is ready shows only when it is asked.
            if report.phase != Phase::Ready {
                self.progress.say(step(report).phase);
            }
        });
        let turn = follow.until_turn(&Goal::seen(), &self.trial, &mut report, &mut History::begun()).await;
        match turn.map_err(|trouble| self.unseen(&trouble, Some(&report), GOES_ON))? {
            Turn::Served(speed) => {
                let pid = report.process.as_ref().map(|process| process.pid).unwrap_or_default();
                let speed = speed.map(|speed| format!(", {speed} tokens per second")).unwrap_or_default();
                self.progress.say(format!("ready: process {pid}{speed}"));
                follow.done(&report);
                Ok(())
            }
            Turn::Leave(reason) => Err(self.does_not_infer(&reason, &report)),
            _ => Err(self.failed(&report, REPAIRED)),
        }
    }

    /// Why the server could not come back if it was ended now.
    async fn keeps_it(
        &self,
        seen: &JobReport,
        machine: &mut InstanceSession,
    ) -> Result<Option<JobFailure>, Box<Diagnostic>> {
        let Some(model) = seen.process.as_ref().map(|process| process.model.clone()) else { return Ok(None) };
        if seen.model_now.is_none() {
            let text = format!("the model {model} cannot be read");
            return Ok(Some(JobFailure { kind: FailureKind::MissingModel, text }));
        }
        let questions = [room_question(&self.place)];
        let asked = machine.run(&Verb::Check { questions: &questions }).await;
        let report = asked.map_err(|trouble| self.unseen(&trouble, None, NOTHING))?;
        Ok(no_room(&self.place, &report.facts))
    }

    fn failed(&self, report: &JobReport, now: &str) -> Box<Diagnostic> {
        // The arguments to blame are the resource's.
        Box::new(Diagnostic { path: None, ..failure::failed(self.server, report, now) })
    }

    fn does_not_infer(&self, reason: &str, report: &JobReport) -> Box<Diagnostic> {
        let pid = report.process.as_ref().map(|process| process.pid).unwrap_or_default();
        let key = if self.has_key { "" } else { " A server with an API key needs api_key here." };
        Box::new(Diagnostic::error(
            format!("{} was restarted and generates no tokens", capitalized(&self.server.title())),
            format!(
                "{}. It is still running as process {pid}; see its log in the instance.{key} An apply of \
                 damodel_llama_server checks it again and repairs it.",
                capitalized(reason)
            ),
        ))
    }

    fn unseen(&self, trouble: &Trouble, last: Option<&JobReport>, now: &str) -> Box<Diagnostic> {
        if !trouble.is_timeout() {
            return Box::new(failure::unseen(self.server, trouble, last, now));
        }
        // No block of an action says how long it may take.
        Box::new(Diagnostic::error(
            format!("{}: the time ran out", capitalized(&self.server.title())),
            format!(
                "{}{now} The action takes {} minutes at most, the login included.\n\nThe error: {trouble}.",
                last.map(failure::last_seen).unwrap_or_default(),
                LONGEST.as_secs() / 60
            ),
        ))
    }
}
