//! The work of an apply in the instance: begun, followed until the server serves, and taken back where it fails. What is
//! done next is decided in `decide`.

use super::{
    bootstrap::{Build, Failure, Former, Job, Kind, Phase, Recipe, Report, Start, Verb},
    decide::{Goal, History, Step, give_up},
    follow::{Follow, Turn},
    machine::Trouble,
    recipe,
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

/// Why it does not serve.
#[derive(Debug)]
pub(super) enum Ended {
    /// It came to nothing; the instance knows why.
    Failed(Box<Report>),
    /// It was not begun, and all is as it was.
    Refused(Box<Report>),
    /// It came to nothing, and the former server serves again or was to: the failure, what runs now, and whether it serves.
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

impl<'a> Work<'a> {
    /// Has the job done: resumes what is under way, or begins anew.
    pub(super) async fn run(mut self) -> Result<Served, Ended> {
        let mut report = self.tell(&Verb::Check(self.job), None).await?;
        if report.is_refused {
            return Err(self.refused(report).await);
        }
        let (owner_before, facts) = (report.owner.clone(), report.facts.clone());
        let mut history = History::default();
        loop {
            let turn = self.follow.until_turn(&self.goal, &self.trial, &mut report, &mut history).await;
            match turn.map_err(|trouble| unseen(trouble, Some(&report)))? {
                Turn::Begin(build, because) => {
                    let recipe = match build {
                        Build::Source => Some(recipe::choose(self.job, &facts)),
                        Build::Auto | Build::Prebuilt => None,
                    };
                    let recipe = match recipe.transpose() {
                        Ok(recipe) => recipe,
                        // What would fail for sure is not begun, and the first cause stays the first.
                        Err(failure) => {
                            report = Report { failure: Some(failure), because, ..report };
                            return Err(match history.is_begun {
                                true => self.failed(report).await,
                                false => self.refused(report).await,
                            });
                        }
                    };
                    history.resumptions += usize::from(is_interrupted(&report));
                    let start = self.start(build, recipe.as_ref(), because.as_ref());
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
                    if let (Some(owner), Some(build)) = (before, report.begun) {
                        let start = Start { owner, ..self.start(build, None, None) };
                        self.tell(&Verb::Ensure(&start), Some(&report)).await?;
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

    fn start<'s>(&self, build: Build, recipe: Option<&'s Recipe>, because: Option<&'s Failure>) -> Start<'s>
    where
        'a: 's,
    {
        Start {
            job: self.job,
            build,
            recipe,
            because,
            owner: self.owner,
            rolls_back: self.goal.rolls_back,
            ends_rival: self.ends_rival,
        }
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
