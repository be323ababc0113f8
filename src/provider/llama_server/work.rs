//! The work of an apply in the instance: begun, followed until the server serves, and taken back where it fails. What
//! is done next is decided in `decide`.

use std::time::Duration;

use super::{
    bootstrap::{Binary, Build, Facts, FailureKind, Former, Job, JobFailure, JobReport, Phase, Start, Verb},
    decide::{Goal, History, Step, give_up, is_cured_by_source},
    follow::{Follow, Turn},
    machine::{InstanceSession, Trouble},
    outliving, package, recipe, survey,
    trial::Trial,
};
use crate::framework::value::Number;

/// How often the port is looked at before another program is believed to listen there, and the wait between.
const LOOKS: usize = 8;
const BETWEEN: Duration = Duration::from_millis(600);
/// How often it is decided anew because another run was faster.
const CHANGES: usize = 5;

/// The work on one server.
pub(super) struct Work<'a> {
    pub(super) follow: Follow<'a>,
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
}

/// A server that serves.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) report: JobReport,
    /// Of the probe; none for an answer that is too short to tell.
    pub(super) tokens_per_second: Option<Number>,
}

/// A binary, and why it is not the prebuilt one; or what is wrong with it, and the same.
pub(super) type Chosen = Result<(Binary, Option<JobFailure>), (JobFailure, Option<JobFailure>)>;

/// Finds the binary of a build in what is known of the instance.
pub(super) fn choose(job: &Job, build: Build, because: Option<JobFailure>, facts: &Facts) -> Chosen {
    let binary = match build {
        Build::Source => recipe::choose(job, facts).map(|recipe| Binary::Source(Box::new(recipe))),
        Build::Auto | Build::Prebuilt => package::choose(job, facts).map(Binary::Prebuilt),
    };
    match binary {
        Ok(binary) => Ok((binary, because)),
        Err(failure) => Err((failure, because)),
    }
}

/// Why it does not serve.
#[derive(Debug)]
pub(super) enum NotServing {
    /// It came to nothing; the instance knows why.
    Failed(Box<JobReport>),
    /// It was not begun, and all is as it was.
    Refused(Box<JobReport>),
    /// It came to nothing, and the former server serves again or was to: the failure, what runs now, and whether it
    /// serves.
    RolledBack(Box<JobReport>, Box<JobReport>, Return),
    /// Another job took its place meanwhile.
    Superseded(Box<JobReport>),
    /// It serves as it did before, and does not answer the probe.
    Unproved(Box<JobReport>, String),
    /// The work goes on in the instance, as far as anyone knows: the last that was seen of it.
    Unseen(Trouble, Option<Box<JobReport>>),
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

/// How a job is checked.
pub(super) struct JobCheck<'a> {
    pub(super) job: &'a Job,
    pub(super) ends_rival: bool,
}

impl JobCheck<'_> {
    /// Asks the instance all that is to be known before the job is begun. `known` is what is known where a source is to
    /// be compiled; none before that.
    pub(super) async fn ask(&self, machine: &mut InstanceSession, known: Option<&Facts>) -> Result<JobReport, Trouble> {
        let mut facts = known.cloned().unwrap_or_default();
        let mut looks = 0;
        loop {
            let questions = survey::questions(self.job, known.is_some(), &facts);
            let mut report = machine.run(&Verb::Check { questions: &questions }).await?;
            facts.learn(std::mem::take(&mut report.facts));
            if !survey::questions(self.job, known.is_some(), &facts).is_empty() {
                continue;
            }
            let judged = survey::judged(self.job, facts.clone(), report, self.ends_rival);
            // For some seconds who listens may be wrong: a server is being started at this very moment, or one that was
            // killed has not been cleared away.
            looks += 1;
            if looks == LOOKS || judged.failure.as_ref().is_none_or(|failure| failure.kind != FailureKind::PortInUse) {
                return Ok(judged);
            }
            machine.pause(BETWEEN).await?;
        }
    }
}

impl<'a> Work<'a> {
    /// Has the job done: resumes what is under way, or begins anew.
    pub(super) async fn run(mut self) -> Result<Served, NotServing> {
        let mut report = self.check(None).await?;
        if report.is_refused {
            return Err(self.refused(report).await);
        }
        let (owner_before, mut facts) = (report.owner.clone(), report.facts.clone());
        let mut history = History::default();
        let mut changes = 0;
        loop {
            let turn = self.follow.until_turn(&self.goal, &self.trial, &mut report, &mut history).await;
            match turn.map_err(|trouble| unseen(trouble, Some(&report)))? {
                Turn::Begin(build, because) => {
                    let begun = self.binary(build, because, &mut facts).await?;
                    let (binary, because) = match begun {
                        Ok(begun) => begun,
                        // What would fail for sure is not begun, and the first cause stays the first.
                        Err((failure, because)) => {
                            report = JobReport { failure: Some(failure), because, ..report };
                            return Err(match history.is_begun {
                                true => self.failed(report).await,
                                false => self.refused(report).await,
                            });
                        }
                    };
                    history.resumptions += usize::from(is_interrupted(&report));
                    let rival = report.rival.clone().filter(|rival| self.ends_rival && !rival.command_line.is_empty());
                    let start = Start {
                        job: self.job,
                        binary: &binary,
                        login: &outliving::login(&facts),
                        because: because.as_ref(),
                        owner: self.owner,
                        rolls_back: self.goal.rolls_back,
                        ends_rival: rival.as_ref().and_then(|rival| rival.identity.as_deref()),
                        seen: &report.run,
                    };
                    // As long as nothing has begun, nothing of it was seen.
                    let begun = self.tell(&Verb::Ensure(&start), history.is_begun.then_some(&report)).await?;
                    report = self.accepted(begun, &mut history, &mut changes).await?;
                    match (report.is_refused, history.is_begun) {
                        (true, false) => return Err(self.refused(report).await),
                        (true, true) => return Err(self.failed(report).await),
                        (false, _) => {}
                    }
                }
                Turn::Own => {
                    let own = Verb::Own { seen: &report.run, owner: self.owner, restarts: self.job.restarts };
                    let owned = self.tell(&own, None).await?;
                    report = self.accepted(owned, &mut history, &mut changes).await?;
                    if report.is_refused {
                        return Err(self.refused(report).await);
                    }
                }
                Turn::Fail | Turn::RollBack => return Err(self.failed(report).await),
                Turn::Leave(reason) => {
                    // It was taken over for nothing.
                    let before = owner_before.as_deref().filter(|owner| *owner != self.owner);
                    if let Some(owner) = before {
                        let own = Verb::Own { seen: &report.run, owner, restarts: self.job.restarts };
                        self.tell(&own, Some(&report)).await?;
                    }
                    return Err(NotServing::Unproved(Box::new(report), reason));
                }
                Turn::Refused => return Err(NotServing::Failed(Box::new(report))),
                Turn::Served(tokens_per_second) => {
                    self.follow.done(&report);
                    return Ok(Served { report, tokens_per_second });
                }
                Turn::Superseded => return Err(NotServing::Superseded(Box::new(report))),
            }
        }
    }

    /// What the instance says to a beginning. When another run was faster, or when that is what an answer that was lost
    /// has begun, it is decided anew on what is there now.
    async fn accepted(
        &mut self,
        report: JobReport,
        history: &mut History,
        changes: &mut usize,
    ) -> Result<JobReport, NotServing> {
        if !report.is_refused {
            history.is_begun = true;
            return Ok(report);
        }
        let is_changed = report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Changed);
        if !is_changed || *changes == CHANGES {
            return Ok(report);
        }
        *changes += 1;
        if history.is_begun { self.tell(&Verb::Look, Some(&report)).await } else { self.check(None).await }
    }

    async fn check(&mut self, known: Option<&Facts>) -> Result<JobReport, NotServing> {
        let check = JobCheck { job: self.job, ends_rival: self.ends_rival };
        check.ask(self.follow.machine, known).await.map_err(|trouble| unseen(trouble, None))
    }

    /// What a refusal comes to: an update that was under way before may have ended the server that served.
    async fn refused(self, report: JobReport) -> NotServing {
        if give_up(&self.goal, &report) == Step::RollBack {
            return self.roll_back(report).await;
        }
        NotServing::Refused(Box::new(report))
    }

    async fn failed(self, report: JobReport) -> NotServing {
        if give_up(&self.goal, &report) == Step::RollBack {
            return self.roll_back(report).await;
        }
        NotServing::Failed(Box::new(report))
    }

    /// The binary that is meant, and why it is not the prebuilt one; or what keeps it from being had, and the same.
    async fn binary(
        &mut self,
        build: Build,
        because: Option<JobFailure>,
        facts: &mut Facts,
    ) -> Result<Chosen, NotServing> {
        if build != Build::Source {
            let chosen = choose(self.job, build, because, facts);
            let instead = chosen.as_ref().err().filter(|(failure, _)| is_cured_by_source(&self.goal, failure.kind));
            let Some((failure, _)) = instead else { return Ok(chosen) };
            return Box::pin(self.binary(Build::Source, Some(failure.clone()), facts)).await;
        }
        let report = self.check(Some(facts)).await?;
        *facts = report.facts;
        Ok(match report.failure.filter(|_| report.is_refused) {
            Some(failure) => Err((failure, because)),
            None => choose(self.job, build, because, facts),
        })
    }

    /// Has the former server serve again, and sees that it does.
    async fn roll_back(mut self, failed: JobReport) -> NotServing {
        let failed = Box::new(failed);
        let mut now = match self.tell(&Verb::RollBack, Some(&failed)).await {
            Ok(report) => report,
            Err(ended) => return ended,
        };
        if now.is_refused {
            return NotServing::Failed(Box::new(now));
        }
        if failed.former == Some(Former::Serving) && now.phase == Phase::Ready {
            return NotServing::RolledBack(failed, Box::new(now), Return::GoesOn);
        }
        let turn = self.follow.until_turn(&Goal::seen(), &self.former_trial, &mut now, &mut History::begun()).await;
        let returned = match turn {
            Ok(Turn::Served(speed)) => Return::Serves(speed),
            Ok(Turn::Leave(reason)) => Return::Fails(reason),
            Ok(_) => Return::Fails(now.failure.clone().map(|failure| failure.text).unwrap_or_default()),
            Err(trouble) => Return::Fails(trouble.to_string()),
        };
        NotServing::RolledBack(failed, Box::new(now), returned)
    }

    async fn tell(&mut self, verb: &Verb<'_>, last: Option<&JobReport>) -> Result<JobReport, NotServing> {
        self.follow.machine.run(verb).await.map_err(|trouble| unseen(trouble, last))
    }
}

fn unseen(trouble: Trouble, last: Option<&JobReport>) -> NotServing {
    NotServing::Unseen(trouble, last.map(|report| Box::new(report.clone())))
}

fn is_interrupted(report: &JobReport) -> bool {
    report.phase == Phase::Failed
        && report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Interrupted)
}
