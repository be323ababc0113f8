//! The work in the instance, followed until the server serves. What is done next is decided in `decide`.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::Instant;

use super::{
    bootstrap::{Build, Failure, Former, Job, Kind, Phase, Report, Start, Verb},
    decide::{Goal, History, Step, Verdict, decide, give_up},
    machine::{Machine, Trouble},
    trial::{Trial, Tried},
};
use crate::{
    api::{self, Task},
    framework::value::Number,
};

/// The first wait between two looks, and the longest: of a start, and of a compile.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
const LONGEST_OF_A_COMPILE: Duration = Duration::from_secs(5);

/// The work on one server.
pub(super) struct Work<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) job: &'a Job,
    pub(super) goal: Goal,
    /// The token of the resource.
    pub(super) owner: &'a str,
    /// Whether a llama-server that was started by hand on the port is ended.
    pub(super) ends_rival: bool,
    /// What decides whether the server serves.
    pub(super) trial: Trial<'a>,
    /// The same for the server that served before.
    pub(super) former_trial: Trial<'a>,
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
    /// It came to nothing, and the former server serves again or was to: the failure, what runs now, and whether it serves.
    RolledBack(Box<Report>, Box<Report>, Return),
    /// It serves as it did before, and does not answer the probe.
    Unproved(Box<Report>, String),
    /// The work goes on in the instance, as far as anyone knows: the last that was seen of it.
    Unseen(Trouble, Option<Box<Report>>),
}

/// What became of the former server.
#[derive(Debug, PartialEq)]
pub(super) enum Return {
    /// It was started again, and does not serve, or nobody saw that it does.
    Fails(String),
    /// It was never ended.
    GoesOn,
    /// It was started again and serves.
    Serves(Option<Number>),
}

impl Work<'_> {
    /// Has the job done: resumes what is under way, or begins anew.
    pub(super) async fn run(mut self) -> Result<Served, Ended> {
        let mut report = self.tell(&Verb::Check(self.job), None).await?;
        if report.is_refused {
            return Err(self.refused(report).await);
        }
        let owner_before = report.owner.clone();
        let (mut history, mut pace) = (History::default(), Pace::default());
        let mut start: Option<(String, Instant)> = None;
        let mut speed = None;
        loop {
            if history.is_begun {
                self.shows(&mut pace, &report);
            }
            report = match decide(self.goal, &report, &history) {
                Step::Begin(build, because) => {
                    history.resumptions += usize::from(is_interrupted(&report));
                    let begun = self.begin(build, because.as_ref(), self.owner, &report).await?;
                    match (begun.is_refused, history.is_begun) {
                        (true, false) => return Err(self.refused(begun).await),
                        (true, true) => return Err(self.failed(begun).await),
                        (false, _) => history.is_begun = true,
                    }
                    begun
                }
                Step::Confirm(process) => {
                    let report = self.tell(&Verb::Ready { process: &process }, Some(&report)).await?;
                    if report.is_refused {
                        return Err(Ended::Failed(Box::new(report)));
                    }
                    if report.phase == Phase::Ready {
                        if let Some(task) = self.task.take() {
                            task.done(Some(step(&report)));
                        }
                        return Ok(Served { report, tokens_per_second: speed });
                    }
                    report
                }
                Step::Fail | Step::RollBack => return Err(self.failed(report).await),
                Step::Leave(reason) => {
                    // It was taken over for nothing.
                    let before = owner_before.as_deref().filter(|owner| *owner != self.owner);
                    if let (Some(owner), Some(build)) = (before, report.begun) {
                        self.begin(build, None, owner, &report).await?;
                    }
                    return Err(Ended::Unproved(Box::new(report), reason));
                }
                Step::Record(process, reason) => {
                    tracing::info!(reason, "the server does not infer");
                    let verb = Verb::Failed { process: &process, reason: &reason };
                    let report = self.tell(&verb, Some(&report)).await?;
                    // One that cannot be recorded, as on a full disk, would be recorded for ever.
                    if report.is_refused {
                        return Err(Ended::Failed(Box::new(report)));
                    }
                    report
                }
                Step::Try => {
                    let (tried, begun) = match &report.process {
                        Some(process) => {
                            let begun = match &start {
                                Some((identity, begun)) if *identity == process.identity => *begun,
                                _ => start.insert((process.identity.clone(), Instant::now())).1,
                            };
                            (self.trial.once(self.machine, begun).await, process.identity.clone())
                        }
                        None => (Ok(Tried::Loading), String::new()),
                    };
                    match tried.map_err(|trouble| Ended::Unseen(trouble, Some(Box::new(report.clone()))))? {
                        Tried::Loading => self.look(&mut pace, &report).await?,
                        Tried::Failed(reason) => {
                            history.verdict = Some(Verdict { process: begun, failure: Some(reason) });
                            // The process may have gone, and its own record says why.
                            self.tell(&Verb::Look, Some(&report)).await?
                        }
                        Tried::Served(tokens_per_second) => {
                            speed = tokens_per_second;
                            history.verdict = Some(Verdict { process: begun, failure: None });
                            report
                        }
                    }
                }
                Step::Wait => self.look(&mut pace, &report).await?,
            };
        }
    }

    /// What a refusal comes to: an update that was under way before may have ended the server that served.
    async fn refused(self, report: Report) -> Ended {
        if give_up(self.goal, &report) == Step::RollBack {
            return self.roll_back(report).await;
        }
        Ended::Refused(Box::new(report))
    }

    async fn failed(self, report: Report) -> Ended {
        if give_up(self.goal, &report) == Step::RollBack {
            return self.roll_back(report).await;
        }
        Ended::Failed(Box::new(report))
    }

    async fn begin(
        &mut self,
        build: Build,
        because: Option<&Failure>,
        owner: &str,
        last: &Report,
    ) -> Result<Report, Ended> {
        let start = Start {
            job: self.job,
            build,
            because,
            owner,
            rolls_back: self.goal.rolls_back,
            ends_rival: self.ends_rival,
        };
        self.tell(&Verb::Ensure(&start), Some(last)).await
    }

    /// Has the former server serve again, and sees that it does.
    async fn roll_back(mut self, failed: Report) -> Ended {
        let failed = Box::new(failed);
        let mut now = match self.tell(&Verb::RollBack, Some(&failed)).await {
            Ok(report) => report,
            Err(ended) => return ended,
        };
        if now.is_refused {
            return Ended::Failed(Box::new(now));
        }
        if failed.former == Some(Former::Serving) && now.phase == Phase::Ready {
            return Ended::RolledBack(failed, Box::new(now), Return::GoesOn);
        }
        let returned = self.returned(&mut now).await;
        Ended::RolledBack(failed, Box::new(now), returned)
    }

    async fn returned(&mut self, now: &mut Report) -> Return {
        let mut pace = Pace::default();
        let mut start: Option<(String, Instant)> = None;
        loop {
            self.shows(&mut pace, now);
            let tried = match (now.phase, &now.process) {
                (Phase::Failed | Phase::Absent, _) => {
                    return Return::Fails(now.failure.clone().map(|failure| failure.text).unwrap_or_default());
                }
                (Phase::Load | Phase::Ready, Some(process)) if process.is_alive => {
                    let begun = match &start {
                        Some((identity, begun)) if *identity == process.identity => *begun,
                        _ => start.insert((process.identity.clone(), Instant::now())).1,
                    };
                    self.former_trial.once(self.machine, begun).await
                }
                _ => Ok(Tried::Loading),
            };
            let seen = match tried {
                Err(trouble) => return Return::Fails(trouble.to_string()),
                Ok(Tried::Failed(reason)) => return Return::Fails(reason),
                Ok(Tried::Loading) => self.look(&mut pace, now).await,
                Ok(Tried::Served(speed)) => {
                    let process = now.process.as_ref().map(|process| process.identity.clone()).unwrap_or_default();
                    match self.tell(&Verb::Ready { process: &process }, Some(now)).await {
                        Ok(ready) if ready.phase == Phase::Ready => {
                            *now = ready;
                            return Return::Serves(speed);
                        }
                        other => other,
                    }
                }
            };
            match seen {
                Ok(report) => *now = report,
                Err(Ended::Unseen(trouble, _)) => return Return::Fails(trouble.to_string()),
                Err(_) => return Return::Fails("nobody saw what became of it".to_owned()),
            }
        }
    }

    async fn look(&mut self, pace: &mut Pace, last: &Report) -> Result<Report, Ended> {
        if let Err(trouble) = self.machine.pause(pace.next()).await {
            return Err(Ended::Unseen(trouble, Some(Box::new(last.clone()))));
        }
        self.tell(&Verb::Look, Some(last)).await
    }

    fn shows(&mut self, pace: &mut Pace, report: &Report) {
        pace.sees(report);
        if let Some(task) = &mut self.task {
            task.sees(step(report), None);
        }
    }

    async fn tell(&mut self, verb: &Verb<'_>, last: Option<&Report>) -> Result<Report, Ended> {
        let ran = self.machine.run(verb).await;
        ran.map_err(|trouble| Ended::Unseen(trouble, last.map(|report| Box::new(report.clone()))))
    }
}

/// How far the work is, in a word or two.
pub(super) fn step(report: &Report) -> api::Step {
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
    api::Step {
        percent: compile.and_then(|compile| compile.percent),
        detail: compile.map(|compile| compile.line.clone()).filter(|line| !line.is_empty()),
        ..api::Step::new(phase)
    }
}

fn is_interrupted(report: &Report) -> bool {
    report.phase == Phase::Failed && report.failure.as_ref().is_some_and(|failure| failure.kind == Kind::Interrupted)
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
