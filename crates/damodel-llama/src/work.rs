//! The work on one server: a loop over [`decide`] that carries out each step. An apply and the restart action use it.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    bootstrap::{
        Binary, Build, Facts, FailureKind, Fingerprint, Job, JobFailure, JobReport, Phase, Previous, Start, Verb,
        recipe,
    },
    decide::{Goal, History, Step, TrialAnswers, Tried, decide, is_cured_by_source, is_under_way},
    logout, package,
    session::{InstanceSession, Trouble},
    survey,
    trial::Trial,
    watch::WorkProgress,
};

/// How often the port is looked at before another program is believed to listen there, and the wait between.
const LOOKS: usize = 8;
const BETWEEN: Duration = Duration::from_millis(600);
/// How often the decision is repeated because another run was faster.
const CHANGES: usize = 5;

/// The warning about a server that goes on with another key than the configuration's.
const OLD_KEY: &str = "the server keeps its previous API key: api_key_wo has another value, but the same version. The \
                       previous key is unknown here; the only check was that the server requires one. To use the new \
                       one, change api_key_wo_version.";

/// The fact of the warning about a compile during which no server runs.
const UNSERVED: &str = "no server ran during the compile";

/// The work on one server.
#[expect(missing_debug_implementations, reason = "the function in `watch` has none")]
pub struct Work<'a> {
    /// The login.
    pub instance: &'a mut InstanceSession,
    /// What the work ends with.
    pub goal: Goal,
    /// Whether a server with the same settings and another key goes on: a write-only key counts with its version.
    pub keeps_key: bool,
    /// The request that decides whether the server serves.
    pub trial: Trial<'a>,
    /// [`Self::trial`] of the server that served before, and the hash of the secrets that the trial assumes.
    pub previous_trial: Option<(Trial<'a>, Option<String>)>,
    /// The job to begin; `None` if the work only follows the server that is there.
    pub order: Option<Order<'a>>,
    /// Shows the progress.
    pub watch: WorkProgress<'a>,
    /// The way back to the previous server, for the time of a compile.
    pub restored: Option<Return>,
    /// The warning that no server ran during a compile.
    pub unserved: Option<String>,
}

/// A job to begin.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The job.
    pub job: &'a Job,
    /// The token of the resource.
    pub owner: &'a str,
    /// Whether a llama-server that was started by hand on the port is ended.
    pub ends_rival: bool,
}

/// The end of the work.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// Whether the job was begun, or resumed.
    pub is_begun: bool,
    /// The result of the job.
    pub report: JobReport,
    /// The instance's current state, which differs from `report` after a way back.
    pub now: JobReport,
}

/// How the work ended.
#[derive(Debug)]
pub enum End {
    /// The server serves.
    Served(TrialAnswers),
    /// The job was not begun, and nothing was changed.
    Refused,
    /// The job failed, or its result could not be recorded.
    Failed,
    /// The job failed, and the previous server is to serve again.
    RolledBack(Return),
    /// Another job took its place.
    Superseded,
    /// A server that was ready before does not answer the probe as expected.
    Unproved(JobFailure),
    /// The instance could not be asked any more. The work there goes on.
    Unseen(Trouble),
}

/// The way back to the previous server.
#[derive(Debug, PartialEq)]
pub enum Return {
    /// It was started again and asks for its key, which is not known.
    AsksForKey,
    /// It was started again and does not serve, with the reason.
    Fails(String),
    /// It was never ended.
    GoesOn,
    /// It was started again and serves.
    Serves,
}

/// A binary, and why it is not the prebuilt one; or its failure, and the same.
pub(super) type Chosen = Result<(Binary, Option<JobFailure>), (JobFailure, Option<JobFailure>)>;

/// Finds the binary of a build in the facts.
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

/// Asks the instance everything that must be known before the job is begun. `known` is `None` except before a compile.
pub async fn check_job(
    job: &Job,
    ends_rival: bool,
    instance: &mut InstanceSession,
    known: Option<&Facts>,
) -> Result<JobReport, Trouble> {
    let mut facts = known.cloned().unwrap_or_default();
    let mut looks = 0;
    loop {
        let questions = survey::questions(job, known.is_some(), &facts);
        let mut report = instance.run(&Verb::Check { questions: &questions, job: Some(job) }).await?;
        if report.is_refused {
            return Ok(report);
        }
        facts.learn(std::mem::take(&mut report.facts));
        if !survey::questions(job, known.is_some(), &facts).is_empty() {
            continue;
        }
        let judged = survey::judged(job, facts.clone(), report, ends_rival);
        // The listener may be wrong for some seconds: while a server starts, or after one was killed.
        looks += 1;
        if looks == LOOKS || judged.failure.as_ref().is_none_or(|failure| failure.kind != FailureKind::PortInUse) {
            return Ok(judged);
        }
        instance.pause(BETWEEN).await?;
    }
}

impl Work<'_> {
    /// Begins the job, or resumes what is under way, and follows it to its end.
    pub async fn run(mut self) -> Ended {
        let mut ended = match self.begin_at_previous().await {
            Ok(report) => {
                self.keep_key(&report);
                self.follow(report, History::default()).await
            }
            Err(trouble) => {
                let (report, now) = (JobReport::default(), JobReport::default());
                Ended { end: End::Unseen(trouble), is_begun: false, report, now }
            }
        };
        if matches!(ended.end, End::Served(_)) {
            self.watch.done(&ended.now);
            ended.report.notes.extend(self.trial.is_key_unknown.then(|| OLD_KEY.to_owned()));
            ended.report.notes.extend(self.unserved);
        }
        ended
    }

    /// The first look. If a previous server still serves, and an update to another job is unfinished, the instance
    /// first returns to it: what serves may be what is wanted.
    async fn begin_at_previous(&mut self) -> Result<JobReport, Trouble> {
        let seen = self.check(None).await?;
        if seen.is_refused || seen.previous != Some(Previous::Serving) || seen.fingerprint == self.goal.fingerprint {
            return Ok(seen);
        }
        let back = self.instance.run(&Verb::RollBack).await?;
        if back.is_refused { Ok(back) } else { self.check(None).await }
    }

    /// Lets a server with the same settings and another key go on, if it may.
    fn keep_key(&mut self, seen: &JobReport) {
        let wanted = self.order.map(|order| Fingerprint::of(order.job));
        let (Some((settings, secrets)), Some(wanted)) = (seen.hashes(), wanted) else { return };
        let goal = Goal { fingerprint: seen.fingerprint.clone(), ..self.goal.clone() };
        if self.keeps_key && settings == wanted.settings && secrets != wanted.secrets && is_under_way(&goal, seen) {
            self.goal = goal;
            self.trial.is_key_unknown = true;
        }
    }

    /// The loop.
    pub async fn follow(&mut self, mut seen: JobReport, mut history: History) -> Ended {
        history.owner_before = seen.owner.clone();
        history.had_server = seen.process.as_ref().is_some_and(|process| process.is_alive);
        history.facts = seen.facts.clone();
        loop {
            let ended = match self.step(&mut seen, &mut history).await {
                Ok(None) => continue,
                Ok(Some(ended)) => ended,
                Err(trouble) => Ended::of(End::Unseen(trouble), seen),
            };
            return Ended { is_begun: history.is_begun, ..ended };
        }
    }

    async fn step(&mut self, seen: &mut JobReport, history: &mut History) -> Result<Option<Ended>, Trouble> {
        if history.is_begun {
            self.watch.shows(seen);
        }
        let next = match (decide(&self.goal, seen, history), self.order) {
            (Step::Begin(build, because), Some(order)) => {
                let begun = self.begin(order, build, because, seen, history).await?;
                self.accepted(begun, history).await?
            }
            (Step::Own, Some(order)) => {
                let owned = self.own(order, order.owner, seen).await?;
                self.accepted(owned, history).await?
            }
            (Step::Confirm(process), _) => {
                let ready = self.instance.run(&Verb::Ready { process: &process }).await?;
                if !ready.is_refused && ready.phase == Phase::Ready {
                    let answers = history.tried.take().and_then(|tried| tried.result.ok()).unwrap_or_default();
                    return Ok(Some(Ended::of(End::Served(answers), ready)));
                }
                return Ok(recorded(ready, seen));
            }
            (Step::Record(process, failure), _) => {
                tracing::info!(reason = failure.text, "no correct answer to the probe");
                let failed = self.instance.run(&Verb::Failed { process: &process, failure: &failure }).await?;
                return Ok(recorded(failed, seen));
            }
            (Step::Try(process), _) => match self.ask(&process, history).await? {
                Some(result) => {
                    // The process may have ended, and its own record says why.
                    let looks = result.is_err();
                    history.tried = Some(Tried { process, result });
                    if !looks {
                        return Ok(None);
                    }
                    self.instance.run(&Verb::Look).await?
                }
                None => self.look().await?,
            },
            (Step::Wait, _) => self.look().await?,
            (Step::Fail | Step::Begin(..) | Step::Own, _) => {
                let end = if history.is_begun { End::Failed } else { End::Refused };
                return Ok(Some(Ended::of(end, std::mem::take(seen))));
            }
            (Step::RollBack, _) => return self.roll_back(seen).await.map(Some),
            (Step::Leave(failure), order) => {
                // It was taken over in vain.
                if let (Some(order), Some(before)) = (order, &history.owner_before)
                    && before != order.owner
                {
                    self.own(order, before, seen).await?;
                }
                return Ok(Some(Ended::of(End::Unproved(failure), std::mem::take(seen))));
            }
            (Step::Superseded, _) => return Ok(Some(Ended::of(End::Superseded, std::mem::take(seen)))),
        };
        *seen = next;
        Ok(None)
    }

    /// Begins the job with this build; what would certainly fail is a refusal.
    async fn begin(
        &mut self,
        order: Order<'_>,
        build: Build,
        because: Option<JobFailure>,
        seen: &JobReport,
        history: &mut History,
    ) -> Result<JobReport, Trouble> {
        let (binary, because) = match self.binary(order.job, build, because, &mut history.facts).await? {
            Ok(chosen) => chosen,
            // The first cause stays the first.
            Err((failure, because)) => {
                return Ok(JobReport { failure: Some(failure), because, is_refused: true, ..seen.clone() });
            }
        };
        let is_interrupted = seen.phase == Phase::Failed
            && seen.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Interrupted);
        history.resumptions += usize::from(is_interrupted);
        let seen = match binary {
            Binary::Source(_) => &self.serve_during_compile(seen, history).await?,
            Binary::Prebuilt(_) => seen,
        };
        if seen.is_refused {
            return Ok(seen.clone());
        }
        if let Some(because) = &because {
            self.watch.compiles_because(because);
        }
        self.goal.fingerprint = Some(Fingerprint::of(order.job).to_string());
        self.trial.is_key_unknown = false;
        let rival = seen.rival.as_ref().filter(|rival| order.ends_rival && !rival.command_line.is_empty());
        let note = survey::shows_no_gpu(order.job, &history.facts);
        let start = Start {
            job: order.job,
            binary: &binary,
            login: &logout::login(&history.facts),
            note: note.as_ref(),
            because: because.as_ref(),
            owner: order.owner,
            rolls_back: self.goal.rolls_back,
            ends_rival: rival.and_then(|rival| rival.identity.as_deref()),
            seen: &seen.run,
        };
        self.instance.run(&Verb::Ensure(&start)).await
    }

    async fn own(&mut self, order: Order<'_>, owner: &str, seen: &JobReport) -> Result<JobReport, Trouble> {
        self.instance.run(&Verb::Own { seen: &seen.run, owner, job: order.job }).await
    }

    /// The answer to a beginning. The decision is repeated if another run was faster, or a lost answer has begun it.
    async fn accepted(&mut self, report: JobReport, history: &mut History) -> Result<JobReport, Trouble> {
        if !report.is_refused {
            history.is_begun = true;
            return Ok(report);
        }
        let is_changed = report.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Changed);
        if !is_changed || history.changes == CHANGES {
            return Ok(report);
        }
        history.changes += 1;
        if history.is_begun { self.instance.run(&Verb::Look).await } else { self.check(None).await }
    }

    async fn check(&mut self, known: Option<&Facts>) -> Result<JobReport, Trouble> {
        match self.order {
            Some(order) => check_job(order.job, order.ends_rival, self.instance, known).await,
            None => self.instance.run(&Verb::Look).await,
        }
    }

    /// The binary of a build.
    async fn binary(
        &mut self,
        job: &Job,
        build: Build,
        because: Option<JobFailure>,
        facts: &mut Facts,
    ) -> Result<Chosen, Trouble> {
        if build != Build::Source {
            let chosen = choose(job, build, because, facts);
            let instead = chosen.as_ref().err().filter(|(failure, _)| is_cured_by_source(&self.goal, failure.kind));
            let Some((failure, _)) = instead else { return Ok(chosen) };
            return Box::pin(self.binary(job, Build::Source, Some(failure.clone()), facts)).await;
        }
        let report = self.check(Some(facts)).await?;
        *facts = report.facts;
        Ok(match report.failure.filter(|_| report.is_refused) {
            Some(failure) => Err((failure, because)),
            None => choose(job, build, because, facts),
        })
    }

    /// Before a compile: starts a previous server again that an update has ended and may return to. Its report, or the
    /// one that was seen.
    async fn serve_during_compile(&mut self, seen: &JobReport, history: &History) -> Result<JobReport, Trouble> {
        if seen.previous != Some(Previous::Ended) || !self.goal.rolls_back {
            let is_idle = history.had_server && seen.phase == Phase::Failed && seen.previous.is_none();
            self.unserved = is_idle.then(|| format!("{UNSERVED}: the update had stopped the previous server"));
            return Ok(seen.clone());
        }
        let now = self.instance.run(&Verb::RollBack).await?;
        if now.is_refused {
            return Ok(now);
        }
        let (returned, now) = self.follow_previous(now).await;
        // A run that was stopped begins no compile.
        self.instance.pause(Duration::ZERO).await?;
        if let Return::Fails(reason) = &returned {
            self.unserved = Some(format!("{UNSERVED}: the previous server was started again and failed: {reason}"));
        }
        self.restored = Some(returned);
        Ok(now)
    }

    /// Starts the previous server again, and follows it as its own work.
    async fn roll_back(&mut self, failed: &mut JobReport) -> Result<Ended, Trouble> {
        let now = self.instance.run(&Verb::RollBack).await?;
        if now.is_refused {
            return Ok(Ended::of(End::Failed, now));
        }
        let report = std::mem::take(failed);
        let goes_on = match self.restored.take() {
            Some(Return::Fails(_)) => None,
            restored => Some(restored.unwrap_or(Return::GoesOn)),
        };
        let (returned, now) = match goes_on {
            Some(returned) if report.previous == Some(Previous::Serving) && now.phase == Phase::Ready => {
                (returned, now)
            }
            _ => self.follow_previous(now).await,
        };
        Ok(Ended { now, ..Ended::of(End::RolledBack(returned), report) })
    }

    /// Follows a previous server that was started again until it serves or fails.
    async fn follow_previous(&mut self, now: JobReport) -> (Return, JobReport) {
        let (goal, order) = (std::mem::replace(&mut self.goal, Goal::seen()), self.order.take());
        let mut trial = self.trial.clone();
        if let Some((previous, secrets)) = &self.previous_trial {
            let is_key_known = now.hashes().map(|(_, secrets)| secrets) == secrets.as_deref();
            self.trial = previous.clone().of_server(now.has_key, is_key_known);
        }
        let back = Box::pin(self.follow(now, History::begun())).await;
        (self.goal, self.order) = (goal, order);
        std::mem::swap(&mut self.trial, &mut trial);
        let returned = match back.end {
            End::Served(_) if trial.is_key_unknown => Return::AsksForKey,
            End::Served(_) => Return::Serves,
            End::Unproved(failure) => Return::Fails(failure.text),
            End::Unseen(trouble) => Return::Fails(trouble.to_string()),
            _ => Return::Fails(back.now.failure.clone().map(|failure| failure.text).unwrap_or_default()),
        };
        (returned, back.now)
    }

    /// Asks a process, whose time began when it was first asked.
    #[tracing::instrument(name = "request", level = "info", skip_all, fields(endpoint = "llama server"))]
    async fn ask(
        &mut self,
        process: &str,
        history: &mut History,
    ) -> Result<Option<Result<TrialAnswers, JobFailure>>, Trouble> {
        let begun = match &history.asked {
            Some((asked, begun)) if asked == process => *begun,
            _ => history.asked.insert((process.to_owned(), Instant::now())).1,
        };
        self.trial.once(self.instance, begun).await
    }

    #[tracing::instrument(name = "wait", level = "info", skip_all, fields(kind = "llama server"))]
    async fn look(&mut self) -> Result<JobReport, Trouble> {
        self.instance.pause(self.watch.wait()).await?;
        self.instance.run(&Verb::Look).await
    }
}

impl Ended {
    fn of(end: End, report: JobReport) -> Self {
        Self { end, is_begun: false, now: report.clone(), report }
    }
}

/// After a record: one that was refused, as on a full disk, would be repeated for ever.
fn recorded(report: JobReport, seen: &mut JobReport) -> Option<Ended> {
    if report.is_refused {
        return Some(Ended::of(End::Failed, report));
    }
    *seen = report;
    None
}
