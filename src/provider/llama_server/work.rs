//! The work in the instance, followed until the server serves.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::Instant;

use super::{
    bootstrap::{Job, Kind, Phase, Report, Verb},
    machine::{Machine, Trouble},
    model::Probe,
    trial::{Step, Trial, question},
};
use crate::{
    api::{self, Task},
    framework::value::Number,
};

/// The first wait between two looks, and the longest: of a start, and of a compile.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
const LONGEST_OF_A_COMPILE: Duration = Duration::from_secs(5);
/// How often work that was interrupted, as by a restart of the machine, is taken up again.
const RESUMPTIONS: usize = 3;

/// The work on one server.
pub(super) struct Work<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) job: &'a Job,
    /// How long a start may take until the probe is answered.
    pub(super) ready_timeout: Duration,
    pub(super) probe: Option<&'a Probe>,
    /// Tells who looks on how far it is.
    pub(super) task: Option<Task>,
}

/// A server that serves.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) report: Report,
    /// Of the probe; none for an answer that is too short to tell.
    pub(super) tokens_per_second: Option<Number>,
}

/// Why it does not serve.
#[derive(Debug)]
pub(super) enum Ended {
    /// It came to nothing; the instance knows why.
    Failed(Box<Report>),
    /// It was not begun, and all is as it was.
    Refused(Box<Report>),
    /// The work goes on in the instance, as far as anyone knows: the last that was seen of it.
    Unseen(Trouble, Option<Box<Report>>),
}

impl Work<'_> {
    /// Has the job done: takes up what is under way, or begins anew.
    pub(super) async fn ensure(mut self) -> Result<Served, Ended> {
        let report = self.run(&Verb::Ensure(self.job), None).await?;
        if report.is_refused {
            return Err(Ended::Refused(Box::new(report)));
        }
        self.follow(report).await
    }

    /// Asks the probe of a server that runs, and follows what comes of it.
    pub(super) async fn prove(mut self) -> Result<Served, Ended> {
        let report = self.run(&Verb::Look, None).await?;
        self.follow(report).await
    }

    async fn follow(&mut self, mut report: Report) -> Result<Served, Ended> {
        let trial = Trial {
            port: self.job.place.port,
            api_key: self.job.api_key.as_ref(),
            request: question(self.probe, &self.job.model),
            probe: self.probe,
            ready_timeout: self.ready_timeout,
        };
        let mut pace = Pace::default();
        let mut start: Option<(String, Instant)> = None;
        let mut resumptions = 0;
        loop {
            pace.sees(&report);
            if let Some(task) = &mut self.task {
                task.sees(step(&report), None);
            }
            match (report.phase, &report.process) {
                (Phase::Failed, _) if is_interrupted(&report) && resumptions < RESUMPTIONS => {
                    resumptions += 1;
                    report = self.tell(&Verb::Ensure(self.job), &report).await?;
                }
                (Phase::Failed | Phase::Absent, _) => return Err(Ended::Failed(Box::new(report))),
                (Phase::Load | Phase::Probe | Phase::Ready, Some(process)) if process.is_alive => {
                    let process = process.clone();
                    let begun = match &start {
                        Some((identity, begun)) if *identity == process.identity => *begun,
                        _ => start.insert((process.identity.clone(), Instant::now())).1,
                    };
                    match trial.once(self.machine, &process, begun).await {
                        Ok(Step::Served(tokens_per_second)) => {
                            let verb = Verb::Ready { process: &process.identity };
                            report = self.tell(&verb, &report).await?;
                            if report.phase == Phase::Ready {
                                if let Some(task) = self.task.take() {
                                    task.done(Some(step(&report)));
                                }
                                return Ok(Served { report, tokens_per_second });
                            }
                        }
                        Ok(Step::Failed(reason)) => {
                            tracing::info!(reason, "the server does not infer");
                            let verb = Verb::Failed { job: self.job, process: &process.identity, reason: &reason };
                            report = self.tell(&verb, &report).await?;
                            // Where the verb had no effect, because the process is gone, its own record says why.
                        }
                        Ok(Step::Loading) => {}
                        Err(trouble) => return Err(Ended::Unseen(trouble, Some(Box::new(report)))),
                    }
                }
                _ => {}
            }
            if report.phase != Phase::Failed {
                if let Err(trouble) = self.machine.pause(pace.next()).await {
                    return Err(Ended::Unseen(trouble, Some(Box::new(report))));
                }
                report = self.run(&Verb::Look, Some(&report)).await?;
            }
        }
    }

    /// Tells the instance what was seen of the server. One that cannot note it, as on a full disk, would be told for ever.
    async fn tell(&mut self, verb: &Verb<'_>, last: &Report) -> Result<Report, Ended> {
        let report = self.run(verb, Some(last)).await?;
        if report.is_refused { Err(Ended::Failed(Box::new(report))) } else { Ok(report) }
    }

    async fn run(&mut self, verb: &Verb<'_>, last: Option<&Report>) -> Result<Report, Ended> {
        let ran = self.machine.run(verb).await;
        ran.map_err(|trouble| Ended::Unseen(trouble, last.map(|report| Box::new(report.clone()))))
    }
}

/// How far the work is, in a word or two.
pub(super) fn step(report: &Report) -> api::Step {
    let phase = match report.phase {
        Phase::Absent => "nothing runs",
        Phase::Preflight => "checking",
        Phase::Find => "looking for a build",
        Phase::Compile => "compiling",
        Phase::Start => "starting the server",
        Phase::Load => "loading the model",
        Phase::Probe => "asking the model",
        Phase::Ready => "ready",
        Phase::Failed => "failed",
    };
    let compile = report.compile.as_ref().filter(|_| report.phase == Phase::Compile);
    api::Step {
        percent: compile.and_then(|compile| compile.percent),
        detail: compile.map(|compile| compile.line.clone()).filter(|line| !line.is_empty()),
        ..api::Step::new(phase)
    }
}

fn is_interrupted(report: &Report) -> bool {
    report.failure.as_ref().is_some_and(|failure| failure.kind == Kind::Interrupted)
}

/// The waits between looks, which begin anew with each phase, and what the log says of them.
#[derive(Default)]
pub(super) struct Pace {
    waits: Option<backon::ExponentialBackoff>,
    phase: Option<Phase>,
    percent: Option<u8>,
}

impl Pace {
    /// Takes note of how far the work is.
    pub(super) fn sees(&mut self, report: &Report) {
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
    }

    /// The next wait.
    pub(super) fn next(&mut self) -> Duration {
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
