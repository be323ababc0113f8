//! The action `damodel_llama_server_restart`: ends a server, starts it again as it was, and proves that it serves.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    failure,
    log_in::log_in,
    model::{LlamaServer, Probe},
    outcome::{Concluded as _, NOTHING_RESTARTED, Operation},
    schema,
};
use crate::{
    framework::{
        self, ActionProgress, Attr, Diagnostic, Diagnostics, Private, Result, Schema, Secret, Type,
        schema::{Attribute, Validator},
        value::Number,
    },
    llama::{
        self, AdditionalFiles, DEFAULT_WORKSPACE, End, FailureKind, Goal, History, InstanceSession, JobFailure,
        JobReport, Phase, Previous, Trouble, Verb, Work, WorkProgress, no_room, room_question, stage,
    },
    provider::{
        ProviderClient, StepContext,
        login::{self, Login, Ssh, WriteOnly},
    },
};

/// How long the whole action may take: an hour for the start, and the login.
const MAX: Duration = Duration::from_secs(65 * 60);

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
             model or a file of its options is missing, or the disk is full, the server is not stopped, and the error \
             names the reason. After a restart the next plan shows a new `pid` and `started_at` in `process`, and no \
             changes.",
            [
                login::schema::visit(login::schema::Visitor::Run),
                vec![
                    schema::port("The port of the server in the instance."),
                    Attribute::with_default(
                        "workspace",
                        Type::String,
                        DEFAULT_WORKSPACE,
                        "The server's `workspace`, which holds its records.",
                    ),
                    Attribute::optional(
                        "api_key",
                        Type::String,
                        "The server's API key, if it has one. Without it, the only check is that the server refuses a \
                         chat without a key.",
                    )
                    .sensitive()
                    .validate(schema::api_key()),
                    Attribute::with_default(
                        "ready_timeout",
                        Type::String,
                        "10m",
                        "How long the start may take until a chat is answered; at most one hour.",
                    )
                    .validate(Validator::duration()),
                ],
            ]
            .concat(),
        )
    }

    fn timeout(&self) -> Duration {
        MAX
    }

    fn validate(&self, config: &RestartTarget, diagnostics: &mut Diagnostics) {
        Login::validate(&config.ssh, !config.instance_id.is_null(), &WriteOnly::default(), diagnostics);
    }

    async fn invoke(
        &self,
        config: RestartTarget,
        progress: ActionProgress,
        context: StepContext,
    ) -> Result<Diagnostics> {
        let mut said = Diagnostics::new();
        match Box::pin(restart(&config, &progress, &context, &mut said)).await {
            Ok(failed) => Ok(said.with(failed)),
            Err(failed) => Err(Diagnostics::from(failed).with(said)),
        }
    }
}

impl RestartTarget {
    /// The server to restart.
    fn server(&self) -> LlamaServer {
        LlamaServer {
            instance_id: self.instance_id.clone(),
            ssh: self.ssh.clone(),
            host_key: self.host_key.clone(),
            port: self.port,
            workspace: self.workspace.clone(),
            api_key: self.api_key.clone(),
            ready_timeout: self.ready_timeout.clone(),
            model: "any".into(),
            ..LlamaServer::default()
        }
    }
}

/// The errors of a server that was ended and does not serve.
///
/// # Errors
/// It was not ended.
async fn restart(
    config: &RestartTarget,
    progress: &ActionProgress,
    context: &StepContext,
    said: &mut Diagnostics,
) -> Result<Diagnostics, Box<Diagnostic>> {
    let server = config.server();
    progress.say(format!("logging in to restart {}", server.title()));
    let opened = log_in(&server, &server, &mut Private::default(), NOTHING_RESTARTED, context, said).await;
    let mut opened = opened.map_err(Box::new)?;
    let report = begin(&server, progress, &mut opened.instance).await?;
    let mut server = server;
    if let Some(endpoint) = &report.endpoint {
        server.probe = Attr::Known(Probe { endpoint: endpoint.as_str().into(), ..Probe::default() });
    }
    let mut trial = server.trial(server.key(&server));
    trial.is_key_unknown = report.has_key && server.api_key.is_null();
    if trial.is_key_unknown {
        progress
            .say("the server has an API key and this action has none: the only check is that the server requires it");
    }
    let task = opened.instance.progress.task("llama server", server.place().unwrap_or_default());
    let watch = WorkProgress::new(task).on_phase(|report| {
        // Only the probe shows whether it is ready.
        if report.phase != Phase::Ready {
            progress.say(stage(report).phase);
        }
    });
    let mut work = Work {
        instance: &mut opened.instance,
        goal: Goal::seen(),
        keeps_key: false,
        trial,
        previous_trial: None,
        order: None,
        watch,
        restored: None,
        unserved: None,
    };
    let ended = work.follow(report, History::begun()).await;
    let (_, now) = ended.kept(Operation::Restart);
    if let End::Served(answers) = &ended.end {
        let pid = ended.now.process.as_ref().map(|process| process.pid).unwrap_or_default();
        let speed = answers
            .speed
            .clone()
            .map(|speed| format!(", {} tokens per second", Number::from(speed)))
            .unwrap_or_default();
        progress.say(format!("ready: process {pid}{speed}"));
        work.watch.done(&ended.now);
        return Ok(Diagnostics::new());
    }
    // The arguments to blame are the resource's.
    let without_path = |diagnostic| Diagnostic { path: None, ..diagnostic };
    Ok(ended.diagnostics(&server, now).into_iter().map(without_path).collect())
}

/// Ends the server, which its work then starts again, unless it could not come back.
async fn begin(
    server: &LlamaServer,
    progress: &ActionProgress,
    instance: &mut InstanceSession,
) -> Result<JobReport, Box<Diagnostic>> {
    let refused =
        |report: &JobReport| Box::new(Diagnostic { path: None, ..failure::failed(server, report, NOTHING_RESTARTED) });
    let unseen = |trouble: Trouble| Box::new(failure::unseen(server, &trouble, None, NOTHING_RESTARTED));
    let mut before = instance.run(&Verb::Look).await.map_err(unseen)?;
    // An update that failed has not ended it.
    if before.phase == Phase::Failed && before.previous == Some(Previous::Serving) {
        before = instance.run(&Verb::RollBack).await.map_err(unseen)?;
    }
    if before.is_refused {
        return Err(refused(&before));
    }
    if let Some(failure) = missing(&before, instance).await.map_err(unseen)? {
        return Err(refused(&JobReport { failure: Some(failure), ..before }));
    }
    if let Some(process) = before.process.as_ref().filter(|process| process.is_alive) {
        progress.say(format!("ending process {}", process.pid));
    }
    let process = before.process.as_ref().map_or("", |process| &process.identity);
    let restarted = instance.run(&Verb::Restart { process }).await.map_err(unseen)?;
    if restarted.is_refused { Err(refused(&restarted)) } else { Ok(restarted) }
}

/// Why the server could not come back.
async fn missing(seen: &JobReport, instance: &mut InstanceSession) -> Result<Option<JobFailure>, Trouble> {
    let Some(process) = &seen.process else { return Ok(None) };
    if seen.is_model_unknown {
        let text = match (seen.facts.lacks_room, &seen.model_now) {
            (true, _) => "no room in /dev/shm or /tmp for the answers. Free space there".to_owned(),
            (false, None) => format!("the file of the model {} did not answer within 10 s", process.model),
            (false, Some(_)) => "a file of additional_files did not answer within 10 s".to_owned(),
        };
        return Ok(Some(JobFailure { kind: FailureKind::NoAnswer, text }));
    }
    if seen.model_now.is_none() {
        let text = format!("the model {} cannot be read", process.model);
        return Ok(Some(JobFailure { kind: FailureKind::MissingModel, text }));
    }
    if seen.files == AdditionalFiles::Missing {
        let text = "a file of additional_files is missing".to_owned();
        return Ok(Some(JobFailure { kind: FailureKind::MissingFile, text }));
    }
    let mut questions = vec![room_question(instance.place())];
    questions.extend(llama::files_question(&instance.place().workspace, &process.command_line, &[]));
    let report = instance.run(&Verb::Check { questions: &questions, job: None }).await?;
    let missing = llama::check_files(&process.command_line, &report.facts).err();
    Ok(no_room(instance.place(), &report.facts).or(missing))
}
