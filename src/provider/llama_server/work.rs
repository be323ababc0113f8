//! The work of an apply in the instance: begun, followed until the server serves, and taken back where it fails. What
//! is done next is decided in `decide`.

use super::{
    bootstrap::{Binary, Build, Facts, Failure, Former, Job, Kind, Phase, Report, Start, Verb},
    decide::{Goal, History, Step, give_up, is_cured_by_source},
    follow::{Follow, Turn},
    machine::{Machine, Trouble},
    outliving, package, recipe, survey,
    trial::Trial,
};
use crate::framework::value::Number;

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
    pub(super) report: Report,
    /// Of the probe; none for an answer that is too short to tell.
    pub(super) tokens_per_second: Option<Number>,
}

/// A binary, and why it is not the prebuilt one; or what is wrong with it, and the same.
pub(super) type Chosen = Result<(Binary, Option<Failure>), (Failure, Option<Failure>)>;

/// Finds the binary of a build in what is known of the instance.
pub(super) fn choose(job: &Job, build: Build, because: Option<Failure>, facts: &Facts) -> Chosen {
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
pub(super) enum Ended {
    /// It came to nothing; the instance knows why.
    Failed(Box<Report>),
    /// It was not begun, and all is as it was.
    Refused(Box<Report>),
    /// It came to nothing, and the former server serves again or was to: the failure, what runs now, and whether it
    /// serves.
    RolledBack(Box<Report>, Box<Report>, Return),
    /// Another job took its place meanwhile.
    Superseded(Box<Report>),
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

/// Asks the instance all that is to be known before the job is begun. `known` is what is known where a source is to be
/// compiled; none before that.
pub(super) async fn check(machine: &mut Machine, job: &Job, known: Option<&Facts>) -> Result<Report, Trouble> {
    let mut facts = known.cloned().unwrap_or_default();
    let mut questions = survey::questions(job, known.is_some(), &facts);
    loop {
        let mut report = machine.run(&Verb::Check { job, questions: &questions }).await?;
        facts.learn(std::mem::take(&mut report.facts));
        questions = survey::questions(job, known.is_some(), &facts);
        if report.is_refused || questions.is_empty() {
            return Ok(survey::judged(job, facts, report));
        }
    }
}

impl<'a> Work<'a> {
    /// Has the job done: resumes what is under way, or begins anew.
    pub(super) async fn run(mut self) -> Result<Served, Ended> {
        let checked = check(self.follow.machine, self.job, None).await;
        let mut report = checked.map_err(|trouble| unseen(trouble, None))?;
        if report.is_refused {
            return Err(self.refused(report).await);
        }
        let (owner_before, rival) =
            (report.owner.clone(), report.rival_pid.filter(|_| !report.rival_command_line.is_empty()));
        let (mut facts, ends_rival) = (report.facts.clone(), rival.filter(|_| self.ends_rival));
        let mut history = History::default();
        loop {
            let turn = self.follow.until_turn(&self.goal, &self.trial, &mut report, &mut history).await;
            match turn.map_err(|trouble| unseen(trouble, Some(&report)))? {
                Turn::Begin(build, because) => {
                    let begun = self.binary(build, because, &mut facts).await?;
                    let (binary, because) = match begun {
                        Ok(begun) => begun,
                        // What would fail for sure is not begun, and the first cause stays the first.
                        Err((failure, because)) => {
                            report = Report { failure: Some(failure), because, ..report };
                            return Err(match history.is_begun {
                                true => self.failed(report).await,
                                false => self.refused(report).await,
                            });
                        }
                    };
                    history.resumptions += usize::from(is_interrupted(&report));
                    let start = Start {
                        job: self.job,
                        binary: &binary,
                        login: &outliving::login(&facts),
                        because: because.as_ref(),
                        owner: self.owner,
                        rolls_back: self.goal.rolls_back,
                        ends_rival,
                    };
                    report = self.tell(&Verb::Ensure(&start), Some(&report)).await?;
                    match (report.is_refused, history.is_begun) {
                        (true, false) => return Err(self.refused(report).await),
                        (true, true) => return Err(self.failed(report).await),
                        (false, _) => history.is_begun = true,
                    }
                }
                Turn::Fail | Turn::RollBack => return Err(self.failed(report).await),
                Turn::Leave(reason) => {
                    // It was taken over for nothing.
                    let before = owner_before.as_deref().filter(|owner| *owner != self.owner);
                    if let Some(owner) = before {
                        self.tell(&Verb::Own { owner, restarts: self.job.restarts }, Some(&report)).await?;
                    }
                    return Err(Ended::Unproved(Box::new(report), reason));
                }
                Turn::Refused => return Err(Ended::Failed(Box::new(report))),
                Turn::Served(tokens_per_second) => {
                    self.follow.done(&report);
                    return Ok(Served { report, tokens_per_second });
                }
                Turn::Superseded => return Err(Ended::Superseded(Box::new(report))),
            }
        }
    }

    /// What a refusal comes to: an update that was under way before may have ended the server that served.
    async fn refused(self, report: Report) -> Ended {
        if give_up(&self.goal, &report) == Step::RollBack {
            return self.roll_back(report).await;
        }
        Ended::Refused(Box::new(report))
    }

    async fn failed(self, report: Report) -> Ended {
        if give_up(&self.goal, &report) == Step::RollBack {
            return self.roll_back(report).await;
        }
        Ended::Failed(Box::new(report))
    }

    /// The binary that is meant, and why it is not the prebuilt one; or what keeps it from being had, and the same.
    async fn binary(&mut self, build: Build, because: Option<Failure>, facts: &mut Facts) -> Result<Chosen, Ended> {
        if build != Build::Source {
            let chosen = choose(self.job, build, because, facts);
            let instead = chosen.as_ref().err().filter(|(failure, _)| is_cured_by_source(&self.goal, failure.kind));
            let Some((failure, _)) = instead else { return Ok(chosen) };
            return Box::pin(self.binary(Build::Source, Some(failure.clone()), facts)).await;
        }
        let checked = check(self.follow.machine, self.job, Some(facts)).await;
        let report = checked.map_err(|trouble| unseen(trouble, None))?;
        *facts = report.facts;
        Ok(match report.failure.filter(|_| report.is_refused) {
            Some(failure) => Err((failure, because)),
            None => choose(self.job, build, because, facts),
        })
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
        let turn = self.follow.until_turn(&Goal::seen(), &self.former_trial, &mut now, &mut History::begun()).await;
        let returned = match turn {
            Ok(Turn::Served(speed)) => Return::Serves(speed),
            Ok(Turn::Leave(reason)) => Return::Fails(reason),
            Ok(_) => Return::Fails(now.failure.clone().map(|failure| failure.text).unwrap_or_default()),
            Err(trouble) => Return::Fails(trouble.to_string()),
        };
        Ended::RolledBack(failed, Box::new(now), returned)
    }

    async fn tell(&mut self, verb: &Verb<'_>, last: Option<&Report>) -> Result<Report, Ended> {
        self.follow.machine.run(verb).await.map_err(|trouble| unseen(trouble, last))
    }
}

fn unseen(trouble: Trouble, last: Option<&Report>) -> Ended {
    Ended::Unseen(trouble, last.map(|report| Box::new(report.clone())))
}

fn is_interrupted(report: &Report) -> bool {
    report.phase == Phase::Failed && report.failure.as_ref().is_some_and(|failure| failure.kind == Kind::Interrupted)
}
