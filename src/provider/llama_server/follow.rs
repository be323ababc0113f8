//! A server in the instance, followed until it serves, or until something else is to be done than to wait, to ask and
//! to record.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::Instant;

use super::{
    bootstrap::{Build, JobFailure, JobReport, Phase, Verb},
    decide::{CheckVerdict, Goal, History, Step, decide},
    machine::{InstanceSession, Trouble},
    trial::{Trial, TrialResult},
};
use crate::{
    api::{self, Task},
    framework::value::Number,
};

/// The first wait between two looks, and the longest: of a start, and of a compile.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
const LONGEST_OF_A_COMPILE: Duration = Duration::from_secs(5);

/// One server, followed.
pub(super) struct Follow<'a> {
    pub(super) machine: &'a mut InstanceSession,
    /// Tells who looks on how far it is.
    task: Option<Task>,
    /// Told of each phase that is another than the one before.
    on_phase: Box<dyn FnMut(&JobReport) + Send + 'a>,
    pace: Pace,
    /// The process that is tried, and when it was first seen.
    tried: Option<(String, Instant)>,
    /// Of the last probe that was answered.
    speed: Option<Number>,
}

/// What is to be done when following is over.
#[derive(Debug)]
pub(super) enum Turn {
    /// As [`Step::Begin`].
    Begin(Build, Option<JobFailure>),
    /// As [`Step::Fail`].
    Fail,
    /// As [`Step::Leave`].
    Leave(String),
    /// The instance refused to record what was seen.
    Refused,
    /// As [`Step::Own`].
    Own,
    /// As [`Step::RollBack`].
    RollBack,
    /// It serves, and how many tokens a second; none for an answer that is too short to tell.
    Served(Option<Number>),
    /// As [`Step::Superseded`].
    Superseded,
}

impl<'a> Follow<'a> {
    pub(super) fn new(machine: &'a mut InstanceSession, task: Task) -> Self {
        let (on_phase, pace) = (Box::new(|_: &JobReport| ()), Pace::default());
        Self { machine, task: Some(task), on_phase, pace, tried: None, speed: None }
    }

    /// Has each new phase told.
    pub(super) fn telling(self, on_phase: impl FnMut(&JobReport) + Send + 'a) -> Self {
        Self { on_phase: Box::new(on_phase), ..self }
    }

    /// Follows until something else is to be done. `report` is the last that was seen, then and before.
    ///
    /// # Errors
    /// The machine's. The work there goes on.
    pub(super) async fn until_turn(
        &mut self,
        goal: &Goal,
        trial: &Trial<'_>,
        report: &mut JobReport,
        history: &mut History,
    ) -> Result<Turn, Trouble> {
        loop {
            if history.is_begun {
                self.shows(report);
            }
            *report = match decide(goal, report, history) {
                Step::Begin(build, because) => return Ok(Turn::Begin(build, because)),
                Step::Fail => return Ok(Turn::Fail),
                Step::Leave(reason) => return Ok(Turn::Leave(reason)),
                Step::Own => return Ok(Turn::Own),
                Step::RollBack => return Ok(Turn::RollBack),
                Step::Superseded => return Ok(Turn::Superseded),
                Step::Confirm(process) => {
                    let ready = self.machine.run(&Verb::Ready { process: &process }).await?;
                    if ready.is_refused || ready.phase == Phase::Ready {
                        let turn = if ready.is_refused { Turn::Refused } else { Turn::Served(self.speed.take()) };
                        *report = ready;
                        return Ok(turn);
                    }
                    ready
                }
                Step::Record(process, reason) => {
                    tracing::info!(reason, "the server does not answer a chat");
                    let failed = self.machine.run(&Verb::Failed { process: &process, reason: &reason }).await?;
                    // One that cannot be recorded, as on a full disk, would be recorded for ever.
                    if failed.is_refused {
                        *report = failed;
                        return Ok(Turn::Refused);
                    }
                    failed
                }
                Step::Try(process) => match self.ask(trial, &process).await? {
                    TrialResult::Loading => self.look().await?,
                    TrialResult::Failed(reason) => {
                        history.verdict = Some(CheckVerdict { process, failure: Some(reason) });
                        // The process may have gone, and its own record says why.
                        self.machine.run(&Verb::Look).await?
                    }
                    TrialResult::Served(speed) => {
                        self.speed = speed;
                        history.verdict = Some(CheckVerdict { process, failure: None });
                        continue;
                    }
                },
                Step::Wait => self.look().await?,
            };
        }
    }

    /// The end of it, for who looks on.
    pub(super) fn done(self, report: &JobReport) {
        if let Some(task) = self.task {
            task.done(Some(step(report)));
        }
    }

    /// Asks a process, whose time began when it was first asked.
    #[tracing::instrument(name = "request", level = "info", skip_all, fields(endpoint = "llama server"))]
    async fn ask(&mut self, trial: &Trial<'_>, process: &str) -> Result<TrialResult, Trouble> {
        let begun = match &self.tried {
            Some((tried, begun)) if tried == process => *begun,
            _ => self.tried.insert((process.to_owned(), Instant::now())).1,
        };
        trial.once(self.machine, begun).await
    }

    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = "llama server"))]
    async fn look(&mut self) -> Result<JobReport, Trouble> {
        self.machine.pause(self.pace.next()).await?;
        self.machine.run(&Verb::Look).await
    }

    fn shows(&mut self, report: &JobReport) {
        if self.pace.sees(report) {
            (self.on_phase)(report);
        }
        if let Some(task) = &mut self.task {
            task.sees(step(report), None);
        }
    }
}

/// How far the work is, in a word or two.
pub(super) fn step(report: &JobReport) -> api::Stage {
    let phase = match report.phase {
        Phase::Absent => "nothing runs",
        Phase::Find => "looking for a build",
        Phase::Compile => "compiling",
        Phase::Start => "starting the server",
        Phase::Load => "loading the model",
        Phase::Ready => "ready",
        Phase::Failed => "failed",
    };
    let compile = report.compile.as_ref().filter(|_| report.phase == Phase::Compile);
    api::Stage {
        percent: compile.and_then(|compile| compile.percent),
        detail: compile.map(|compile| compile.line.clone()).filter(|line| !line.is_empty()),
        ..api::Stage::new(phase)
    }
}

/// The waits between looks, which begin anew with each phase, and what the log says of them.
#[derive(Default)]
struct Pace {
    waits: Option<backon::ExponentialBackoff>,
    phase: Option<Phase>,
    percent: Option<u8>,
}

impl Pace {
    /// Takes note of how far the work is, and says whether that is another phase.
    fn sees(&mut self, report: &JobReport) -> bool {
        let percent = report.compile.as_ref().and_then(|compile| compile.percent);
        let is_new = self.phase != Some(report.phase);
        if is_new {
            self.phase = Some(report.phase);
            self.waits = None;
        }
        if is_new || (report.phase == Phase::Compile && percent != self.percent) {
            self.percent = percent;
            tracing::info!(phase = ?report.phase, percent, "the work in the instance");
        }
        is_new
    }

    /// The next wait.
    fn next(&mut self) -> Duration {
        let longest = if self.phase == Some(Phase::Compile) { LONGEST_OF_A_COMPILE } else { LONGEST };
        let waits = self.waits.get_or_insert_with(|| {
            ExponentialBuilder::default()
                .with_min_delay(FIRST)
                .with_max_delay(longest)
                .with_factor(1.3)
                .without_max_times()
                .build()
        });
        waits.next().unwrap_or(longest)
    }
}
